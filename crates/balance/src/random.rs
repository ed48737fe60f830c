//! Random numbers as shared state: lock-free, and the same sequence for the same seed.

use std::sync::atomic::{AtomicU64, Ordering};

/// SplitMix64 (Steele, Lea, Flood 2014). Its state is a counter, so cores share it with one atomic addition.
pub(crate) struct Random(AtomicU64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Random {
        Random(AtomicU64::new(seed))
    }

    fn next(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which MUST NOT be 0. The bias is below `bound` / 2⁶⁴.
    pub(crate) fn below(&self, bound: usize) -> usize {
        ((self.next() as u128 * bound as u128) >> 64) as usize
    }
}
