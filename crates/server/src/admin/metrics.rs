//! Statistics in the Prometheus text format (version 0.0.4).

use std::fmt::Write as _;

use super::{Label, Latency, Metric, MetricKind, Stats, Value};

/// The `Content-Type` of the text.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Upper bounds of the published latency buckets, in microseconds. Hits take tens of microseconds, pages of slow
/// applications seconds.
const BOUNDS_US: [u64; 16] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 10_000_000,
];

/// `stats` as text.
pub(super) fn text(stats: &Stats) -> String {
    let mut out = String::new();
    let mut named: Vec<&Metric> = Vec::new();
    for metric in &stats.metrics {
        // All samples of one name are under one heading.
        if named.iter().any(|seen| seen.name == metric.name) {
            continue;
        }
        named.push(metric);
        let (suffix, kind) = match metric.kind {
            MetricKind::Counter => ("_total", "counter"),
            MetricKind::Gauge => ("", "gauge"),
        };
        // Metrics of the process have standard names that tools know.
        let prefix = if metric.name.starts_with("process_") { "" } else { "sandarac_" };
        let name = format!("{prefix}{}{suffix}", metric.name);
        heading(&mut out, &name, &metric.text, kind);
        for sample in stats.metrics.iter().filter(|sample| sample.name == metric.name) {
            let labels = labels(&sample.labels);
            let _ = match sample.value {
                Value::Whole(number) => writeln!(out, "{name}{labels} {number}"),
                Value::Part(number) => writeln!(out, "{name}{labels} {number}"),
            };
        }
    }
    let name = "sandarac_request_duration_seconds";
    heading(&mut out, name, "Time from the first byte of a request to the end of its response.", "histogram");
    histogram(&mut out, name, &[], &stats.latency);
    let name = "sandarac_origin_duration_seconds";
    let text = "Time from the choice of a backend to the head of its response.";
    heading(&mut out, name, text, "histogram");
    for (pool, latency) in &stats.origin_latency {
        histogram(&mut out, name, &[("pool".into(), pool.clone())], latency);
    }
    out
}

fn histogram(out: &mut String, name: &str, of: &[Label], latency: &Latency) {
    for bound in BOUNDS_US {
        // A bucket counts below a bound if all of it lies below it.
        let below = latency.buckets.iter().filter(|&&(upper, _)| upper <= bound);
        let count: u64 = below.map(|&(_, count)| count).sum();
        let le = ("le".into(), (bound as f64 / 1e6).to_string());
        let _ = writeln!(out, "{name}_bucket{} {count}", labels(&[of, &[le]].concat()));
    }
    let count = latency.count();
    let _ = writeln!(out, "{name}_bucket{} {count}", labels(&[of, &[("le".into(), "+Inf".into())]].concat()));
    let _ = writeln!(out, "{name}_sum{} {}", labels(of), latency.sum_us as f64 / 1e6);
    let _ = writeln!(out, "{name}_count{} {count}", labels(of));
}

fn heading(out: &mut String, name: &str, text: &str, kind: &str) {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    let _ = writeln!(out, "# HELP {name} {text}\n# TYPE {name} {kind}");
}

fn labels(labels: &[Label]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let escape = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels: Vec<_> =
        labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escape(value))).collect();
    format!("{{{}}}", labels.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::Latency;

    #[test]
    fn metrics_have_one_heading_and_escaped_labels() {
        let stats = Stats {
            at_ms: 0,
            metrics: vec![
                Metric::counter("responses", "Responses sent.", 7).with("class", "2xx"),
                Metric::gauge("cache_bytes", "Memory in use.", 42),
                Metric::measure("load", "Load.", 0.25),
                Metric::counter("responses", "Responses sent.", 1).with("class", "a\"b\\\n"),
            ],
            latency: Latency { buckets: vec![(49, 2), (99, 1), (20_000_000, 1)], sum_us: 20_000_200 },
            origin_latency: [("app".to_owned(), Latency { buckets: vec![(999, 3)], sum_us: 1500 })].into(),
        };
        let text = text(&stats);
        assert!(text.starts_with(
            "# HELP sandarac_responses_total Responses sent.\n# TYPE sandarac_responses_total counter\n\
             sandarac_responses_total{class=\"2xx\"} 7\nsandarac_responses_total{class=\"a\\\"b\\\\\\n\"} 1\n\
             # HELP sandarac_cache_bytes Memory in use.\n# TYPE sandarac_cache_bytes gauge\nsandarac_cache_bytes 42\n\
             # HELP sandarac_load Load.\n# TYPE sandarac_load gauge\nsandarac_load 0.25\n"
        ));
        assert!(text.contains("_bucket{le=\"0.00005\"} 2\n"), "{text}");
        assert!(text.contains("_bucket{le=\"10\"} 3\n"), "{text}");
        assert!(text.contains("_bucket{le=\"+Inf\"} 4\nsandarac_request_duration_seconds_sum 20.0002\nsandarac_request_duration_seconds_count 4\n"), "{text}");
        assert!(
            text.contains("sandarac_origin_duration_seconds_bucket{pool=\"app\",le=\"0.001\"} 3\n"),
            "{text}"
        );
        assert!(
            text.ends_with(
                "_seconds_sum{pool=\"app\"} 0.0015\nsandarac_origin_duration_seconds_count{pool=\"app\"} 3\n"
            ),
            "{text}"
        );
    }
}
