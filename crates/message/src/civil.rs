//! Civil dates: points in time as date and time of day in UTC.
//!
//! The calendar is computed in eras of 400 years from 1 March 0000: in years that begin in March, the leap
//! day comes last (Hinnant, "chrono-compatible low-level date algorithms").

use std::fmt;

use crate::Timestamp;

/// The names of the months, January first, as HTTP dates and access logs write them.
pub const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// 1 January 1970, in days from 1 March 0000.
const EPOCH: u64 = 719_468;

/// A date and time of day of the proleptic Gregorian calendar, UTC. The fields may hold any numbers;
/// [`Civil::since_epoch`] checks that they form a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year, from 0.
    pub year: u64,
    /// The month, 1 to 12.
    pub month: u64,
    /// The day of the month, from 1.
    pub day: u64,
    /// The hour, 0 to 23.
    pub hour: u64,
    /// The minute, 0 to 59.
    pub minute: u64,
    /// The second, 0 to 60: a leap second is allowed.
    pub second: u64,
    /// The millisecond, 0 to 999.
    pub millisecond: u64,
}

impl Civil {
    /// The date and time of day of `time`.
    pub fn of(time: Timestamp) -> Civil {
        let seconds = time.as_secs();
        let days = seconds / 86_400 + EPOCH;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        Civil {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month,
            day: day_of_year - (153 * shifted_month + 2) / 5 + 1,
            hour: seconds / 3600 % 24,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            millisecond: time.as_millis() % 1000,
        }
    }

    /// Seconds from the epoch, negative before it; `None` if the fields form no date and time of day, or the
    /// year is past 9999. A leap second counts as the second after it. The millisecond is ignored.
    pub fn since_epoch(&self) -> Option<i64> {
        let Civil { year, month, day, hour, minute, second, .. } = *self;
        let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let length = match month {
            2 => 28 + u64::from(leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        if year > 9999 || !(1..=length).contains(&day) || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let shifted_year = year as i64 - i64::from(month <= 2);
        let (era, year_of_era) = (shifted_year.div_euclid(400), shifted_year.rem_euclid(400));
        let day_of_year = ((153 * ((month + 9) % 12) + 2) / 5 + day - 1) as i64;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = era * 146_097 + day_of_era - EPOCH as i64;
        Some(days * 86_400 + (hour * 3600 + minute * 60 + second) as i64)
    }

    /// `13:55:36.042`.
    pub fn time_of_day(self) -> impl fmt::Display {
        let Civil { hour, minute, second, millisecond, .. } = self;
        fmt::from_fn(move |f| write!(f, "{hour:02}:{minute:02}:{second:02}.{millisecond:03}"))
    }

    /// `2026-11-21T13:55:36.042Z` (RFC 3339).
    pub fn rfc3339(self) -> impl fmt::Display {
        let Civil { year, month, day, .. } = self;
        let time = self.time_of_day();
        fmt::from_fn(move |f| write!(f, "{year:04}-{month:02}-{day:02}T{time}Z"))
    }

    /// `21/Nov/2026:13:55:36 +0000`, as access logs in the NCSA formats write it. The fields MUST be a date.
    pub fn ncsa(self) -> impl fmt::Display {
        let Civil { year, month, day, hour, minute, second, .. } = self;
        fmt::from_fn(move |f| {
            let month = MONTHS[month as usize - 1];
            write!(f, "{day:02}/{month}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    #[test]
    fn impossible_dates_and_times_are_none() {
        let epoch = Civil::of(Timestamp::from_secs(0));
        for wrong in [
            Civil { year: 10_000, ..epoch },
            Civil { month: 0, ..epoch },
            Civil { month: 13, ..epoch },
            Civil { day: 0, ..epoch },
            Civil { month: 4, day: 31, ..epoch },
            Civil { year: 2100, month: 2, day: 29, ..epoch },
            Civil { hour: 24, ..epoch },
            Civil { minute: 60, ..epoch },
            Civil { second: 61, ..epoch },
        ] {
            assert_eq!(wrong.since_epoch(), None, "{wrong:?}");
        }
        assert_eq!(Civil { second: 60, ..epoch }.since_epoch(), Some(60));
        assert_eq!(Civil { year: 1969, month: 12, day: 31, ..epoch }.since_epoch(), Some(-86_400));
        assert_eq!(Civil { year: 0, ..epoch }.since_epoch(), Some(-62_167_219_200));
    }

    proptest! {
        #[test]
        fn dates_of_times_are_those_times(seconds in 0..=253_402_300_799u64) {
            let civil = Civil::of(Timestamp::from_secs(seconds));
            prop_assert_eq!(civil.since_epoch(), Some(seconds as i64));
        }
    }
}
