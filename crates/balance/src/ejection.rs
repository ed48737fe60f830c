//! The ejection of failing backends: when, and for how long.

use std::time::Duration;

use crate::Backoff;
use crate::durations::millis;

/// When a backend that refuses connections or does not respond is ejected, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ejection {
    /// Consecutive failures to connect or to respond in time that eject a backend; at least 1. Three by
    /// default: one may be a full accept queue, three without a response between them mean that the process
    /// is absent or hangs.
    pub failures: u32,
    /// The share of requests, in percent, that may end in a 5xx or break off before a backend is ejected, if
    /// the others fail at most half as often; measured over about the last 32. 0, the default, ejects none,
    /// because only the application defines what a 5xx means.
    pub fault_percent: u32,
    /// How long the first ejection lasts. Each one that follows without a success in between lasts twice as
    /// long.
    pub first: Duration,
    /// The longest an ejection lasts. By default a minute, so that a repaired backend is found within one.
    pub longest: Duration,
    /// The share of a pool, in percent, that may be ejected at a time. Unless it is 0, at least one backend
    /// may be, and one always stays. By default all the others may be: a refused connection leaves no doubt
    /// about the backend, and because an idle backend attracts requests, one that was kept would make them
    /// fail.
    pub max_percent: u32,
}

impl Default for Ejection {
    fn default() -> Ejection {
        Ejection {
            failures: 3,
            fault_percent: 0,
            first: Duration::from_secs(1),
            longest: Duration::from_secs(60),
            max_percent: 100,
        }
    }
}

impl Ejection {
    /// How long the ejection after `earlier` ones lasts, in milliseconds.
    pub(crate) fn millis(&self, earlier: u32) -> u64 {
        let Ejection { first, longest, .. } = *self;
        millis(Backoff { first, longest }.pause(earlier)).max(1)
    }

    /// How many of `backends` may be ejected at a time: at least one, unless ejection is disabled.
    pub(crate) fn at_most(&self, backends: usize) -> usize {
        let share = backends * self.max_percent.min(100) as usize / 100;
        share.max(usize::from(self.max_percent > 0)).min(backends.saturating_sub(1))
    }
}
