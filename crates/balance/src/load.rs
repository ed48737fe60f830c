//! The load of a backend and of a pool, current and recent.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A mean in which recent values count most: each by `decay` less than the one after it.
///
/// Cores share it without a lock. Of two values added at the same time, one may be lost.
#[derive(Debug, Default)]
pub(crate) struct DecayedMean(AtomicU64);

impl DecayedMean {
    /// Adds a value.
    pub(crate) fn add(&self, value: f32, decay: f32) {
        let (sum, count) = self.parts();
        self.put(sum * decay + value, count * decay + 1.0);
    }

    /// Sets it to the mean of `count` equal values.
    pub(crate) fn set(&self, mean: f32, count: f32) {
        self.put(mean * count, count);
    }

    fn put(&self, sum: f32, count: f32) {
        self.0.store(u64::from(sum.to_bits()) << 32 | u64::from(count.to_bits()), Ordering::Relaxed);
    }

    /// The mean; 0 without values.
    pub(crate) fn get(&self) -> f32 {
        let (sum, count) = self.parts();
        if count > 0.0 { sum / count } else { 0.0 }
    }

    /// Whether there are any values.
    pub(crate) fn is_begun(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// The weight of the counted values.
    pub(crate) fn weight(&self) -> f32 {
        self.parts().1
    }

    fn parts(&self) -> (f32, f32) {
        let word = self.0.load(Ordering::Relaxed);
        (f32::from_bits((word >> 32) as u32), f32::from_bits(word as u32))
    }
}

/// How often something happens per choice, recently.
#[derive(Debug, Default)]
pub(crate) struct Rate(AtomicU64);

impl Rate {
    /// Counts this choice. A choice `horizon` choices ago counts a third.
    pub(crate) fn count(&self, tick: u64, horizon: f32) {
        let count = self.share(tick, horizon) * horizon + 1.0;
        self.0.store(u64::from(count.to_bits()) << 32 | u64::from(tick as u32), Ordering::Relaxed);
    }

    /// The share of the recent choices at which it happened.
    pub(crate) fn share(&self, tick: u64, horizon: f32) -> f32 {
        let (count, last) = self.parts();
        let age = (tick as u32).wrapping_sub(last) as f32;
        count * (-age / horizon).exp() / horizon
    }

    /// The choice of its last occurrence, in its low half.
    pub(crate) fn last(&self) -> u32 {
        self.parts().1
    }

    /// The count as of its last occurrence, and the choice of that.
    fn parts(&self) -> (f32, u32) {
        let word = self.0.load(Ordering::Relaxed);
        (f32::from_bits((word >> 32) as u32), word as u32)
    }
}

/// The load of a pool, shared by the pools that succeed each other over reloads.
#[derive(Debug, Default)]
pub(crate) struct PoolLoad {
    /// Requests in flight to backends, and claims to a place at one.
    in_hand: AtomicU32,
    /// Counts choices.
    clock: AtomicU64,
}

impl PoolLoad {
    pub(crate) fn in_hand(&self) -> u32 {
        self.in_hand.load(Ordering::Relaxed)
    }

    /// Adds one, and returns their number.
    pub(crate) fn begin(&self) -> u32 {
        self.in_hand.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Removes one, and returns their number.
    pub(crate) fn end(&self) -> u32 {
        self.in_hand.fetch_sub(1, Ordering::Relaxed) - 1
    }

    /// The number of this choice, from 1.
    pub(crate) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The number of the last choice.
    pub(crate) fn ticks(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }
}
