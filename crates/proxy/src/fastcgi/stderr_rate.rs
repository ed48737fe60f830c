//! A limit on the rate at which the error messages of an application are logged.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many requests of a pool may log messages in a second.
const MAX_PER_SECOND: u64 = 20;

/// Limits how often the messages of a pool are logged: the second, and how often in it.
#[derive(Default)]
pub(crate) struct StderrRate(AtomicU64);

impl StderrRate {
    /// Whether a request may log its messages in this second.
    pub(crate) fn admits(&self, second: u64) -> bool {
        let next = |state: u64| match (state >> 8, state & 0xff) {
            (now, count) if now == second => (count < MAX_PER_SECOND).then_some(state + 1),
            _ => Some(second << 8 | 1),
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_limited_in_each_second() {
        let rate = StderrRate::default();
        let admitted = |second: u64| (0..100).filter(|_| rate.admits(second)).count() as u64;
        assert_eq!((admitted(7), admitted(7), admitted(8)), (MAX_PER_SECOND, 0, MAX_PER_SECOND));
    }
}
