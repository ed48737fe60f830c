//! The latency of a backend, by peaks.

use std::sync::atomic::{AtomicU64, Ordering};

/// How fast a slow response is forgotten: after this time without another, a third of it counts. Finagle's
/// default.
const DECAY_MILLIS: f32 = 10_000.0;

/// The recent latency of one backend: the recent worst, decaying towards later values.
#[derive(Debug, Default)]
pub(crate) struct PeakLatency(AtomicU64);

impl PeakLatency {
    /// Adds a response that took `millis`.
    pub(crate) fn add(&self, millis: f32, now: u64) {
        let (before, since) = unpack(self.0.load(Ordering::Relaxed));
        let latency = if millis > before {
            millis
        } else {
            let kept = (-elapsed(since, now) / DECAY_MILLIS).exp();
            before * kept + millis * (1.0 - kept)
        };
        // A response that ends at the same time on another core may be lost. The next one counts again.
        self.0.store(pack(latency, now), Ordering::Relaxed);
    }

    /// The recent latency in milliseconds, 0 if none is known. It fades without responses, so that a backend
    /// that was slow once is tried again.
    pub(crate) fn get(&self, now: u64) -> f32 {
        let (latency, since) = unpack(self.0.load(Ordering::Relaxed));
        latency * (-elapsed(since, now) / DECAY_MILLIS).exp()
    }
}

fn elapsed(since: u32, now: u64) -> f32 {
    // The low half of the clock suffices for differences of up to seven weeks.
    (now as u32).wrapping_sub(since) as f32
}

fn pack(latency: f32, now: u64) -> u64 {
    u64::from(latency.to_bits()) << 32 | u64::from(now as u32)
}

fn unpack(word: u64) -> (f32, u32) {
    (f32::from_bits((word >> 32) as u32), word as u32)
}
