//! Times as texts.

/// A time in seconds since 1970 as text such as `2026-11-24 02:15:44 UTC`.
pub fn civil(seconds: i64) -> String {
    let days = seconds.div_euclid(86_400);
    let of_day = seconds.rem_euclid(86_400);
    // The days are counted in eras of 400 years that begin in March, so that a leap day is the last of its year.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_civil_dates() {
        assert_eq!(civil(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(civil(951_827_696), "2000-02-29 12:34:56 UTC");
        assert_eq!(civil(1_795_486_544), "2026-11-24 02:15:44 UTC");
        assert_eq!(civil(-1), "1969-12-31 23:59:59 UTC");
    }
}
