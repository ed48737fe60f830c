//! The sample of the log that `top` shows: which URLs are busy, and how they are answered.

use std::collections::HashMap;

/// How much a URL's past counts a second later: what was busy ten seconds ago is down to a third.
const FADE_FACTOR: f64 = 0.9;

/// URLs that fade below this are dropped.
const MIN_ANSWERS: f64 = 0.2;

/// The most URLs that are kept count of; others wait until some have faded.
pub(super) const MAX_URLS: usize = 20_000;

/// The requests of the last seconds, as the log has them.
#[derive(Default)]
pub(super) struct LogSample {
    pub(super) urls: HashMap<String, Row>,
    /// Answers by the first digit of their status.
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
    /// Takes one JSON line of the log.
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

    /// Lets the past count less. Called once a second.
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
