//! Random numbers as shared state: lock-free, and the same sequence for the same seed.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::hash::mix;

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64 (Steele, Lea, Flood 2014). Its state is a counter, so cores share it with one atomic addition.
pub(crate) struct Random(AtomicU64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Random {
        Random(AtomicU64::new(seed))
    }

    /// 64 random bits.
    pub(crate) fn next(&self) -> u64 {
        mix(self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP))
    }

    /// A number below `bound`, which MUST NOT be 0. The bias is below `bound` / 2⁶⁴.
    pub(crate) fn below(&self, bound: usize) -> usize {
        scaled(self.next(), bound)
    }

    /// As many numbers below `bound`, which MUST NOT be 0, as that many calls would give one after the other.
    pub(crate) fn several_below(&self, bound: usize, count: u64) -> impl Iterator<Item = usize> {
        let before = self.0.fetch_add(STEP.wrapping_mul(count), Ordering::Relaxed);
        (1..=count).map(move |n| scaled(mix(before.wrapping_add(STEP.wrapping_mul(n))), bound))
    }

    /// Whether something of this probability happens.
    pub(crate) fn happens(&self, probability: f32) -> bool {
        // 24 bits are all that an `f32` below 1 holds.
        ((self.next() >> 40) as f32) < probability * (1_u32 << 24) as f32
    }
}

/// A number below `bound`, by these bits.
fn scaled(bits: u64, bound: usize) -> usize {
    ((u128::from(bits) * bound as u128) >> 64) as usize
}
