//! HTTP dates (RFC 9110 §5.6.7).
//!
//! Only the three forms of the RFC are dates, in any letter case. Similar texts (other zones, a missing
//! comma, one-digit hours, doubled spaces) are invalid, because `Expires` must then count as past (RFC 9111
//! §5.3).

use crate::Timestamp;
use crate::civil::{Civil, MONTHS};

/// The length of a formatted date.
pub const LEN: usize = 29;

/// The last second whose year fits the preferred form.
const LAST: Timestamp = Timestamp::from_secs(253_402_300_799);

const DAYS: [&[u8; 3]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];
const LONG_DAYS: [&[u8]; 7] =
    [b"Monday", b"Tuesday", b"Wednesday", b"Thursday", b"Friday", b"Saturday", b"Sunday"];

/// Reads an HTTP date. `now` determines the century of the RFC 850 form: a year that would be more than 50
/// years ahead is in the past. The name of the day must be valid, but need not be the right one. A date
/// before the epoch reads as the epoch.
pub fn parse(value: &[u8], now: Timestamp) -> Option<Timestamp> {
    let mut text = Text(value);
    let name = text.word();
    let (year, month, day, (hour, minute, second)) = if is_one_of(&DAYS, name) {
        if text.skip(b", ") {
            let day = text.two()?;
            text.expect(b" ")?;
            let month = text.month()?;
            text.expect(b" ")?;
            let year = text.two()? * 100 + text.two()?;
            text.expect(b" ")?;
            let clock = text.clock()?;
            text.expect(b" ")?;
            text.gmt()?;
            (year, month, day, clock)
        } else {
            text.expect(b" ")?;
            let month = text.month()?;
            text.expect(b" ")?;
            let day = if text.skip(b" ") { text.digit()? } else { text.two()? };
            text.expect(b" ")?;
            let clock = text.clock()?;
            text.expect(b" ")?;
            (text.two()? * 100 + text.two()?, month, day, clock)
        }
    } else if is_one_of(&LONG_DAYS, name) {
        text.expect(b", ")?;
        let day = text.two()?;
        text.expect(b"-")?;
        let month = text.month()?;
        text.expect(b"-")?;
        let short = text.two()?;
        text.expect(b" ")?;
        let clock = text.clock()?;
        text.expect(b" ")?;
        text.gmt()?;
        (full_year(short, now), month, day, clock)
    } else {
        return None;
    };
    if !text.0.is_empty() {
        return None;
    }
    let seconds = Civil { year, month, day, hour, minute, second, millisecond: 0 }.since_epoch()?;
    Some(Timestamp::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// Writes `time` in the preferred form, `Sun, 06 Nov 1994 08:49:37 GMT`. Years past 9999, which do not fit
/// the form, become the end of 9999.
pub fn format(time: Timestamp) -> [u8; LEN] {
    let time = time.min(LAST);
    let Civil { year, month, day, hour, minute, second, .. } = Civil::of(time);
    let mut out = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    // The epoch was a Thursday.
    out[..3].copy_from_slice(DAYS[((time.as_secs() / 86_400 + 3) % 7) as usize]);
    put_two(&mut out[5..7], day);
    out[8..11].copy_from_slice(MONTHS[month as usize - 1].as_bytes());
    put_two(&mut out[12..14], year / 100);
    put_two(&mut out[14..16], year % 100);
    put_two(&mut out[17..19], hour);
    put_two(&mut out[20..22], minute);
    put_two(&mut out[23..25], second);
    out
}

fn put_two(out: &mut [u8], number: u64) {
    out[0] = b'0' + (number / 10) as u8;
    out[1] = b'0' + (number % 10) as u8;
}

fn is_one_of<N: AsRef<[u8]>>(names: &[N], name: &[u8]) -> bool {
    names.iter().any(|known| known.as_ref().eq_ignore_ascii_case(name))
}

/// The year meant by two digits (RFC 9110 §5.6.7): the latest that is not more than 50 years ahead of `now`.
fn full_year(short: u64, now: Timestamp) -> u64 {
    let latest = Civil::of(now.min(LAST)).year + 50;
    latest - (latest + 100 - short) % 100
}

/// The rest of a date being read.
struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    fn word(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        word
    }

    fn skip(&mut self, text: &[u8]) -> bool {
        match self.0.strip_prefix(text) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, text: &[u8]) -> Option<()> {
        self.skip(text).then_some(())
    }

    fn digit(&mut self) -> Option<u64> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        first.is_ascii_digit().then(|| u64::from(first - b'0'))
    }

    fn two(&mut self) -> Option<u64> {
        Some(self.digit()? * 10 + self.digit()?)
    }

    fn month(&mut self) -> Option<u64> {
        let word = self.word();
        let at = MONTHS.iter().position(|known| known.as_bytes().eq_ignore_ascii_case(word))?;
        Some(at as u64 + 1)
    }

    /// Hours, minutes and seconds.
    fn clock(&mut self) -> Option<(u64, u64, u64)> {
        let hours = self.two()?;
        self.expect(b":")?;
        let minutes = self.two()?;
        self.expect(b":")?;
        Some((hours, minutes, self.two()?))
    }

    fn gmt(&mut self) -> Option<()> {
        self.word().eq_ignore_ascii_case(b"GMT").then_some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 21 November 2026.
    const NOW: Timestamp = Timestamp::from_secs(1_795_219_200);

    fn seconds(text: &str) -> Option<u64> {
        parse(text.as_bytes(), NOW).map(Timestamp::as_secs)
    }

    #[test]
    fn the_three_forms_in_any_case_are_dates() {
        for (text, expected) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Sun Nov 06 08:49:37 1994", 784_111_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Thu, 01 Jan 1900 00:00:00 GMT", 0),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
            ("Tue, 29 Feb 2028 00:00:60 GMT", 1_835_395_260),
            ("Thursday, 18-Aug-50 02:01:18 GMT", 2_544_400_878),
            ("THU, 18 Aug 2050 02:01:18 GMT", 2_544_400_878),
            ("Thu, 18 AUG 2050 02:01:18 GMT", 2_544_400_878),
            ("Thu, 18 Aug 2050 02:01:18 gMT", 2_544_400_878),
            // The name of the day is wrong, which does not invalidate the date.
            ("Thu Aug  8 02:01:18 2050", 2_543_536_878),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn everything_near_them_is_invalid() {
        for text in [
            "",
            "0",
            "-1",
            "Thu, 18 Aug 2050 02:01:18 UTC",
            "Thu, 18 Aug 2050 02:01:18 AEST",
            "Thu, 18 Aug 2050 02:01:18 +0000",
            "Thu, 18 Aug 2050 02:01:18",
            "Thu, 18 Aug 50 02:01:18 GMT",
            "Thu 18 Aug 2050 02:01:18 GMT",
            "Thu,18 Aug 2050 02:01:18 GMT",
            "Thu, 18  Aug  2050 02:01:18 GMT",
            "Thu, 18-Aug-2050 02:01:18 GMT",
            "Thu, 18 Aug 2050 02.01.18 GMT",
            "Thu, 18 Aug 2050 2:01:18 GMT",
            "Thu, 8 Aug 2050 02:01:18 GMT",
            "Thu, 18 Aug 2050 24:00:00 GMT",
            "Thu, 18 Aug 2050 02:60:18 GMT",
            "Thu, 00 Aug 2050 02:01:18 GMT",
            "Mon, 29 Feb 2027 00:00:00 GMT",
            "Mon, 31 Apr 2027 00:00:00 GMT",
            "Mon, 01 Foo 2027 00:00:00 GMT",
            "Foo, 01 Jan 2027 00:00:00 GMT",
            "Thursday, 18 Aug 2050 02:01:18 GMT",
            "Thu, 18 Aug 2050 02:01:18 GMT ",
            "Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:18 GMT",
            "Thu Aug  8 02:01:18 2050 GMT",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn two_digit_years_reach_fifty_years_ahead_at_most() {
        assert_eq!(full_year(26, NOW), 2026);
        assert_eq!(full_year(76, NOW), 2076);
        assert_eq!(full_year(77, NOW), 1977);
        assert_eq!(full_year(0, NOW), 2000);
        assert_eq!(full_year(99, NOW), 1999);
    }

    #[test]
    fn years_past_the_form_are_cut() {
        assert_eq!(&format(Timestamp::from_millis(u64::MAX)), b"Fri, 31 Dec 9999 23:59:59 GMT");
    }

    proptest! {
        #[test]
        fn formatted_dates_read_back(seconds in 0..=253_402_300_799u64) {
            let time = Timestamp::from_secs(seconds);
            prop_assert_eq!(parse(&format(time), NOW), Some(time));
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, now: u64) {
            parse(&bytes, Timestamp::from_millis(now));
        }
    }
}
