//! Pseudo-random numbers: the same seed makes the same plan.

/// Spreads the bits of a number over all 64 (the finalizer of splitmix64).
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The step of splitmix64 from one number to the next.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A generator of pseudo-random numbers (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    /// A generator for part number `part` of the plan of `seed`.
    pub(crate) fn new(seed: u64, part: u64) -> Random {
        Random(mix(seed.wrapping_add(mix(part.wrapping_add(STEP)))))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number below `bound`, which must not be 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both of them possible.
    pub(crate) fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True in `percent` of all calls.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A number from 0 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of `choices`.
    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// One of `choices`, each with its weight.
    pub(crate) fn weighted<T: Copy>(&mut self, choices: &[(u64, T)]) -> T {
        let mut left = self.below(choices.iter().map(|(weight, _)| weight).sum());
        for &(weight, choice) in choices {
            if left < weight {
                return choice;
            }
            left -= weight;
        }
        unreachable!("the weights are summed above")
    }
}
