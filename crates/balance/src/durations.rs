//! Durations as whole numbers, as atomics hold them.

use std::time::Duration;

/// `duration` in milliseconds, at most the largest number.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// `duration` in microseconds, at most the largest number.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
