//! Conversion of the times in a log to the arrival times of requests.

use std::time::Duration;

use sandarac_message::Timestamp;

/// The most requests that are considered together.
pub(super) const GROUP: usize = 16 * 1024;

/// A server writes a line when a request ends, with the time of its beginning, so lines are out of order by
/// the duration of requests. A larger step back is no such delay: several logs were concatenated, or the
/// clock was set.
const SLACK: Duration = Duration::from_secs(60);

/// The arrival times of a log's requests.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// The latest time in the log, and its arrival time.
    latest: Option<(Timestamp, Duration)>,
    /// The arrival time of the last request.
    last: Duration,
}

impl Timeline {
    /// The arrival times of `count` requests logged at `time`: all at once, or spread evenly over the second
    /// if lines give whole seconds only. Never before earlier ones.
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
