//! The response time of a class: two numbers that a few outliers do not move far.

/// The factor by which the least time rises with each response until it is seen again, and by which it falls
/// with one at most.
const RISE: f32 = 1.0 + 1.0 / 512.0;
const FALL: f32 = 0.8;

/// Down to this part of the median, the least time includes requests that waited behind others. If the
/// balancer has to wait for a core, it reads two responses at once, and the second seems to have taken no
/// time.
const BEHIND_OTHERS: f32 = 0.4;

/// Responses that the median follows, and the number it begins with.
const FOLLOWED: f32 = 32.0;
const FIRST: f32 = 4.0;

/// The service time of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServiceTime {
    pub(crate) seconds: f32,
    /// Whether it counts from the request, because the worker was idle. Otherwise it counts from the previous
    /// response.
    pub(crate) alone: bool,
}

/// The recent seconds that an average worker spends on requests of a class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// The quickest: those that found all their data.
    pub(crate) least: f32,
    /// The median.
    pub(crate) usual: f32,
}

impl Times {
    pub(crate) const UNKNOWN: Times = Times { least: f32::INFINITY, usual: f32::INFINITY };

    /// Adds a response of a worker `slowness` times slower than average, which has sent `answers` before.
    pub(crate) fn add(&mut self, took: ServiceTime, slowness: f32, answers: u32) {
        let seconds = took.seconds / slowness;
        if self.usual.is_infinite() {
            *self = Times { least: seconds, usual: seconds };
            return;
        }
        // The median moves in equal steps: where it stays, half of the responses are above it (Robbins and
        // Monro 1951).
        let step = 1.0 - 1.0 / (answers as f32).clamp(FIRST, FOLLOWED);
        self.usual = seconds.clamp(self.usual * step, self.usual / step);
        let behind_others = if took.alone { 0.0 } else { BEHIND_OTHERS * self.usual };
        self.least = seconds.max(FALL * self.least).max(behind_others).min(RISE * self.least).min(self.usual);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(mut times: Times, seconds: impl Fn(u32) -> f32, alone: bool, answers: u32) -> Times {
        for n in 0..answers {
            times.add(ServiceTime { seconds: seconds(n), alone }, 1.0, n);
        }
        times
    }

    fn near(value: f32, expected: f32) -> bool {
        (0.9..1.1).contains(&(value / expected))
    }

    #[test]
    fn both_are_found_from_what_it_took_to_load_all() {
        let times = after(Times::UNKNOWN, |n| if n < 4 { 0.1 } else { 0.01 }, true, 60);
        assert!(near(times.least, 0.01) && near(times.usual, 0.01), "{times:?}");
    }

    #[test]
    fn the_usual_time_is_the_median_whatever_the_longest_take() {
        let times = after(Times::UNKNOWN, |n| [0.01, 0.02, 0.02, 0.03, 5.0][n as usize % 5], true, 1000);
        assert!((0.015..0.025).contains(&times.usual), "{times:?}");
        assert!(near(times.least, 0.01), "{times:?}");
    }

    #[test]
    fn one_answer_that_looks_quick_is_not_what_the_class_takes() {
        let mut times = after(Times::UNKNOWN, |_| 0.01, true, 100);
        times.add(ServiceTime { seconds: 0.000_01, alone: true }, 1.0, 100);
        assert!(times.least > 0.0075, "{times:?}");
        assert!(near(after(times, |_| 0.01, true, 200).least, 0.01));
    }

    #[test]
    fn answers_that_are_read_at_once_do_not_look_quick_for_ever() {
        let in_pairs = |n: u32| if n % 4 == 3 { 0.000_01 } else { 0.01 };
        let times = after(Times::UNKNOWN, in_pairs, false, 1000);
        assert!(times.least > 0.003, "{times:?}");
    }

    #[test]
    fn requests_that_a_worker_has_alone_say_how_quick_it_can_be() {
        let one_in_ten = |n: u32| if n.is_multiple_of(10) { 0.001 } else { 0.01 };
        assert!(after(Times::UNKNOWN, one_in_ten, true, 1000).least < 0.0013);
    }
}
