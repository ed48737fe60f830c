//! From times that lines tell to times at which requests are made.

use std::time::Duration;

use sandarac_message::Timestamp;

/// At most so many requests are looked at together.
pub(super) const GROUP: usize = 16 * 1024;

/// A server writes a line when a request ends, with the time at which it began: lines are out of order by as
/// long as requests take. What lies further back is not late: several logs follow each other, or the clock
/// was set.
const SLACK: Duration = Duration::from_secs(60);

/// The times of a log's requests, from the first on.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// What the latest line told, and when that is.
    latest: Option<(Timestamp, Duration)>,
    /// When the last request is made.
    last: Duration,
}

impl Timeline {
    /// When `count` requests are made that came at `time`: all at once, or spread evenly over the second,
    /// where lines tell no more. Never before those placed before.
    pub(super) fn place(
        &mut self,
        time: Timestamp,
        whole_second: bool,
        count: usize,
    ) -> impl Iterator<Item = Duration> + use<> {
        let begin = match self.latest {
            None => Duration::ZERO,
            Some((latest, at)) if time >= latest => at + time.since(latest),
            Some((latest, at)) if latest.since(time) <= SLACK => at,
            Some(_) => self.last,
        };
        if self.latest.is_none_or(|(latest, _)| time >= latest || latest.since(time) > SLACK) {
            self.latest = Some((time, begin));
        }
        let second = if whole_second { Duration::from_secs(1) } else { Duration::ZERO };
        let earliest = self.last;
        let at =
            move |number: usize| (begin + second.mul_f64(number as f64 / count.max(1) as f64)).max(earliest);
        self.last = at(count.saturating_sub(1)).max(earliest);
        (0..count).map(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(timeline: &mut Timeline, second: u64, count: usize) -> Vec<u128> {
        let placed = timeline.place(Timestamp::from_secs(second), true, count);
        placed.map(|at| at.as_millis()).collect()
    }

    #[test]
    fn requests_of_one_second_are_spread_over_it() {
        let mut timeline = Timeline::default();
        assert_eq!(place(&mut timeline, 1000, 4), [0, 250, 500, 750]);
        assert_eq!(place(&mut timeline, 1001, 1), [1000]);
        assert_eq!(place(&mut timeline, 1010, 2), [10_000, 10_500]);
        let mut timeline = Timeline::default();
        let exact = timeline.place(Timestamp::from_millis(5), false, 2);
        assert_eq!(exact.collect::<Vec<_>>(), [Duration::ZERO; 2]);
    }

    #[test]
    fn a_late_line_is_played_at_once_and_an_old_log_after_a_new_one_goes_on() {
        let mut timeline = Timeline::default();
        assert_eq!(place(&mut timeline, 1000, 1), [0]);
        assert_eq!(place(&mut timeline, 995, 1), [0]);
        assert_eq!(place(&mut timeline, 1002, 1), [2000]);
        assert_eq!(place(&mut timeline, 100, 1), [2000]);
        assert_eq!(place(&mut timeline, 103, 1), [5000]);
    }
}
