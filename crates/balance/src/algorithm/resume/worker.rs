//! The balancer's own observations of a worker.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::class::HORIZON;
use super::class_times::ServiceTime;
use super::worker_state::Known;
use crate::announcements::Announced;
use crate::load::{DecayedMean, Rate};

/// A new worker is given at most so many requests for its own sake.
const TRIALS: u32 = 1024;

/// How loaded a worker is, and how it did of late. What a choice reads comes first.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct WorkerLoad {
    /// Microseconds of work that the requests in hand are expected to be.
    work: AtomicU64,
    /// What others have in flight to it, and when it said so: requests in the high half, milliseconds in the
    /// low.
    others: AtomicU64,
    /// Since when it is at work on the request at hand: when it finished the last one, or began this one
    /// having had no other, in microseconds.
    since: AtomicU64,
    /// 1 for each failure, 0 for each answer, of late.
    faults: DecayedMean,
    /// The number of the choice that last fell on it.
    used: AtomicU64,
    /// Requests in hand, of late.
    backlog: DecayedMean,
    /// Seconds that it spends on a request of a class that it did not know.
    pub(crate) cold: DecayedMean,
    /// The part of the data of its requests that it loads again, having had it, by the time it takes to load
    /// all.
    pub(crate) reloading: DecayedMean,
    /// How often it is given a class that it does not know.
    given: Rate,
    /// Seconds that it spends on a request, of late.
    pace: DecayedMean,
    /// How often it is chosen.
    chosen: Rate,
    /// When a request to it last failed, in microseconds.
    failed_at: AtomicU64,
    /// Requests that it may still be given for its own sake, being new.
    trials: AtomicU32,
    /// What is known of its résumé, and by which skills, which are told by their address.
    pub(crate) known: Mutex<Option<(usize, Known)>>,
    /// Held by whoever takes in what it reports.
    pub(crate) taking: Mutex<()>,
    /// The version it announced.
    announced: Mutex<Announced>,
}

impl WorkerLoad {
    /// The version it announced.
    pub(crate) fn announced(&self) -> MutexGuard<'_, Announced> {
        self.announced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It works again, having had nothing to do, at `now`, in microseconds.
    pub(crate) fn wakes(&self, now: u64) {
        self.since.fetch_max(now, Ordering::Relaxed);
    }

    /// It was given a request of `work` microseconds at this tick, and has `in_hand` now.
    pub(crate) fn begun(&self, work: u64, in_hand: u32, decay: f32, tick: u64, workers: usize) {
        self.used.store(tick, Ordering::Relaxed);
        self.chosen.count(tick, share_horizon(workers));
        self.work.fetch_add(work, Ordering::Relaxed);
        self.backlog.add(in_hand as f32, decay);
    }

    /// It is done with a request that was taken to be of `work` microseconds.
    pub(crate) fn ended(&self, work: u64, in_hand: u32, decay: f32) {
        self.work.fetch_sub(work, Ordering::Relaxed);
        self.backlog.add(in_hand as f32, decay);
    }

    /// Requests in hand of late.
    pub(crate) fn backlog(&self) -> f32 {
        self.backlog.get()
    }

    /// The number of the choice that last fell on it.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The share of choices that fall on it.
    pub(crate) fn share(&self, tick: u64, workers: usize) -> f32 {
        self.chosen.share(tick, share_horizon(workers))
    }

    /// It was given a class that it does not know.
    pub(crate) fn given(&self, tick: u64) {
        self.given.count(tick, HORIZON);
    }

    /// The classes it did not know that it was given of late.
    pub(crate) fn given_of_late(&self, tick: u64) -> f32 {
        self.given.share(tick, HORIZON) * HORIZON
    }

    /// Seconds until it is done with what it has, also of other balancers, at `now`, in microseconds. Where
    /// requests to it fail, that takes the longer the more do, ten times as long where all do; and so does
    /// one more, which takes `cold` seconds where none do. That is a matter of how long requests take, or one
    /// that failed would be the last it was given.
    pub(crate) fn wait(&self, in_hand: u32, now: u64, cold: f32) -> f32 {
        let (own, blame) = (self.work.load(Ordering::Relaxed) as f32 * 1e-6, self.blame(now));
        let others = self.others(now / 1000);
        // Most that a choice looks at in a large pool have nothing to do.
        if own == 0.0 && others == 0.0 && blame == 0.0 {
            return 0.0;
        }
        // What it works on is done in part; how much of the rest it will take, its age does not tell.
        let since = self.since.load(Ordering::Relaxed);
        let done = (now.saturating_sub(since) as f32 * 1e-6).min(own / in_hand.max(1) as f32);
        let success = 1.0 - 0.9 * blame;
        (own - done + others * self.pace.get()) / success + cold * (1.0 / success - 1.0)
    }

    /// How many times longer than most it takes, which take `cold` seconds for a request of a class that is
    /// new to them, by what it took for such requests. What it takes for classes that it knows says as much
    /// about the classes.
    pub(crate) fn slowness(&self, cold: f32) -> f32 {
        /// Of fewer requests nothing follows.
        const ENOUGH: f32 = 4.0;
        if self.cold.weight() < ENOUGH { 1.0 } else { (self.cold.get() / cold).clamp(0.1, 10.0) }
    }

    /// A request given to it at `begun` has ended at `now`, both in microseconds. It is taken to have been at
    /// work on it since it was done with the one before.
    pub(crate) fn finished(&self, begun: u64, now: u64) -> ServiceTime {
        let before = self.since.fetch_max(now, Ordering::Relaxed);
        // What takes no time at all would be no measure of what takes longer.
        let seconds = now.saturating_sub(begun.max(before)).max(1) as f32 * 1e-6;
        self.pace.add(seconds, 1.0 - 1.0 / 32.0);
        ServiceTime { seconds, alone: before <= begun }
    }

    /// How a request to it ended, at `now`, in microseconds.
    pub(crate) fn failed(&self, failed: bool, now: u64) {
        /// So many requests are remembered, about.
        const HISTORY: f32 = 32.0;
        let known = self.faults.weight() > 0.0;
        // As long as nothing fails nothing is to be written. Then, what went well before counts.
        if failed && !known {
            self.faults.set(0.0, HISTORY - 1.0);
        }
        if failed {
            self.failed_at.fetch_max(now, Ordering::Relaxed);
        }
        if failed || known {
            self.faults.add(if failed { 1.0 } else { 0.0 }, 1.0 - 1.0 / HISTORY);
        }
    }

    /// The share of requests to it that failed of late.
    pub(crate) fn faults(&self) -> f32 {
        self.faults.get()
    }

    /// The share of requests to it that a choice takes to fail at `now`, in microseconds: that of late, until
    /// nothing has failed for a minute, as long as the longest ejection. A worker that is avoided has no
    /// answers by which it could be told otherwise.
    pub(crate) fn blame(&self, now: u64) -> f32 {
        const MICROS: u64 = 60_000_000;
        let faults = self.faults();
        let blamed = faults > 0.0 && now.saturating_sub(self.failed_at.load(Ordering::Relaxed)) < MICROS;
        if blamed { faults } else { 0.0 }
    }

    /// Its failures are forgotten.
    pub(crate) fn forgive(&self) {
        self.faults.set(0.0, 0.0);
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
    fn others(&self, now: u64) -> f32 {
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

    /// Whether it came to others that had their share already, and has not found its own.
    pub(crate) fn is_new(&self) -> bool {
        self.trials.load(Ordering::Relaxed) > 0
    }

    /// Takes one of the requests it may be given for its own sake.
    pub(crate) fn try_once(&self) -> bool {
        let one_less = |trials: u32| trials.checked_sub(1);
        self.trials.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }

    /// It has its share.
    pub(crate) fn settle(&self) {
        self.trials.store(0, Ordering::Relaxed);
    }

    /// It comes to the others, or has started anew.
    pub(crate) fn renew(&self) {
        self.trials.store(TRIALS, Ordering::Relaxed);
    }

    /// Nothing is known of its résumé, nor of how it does at classes.
    pub(crate) fn forget(&self) {
        self.reloading.set(0.0, 0.0);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The choices over which a worker's share is taken.
fn share_horizon(workers: usize) -> f32 {
    64.0 * workers as f32
}
