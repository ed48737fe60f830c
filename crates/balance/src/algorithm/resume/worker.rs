//! The balancer's own observations of a worker.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::class::HORIZON;
use super::worker_state::Known;
use crate::announcements::Announced;
use crate::load::{DecayedMean, Rate};

/// The most requests that a new worker is given because it is new.
const TRIALS: u32 = 1024;

/// A worker that responds fewer times later than the others is not late.
const LATE: f32 = 4.0;

/// The load and the recent results of a worker. Fields that a choice reads come first.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct WorkerLoad {
    /// Microseconds of work expected of the requests in hand.
    work: AtomicU64,
    /// The requests of other balancers in flight to it, and when it reported them: requests in the high half,
    /// milliseconds in the low.
    others: AtomicU64,
    /// When it began to work on the current request, in microseconds: when it finished the last one or, if it
    /// was idle, when it got this one.
    since: AtomicU64,
    /// 1 for each failure, 0 for each response, recently.
    faults: DecayedMean,
    /// The number of the last choice of this worker.
    used: AtomicU64,
    /// Requests that it may still be given because it is new.
    trials: AtomicU32,
    /// Whether it is late: it responds much later than others.
    late: AtomicBool,
    /// The most requests that it works on at a time; 0 if it does not report it.
    concurrency: AtomicU32,
    /// Seconds that it spends on a request of an unknown class.
    pub(crate) cold: DecayedMean,
    /// How often it is given an unknown class.
    given: Rate,
    /// Seconds that it spends on a request, recently.
    pace: DecayedMean,
    /// How often it is chosen.
    chosen: Rate,
    /// Requests in hand, recently.
    pub(crate) backlog: DecayedMean,
    /// The logarithm of how many times later than expected it responds, recently.
    delay: DecayedMean,
    /// When a request to it last failed, in microseconds.
    failed_at: AtomicU64,
    /// Its known résumé, and the skills that it was applied to, identified by their address.
    pub(crate) known: Mutex<Option<(usize, Known)>>,
    /// Held while a report of it is applied.
    pub(crate) taking: Mutex<()>,
    /// The version it announced.
    announced: Mutex<Announced>,
}

impl WorkerLoad {
    /// The version it announced.
    pub(crate) fn announced(&self) -> MutexGuard<'_, Announced> {
        self.announced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that an idle worker gets work again at `now`, in microseconds.
    pub(crate) fn wakes(&self, now: u64) {
        if self.is_late() {
            self.delay.set(self.delay.get() * self.fading(now), self.delay.weight());
        }
        self.since.fetch_max(now, Ordering::Relaxed);
    }

    /// Notes that it was given a request of `work` microseconds at this tick and at `now`, in microseconds.
    /// Returns the expected microseconds until its response.
    pub(crate) fn begun(&self, work: u64, tick: u64, workers: usize, now: u64) -> u64 {
        self.used.store(tick, Ordering::Relaxed);
        self.chosen.count(tick, share_horizon(workers));
        let own = self.work.fetch_add(work, Ordering::Relaxed) + work;
        own + (self.others_work(now) * 1e6) as u64
    }

    /// Notes that it has finished a request that was expected to take `work` microseconds.
    pub(crate) fn ended(&self, work: u64) {
        self.work.fetch_sub(work, Ordering::Relaxed);
    }

    /// The number of the last choice of this worker.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The share of choices that fall on it.
    pub(crate) fn share(&self, tick: u64, workers: usize) -> f32 {
        self.chosen.share(tick, share_horizon(workers))
    }

    /// Notes that it was given an unknown class.
    pub(crate) fn given(&self, tick: u64) {
        self.given.count(tick, HORIZON);
    }

    /// The unknown classes that it was recently given.
    pub(crate) fn given_of_late(&self, tick: u64) -> f32 {
        self.given.share(tick, HORIZON) * HORIZON
    }

    /// Seconds until it has finished its requests, also those of other balancers, at `now`, in microseconds.
    /// The penalty, at least 1, lengthens that in proportion, and likewise one more request of `cold` seconds:
    /// otherwise one failed request would be its last.
    pub(crate) fn wait(&self, in_hand: u32, now: u64, cold: f32, penalty: f32) -> f32 {
        let own = self.work.load(Ordering::Relaxed) as f32 * 1e-6;
        let others = self.others_work(now);
        // Most workers that a choice examines in a large pool are idle.
        if own == 0.0 && others == 0.0 && penalty == 1.0 {
            return 0.0;
        }
        // Its current request is partly done. Its age does not determine how much is left.
        let done = self.since(now).min(own / in_hand.max(1) as f32);
        (own - done + others) * penalty + cold * (penalty - 1.0)
    }

    /// How many times later than others it responds, at `now`, in microseconds; `usual` is the logarithm of
    /// their delay. 1 unless it is much later: if it has become slow, or its résumé promises what it does not
    /// do. Scores are corrected only class by class, and a new résumé replaces them.
    ///
    /// A worker that is avoided has no responses to correct the estimate, so it fades.
    pub(crate) fn lateness(&self, now: u64, usual: f32) -> f32 {
        if self.is_late() {
            (self.delay.get() * self.fading(now) - usual - LATE.ln()).max(0.0).exp()
        } else {
            1.0
        }
    }

    pub(crate) fn is_late(&self) -> bool {
        self.late.load(Ordering::Relaxed)
    }

    /// The part of the logarithm of its delay that remains at `now`, in microseconds.
    fn fading(&self, now: u64) -> f32 {
        /// After this time without a request, a third remains.
        const FADE_SECONDS: f32 = 10.0;
        (-self.since(now) / FADE_SECONDS).exp()
    }

    /// Notes if it is no longer late at `now`, in microseconds; `usual` is the logarithm of the delay of
    /// others. While it was, its scores became bad, and no request would come to correct them. So it counts as
    /// new.
    pub(crate) fn look_again(&self, now: u64, usual: f32) {
        if self.is_late() && self.lateness(now, usual) == 1.0 {
            self.late.store(false, Ordering::Relaxed);
            self.renew();
        }
    }

    /// The logarithm of how many times later than expected it responds, recently.
    pub(crate) fn delay(&self) -> Option<f32> {
        self.delay.is_begun().then(|| self.delay.get())
    }

    /// Notes a response that came `later` times later than expected; `usual` is the logarithm of the delay of
    /// others.
    pub(crate) fn responded(&self, later: f32, usual: f32) {
        /// About how many requests are remembered. One that stalls is not enough.
        const HISTORY: f32 = 4.0;
        if !self.delay.is_begun() {
            self.delay.set(0.0, HISTORY - 1.0);
        }
        self.delay.add(later.ln(), 1.0 - 1.0 / HISTORY);
        if self.delay.get() > usual + LATE.ln() && !self.late.swap(true, Ordering::Relaxed) {
            self.settle();
        }
    }

    /// Seconds since it finished its last request or, if it was idle then, got the current one.
    fn since(&self, now: u64) -> f32 {
        now.saturating_sub(self.since.load(Ordering::Relaxed)) as f32 * 1e-6
    }

    /// How many times slower than average it is, by its times for requests of classes new to it; the average
    /// is `cold` seconds. Its times for known classes depend as much on the classes.
    pub(crate) fn slowness(&self, cold: f32) -> f32 {
        /// Fewer requests than this prove nothing.
        const ENOUGH: f32 = 4.0;
        if self.cold.weight() < ENOUGH { 1.0 } else { (self.cold.get() / cold).clamp(0.1, 10.0) }
    }

    /// Notes that a request given to it at `begun`, behind `ahead` others of this balancer, has ended at
    /// `now`, both in microseconds. Returns the seconds of work on it. A worker that works on one at a time
    /// is assumed to have begun with it when the previous one ended. Otherwise that would be the shorter the
    /// more it works on, so its requests are assumed to take equal times, and to wait for those that it
    /// cannot begin.
    pub(crate) fn finished(&self, begun: u64, ahead: u32, now: u64, concurrency: u32) -> f32 {
        let before = self.since.fetch_max(now, Ordering::Relaxed);
        let concurrency = match self.concurrency.load(Ordering::Relaxed) {
            0 => concurrency,
            reported => reported,
        };
        let (begun, part) = if concurrency == 1 {
            (begun.max(before), 1.0)
        } else {
            // Those of other balancers do not count: the worker could report any number of them.
            (begun, concurrency as f32 / concurrency.max(ahead.saturating_add(1)) as f32)
        };
        // A time of zero could not be compared with longer ones.
        let seconds = now.saturating_sub(begun).max(1) as f32 * 1e-6 * part;
        self.pace.add(seconds, 1.0 - 1.0 / 32.0);
        seconds
    }

    /// Notes how a request to it ended, at `now`, in microseconds.
    pub(crate) fn failed(&self, failed: bool, now: u64) {
        /// About how many requests are remembered.
        const HISTORY: f32 = 32.0;
        let known = self.faults.is_begun();
        // Nothing is written while nothing fails. After the first failure, earlier successes count.
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

    /// The share of recent requests to it that failed.
    pub(crate) fn faults(&self) -> f32 {
        self.faults.get()
    }

    /// The share of requests to it that a choice assumes to fail at `now`, in microseconds: the recent share,
    /// until nothing has failed for a minute, which is the longest ejection. A worker that is avoided has no
    /// responses to correct the estimate.
    pub(crate) fn blame(&self, now: u64) -> f32 {
        const MICROS: u64 = 60_000_000;
        let blamed =
            self.faults.is_begun() && now.saturating_sub(self.failed_at.load(Ordering::Relaxed)) < MICROS;
        if blamed { self.faults() } else { 0.0 }
    }

    /// Forgets its failures.
    pub(crate) fn forgive(&self) {
        self.faults.set(0.0, 0.0);
    }

    /// Notes that the worker has `in_flight` requests, `own` of which are of this balancer.
    pub(crate) fn told(&self, in_flight: u32, own: u32, now: u64) {
        let others = in_flight.saturating_sub(own);
        if others == 0 && self.others.load(Ordering::Relaxed) >> 32 == 0 {
            // On the usual path, with one balancer, nothing is written.
            return;
        }
        self.others.store(u64::from(others) << 32 | u64::from(now as u32), Ordering::Relaxed);
    }

    /// Seconds of work that other balancers have given it, at `now`, in microseconds.
    fn others_work(&self, now: u64) -> f32 {
        let others = self.others(now / 1000);
        if others == 0.0 { 0.0 } else { others * self.pace.get() }
    }

    /// The requests that other balancers have in flight to it, according to a recent report.
    fn others(&self, now: u64) -> f32 {
        /// After this time a report is old.
        const FADE_MILLIS: f32 = 1000.0;
        let word = self.others.load(Ordering::Relaxed);
        let others = (word >> 32) as u32;
        if others == 0 {
            return 0.0;
        }
        let age = (now as u32).wrapping_sub(word as u32) as f32;
        others as f32 * (1.0 - age / FADE_MILLIS).max(0.0)
    }

    /// Notes the most requests that it works on at a time, if it reports that.
    pub(crate) fn works_on(&self, concurrency: Option<u32>) {
        let concurrency = concurrency.unwrap_or(0);
        // It seldom changes, so usually nothing is written.
        if self.concurrency.load(Ordering::Relaxed) != concurrency {
            self.concurrency.store(concurrency, Ordering::Relaxed);
        }
    }

    /// Whether it joined others that had their share already, and has not found its own.
    pub(crate) fn is_new(&self) -> bool {
        self.trials.load(Ordering::Relaxed) > 0
    }

    /// Takes one of the requests that it may be given because it is new.
    pub(crate) fn try_once(&self) -> bool {
        let one_less = |trials: u32| trials.checked_sub(1);
        self.trials.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }

    /// Notes that it has its share.
    pub(crate) fn settle(&self) {
        self.trials.store(0, Ordering::Relaxed);
    }

    /// Notes that it joins the others, or was restarted.
    pub(crate) fn renew(&self) {
        self.trials.store(TRIALS, Ordering::Relaxed);
    }

    /// Forgets its résumé.
    pub(crate) fn forget(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The choices that a worker's share is measured over.
fn share_horizon(workers: usize) -> f32 {
    64.0 * workers as f32
}
