//! Random numbers as shared state: lock-free, and the same sequence for the same seed.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::hash::mix;

/// SplitMix64 (Steele, Lea, Flood 2014). Its state is a counter, so cores share it with one atomic addition.
pub(crate) struct Random(AtomicU64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Random {
        Random(AtomicU64::new(seed))
    }

    /// 64 random bits.
    pub(crate) fn next(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        mix(self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP))
    }

    /// A number below `bound`, which MUST NOT be 0. The bias is below `bound` / 2⁶⁴.
    pub(crate) fn below(&self, bound: usize) -> usize {
        ((self.next() as u128 * bound as u128) >> 64) as usize
    }

    /// Whether something of this probability happens.
    pub(crate) fn happens(&self, probability: f32) -> bool {
        // 24 bits are all that an `f32` below 1 holds.
        ((self.next() >> 40) as f32) < probability * (1_u32 << 24) as f32
    }
}
