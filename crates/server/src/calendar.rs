//! Points in time as people write them, in UTC.

use std::fmt;

use sandarac_message::Timestamp;

/// A point in time, broken into date and time of day (proleptic Gregorian calendar, UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    year: u64,
    month: u8,
    day: u8,
    second_of_day: u32,
    millisecond: u16,
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl Civil {
    /// The date and time of day of `time`.
    pub fn of(time: Timestamp) -> Civil {
        let seconds = time.as_secs();
        // Years that begin in March put the leap day last; eras of 400 years repeat (Hinnant, "chrono-compatible
        // low-level date algorithms"). The epoch is day 719 468 of that count, and no time here lies before it.
        let days = seconds / 86_400 + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        Civil {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month: month as u8,
            day: (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u8,
            second_of_day: (seconds % 86_400) as u32,
            millisecond: (time.as_millis() % 1000) as u16,
        }
    }

    fn clock(&self) -> (u32, u32, u32) {
        (self.second_of_day / 3600, self.second_of_day / 60 % 60, self.second_of_day % 60)
    }

    /// `13:55:36.042`.
    pub fn time_of_day(&self) -> impl fmt::Display + use<> {
        let (hour, minute, second) = self.clock();
        let millisecond = self.millisecond;
        fmt::from_fn(move |f| write!(f, "{hour:02}:{minute:02}:{second:02}.{millisecond:03}"))
    }

    /// `2026-11-21T13:55:36.042Z` (RFC 3339).
    pub fn rfc3339(&self) -> impl fmt::Display + use<> {
        let Civil { year, month, day, .. } = *self;
        let time = self.time_of_day();
        fmt::from_fn(move |f| write!(f, "{year:04}-{month:02}-{day:02}T{time}Z"))
    }

    /// `21/Nov/2026:13:55:36 +0000`, as access logs in the NCSA formats write it.
    pub fn ncsa(&self) -> impl fmt::Display + use<> {
        let Civil { year, month, day, .. } = *self;
        let (hour, minute, second) = self.clock();
        fmt::from_fn(move |f| {
            let month = MONTHS[usize::from(month) - 1];
            write!(f, "{day:02}/{month}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_in_each_form() {
        let civil = Civil::of(Timestamp::from_millis(1_795_269_336_042));
        assert_eq!(civil.rfc3339().to_string(), "2026-11-21T13:55:36.042Z");
        assert_eq!(civil.ncsa().to_string(), "21/Nov/2026:13:55:36 +0000");
        assert_eq!(civil.time_of_day().to_string(), "13:55:36.042");
    }

    #[test]
    fn leap_days_and_the_ends_of_time_are_right() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000Z"),
            (253_402_300_799, "9999-12-31T23:59:59.000Z"),
        ] {
            assert_eq!(Civil::of(Timestamp::from_secs(seconds)).rfc3339().to_string(), text);
        }
        Civil::of(Timestamp::from_millis(u64::MAX));
    }
}
