//! Pauses between attempts to reach a lost source.

use sandarac_balance::{Backoff, Random};
use std::time::Duration;

/// Short at first, because a restarted server is back within a second or two. A repaired source is found
/// again within the longest pause.
const RETRY_AFTER: Backoff = Backoff { first: Duration::from_millis(200), longest: Duration::from_secs(10) };

/// How long a source has to be reachable for its next failure to count as the first.
pub(super) const LONG_LIFE: Duration = Duration::from_secs(10);

/// Growing pauses, each shortened at random to between half and all of it, so that balancers that lost a
/// server together do not return together.
pub struct JitteredBackoff {
    /// Failures since the source was last reachable for long.
    failures: u32,
    random: Random,
}

impl JitteredBackoff {
    /// The pauses for `seed`.
    pub fn new(seed: u64) -> JitteredBackoff {
        JitteredBackoff { failures: 0, random: Random::new(seed) }
    }

    /// The next pause; the first again if the source was reachable for long.
    pub fn pause(&mut self, lived_long: bool) -> Duration {
        let earlier = if lived_long { 0 } else { self.failures };
        self.failures = earlier.saturating_add(1);
        RETRY_AFTER.pause(earlier).mul_f64(0.5 + 0.5 * self.random.fraction())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_begin_anew_after_a_long_life() {
        let mut backoff = JitteredBackoff::new(7);
        let pauses: Vec<Duration> = (0..20).map(|_| backoff.pause(false)).collect();
        let mut expected = RETRY_AFTER.first;
        for pause in &pauses {
            assert!((expected / 2..=expected).contains(pause), "{pause:?} of {expected:?}");
            expected = (2 * expected).min(RETRY_AFTER.longest);
        }
        assert!(backoff.pause(true) <= RETRY_AFTER.first);
        assert!(backoff.pause(false) <= 2 * RETRY_AFTER.first);
        let mut same = JitteredBackoff::new(7);
        assert_eq!(pauses, (0..20).map(|_| same.pause(false)).collect::<Vec<_>>());
        assert_ne!(JitteredBackoff::new(8).pause(false), pauses[0]);
    }
}
