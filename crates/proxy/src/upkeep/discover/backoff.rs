//! Pauses between attempts to reach what is lost.

use sandarac_balance::Random;
use std::time::Duration;

/// The pause after the first failure, about. Short: a restarted server is back within a second or two.
const FIRST: Duration = Duration::from_millis(200);

/// No pause is longer, so that a repaired source is followed again this soon.
const LONGEST: Duration = Duration::from_secs(10);

/// How long a source has to be good for its next failure to count as the first.
pub(super) const LONG_LIFE: Duration = Duration::from_secs(10);

/// Pauses that double from [`FIRST`] to [`LONGEST`], each shortened by chance to between half and all of it, so that the
/// balancers that lost a server together do not come back together.
pub(in crate::upkeep) struct Backoff {
    next: Duration,
    random: Random,
}

impl Backoff {
    /// The pauses that belong to `seed`.
    pub(in crate::upkeep) fn new(seed: u64) -> Backoff {
        Backoff { next: FIRST, random: Random::new(seed) }
    }

    /// The next pause; the first again where the source was good for long.
    pub(in crate::upkeep) fn pause(&mut self, lived_long: bool) -> Duration {
        let pause = if lived_long { FIRST } else { self.next };
        self.next = (2 * pause).min(LONGEST);
        pause.mul_f64(0.5 + 0.5 * self.random.fraction())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_begin_anew_after_a_long_life() {
        let mut backoff = Backoff::new(7);
        let pauses: Vec<Duration> = (0..20).map(|_| backoff.pause(false)).collect();
        let mut expected = FIRST;
        for pause in &pauses {
            assert!((expected / 2..=expected).contains(pause), "{pause:?} of {expected:?}");
            expected = (2 * expected).min(LONGEST);
        }
        assert!(backoff.pause(true) <= FIRST);
        assert!(backoff.pause(false) <= 2 * FIRST);
        let mut same = Backoff::new(7);
        assert_eq!(pauses, (0..20).map(|_| same.pause(false)).collect::<Vec<_>>());
        assert_ne!(Backoff::new(8).pause(false), pauses[0]);
    }
}
