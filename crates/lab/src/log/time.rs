//! Time formats of logs.

use sandarac_message::Timestamp;
use sandarac_message::civil::{Civil, MONTHS};

/// Parses `21/Nov/2026:13:55:36 +0100`.
pub(super) fn ncsa(text: &[u8]) -> Option<Timestamp> {
    let text: &[u8; 26] = text.try_into().ok()?;
    let signs = [(2, b'/'), (6, b'/'), (11, b':'), (14, b':'), (17, b':'), (20, b' ')];
    if signs.iter().any(|&(at, sign)| text[at] != sign) {
        return None;
    }
    let month = MONTHS.iter().position(|month| *month.as_bytes() == text[3..6])? as u64 + 1;
    let date = (number(&text[7..11])?, month, number(&text[..2])?);
    let clock = (number(&text[12..14])?, number(&text[15..17])?, number(&text[18..20])?);
    let (hours, minutes) = (number(&text[22..24])?, number(&text[24..26])?);
    let offset = i64::try_from(hours * 3600 + minutes * 60).ok()?;
    let offset = match text[21] {
        b'+' => offset,
        b'-' => -offset,
        _ => return None,
    };
    Some(Timestamp::from_secs(seconds(date, clock)?.checked_add_signed(-offset)?))
}

/// Parses `2026-11-21T13:55:36.042Z`, with or without a fraction of a second.
pub(super) fn rfc3339(text: &[u8]) -> Option<Timestamp> {
    let text = text.strip_suffix(b"Z")?;
    let (whole, fraction) = text.split_at_checked(19)?;
    let signs = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if signs.iter().any(|&(at, sign)| whole[at] != sign) {
        return None;
    }
    let date = (number(&whole[..4])?, number(&whole[5..7])?, number(&whole[8..10])?);
    let clock = (number(&whole[11..13])?, number(&whole[14..16])?, number(&whole[17..])?);
    let millis = match fraction {
        [] => 0,
        [b'.', digits @ ..] if !digits.is_empty() => {
            number(digits)?;
            let digit = |at: usize| digits.get(at).map_or(0, |digit| u64::from(digit - b'0'));
            digit(0) * 100 + digit(1) * 10 + digit(2)
        }
        _ => return None,
    };
    Some(Timestamp::from_millis(seconds(date, clock)? * 1000 + millis))
}

/// A number of at most 18 digits, without other characters.
fn number(digits: &[u8]) -> Option<u64> {
    let fits = (1..=18).contains(&digits.len());
    digits
        .iter()
        .filter(|_| fits)
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0')))
        .filter(|_| fits)
}

/// Seconds from the epoch to a date and time of day in UTC; `None` if they are invalid, or before the epoch.
fn seconds((year, month, day): (u64, u64, u64), (hour, minute, second): (u64, u64, u64)) -> Option<u64> {
    let civil = Civil { year, month, day, hour, minute, second, millisecond: 0 };
    u64::try_from(civil.since_epoch()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(time: Option<Timestamp>) -> Option<u64> {
        time.map(Timestamp::as_millis)
    }

    #[test]
    fn both_formats_are_read_to_the_same_time() {
        let expected = Some(1_795_269_336_000);
        assert_eq!(millis(ncsa(b"21/Nov/2026:13:55:36 +0000")), expected);
        assert_eq!(millis(ncsa(b"21/Nov/2026:14:55:36 +0100")), expected);
        assert_eq!(millis(ncsa(b"21/Nov/2026:08:25:36 -0530")), expected);
        assert_eq!(millis(rfc3339(b"2026-11-21T13:55:36Z")), expected);
        assert_eq!(millis(rfc3339(b"2026-11-21T13:55:36.0429Z")), Some(1_795_269_336_042));
        assert_eq!(millis(ncsa(b"29/Feb/2024:00:00:00 +0000")), Some(1_709_164_800_000));
        assert_eq!(millis(ncsa(b"01/Jan/1970:00:00:00 +0000")), Some(0));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "29/Feb/2026:00:00:00 +0000",
            "21/Nov/2026:24:00:00 +0000",
            "1/Nov/2026:13:55:36 +0000",
            "21/nov/2026:13:55:36 +0000",
            "21/Nov/2026:13:55:36 *0000",
            "01/Jan/1970:00:00:00 +0001",
            "21/Nov/2026:13:55:36 +00x0",
            "00/Nov/2026:13:55:36 +0000",
        ] {
            assert_eq!(ncsa(text.as_bytes()), None, "{text}");
        }
        for text in [
            "2026-11-21T13:55:36",
            "2026-11-21T13:55:36.Z",
            "2026-11-21T13:55:36.0x2Z",
            "2026-13-01T00:00:00Z",
        ] {
            assert_eq!(rfc3339(text.as_bytes()), None, "{text}");
        }
    }
}
