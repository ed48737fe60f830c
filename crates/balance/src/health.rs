//! The health of backends: failures, checks, orders.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::backend::{Availability, Backend, State};
use crate::checks::{Checked, Checks};
use crate::durations::millis;
use crate::pool::Inner;
use crate::{BackendId, Pool};

/// The outlook of a request at a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outlook {
    /// Nothing is wrong with at least one backend.
    Answers,
    /// The last connection to each backend failed, or its last request had no response in time.
    Silent,
    /// Each backend is ejected, would be if others could take its place, or fails its checks.
    Failing,
    /// Each backend fails its checks.
    Down,
}

impl Pool {
    /// Notes the result of an active check of a backend. Unknown backends change nothing.
    pub fn checked(&self, backend: BackendId, passed: bool) -> Checked {
        let inner = self.inner();
        let Some(at) = inner.places().of(backend) else { return Checked::Same };
        let state = &inner.backends()[at].state;
        if passed {
            state.passed_check();
        }
        let Checks { rise, fall } = inner.settings().checks;
        let _alone = inner.ejecting().lock().unwrap_or_else(PoisonError::into_inner);
        let down = state.down.load(Ordering::Relaxed);
        if passed != down {
            state.checks.store(0, Ordering::Relaxed);
            let spared = state.spared.swap(false, Ordering::Relaxed);
            return if passed && spared { Checked::Recovered } else { Checked::Same };
        }
        let row = state.checks.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if row < if down { rise.max(1) } else { fall.max(1) } {
            return Checked::Same;
        }
        if down {
            state.down.store(false, Ordering::Relaxed);
            state.checks.store(0, Ordering::Relaxed);
            state.ejected_until.store(0, Ordering::Relaxed);
            state.warm_up();
            inner.elect();
            return Checked::Up;
        }
        if !inner.may_lose(at, |other| other.state.down.load(Ordering::Relaxed) || other.state.is_ejected()) {
            state.spared.store(true, Ordering::Relaxed);
            return Checked::Spared;
        }
        state.spared.store(false, Ordering::Relaxed);
        state.checks.store(0, Ordering::Relaxed);
        state.down.store(true, Ordering::Relaxed);
        inner.elect();
        self.queue_before().forsake(self, backend);
        Checked::Down
    }

    /// Looks for requests that were given up and would have had no response in time. MUST be called every
    /// second or so.
    pub fn look_for_silence(&self, now: Duration) {
        let inner = self.inner();
        let Some(until) = millis(now).checked_sub(millis(inner.settings().answer_within)) else { return };
        for (at, backend) in inner.backends().iter().enumerate() {
            for since in backend.state.given_up_until(until) {
                inner.unanswered(at, false, since, millis(now));
            }
        }
    }

    /// The outlook of a request.
    pub fn outlook(&self) -> Outlook {
        let inner = self.inner();
        let of_one = |backend: &Backend| {
            let state = &backend.state;
            if state.down.load(Ordering::Relaxed) || state.spared.load(Ordering::Relaxed) {
                Outlook::Down
            } else if inner.is_failing(state) || state.is_ejected() {
                Outlook::Failing
            } else if state.failures.load(Ordering::Relaxed) > 0 {
                Outlook::Silent
            } else {
                Outlook::Answers
            }
        };
        let serving = inner.backends().iter().filter(|backend| backend.state.serves());
        serving.map(of_one).min().unwrap_or(Outlook::Down)
    }

    /// Clears the results of all checks, when no backend is checked any more.
    pub fn unchecked(&self) {
        let inner = self.inner();
        let _alone = inner.ejecting().lock().unwrap_or_else(PoisonError::into_inner);
        for backend in inner.backends() {
            backend.state.checks.store(0, Ordering::Relaxed);
            backend.state.down.store(false, Ordering::Relaxed);
            backend.state.spared.store(false, Ordering::Relaxed);
        }
        inner.elect();
    }

    /// Stops sending new requests to a backend, or resumes. Sessions that stick to it continue. Returns
    /// whether the pool has it.
    pub fn drain(&self, backend: BackendId, draining: bool) -> bool {
        let inner = self.inner();
        let Some(at) = inner.places().of(backend) else { return false };
        let state = &inner.backends()[at].state;
        if state.draining.swap(draining, Ordering::Relaxed) && !draining {
            state.warm_up();
        }
        inner.elect();
        if draining {
            self.queue_before().forsake(self, backend);
        }
        true
    }
}

impl Inner {
    /// Whether one more backend may be out of service, beside those that are `out`.
    fn may_lose(&self, at: usize, out: impl Fn(&Backend) -> bool) -> bool {
        let others =
            self.backends().iter().enumerate().filter(|&(other, backend)| other != at && out(backend));
        others.count() < self.settings().ejection.at_most(self.backends().len())
    }

    /// Whether a backend had enough consecutive failures to eject it.
    pub(crate) fn is_failing(&self, state: &State) -> bool {
        state.failures.load(Ordering::Relaxed) >= self.settings().ejection.failures.max(1)
    }

    /// Counts a failure. Returns whether there are enough to eject the backend.
    fn one_failure_more(&self, state: &State) -> bool {
        state.failures.fetch_add(1, Ordering::Relaxed);
        self.is_failing(state)
    }

    /// Notes that a connection to a backend failed.
    pub(crate) fn connect_failed(&self, at: usize, trial: bool, now: u64) {
        let state = &self.backends()[at].state;
        state.connect_failures.fetch_add(1, Ordering::Relaxed);
        if self.one_failure_more(state) {
            self.eject(at, trial, now);
        }
    }

    /// Notes that a request sent at `since` had no response in time. If others had one meanwhile, the backend
    /// works, and the request was a slow one.
    pub(crate) fn unanswered(&self, at: usize, trial: bool, since: u64, now: u64) {
        let state = &self.backends()[at].state;
        if state.was_heard_after(since) {
            return self.broke_off(at, trial, now);
        }
        if self.one_failure_more(state) || trial {
            self.eject(at, trial, now);
        } else {
            self.judge(at, now);
        }
    }

    /// Notes that a response broke off over an existing connection. That is no sign that the backend is back,
    /// nor that the cause of failed connections is gone.
    pub(crate) fn broke_off(&self, at: usize, trial: bool, now: u64) {
        if trial {
            self.eject(at, trial, now);
        } else {
            self.judge(at, now);
        }
    }

    /// Notes a response of a backend, an error or not.
    pub(crate) fn answered(&self, at: usize, trial: bool, failed: bool, now: u64) {
        let state = &self.backends()[at].state;
        if self.settings().ejection.fault_percent == 0 || (!failed && !state.faulty.load(Ordering::Relaxed)) {
            return state.answered();
        }
        if !trial {
            if failed {
                self.judge(at, now);
            }
        } else if failed {
            self.eject(at, trial, now);
        } else {
            state.faulty.store(false, Ordering::Relaxed);
            state.load.forgive();
            // This may be the only reason for its ejection.
            state.failures.fetch_max(1, Ordering::Relaxed);
            state.answered();
        }
    }

    /// Notes that a request to a backend failed. Ejects it if too many do, and fewer at the others.
    fn judge(&self, at: usize, now: u64) {
        let state = &self.backends()[at].state;
        let limit = self.settings().ejection.fault_percent;
        if limit == 0 || state.availability(now) != Availability::InService {
            return;
        }
        let share = state.load.faults();
        let others = self.backends().iter().enumerate().filter(|&(other, _)| other != at);
        let (sum, count) = others
            .fold((0.0, 0_u32), |(sum, count), (_, backend)| (sum + backend.state.load.faults(), count + 1));
        // If the others fail as often, it is not the backend's fault.
        if share * 100.0 >= limit as f32 && sum / count.max(1) as f32 <= share / 2.0 {
            state.faulty.store(true, Ordering::Relaxed);
            self.eject(at, false, now);
        }
    }

    fn eject(&self, at: usize, trial: bool, now: u64) {
        let state = &self.backends()[at].state;
        let alone = self.ejecting().lock().unwrap_or_else(PoisonError::into_inner);
        // Requests that were in flight when it was ejected give no new information when they fail.
        if !trial && state.availability(now) != Availability::InService {
            return;
        }
        // A backend that waits for its trial counts as ejected.
        if self.may_lose(at, |other| other.state.availability(now) != Availability::InService) {
            let earlier = state.ejections.fetch_add(1, Ordering::Relaxed);
            state.ejected.fetch_add(u64::from(!trial), Ordering::Relaxed);
            let until = now.saturating_add(self.settings().ejection.millis(earlier));
            state.ejected_until.store(until, Ordering::Relaxed);
        } else {
            state.ejected_until.store(0, Ordering::Relaxed);
        }
        drop(alone);
        self.elect();
    }
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
