//! What the balancer itself sees of a worker.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::feed::Known;
use crate::load::DecayedMean;

/// How loaded a worker is, and how it did of late.
#[derive(Debug, Default)]
pub(crate) struct WorkerLoad {
    /// Requests in flight, of late.
    backlog: DecayedMean,
    /// The number of the choice that last fell on it.
    used: AtomicU64,
    /// What others have in flight to it, and when it said so: requests in the high half, milliseconds in the low.
    others: AtomicU64,
    /// When it last finished a request, in microseconds.
    finished: AtomicU64,
    /// 1 for each failure, 0 for each answer, of late.
    faults: DecayedMean,
    /// How often it was chosen of late, and the number of the choice that was counted last.
    share: AtomicU64,
    /// What is known of its résumé.
    pub(crate) known: Mutex<Option<Known>>,
    /// The version it announced.
    pub(crate) version: Mutex<Option<Box<str>>>,
}

impl WorkerLoad {
    pub(crate) fn begun(&self, in_flight: u32, decay: f32, tick: u64) {
        self.used.store(tick, Ordering::Relaxed);
        self.backlog.add(in_flight as f32, decay);
    }

    pub(crate) fn ended(&self, in_flight: u32, decay: f32) {
        self.backlog.add(in_flight as f32, decay);
    }

    pub(crate) fn backlog(&self) -> f32 {
        self.backlog.get()
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// A request given to it at `begun` has ended at `now`, both in microseconds: the seconds it spent on it, taken to be
    /// the time since it was done with the one before.
    pub(crate) fn finished(&self, begun: u64, now: u64) -> f32 {
        let before = self.finished.fetch_max(now, Ordering::Relaxed);
        now.saturating_sub(begun.max(before)) as f32 * 1e-6
    }

    pub(crate) fn failed(&self, failed: bool) {
        /// So many requests are remembered, about.
        const HISTORY: f32 = 32.0;
        self.faults.add(if failed { 1.0 } else { 0.0 }, 1.0 - 1.0 / HISTORY);
    }

    /// The share of requests that failed of late; 0 where few were seen.
    pub(crate) fn faults(&self) -> f32 {
        if self.faults.weight() < 4.0 { 0.0 } else { self.faults.get() }
    }

    /// The worker has `in_flight` requests, `own` of which are of this balancer.
    pub(crate) fn told(&self, in_flight: u32, own: u32, now: u64) {
        let others = in_flight.saturating_sub(own);
        if others == 0 && self.others.load(Ordering::Relaxed) >> 32 == 0 {
            // On the usual path, with one balancer, nothing is to be written.
            return;
        }
        self.others.store(u64::from(others) << 32 | u64::from(now as u32), Ordering::Relaxed);
    }

    /// The requests that other balancers have in flight to it, as far as it said so lately.
    pub(crate) fn others(&self, now: u64) -> f32 {
        /// After this time what it said is old.
        const FADE_MILLIS: f32 = 1000.0;
        let word = self.others.load(Ordering::Relaxed);
        let others = (word >> 32) as u32;
        if others == 0 {
            return 0.0;
        }
        let age = (now as u32).wrapping_sub(word as u32) as f32;
        others as f32 * (1.0 - age / FADE_MILLIS).max(0.0)
    }

    /// Nothing is known of its résumé.
    pub(crate) fn forget(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn share(&self) -> &AtomicU64 {
        &self.share
    }
}
