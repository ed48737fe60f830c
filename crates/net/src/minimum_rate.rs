//! The minimum rate of a peer: whether it moves enough bytes on average during the time the proxy waits for
//! it.

use crate::Moment;
use std::time::Duration;

/// A minimum rate, and when it begins to count.
#[derive(Clone, Copy, Debug)]
pub struct MinimumRate {
    /// Bytes per second; 0 disables the check.
    pub bytes: u64,
    /// How long the proxy must have waited for the peer before its rate counts.
    pub after: Duration,
}

/// Measures how fast a peer moves bytes. Only the time spent waiting for it counts, because it is not to
/// blame if the other side is slow.
#[derive(Debug, Default)]
pub struct RateGauge {
    waiting: Option<(Moment, u64)>,
    waited: Duration,
    moved: u64,
    /// When the total number of bytes last changed, and that number.
    last: Option<(Moment, u64)>,
}

impl RateGauge {
    /// A gauge for a peer that has moved nothing yet.
    pub fn new() -> RateGauge {
        RateGauge::default()
    }

    /// How long the peer has moved nothing while being waited for. `total` is the bytes it has moved so far.
    pub fn still(&mut self, total: u64) -> Duration {
        let now = Moment::now();
        match self.last {
            Some((since, seen)) if seen == total => now.since(since),
            _ => {
                self.last = Some((now, total));
                Duration::ZERO
            }
        }
    }

    /// Whether the peer is being waited for.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Records that the peer is being waited for, having moved `total` bytes so far. Returns how long it may
    /// still move nothing; `None` if it is too slow for `minimum` already.
    pub fn waits(&mut self, total: u64, minimum: MinimumRate) -> Option<Duration> {
        let now = Moment::now();
        let (since, from) = *self.waiting.get_or_insert((now, total));
        let waited = self.waited + now.since(since);
        left(self.moved + total.saturating_sub(from), waited, minimum)
    }

    /// Records that the peer is not being waited for, having moved `total` bytes so far. Returns whether it
    /// was. `total` is asked for only then.
    pub fn goes_on(&mut self, total: impl FnOnce() -> u64) -> bool {
        let Some((since, from)) = self.waiting.take() else { return false };
        self.last = None;
        self.waited += Moment::now().since(since);
        self.moved += total().saturating_sub(from);
        true
    }
}

/// How long a peer may still move nothing, having moved `moved` bytes while it was waited for during
/// `waited`.
fn left(moved: u64, waited: Duration, minimum: MinimumRate) -> Option<Duration> {
    if minimum.bytes == 0 {
        return Some(Duration::MAX);
    }
    let paid =
        Duration::try_from_secs_f64((moved as f64 + 1.0) / minimum.bytes as f64).unwrap_or(Duration::MAX);
    paid.max(minimum.after).checked_sub(waited).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pay_for_time_once_the_rate_counts() {
        let minimum = MinimumRate { bytes: 100, after: Duration::from_secs(10) };
        let left =
            |moved, waited| left(moved, Duration::from_secs(waited), minimum).map(|left| left.as_secs());
        assert_eq!(left(0, 0), Some(10));
        assert_eq!(left(0, 4), Some(6));
        assert_eq!(left(0, 10), None);
        assert_eq!(left(1999, 4), Some(16));
        assert_eq!(left(1999, 19), Some(1));
        assert_eq!(left(1999, 20), None);
        assert!(left(u64::MAX, 20).is_some());
        assert_eq!(left(0, u64::MAX), None);
    }

    #[test]
    fn without_a_minimum_rate_nobody_is_too_slow() {
        let none = MinimumRate { bytes: 0, after: Duration::ZERO };
        assert_eq!(left(0, Duration::from_secs(1 << 40), none), Some(Duration::MAX));
        assert_eq!(RateGauge::new().waits(0, none), Some(Duration::MAX));
    }

    #[test]
    fn one_that_goes_on_without_having_been_waited_for_says_so() {
        let mut gauge = RateGauge::new();
        assert!(!gauge.goes_on(|| 5));
        let _ = gauge.waits(5, MinimumRate { bytes: 0, after: Duration::ZERO });
        assert!(gauge.goes_on(|| 5) && !gauge.goes_on(|| 5));
    }
}
