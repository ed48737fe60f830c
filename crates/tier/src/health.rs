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

/// A group of operations that was sent together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// When it was sent.
    pub sent: Timestamp,
    /// Whether it went over the connection for values. A server may answer small operations and not deliver
    /// values, so neither clears the failures of the other.
    pub is_value: bool,
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
        /// Of small operations, and of values.
        failures: [Failures; 2],
    },
    Ejected {
        until: Timestamp,
        /// Failed trials.
        trials: u32,
    },
    /// The outcome of a trial is awaited.
    Trying { since: Timestamp, trials: u32 },
}

/// Consecutive failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Failures {
    count: u32,
    /// When the last one was counted.
    last: Option<Timestamp>,
}

impl State {
    const FREE: State = State::Free { failures: [Failures { count: 0, last: None }; 2] };
}

/// A trial whose outcome is not reported within this time counts as failed, so that a caller that was
/// dropped does not leave the server ejected for ever.
const LONGEST_TRIAL: Duration = Duration::from_secs(10);

impl Health {
    /// The health of a server that was not used yet.
    pub fn new(ejection: Ejection) -> Health {
        Health { ejection, state: State::FREE, ejections: 0 }
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
                self.failed(Attempt { sent: since, is_value: false }, now);
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
    pub fn answered(&mut self, attempt: Attempt) {
        match &mut self.state {
            State::Free { failures } => failures[usize::from(attempt.is_value)] = Failures::default(),
            State::Trying { .. } => self.state = State::FREE,
            State::Ejected { .. } => {}
        }
    }

    /// Reports that the server did not answer in time, refused the connection, or broke the protocol. Attempts
    /// that were under way when the last failure was counted fail by the same cause, and count as one with it.
    pub fn failed(&mut self, attempt: Attempt, now: Timestamp) {
        let Health { ejection, state, ejections } = self;
        *state = match *state {
            State::Free { mut failures } => {
                let Failures { count, last } = &mut failures[usize::from(attempt.is_value)];
                if last.is_none_or(|last| attempt.sent > last) {
                    (*count, *last) = (*count + 1, Some(now));
                }
                if *count < ejection.failures {
                    State::Free { failures }
                } else {
                    *ejections += 1;
                    State::Ejected { until: now.plus(ejection.pauses.pause(0)), trials: 0 }
                }
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

    fn ms(milliseconds: u64) -> Timestamp {
        Timestamp::from_millis(milliseconds)
    }

    fn small(sent: u64) -> Attempt {
        Attempt { sent: at(sent), is_value: false }
    }

    /// Three failures at this second, one after another.
    fn fail(health: &mut Health, second: u64) {
        let later = Attempt { sent: ms(second * 1000 + 1), is_value: false };
        (0..3).for_each(|_| health.failed(later, at(second)));
    }

    /// A server that was ejected at time 0, for 1 s.
    fn ejected() -> Health {
        let mut health = Health::new(Ejection::default());
        fail(&mut health, 0);
        assert!(health.is_ejected());
        health
    }

    #[test]
    fn three_failures_in_a_row_eject_a_server() {
        let mut health = Health::new(Ejection::default());
        health.failed(small(0), at(1));
        health.failed(small(2), at(3));
        health.answered(small(4));
        health.failed(small(5), at(6));
        health.failed(small(7), at(8));
        assert_eq!(health.may_use(at(8)), Use::Free);
        health.failed(small(9), at(10));
        assert_eq!(health.may_use(at(10)), Use::Ejected);
        assert_eq!(health.ejections(), 1);
    }

    /// Regression: operations that failed by one stall each counted, and ejected a healthy server.
    #[test]
    fn operations_that_were_under_way_together_fail_once() {
        let mut health = Health::new(Ejection::default());
        for sent in 0..50 {
            health.failed(Attempt { sent: ms(sent), is_value: false }, ms(sent + 50));
        }
        assert_eq!(health.may_use(ms(100)), Use::Free);
        for (sent, failed) in [(51, 101), (100, 150), (102, 152)] {
            assert!(!health.is_ejected());
            health.failed(Attempt { sent: ms(sent), is_value: false }, ms(failed));
        }
        assert!(health.is_ejected());
    }

    /// Regression: a server that answered small operations, and let values hang, was never ejected.
    #[test]
    fn small_answers_do_not_excuse_values() {
        for is_value in [false, true] {
            let mut health = Health::new(Ejection::default());
            for round in 0..3 {
                assert!(!health.is_ejected());
                health.failed(Attempt { sent: at(2 * round + 1), is_value }, at(2 * round + 2));
                health.answered(Attempt { sent: at(2 * round + 1), is_value: !is_value });
            }
            assert!(health.is_ejected());
        }
    }

    #[test]
    fn an_ejected_server_is_tried_by_one_operation_at_a_time() {
        let mut health = ejected();
        assert_eq!(health.may_use(Timestamp::from_millis(999)), Use::Ejected);
        assert_eq!(health.may_use(at(1)), Use::Trial);
        assert_eq!(health.may_use(at(1)), Use::Ejected);
        assert!(health.is_ejected());
        health.answered(small(0));
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
            health.failed(small(now), at(now));
        }
        assert_eq!(health.may_use(at(now + 30)), Use::Trial);
        health.answered(small(0));
        fail(&mut health, now + 30);
        assert_eq!(health.may_use(at(now + 31)), Use::Trial);
        assert_eq!(health.ejections(), 2);
    }

    #[test]
    fn outcomes_of_operations_from_before_an_ejection_change_nothing() {
        let mut health = ejected();
        health.answered(small(0));
        health.failed(small(0), at(100));
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
