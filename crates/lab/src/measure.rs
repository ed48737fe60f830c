//! What is measured, and what is made of it.

/// What one algorithm did in one scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The algorithm, as the scenario calls it.
    pub label: String,
    /// Requests of the warm-up.
    pub warm_up: u64,
    /// The measurements from event to event; at least one.
    pub phases: Vec<Phase>,
    /// Objects loaded per request, window by window, from the end of the warm-up.
    pub loads_over_time: Vec<f64>,
    /// Requests in a window.
    pub window: u64,
}

/// What was measured between two events.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// What it began with; empty for the first.
    pub name: String,
    /// Requests that ended in it.
    pub requests: u64,
    /// Requests that a worker took down with it and another served.
    pub retried: u64,
    /// Objects loaded per request.
    pub loads: f64,
    /// Requests per second.
    pub throughput: f64,
    /// The time that half of the requests stay below, in milliseconds.
    pub p50_ms: f64,
    /// The time that all but one in a hundred stay below, in milliseconds.
    pub p99_ms: f64,
    /// The same of all requests that are not for the site that is crowded in any phase.
    pub p99_others_ms: f64,
    /// The share of the objects held that more than one worker holds, at the end.
    pub overlap: f64,
    /// Jain's fairness of the time that workers were at work: 1 if all worked as much, 1 / n if only one did.
    pub fairness: f64,
    /// The mean, over time, of how far workers' backlogs differ: their standard deviation, in requests.
    pub backlog_spread: f64,
    /// Requests from the beginning until a worker that joined or started anew served half of an equal share, over a
    /// window; `None` where none did either, or it never came to that.
    pub share_after: Option<u64>,
    /// Requests from the beginning until the loads per request were within a tenth of those of the first phase, over a
    /// window; `None` in the first phase, or if it never came to that.
    pub steady_after: Option<u64>,
}

/// Times, to 1/64 of each.
#[derive(Clone)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

const FINENESS: u32 = 6;

impl Histogram {
    pub(crate) fn new() -> Histogram {
        Histogram { counts: vec![0; (64 - FINENESS as usize + 1) << FINENESS], total: 0 }
    }

    pub(crate) fn add(&mut self, value: u64) {
        self.counts[Self::place(value)] += 1;
        self.total += 1;
    }

    fn place(value: u64) -> usize {
        let bits = 64 - value.leading_zeros();
        let shift = bits.saturating_sub(FINENESS + 1);
        ((shift as usize) << FINENESS) + (value >> shift) as usize
    }

    /// The value that this share of all stays below; 0 of nothing.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let wanted = (self.total as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (place, &count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                let shift = (place >> FINENESS).saturating_sub(1);
                let base = place - (shift << FINENESS);
                return ((base as u64) << shift) as f64;
            }
        }
        0.0
    }
}

/// Jain's fairness index (1984): 1 if all values are equal, 1 / n if all but one are 0.
pub fn fairness(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum, squares) = values.fold((0.0, 0.0, 0.0), |(count, sum, squares), value| {
        (count + 1.0, sum + value, squares + value * value)
    });
    if squares == 0.0 { 1.0 } else { sum * sum / (count * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fairness_is_one_for_equals_and_its_share_for_one_alone() {
        assert_eq!(fairness([3.0; 4].into_iter()), 1.0);
        assert_eq!(fairness([5.0, 0.0, 0.0, 0.0].into_iter()), 0.25);
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_a_sorted_list(mut values in prop::collection::vec(0_u64..10_000_000, 1..300)) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|&value| histogram.add(value));
            values.sort_unstable();
            for share in [0.01, 0.5, 0.99] {
                let exact = values[((values.len() as f64 * share).ceil() as usize).max(1) - 1] as f64;
                let found = histogram.quantile(share);
                prop_assert!(found <= exact && exact - found <= exact / 64.0, "{share}: {found} for {exact}");
            }
        }
    }
}
