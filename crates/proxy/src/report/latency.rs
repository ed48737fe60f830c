//! Histograms of durations that other threads may read.

use sandarac_balance::Buckets;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Eight buckets for each doubling, so a quantile is exact to an eighth. Up to 2^34 microseconds, more than
/// four hours.
const BUCKETS: Buckets = Buckets::new(3, 34);

/// A log-linear histogram of durations in microseconds. Readers on other threads share its memory.
#[derive(Debug)]
pub struct Latency {
    buckets: Box<[AtomicU64; BUCKETS.count()]>,
    sum: AtomicU64,
}

impl Default for Latency {
    fn default() -> Latency {
        Latency { buckets: Box::new([const { AtomicU64::new(0) }; BUCKETS.count()]), sum: AtomicU64::new(0) }
    }
}

impl Latency {
    /// Counts one duration. Only the core that owns the histogram may call it.
    pub fn observe(&self, duration: Duration) {
        let (bucket, micros) = self.place(duration);
        bucket.store(bucket.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.sum.store(self.sum.load(Ordering::Relaxed).wrapping_add(micros), Ordering::Relaxed);
    }

    /// Counts one duration in a histogram that several cores write.
    pub fn observe_shared(&self, duration: Duration) {
        let (bucket, micros) = self.place(duration);
        bucket.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(micros, Ordering::Relaxed);
    }

    /// The bucket of a duration, and its microseconds.
    fn place(&self, duration: Duration) -> (&AtomicU64, u64) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        (&self.buckets[BUCKETS.of(micros)], micros)
    }

    /// The count of each bucket, with its upper bound in microseconds.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets
            .iter()
            .enumerate()
            .map(|(at, count)| (*BUCKETS.bounds(at).end(), count.load(Ordering::Relaxed)))
    }

    /// The sum of all durations, in microseconds.
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }
}
