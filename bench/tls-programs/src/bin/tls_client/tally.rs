//! Counts and times of a measurement.

use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Tally {
    micros: Vec<u32>,
    pub(crate) resumed: usize,
    pub(crate) seconds: f64,
    /// The suite and the group of the first connection.
    negotiated: String,
    /// How often each error occurred.
    errors: BTreeMap<String, usize>,
}

impl Tally {
    pub(crate) fn of(negotiated: String) -> Tally {
        Tally { negotiated, ..Tally::default() }
    }

    pub(crate) fn add(&mut self, taken: Duration) {
        self.micros.push(u32::try_from(taken.as_micros()).unwrap_or(u32::MAX));
    }

    pub(crate) fn fail(&mut self, error: impl ToString) {
        *self.errors.entry(error.to_string()).or_default() += 1;
    }

    pub(crate) fn json(mut self) -> String {
        self.micros.sort_unstable();
        let percentile = |share: usize| {
            let rank = (self.micros.len() * share).div_ceil(100).max(1) - 1;
            self.micros.get(rank).copied().unwrap_or(0)
        };
        let complaints: Vec<String> =
            self.errors.iter().take(3).map(|(error, count)| format!("{count} x {error}")).collect();
        format!(
            r#"{{"done": {}, "errors": {}, "seconds": {:.6}, "p50_us": {}, "p99_us": {}, "max_us": {}, "resumed": {}, "negotiated": {:?}, "complaints": {:?}}}"#,
            self.micros.len(),
            self.errors.values().sum::<usize>(),
            self.seconds,
            percentile(50),
            percentile(99),
            percentile(100),
            self.resumed,
            self.negotiated,
            complaints.join("; "),
        )
    }
}
