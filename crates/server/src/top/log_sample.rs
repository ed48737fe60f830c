//! The sample of the log shown by `top`: the busiest URLs and their outcomes.

use std::collections::HashMap;

/// The weight of a URL's past after a second: requests of ten seconds ago have a third of their weight.
const FADE_FACTOR: f64 = 0.9;

/// URLs whose weight falls below this are dropped.
const MIN_ANSWERS: f64 = 0.2;

/// The most URLs that are counted; others wait until some have been dropped.
pub(super) const MAX_URLS: usize = 20_000;

/// The requests of the last seconds, from the log.
#[derive(Default)]
pub(super) struct LogSample {
    pub(super) urls: HashMap<String, Row>,
    /// Responses by the first digit of their status.
    pub(super) classes: [f64; 6],
}

/// The requests for one URL.
#[derive(Default)]
pub(super) struct Row {
    pub(super) answers: f64,
    pub(super) hits: f64,
    /// The sum of their durations, in microseconds.
    pub(super) us: f64,
}

impl LogSample {
    /// Adds one JSON line of the log.
    pub(super) fn add(&mut self, line: &str) {
        let Ok(entry) = serde_json::from_str::<serde_json::Value>(line) else {
            return;
        };
        let Some(target) = entry["target"].as_str() else {
            return;
        };
        let class = entry["status"].as_u64().unwrap_or_default() as usize / 100;
        self.classes[class.min(5)] += 1.0;
        let url = format!("{}{target}", entry["host"].as_str().unwrap_or_default());
        if self.urls.len() >= MAX_URLS && !self.urls.contains_key(&url) {
            return;
        }
        let row = self.urls.entry(url).or_default();
        row.answers += 1.0;
        row.hits += f64::from(matches!(entry["cache"].as_str(), Some("hit" | "stale")));
        row.us += entry["duration_us"].as_f64().unwrap_or_default();
    }

    /// Reduces the weight of the past. Called once a second.
    pub(super) fn fade(&mut self) {
        for row in self.urls.values_mut() {
            for value in [&mut row.answers, &mut row.hits, &mut row.us] {
                *value *= FADE_FACTOR;
            }
        }
        for class in &mut self.classes {
            *class *= FADE_FACTOR;
        }
        self.urls.retain(|_, row| row.answers >= MIN_ANSWERS);
    }
}
