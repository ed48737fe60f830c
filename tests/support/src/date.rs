//! HTTP dates.

use std::time::{SystemTime, UNIX_EPOCH};

/// The present time, as an HTTP date (IMF-fixdate, RFC 9110 §5.6.7).
pub fn http_date() -> String {
    http_date_in(0)
}

/// The time `seconds` from now, or before now if negative, as an HTTP date.
pub fn http_date_in(seconds: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock stands after 1970");
    http_date_at(now.as_secs() as i64 + seconds)
}

/// `time`, in seconds since 1970, as an HTTP date. The date is worked out by the method of H. Hinnant, "chrono-compatible
/// low-level date algorithms": years begin in March, so that the leap day comes last.
pub fn http_date_at(time: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, second) = (time.div_euclid(86_400), time.rem_euclid(86_400));
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let year = era * 400 + year_of_era + i64::from(month < 2);
    format!(
        "{}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        DAYS[days.rem_euclid(7) as usize],
        MONTHS[month as usize],
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::http_date_at;

    #[test]
    fn dates_are_written_as_rfc_9110_shows_them() {
        assert_eq!(http_date_at(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(http_date_at(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date_at(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(http_date_at(4_107_542_399), "Sun, 28 Feb 2100 23:59:59 GMT");
    }
}
