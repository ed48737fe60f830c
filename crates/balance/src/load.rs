//! The load of a backend and of a pool, now and of late.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A mean in which the latest values count most: each of them by `decay` less than the one after it.
///
/// Cores share it without a lock. Of two values added at the same time one may be lost.
#[derive(Debug, Default)]
pub(crate) struct DecayedMean(AtomicU64);

impl DecayedMean {
    /// Adds a value.
    pub(crate) fn add(&self, value: f32, decay: f32) {
        let (sum, count) = self.parts();
        self.put(sum * decay + value, count * decay + 1.0);
    }

    /// Adds a value that counts for as much as `weight` others.
    pub(crate) fn add_weighted(&self, value: f32, weight: f32, decay: f32) {
        let (sum, count) = self.parts();
        self.put(sum * decay + value * weight, count * decay + weight);
    }

    /// Makes it the mean of so many equal values.
    pub(crate) fn set(&self, mean: f32, count: f32) {
        self.put(mean * count, count);
    }

    fn put(&self, sum: f32, count: f32) {
        self.0.store(u64::from(sum.to_bits()) << 32 | u64::from(count.to_bits()), Ordering::Relaxed);
    }

    /// The mean, 0 of nothing.
    pub(crate) fn get(&self) -> f32 {
        let (sum, count) = self.parts();
        if count > 0.0 { sum / count } else { 0.0 }
    }

    /// Another one that stands where this one does.
    pub(crate) fn copy(&self) -> DecayedMean {
        DecayedMean(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }

    /// How many values count, by their weight.
    pub(crate) fn weight(&self) -> f32 {
        self.parts().1
    }

    fn parts(&self) -> (f32, f32) {
        let word = self.0.load(Ordering::Relaxed);
        (f32::from_bits((word >> 32) as u32), f32::from_bits(word as u32))
    }
}

/// How often something happens per choice, of late.
#[derive(Debug, Default)]
pub(crate) struct Rate(AtomicU64);

impl Rate {
    /// It happened at this choice. What was `horizon` choices ago counts a third.
    pub(crate) fn count(&self, tick: u64, horizon: f32) {
        let count = self.share(tick, horizon) * horizon + 1.0;
        self.0.store(u64::from(count.to_bits()) << 32 | u64::from(tick as u32), Ordering::Relaxed);
    }

    /// The share of the choices of late at which it happened.
    pub(crate) fn share(&self, tick: u64, horizon: f32) -> f32 {
        let (count, last) = self.parts();
        let age = (tick as u32).wrapping_sub(last) as f32;
        count * (-age / horizon).exp() / horizon
    }

    /// The share as it was when it happened last.
    pub(crate) fn share_at_last(&self, horizon: f32) -> f32 {
        self.parts().0 / horizon
    }

    /// The choice at which it happened last, in its low half.
    pub(crate) fn last(&self) -> u32 {
        self.parts().1
    }

    /// How often it happened, as of the choice at which it did last, and that choice.
    fn parts(&self) -> (f32, u32) {
        let word = self.0.load(Ordering::Relaxed);
        (f32::from_bits((word >> 32) as u32), word as u32)
    }
}

/// The load of a pool, shared by the pools that follow each other over reloads.
#[derive(Debug, Default)]
pub(crate) struct PoolLoad {
    /// Requests in flight to backends, and those that wait for a place at one of them.
    in_hand: AtomicU32,
    /// Requests in hand, of late.
    pub(crate) backlog: DecayedMean,
    /// Counts choices.
    clock: AtomicU64,
}

impl PoolLoad {
    pub(crate) fn in_hand(&self) -> u32 {
        self.in_hand.load(Ordering::Relaxed)
    }

    /// One more; how many there are then.
    pub(crate) fn begin(&self) -> u32 {
        self.in_hand.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// One less; how many there are then.
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
