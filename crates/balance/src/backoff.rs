//! Growing pauses.

use std::time::Duration;

/// Pauses that double, from `first` up to `longest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The pause after the first failure.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
}

impl Backoff {
    /// The pause after a failure that follows `earlier` consecutive ones.
    pub fn pause(self, earlier: u32) -> Duration {
        match 1_u32.checked_shl(earlier) {
            Some(factor) => self.first.saturating_mul(factor).min(self.longest),
            None => self.longest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(5) };
        let pauses = [0, 1, 2, 3, 31, 32, u32::MAX].map(|earlier| backoff.pause(earlier).as_secs());
        assert_eq!(pauses, [1, 2, 4, 5, 5, 5, 5]);
    }
}
