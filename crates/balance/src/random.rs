//! Pseudo-random numbers: the same sequence for the same seed, on every machine. They are predictable.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::hash::{STEP, mix};

/// SplitMix64 (Steele, Lea, Flood 2014), for one owner.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of `seed`. Any seed is good, also neighbouring ones.
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// 64 random bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number below `bound`, which MUST NOT be 0. The bias is below `bound` / 2⁶⁴.
    pub const fn below(&mut self, bound: usize) -> usize {
        scaled(self.bits(), bound)
    }

    /// A number from 0 to below 1.
    pub const fn fraction(&mut self) -> f64 {
        // 53 bits are all that an `f64` below 1 holds.
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The same sequence, shared by all cores: the state is a counter, and one atomic addition takes a number.
pub(crate) struct SharedRandom(AtomicU64);

impl SharedRandom {
    pub(crate) const fn new(seed: u64) -> SharedRandom {
        SharedRandom(AtomicU64::new(seed))
    }

    /// 64 random bits.
    pub(crate) fn bits(&self) -> u64 {
        mix(self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP))
    }

    /// A number below `bound`, which MUST NOT be 0. The bias is below `bound` / 2⁶⁴.
    pub(crate) fn below(&self, bound: usize) -> usize {
        scaled(self.bits(), bound)
    }

    /// `count` numbers below `bound`, which MUST NOT be 0, equal to those of as many calls.
    pub(crate) fn several_below(&self, bound: usize, count: u64) -> impl Iterator<Item = usize> {
        let before = self.0.fetch_add(STEP.wrapping_mul(count), Ordering::Relaxed);
        (1..=count).map(move |n| scaled(mix(before.wrapping_add(STEP.wrapping_mul(n))), bound))
    }

    /// Returns true with this probability.
    pub(crate) fn happens(&self, probability: f32) -> bool {
        // 24 bits are all that an `f32` below 1 holds.
        ((self.bits() >> 40) as f32) < probability * (1_u32 << 24) as f32
    }
}

/// A number below `bound`, from these bits.
const fn scaled(bits: u64, bound: usize) -> usize {
    ((bits as u128 * bound as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_paper() {
        // The first numbers of the reference implementation (Vigna, splitmix64.c) for this seed.
        let mut random = Random::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([random.bits(), random.bits(), random.bits()], expected);
    }

    #[test]
    fn a_shared_sequence_is_the_same_however_it_is_drawn() {
        let mut owned = Random::new(7);
        let expected: Vec<usize> = (0..8).map(|_| owned.below(1000)).collect();
        let shared = SharedRandom::new(7);
        let mut drawn: Vec<usize> = (0..3).map(|_| shared.below(1000)).collect();
        drawn.extend(shared.several_below(1000, 4));
        drawn.push(shared.below(1000));
        assert_eq!(drawn, expected);
    }
}
