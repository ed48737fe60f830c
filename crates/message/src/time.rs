//! Points in time, always an argument: nothing in this crate reads a clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time: whole milliseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The time `ms` milliseconds after the epoch.
    pub const fn from_millis(ms: u64) -> Timestamp {
        Timestamp(ms)
    }

    /// The time `s` seconds after the epoch.
    pub const fn from_secs(s: u64) -> Timestamp {
        Timestamp(s.saturating_mul(1000))
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Whole seconds since the epoch.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1000
    }

    /// The time passed since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// This time plus `duration`, at most the end of time.
    pub const fn plus(self, duration: Duration) -> Timestamp {
        let ms = duration.as_millis();
        if ms > u64::MAX as u128 { Timestamp(u64::MAX) } else { Timestamp(self.0.saturating_add(ms as u64)) }
    }

    /// This time minus `duration`, at least the epoch.
    pub const fn minus(self, duration: Duration) -> Timestamp {
        let ms = duration.as_millis();
        if ms > self.0 as u128 { Timestamp(0) } else { Timestamp(self.0 - ms as u64) }
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Timestamp {
        Timestamp(time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64))
    }
}

impl From<Timestamp> for SystemTime {
    fn from(time: Timestamp) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(time.0)
    }
}
