//! Random numbers that stay the same in every version of every dependency.

use sandarac_balance::Random as Uniform;

/// SplitMix64, and what the traces draw with it.
#[derive(Clone)]
pub(crate) struct Random(Uniform);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(Uniform::new(seed))
    }

    /// A generator of its own for each `number`.
    pub(crate) fn of(seed: u64, number: u64) -> Random {
        Random::new(Uniform::new(seed ^ number.wrapping_mul(0xd1b5_4a32_d192_ed03)).bits())
    }

    /// In `0..1`.
    pub(crate) fn fraction(&mut self) -> f64 {
        self.0.fraction()
    }

    /// In `0..below`, which MUST NOT be zero.
    pub(crate) fn below(&mut self, below: usize) -> usize {
        self.0.below(below)
    }

    /// With mean 0 and standard deviation 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.fraction(), self.fraction());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}
