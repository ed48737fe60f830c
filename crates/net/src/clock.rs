//! The clocks. The hot path uses the kernel's coarse clocks, which are read without a system call and exact
//! to a few milliseconds. Measurements use a fine one.

use rustix::time::{ClockId, clock_gettime};
use sandarac_message::Timestamp;

/// The time of day.
pub fn wall() -> Timestamp {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    Timestamp::from_millis(millis(now.tv_sec, now.tv_nsec))
}

/// The time of day to a millisecond, which takes longer: for what has to be told in order.
pub fn wall_fine() -> Timestamp {
    let now = clock_gettime(ClockId::Realtime);
    Timestamp::from_millis(millis(now.tv_sec, now.tv_nsec))
}

/// A point on a clock that only goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// Now.
    pub fn now() -> Moment {
        let now = clock_gettime(ClockId::MonotonicCoarse);
        Moment(millis(now.tv_sec, now.tv_nsec))
    }

    /// The milliseconds of the clock, for code that takes the time as an argument. The clock begins at some
    /// time before the process.
    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_millis(self.0)
    }

    /// This moment plus `duration`.
    pub fn plus(self, duration: std::time::Duration) -> Moment {
        Moment(self.0.saturating_add(duration.as_millis().min(u64::MAX as u128) as u64))
    }

    /// The time from `earlier` to this moment; zero if `earlier` is later.
    pub fn since(self, earlier: Moment) -> std::time::Duration {
        std::time::Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// The time from this moment to now, to the microsecond, because many responses take less than a tick of
    /// the coarse clock. Takes some 20 ns more than [`Moment::now`], which is never ahead of it.
    pub fn elapsed(self) -> std::time::Duration {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec.max(0) as u64 * 1_000_000 + now.tv_nsec as u64 / 1000;
        std::time::Duration::from_micros(micros.saturating_sub(self.0.saturating_mul(1000)))
    }
}

fn millis(seconds: i64, nanoseconds: i64) -> u64 {
    seconds.max(0) as u64 * 1000 + nanoseconds as u64 / 1_000_000
}
