//! Lifetimes as durations, for a machine with another clock.

use std::time::Duration;

use super::Lifetimes;
use super::lifetimes::{DISCONNECTED, FOR_ALL, GUESSED, IMMUTABLE, NEVER_STALE, NO_CACHE, OPERATORS_WINDOW};
use crate::Timestamp;

/// [`Lifetimes`] relative to a moment, without a point in time. Two machines whose clocks differ can pass
/// them on, if the receiver knows how long ago that moment was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelativeLifetimes {
    /// Milliseconds since the response was received.
    pub held: u64,
    /// `corrected_initial_age` in milliseconds (RFC 9111 §4.2.3): its age when it was received.
    pub initial_age: u64,
    /// `freshness_lifetime` in milliseconds (RFC 9111 §4.2.1).
    pub freshness: u64,
    /// Seconds past freshness in which it may be served while a background fetch runs.
    pub grace: u32,
    /// Seconds past freshness in which it may replace the response of a failing origin.
    pub stale_if_error: u32,
    /// Seconds past freshness in which it is worth keeping for validation.
    pub keep: u32,
    /// What the origin and the operator permit and forbid.
    pub flags: LifetimeFlags,
}

/// What the origin and the operator permit and forbid, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifetimeFlags(u8);

impl LifetimeFlags {
    /// Every bit that has a meaning.
    pub const ALL: u8 =
        NO_CACHE | NEVER_STALE | DISCONNECTED | IMMUTABLE | OPERATORS_WINDOW | FOR_ALL | GUESSED;

    /// The flags with these bits; `None` if one of them has no meaning.
    pub const fn from_bits(bits: u8) -> Option<LifetimeFlags> {
        if bits & !LifetimeFlags::ALL == 0 { Some(LifetimeFlags(bits)) } else { None }
    }

    /// The bits.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl RelativeLifetimes {
    /// `lifetimes` relative to `now`.
    pub fn new(lifetimes: &Lifetimes, now: Timestamp) -> RelativeLifetimes {
        RelativeLifetimes {
            held: now.since(lifetimes.received).as_millis() as u64,
            initial_age: lifetimes.initial_age,
            freshness: lifetimes.freshness,
            grace: lifetimes.grace,
            stale_if_error: lifetimes.stale_if_error,
            keep: lifetimes.keep,
            flags: LifetimeFlags(lifetimes.flags),
        }
    }

    /// The lifetimes by the clock that reads `now`, `passed` after the moment they are relative to. The ages
    /// they give are right even if that clock is nearer to the epoch than the response was held.
    pub fn at(&self, now: Timestamp, passed: Duration) -> Lifetimes {
        let passed = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        let since = self.held.saturating_add(passed);
        let received = now.minus(Duration::from_millis(since));
        let cut = since - now.since(received).as_millis() as u64;
        Lifetimes {
            received,
            initial_age: self.initial_age.saturating_add(cut),
            freshness: self.freshness,
            grace: self.grace,
            stale_if_error: self.stale_if_error,
            keep: self.keep,
            flags: self.flags.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    prop_compose! {
        fn lifetimes()(
            received in 0u64..1 << 40, initial_age in 0u64..1 << 40, freshness in 0u64..1 << 40,
            grace: u32, stale_if_error: u32, keep: u32, flags in 0..=LifetimeFlags::ALL,
        ) -> Lifetimes {
            let received = Timestamp::from_millis(received);
            Lifetimes { received, initial_age, freshness, grace, stale_if_error, keep, flags }
        }
    }

    proptest! {
        #[test]
        fn another_clock_changes_no_age_and_no_end(
            original in lifetimes(), held in 0u64..1 << 40, passed in 0u64..1 << 40,
            clock in 0u64..1 << 42, later in 0u64..1 << 41,
        ) {
            let written = original.received.plus(Duration::from_millis(held));
            let relative = RelativeLifetimes::new(&original, written);
            prop_assert_eq!(relative.held, held);
            let read = written.plus(Duration::from_millis(passed));
            prop_assert_eq!(relative.at(read, Duration::from_millis(passed)), original);

            let clock = Timestamp::from_millis(clock);
            let rebuilt = relative.at(clock, Duration::from_millis(passed));
            let later = Duration::from_millis(later);
            prop_assert_eq!(rebuilt.age(clock.plus(later)), original.age(read.plus(later)));
            prop_assert_eq!(rebuilt.is_fresh(clock.plus(later)), original.is_fresh(read.plus(later)));
            if clock.as_millis() > (1 << 41) {
                prop_assert_eq!(rebuilt.dead(clock.plus(later)), original.dead(read.plus(later)));
            }
        }
    }

    #[test]
    fn flags_without_a_meaning_are_refused() {
        assert_eq!(LifetimeFlags::from_bits(LifetimeFlags::ALL).map(LifetimeFlags::bits), Some(127));
        assert_eq!(LifetimeFlags::from_bits(128), None);
    }

    #[test]
    fn durations_past_the_range_stay_old() {
        let now = Timestamp::from_secs(1_700_000_000);
        let original = Lifetimes::fixed(now, Duration::from_secs(60), Duration::ZERO, Duration::ZERO);
        let relative = RelativeLifetimes { held: u64::MAX, ..RelativeLifetimes::new(&original, now) };
        assert!(!relative.at(now, Duration::MAX).is_fresh(now));
    }
}
