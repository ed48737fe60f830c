//! Health of a server: when it is ejected because it fails, and when it is tried again.

use std::time::Duration;

use sandarac_balance::Backoff;
use sandarac_message::Timestamp;

/// When a server is ejected, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ejection {
    /// Consecutive failures that eject a server; at least 1. By default three: one answer that is late may be
    /// the network's fault.
    pub failures: u32,
    /// How long the server is left alone before it is tried, and how that grows while trials fail. By default
    /// 1 s up to 30 s: a trial costs one operation, and a server that is back is found within that time.
    pub pauses: Backoff,
}

impl Default for Ejection {
    fn default() -> Ejection {
        let pauses = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(30) };
        Ejection { failures: 3, pauses }
    }
}

/// How a server may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// For every operation.
    Free,
    /// For one operation that no request waits for. The caller MUST report its outcome.
    Trial,
    /// Not at all. Its keys are misses.
    Ejected,
}

/// The health of one server.
#[derive(Clone, Debug)]
pub struct Health {
    ejection: Ejection,
    state: State,
    ejections: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free {
        /// Consecutive failures.
        failures: u32,
    },
    Ejected {
        until: Timestamp,
        /// Failed trials.
        trials: u32,
    },
    /// The outcome of a trial is awaited.
    Trying { since: Timestamp, trials: u32 },
}

/// A trial whose outcome is not reported within this time counts as failed, so that a caller that was
/// dropped does not leave the server ejected for ever.
const LONGEST_TRIAL: Duration = Duration::from_secs(10);

impl Health {
    /// The health of a server that was not used yet.
    pub fn new(ejection: Ejection) -> Health {
        Health { ejection, state: State::Free { failures: 0 }, ejections: 0 }
    }

    /// Takes over other settings. They apply to the next failure.
    pub fn configure(&mut self, ejection: Ejection) {
        self.ejection = ejection;
    }

    /// How the server may be used now. After [`Use::Trial`] it is ejected until the outcome is reported.
    pub fn may_use(&mut self, now: Timestamp) -> Use {
        match self.state {
            State::Free { .. } => Use::Free,
            State::Ejected { until, trials } if until <= now => {
                self.state = State::Trying { since: now, trials };
                Use::Trial
            }
            State::Trying { since, .. } if now.since(since) >= LONGEST_TRIAL => {
                self.failed(now);
                Use::Ejected
            }
            State::Ejected { .. } | State::Trying { .. } => Use::Ejected,
        }
    }

    /// Whether the server is ejected. A trial changes that only by its success.
    pub fn is_ejected(&self) -> bool {
        !matches!(self.state, State::Free { .. })
    }

    /// Ejections so far.
    pub fn ejections(&self) -> u64 {
        self.ejections
    }

    /// Reports that the server answered. Only a trial ends an ejection: an answer to an operation from before
    /// it is no news.
    pub fn answered(&mut self) {
        if !matches!(self.state, State::Ejected { .. }) {
            self.state = State::Free { failures: 0 };
        }
    }

    /// Reports that the server did not answer in time, refused the connection, or broke the protocol.
    pub fn failed(&mut self, now: Timestamp) {
        let Health { ejection, state, ejections } = self;
        *state = match *state {
            State::Free { failures } if failures + 1 < ejection.failures => {
                State::Free { failures: failures + 1 }
            }
            State::Free { .. } => {
                *ejections += 1;
                State::Ejected { until: now.plus(ejection.pauses.pause(0)), trials: 0 }
            }
            State::Trying { trials, .. } => {
                let trials = trials.saturating_add(1);
                State::Ejected { until: now.plus(ejection.pauses.pause(trials)), trials }
            }
            // From an operation that began before the ejection.
            ejected @ State::Ejected { .. } => ejected,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_secs(seconds)
    }

    /// A server that was ejected at time 0, for 1 s.
    fn ejected() -> Health {
        let mut health = Health::new(Ejection::default());
        (0..3).for_each(|_| health.failed(at(0)));
        assert!(health.is_ejected());
        health
    }

    #[test]
    fn three_failures_in_a_row_eject_a_server() {
        let mut health = Health::new(Ejection::default());
        health.failed(at(0));
        health.failed(at(0));
        health.answered();
        health.failed(at(1));
        health.failed(at(1));
        assert_eq!(health.may_use(at(1)), Use::Free);
        health.failed(at(1));
        assert_eq!(health.may_use(at(1)), Use::Ejected);
        assert_eq!(health.ejections(), 1);
    }

    #[test]
    fn an_ejected_server_is_tried_by_one_operation_at_a_time() {
        let mut health = ejected();
        assert_eq!(health.may_use(Timestamp::from_millis(999)), Use::Ejected);
        assert_eq!(health.may_use(at(1)), Use::Trial);
        assert_eq!(health.may_use(at(1)), Use::Ejected);
        assert!(health.is_ejected());
        health.answered();
        assert_eq!(health.may_use(at(1)), Use::Free);
    }

    #[test]
    fn pauses_grow_while_trials_fail_and_begin_anew_after_a_success() {
        let mut health = ejected();
        let mut now = 0;
        for pause in [1, 2, 4, 8, 16, 30, 30] {
            assert_eq!(health.may_use(at(now + pause).minus(Duration::from_millis(1))), Use::Ejected);
            now += pause;
            assert_eq!(health.may_use(at(now)), Use::Trial, "after {pause} s");
            health.failed(at(now));
        }
        assert_eq!(health.may_use(at(now + 30)), Use::Trial);
        health.answered();
        (0..3).for_each(|_| health.failed(at(now + 30)));
        assert_eq!(health.may_use(at(now + 31)), Use::Trial);
        assert_eq!(health.ejections(), 2);
    }

    #[test]
    fn outcomes_of_operations_from_before_an_ejection_change_nothing() {
        let mut health = ejected();
        health.answered();
        health.failed(at(100));
        assert_eq!(health.may_use(Timestamp::from_millis(999)), Use::Ejected);
        assert_eq!(health.may_use(at(1)), Use::Trial);
    }

    #[test]
    fn a_trial_without_an_outcome_counts_as_failed() {
        let mut health = ejected();
        assert_eq!(health.may_use(at(1)), Use::Trial);
        assert_eq!(health.may_use(at(10)), Use::Ejected);
        assert_eq!(health.may_use(at(11)), Use::Ejected);
        assert_eq!(health.may_use(at(13)), Use::Trial, "2 s after the failure");
    }
}
