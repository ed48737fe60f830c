//! The measures of a phase and of a window, while they run.

use sandarac_balance::Histogram;

/// Durations of requests, to 1/64.
pub(super) type Times = Histogram<6>;

/// The measurements of a phase in progress.
pub(super) struct Watch {
    pub(super) name: String,
    pub(super) began: u64,
    pub(super) ended_before: u64,
    pub(super) loads: u64,
    pub(super) retried: u64,
    pub(super) times: Times,
    pub(super) times_of_others: Times,
    pub(super) spread: f64,
    pub(super) spread_since: u64,
    pub(super) share_after: Option<u64>,
    pub(super) steady_after: Option<u64>,
}

#[derive(Default)]
pub(super) struct Window {
    pub(super) requests: u64,
    pub(super) loads: u64,
}

impl Watch {
    pub(super) fn new(name: String, now: u64, ended: u64) -> Watch {
        Watch {
            name,
            began: now,
            ended_before: ended,
            loads: 0,
            retried: 0,
            times: Times::default(),
            times_of_others: Times::default(),
            spread: 0.0,
            spread_since: now,
            share_after: None,
            steady_after: None,
        }
    }
}

/// The time that this share of requests does not exceed, in milliseconds: at most 1/64 below the true one,
/// never above; 0 without requests.
pub(super) fn quantile_ms(times: &Times, share: f64) -> f64 {
    times.quantile(share).map_or(0.0, |bounds| bounds.start().as_micros() as f64 / 1000.0)
}
