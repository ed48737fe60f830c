//! Measurements of a simulation, and the figures computed from them.

/// The measurements of one algorithm in one scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The algorithm's label in the scenario.
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

/// The measurements between two events.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// The event that began it; empty for the first.
    pub name: String,
    /// Requests that ended in it.
    pub requests: u64,
    /// Requests that failed with a dying worker and that another served.
    pub retried: u64,
    /// Objects loaded per request.
    pub loads: f64,
    /// Requests per second.
    pub throughput: f64,
    /// The median duration of requests, in milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile of their duration, in milliseconds.
    pub p99_ms: f64,
    /// The same, without the requests for the site that is crowded in any phase.
    pub p99_others_ms: f64,
    /// The share of the held objects that more than one worker holds, at the end.
    pub overlap: f64,
    /// Jain's fairness of the working times of workers: 1 if all worked as much, 1 / n if only one did.
    pub fairness: f64,
    /// The mean over time of the standard deviation of the workers' backlogs, in requests.
    pub backlog_spread: f64,
    /// Requests from the beginning until a worker that joined or was restarted served half of an equal share
    /// over a window; `None` if there was no such worker, or it never did.
    pub share_after: Option<u64>,
    /// Requests from the beginning until the loads per request over a window were within a tenth of those of
    /// the first phase; `None` in the first phase, or if they never were.
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
