//! The ejection of backends that fail: when, and for how long.

use std::time::Duration;

use crate::Backoff;
use crate::durations::millis;

/// When a backend that cannot be connected to or does not answer is left out, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ejection {
    /// Failures in a row that eject a backend, to connect or to answer in time; at least 1. Three by default:
    /// one may be a full accept queue, three without an answer between them are an absent process or one that
    /// hangs.
    pub failures: u32,
    /// The share of requests, in percent, that may end in a 5xx or break off before a backend is ejected, if
    /// the others do at most half as badly; taken over about the last 32. 0, the default, ejects none: what a
    /// 5xx means is the application's to know.
    pub fault_percent: u32,
    /// How long the first ejection lasts. Each one that follows without a success between lasts twice as
    /// long.
    pub first: Duration,
    /// The longest an ejection lasts. By default a minute, so that a repaired backend is found within one.
    pub longest: Duration,
    /// The share of a pool, in percent, that may be ejected at a time. Unless it is 0, one may; whatever it
    /// says, one stays. All the others may go by default: a refused connection leaves no doubt about the
    /// backend, and a backend kept in spite of it would, having no load, draw requests to fail.
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

    /// How many of `backends` may be ejected at a time: one at least, unless it is to be none.
    pub(crate) fn at_most(&self, backends: usize) -> usize {
        let share = backends * self.max_percent.min(100) as usize / 100;
        share.max(usize::from(self.max_percent > 0)).min(backends.saturating_sub(1))
    }
}
