//! Measurements of a simulation, and the figures made of them.

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
    /// Requests from the beginning until a worker that joined or started anew served half of an equal share,
    /// over a window; `None` where none did either, or it never came to that.
    pub share_after: Option<u64>,
    /// Requests from the beginning until the loads per request were within a tenth of those of the first
    /// phase, over a window; `None` in the first phase, or if it never came to that.
    pub steady_after: Option<u64>,
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

    #[test]
    fn fairness_is_one_for_equals_and_its_share_for_one_alone() {
        assert_eq!(fairness([3.0; 4].into_iter()), 1.0);
        assert_eq!(fairness([5.0, 0.0, 0.0, 0.0].into_iter()), 0.25);
    }
}
