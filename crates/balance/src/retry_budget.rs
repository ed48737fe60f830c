//! The retry budget of a pool. When most requests fail, retrying each would only double the load.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::durations::millis;

/// A token bucket that requests fill and retries empty. All cores share it.
#[derive(Debug)]
pub struct RetryBudget {
    /// Hundredths of a retry that a request adds.
    percent: u32,
    /// Retries that each second adds, with requests or without, so that a pool with few requests can retry
    /// too.
    per_second: u32,
    /// The available hundredths of retries, in the high half, and when seconds were last counted, in
    /// milliseconds.
    tokens: AtomicU64,
}

impl RetryBudget {
    /// How many seconds without a retry are saved up.
    const SECONDS: u32 = 10;

    /// A budget of `percent` retries for every hundred requests, plus `per_second`. It starts full.
    pub fn new(percent: u32, per_second: u32) -> RetryBudget {
        let budget = RetryBudget {
            percent: percent.min(1000),
            per_second: per_second.min(10_000),
            tokens: AtomicU64::new(0),
        };
        budget.tokens.store(pack(budget.most(), 0), Ordering::Relaxed);
        budget
    }

    /// The most that is saved, in hundredths: ten seconds' worth, and that of a thousand requests.
    fn most(&self) -> u32 {
        self.per_second * 100 * RetryBudget::SECONDS + self.percent * 1000
    }

    /// Adds a request that was sent for the first time.
    pub fn request(&self) {
        self.change(None, |tokens| Some(tokens.saturating_add(self.percent)));
    }

    /// Whether a request may be sent again. If so, the retry is counted.
    pub fn retry(&self, now: Duration) -> bool {
        self.change(Some(millis(now) as u32), |tokens| tokens.checked_sub(100))
    }

    fn change(&self, now: Option<u32>, change: impl Fn(u32) -> Option<u32>) -> bool {
        let update = |word: u64| {
            let (tokens, since) = ((word >> 32) as u32, word as u32);
            let now = now.unwrap_or(since);
            // A clock that seems to run backwards, between cores, adds nothing.
            let millis = u64::from(now.wrapping_sub(since)).min(u64::from(u32::MAX / 2));
            let earned = (millis * u64::from(self.per_second) / 10).min(u64::from(self.most())) as u32;
            let tokens = change(tokens.saturating_add(earned))?;
            // A fraction of a hundredth is not lost: only the time that was counted is used up.
            let paid = (u64::from(earned) * 10).checked_div(u64::from(self.per_second)).unwrap_or(millis);
            let since = if earned == self.most() { now } else { since.wrapping_add(paid as u32) };
            Some(pack(tokens.min(self.most()), since))
        };
        self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update).is_ok()
    }
}

fn pack(tokens: u32, since: u32) -> u64 {
    u64::from(tokens) << 32 | u64::from(since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_a_share_of_requests() {
        let budget = RetryBudget::new(20, 0);
        while budget.retry(Duration::ZERO) {}
        (0..100).for_each(|_| budget.request());
        assert_eq!((0..100).filter(|_| budget.retry(Duration::from_secs(1))).count(), 20);
    }

    #[test]
    fn time_alone_earns_some() {
        let budget = RetryBudget::new(0, 3);
        while budget.retry(Duration::ZERO) {}
        let within = |from: u64, to: u64| {
            (from..to).filter(|&millis| budget.retry(Duration::from_millis(millis))).count()
        };
        assert_eq!(within(0, 10_001), 30);
        let later = |_: &u32| budget.retry(Duration::from_secs(1000));
        assert_eq!((0..1000).filter(later).count(), 30, "no more is saved than for ten seconds");
    }
}
