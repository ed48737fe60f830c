//! When a certificate is renewed.

use std::time::Duration;

use sandarac_message::Timestamp;

const DAY: Duration = Duration::from_secs(86_400);

/// The time in which a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first moment.
    pub not_before: Timestamp,
    /// The last moment.
    pub not_after: Timestamp,
}

/// The window in which the CA suggests to renew (ARI, RFC 9773 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its start.
    pub start: Timestamp,
    /// Its end.
    pub end: Timestamp,
}

/// The time from which a certificate is renewed. `chance`, from 0 to below 1, spreads the renewals of many.
///
/// Without a window, that is 2/3 of the lifetime, or up to 1/30 of it earlier: 30 to 33 days before the end of 90. With one, it
/// is a moment in the window. A CA cannot make a certificate expire or be ordered again and again: the moment is at least a day
/// (a tenth of a short life) after the start, and a tenth of the lifetime before the end. A window that ends before it starts
/// is ignored.
pub fn renewal(validity: Validity, window: Option<Window>, chance: f64) -> Timestamp {
    let Validity { not_before, not_after } = validity;
    let lifetime = not_after.since(not_before);
    match window.filter(|window| window.start <= window.end) {
        Some(Window { start, end }) => {
            let earliest = not_before.plus(DAY.min(lifetime / 10));
            let latest = not_after.minus(lifetime / 10);
            start.plus(end.since(start).mul_f64(chance)).clamp(earliest, latest.max(earliest))
        }
        None => not_before.plus(lifetime / 3 * 2).minus((lifetime / 30).mul_f64(chance)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_secs(1_700_000_000);

    fn days(days: u64) -> Timestamp {
        START.plus(DAY * u32::try_from(days).expect("few days"))
    }

    const fn validity(days: u64) -> Validity {
        Validity { not_before: START, not_after: START.plus(Duration::from_secs(days * 86_400)) }
    }

    #[test]
    fn a_certificate_is_renewed_at_two_thirds_of_its_life_or_slightly_earlier() {
        assert_eq!(renewal(validity(90), None, 0.0), days(60));
        assert_eq!(renewal(validity(90), None, 0.5), days(60).minus(DAY.mul_f64(1.5)));
        assert_eq!(renewal(validity(6), None, 0.0), days(4));
    }

    #[test]
    fn the_window_of_the_ca_takes_precedence() {
        let window = Some(Window { start: days(40), end: days(42) });
        assert_eq!(renewal(validity(90), window, 0.0), days(40));
        assert_eq!(renewal(validity(90), window, 0.5), days(41));
    }

    #[test]
    fn a_window_cannot_make_a_certificate_expire_or_be_ordered_again_and_again() {
        let late = Some(Window { start: days(400), end: days(500) });
        assert_eq!(renewal(validity(90), late, 0.5), days(81));
        let past = Some(Window { start: Timestamp::from_secs(0), end: Timestamp::from_secs(1) });
        assert_eq!(renewal(validity(90), past, 0.5), days(1));
        assert_eq!(renewal(validity(6), past, 0.5), START.plus(DAY.mul_f64(0.6)));
        let reversed = Some(Window { start: days(2), end: days(1) });
        assert_eq!(renewal(validity(90), reversed, 0.0), days(60));
    }

    #[test]
    fn absurd_times_have_an_answer() {
        let end = Timestamp::from_millis(u64::MAX);
        for (not_before, not_after) in [(START, START), (end, START), (START, end), (end, end)] {
            for window in [None, Some(Window { start: START, end }), Some(Window { start: end, end })] {
                _ = renewal(Validity { not_before, not_after }, window, 0.999);
            }
        }
    }
}
