//! The screen of `top`, as text.

use std::fmt::Write as _;
use std::time::Duration;

use sandarac_message::printable::printable;

use super::log_sample::LogSample;
use super::readings::Readings;
use crate::admin::{BackendStatus, Label, PoolStatus, Stats, Status};
use crate::human::{bytes, count, grouped, lasting, milliseconds, percent, span};

/// Draws the screen in at most `width` columns and `height` lines.
pub(super) fn render(readings: &Readings, sample: &LogSample, width: usize, height: usize) -> String {
    let mut lines = head(readings, sample);
    lines.push(String::new());
    lines.push(format!("{:>7}  {:>7}  {:>9}  URL", "share", "hits", "mean"));
    let all: f64 = sample.urls.values().map(|row| row.answers).sum();
    let mut urls: Vec<_> = sample.urls.iter().collect();
    urls.sort_by(|(a_url, a), (b_url, b)| b.answers.total_cmp(&a.answers).then_with(|| a_url.cmp(b_url)));
    let room = height.saturating_sub(lines.len());
    lines.extend(urls.into_iter().take(room).map(|(url, row)| {
        let mean = Duration::from_micros((row.us / row.answers) as u64);
        let (share, hits) = (percent(row.answers / all), percent(row.hits / row.answers));
        format!("{share:>7}  {hits:>7}  {:>9}  {}", milliseconds(mean), printable(url))
    }));
    let mut screen = String::new();
    for line in lines.iter().take(height) {
        let _ = writeln!(screen, "{}", line.chars().take(width).collect::<String>().trim_end());
    }
    screen
}

fn head(readings: &Readings, sample: &LogSample) -> Vec<String> {
    let Readings { status, before, now } = readings;
    // Under load the readings are not exactly a second apart.
    let seconds = (now.at_ms.saturating_sub(before.at_ms) as f64 / 1000.0).max(0.001);
    let grown = |name: &str| now.get(name).saturating_sub(before.get(name));
    let rate = |name: &str| grouped((grown(name) as f64 / seconds).round() as u64);
    let latency = now.latency.since(&before.latency);
    let quantile = |fraction| {
        let us = latency.quantile_us(fraction);
        us.map_or_else(|| "–".to_owned(), |us| milliseconds(Duration::from_micros(us)))
    };
    let requests = grown("requests");
    let hits = match requests {
        0 => "–".to_owned(),
        requests => percent(((grown("hits") + grown("hits_stale")) as f64 / requests as f64).min(1.0)),
    };
    let in_flight: u64 =
        status.pools.iter().flat_map(|pool| &pool.backends).map(|backend| backend.in_flight).sum();
    let mut lines = vec![
        format!(
            "sandarac {}  pid {}  up {}  {}  (q quits)",
            status.version,
            status.pid,
            span(status.uptime_seconds),
            status.listeners.join(" ")
        ),
        format!(
            "requests {}/s   hits {hits}   p50 {}   p99 {}   out {}/s",
            rate("requests"),
            quantile(0.5),
            quantile(0.99),
            bytes((grown("bytes_to_clients") as f64 / seconds) as u64)
        ),
        format!(
            "to origins {}/s   failed {}/s   in flight {}   waited for another's fetch {}/s",
            rate("fetches"),
            rate("fetch_failures"),
            grouped(in_flight),
            rate("coalesced")
        ),
        format!(
            "cache {} of {}, {}",
            bytes(status.cache.used_bytes),
            bytes(status.cache.limit_bytes),
            count(status.cache.objects, "object")
        ),
        statuses(sample),
    ];
    lines.extend(shared_tier(status));
    lines.extend(pools(&status.pools));
    lines.extend(troubles(before, now));
    lines
}

/// The shared tier, if there is one: its share of the lookups, and what is wrong.
fn shared_tier(status: &Status) -> Option<String> {
    let servers = &status.shared;
    let used = servers.iter().filter(|server| server.state == "used").count();
    let hits: u64 = servers.iter().map(|server| server.hits).sum();
    let lookups: u64 = servers.iter().map(|server| server.hits + server.misses).sum();
    let wrong =
        servers.iter().find_map(|server| Some(format!(": {} {}", server.address, server.fault.as_ref()?)));
    (!servers.is_empty()).then(|| {
        let share = if lookups == 0 { "–".to_owned() } else { percent(hits as f64 / lookups as f64) };
        let count = servers.len();
        format!("shared tier {used} of {count} servers, hits {share}{}", wrong.unwrap_or_default())
    })
}

/// The pools with several backends or an unhealthy one; of many, the busiest.
fn pools(pools: &[PoolStatus]) -> Vec<String> {
    const MOST: usize = 4;
    let in_flight = |pool: &PoolStatus| pool.backends.iter().map(|backend| backend.in_flight).sum::<u64>();
    let is_healthy = |backend: &&BackendStatus| matches!(&*backend.state, "healthy" | "untried");
    let healthy = |pool: &PoolStatus| pool.backends.iter().filter(is_healthy).count();
    let told = |pool: &&PoolStatus| pool.backends.len() > 1 || healthy(pool) < pool.backends.len();
    let mut shown: Vec<&PoolStatus> = pools.iter().filter(told).collect();
    shown.sort_by_key(|pool| std::cmp::Reverse(in_flight(pool)));
    let line = |pool: &PoolStatus| {
        let mut line = format!(
            "pool {}   {} of {} healthy   in flight {}   mean backlog {}",
            pool.name,
            healthy(pool),
            pool.backends.len(),
            grouped(in_flight(pool)),
            pool.mean_backlog
        );
        if let Some(seconds) = pool.oldest_seconds {
            let _ = write!(line, "   oldest {}", lasting(seconds));
        }
        if pool.waiting > 0 {
            let _ = write!(line, "   waiting {}", grouped(pool.waiting));
        }
        line
    };
    shown.into_iter().take(MOST).map(line).collect()
}

fn statuses(sample: &LogSample) -> String {
    let all: f64 = sample.classes.iter().sum();
    let mut line = "status".to_owned();
    for (class, &count) in sample.classes.iter().enumerate().filter(|(_, count)| **count > 0.0) {
        let name = if class == 0 { "none".to_owned() } else { format!("{class}xx") };
        let _ = write!(line, "   {name} {}", percent(count / all));
    }
    line
}

/// Counters that are normally 0, if they grow, and why most of them did.
fn troubles(before: &Stats, now: &Stats) -> Option<String> {
    let names = [
        "refused",
        "http2_faults",
        "connections_refused",
        "accept_failures",
        "bodies_truncated",
        "clients_slow",
        "log_lines_dropped",
    ];
    let grown: Vec<String> = names
        .into_iter()
        .filter_map(|name| {
            let grown = now.get(name).saturating_sub(before.get(name));
            let reason = main_reason(before, now, name);
            let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
            (grown > 0).then(|| format!("{} {}{reason}", name.replace('_', " "), grouped(grown)))
        })
        .collect();
    (!grown.is_empty()).then(|| format!("trouble   {}", grown.join("   ")))
}

/// The reason for which a counter has grown most; `None` if it is not counted by reason.
fn main_reason<'a>(before: &Stats, now: &'a Stats, name: &str) -> Option<&'a str> {
    let of = |stats: &Stats, labels: &[Label]| {
        let found = stats.metrics.iter().find(|metric| metric.name == name && metric.labels == labels);
        found.map_or(0, |metric| metric.value.whole())
    };
    let grown = now.metrics.iter().filter(|metric| metric.name == name).filter_map(|metric| {
        let (_, reason) = metric.labels.iter().find(|(label, _)| label == "reason")?;
        Some((metric.value.whole().saturating_sub(of(before, &metric.labels)), reason))
    });
    grown.max_by_key(|(grown, _)| *grown).map(|(_, reason)| &**reason)
}

#[cfg(test)]
mod tests {
    use super::super::log_sample::MAX_URLS;
    use super::*;
    use crate::admin::{BackendStatus, CacheStatus, HoldingsStatus, Latency, Metric, State, Status};

    fn stats(at_ms: u64, requests: u64, hits: u64, refused: u64) -> Stats {
        Stats {
            at_ms,
            metrics: vec![
                Metric::counter("requests", "", requests),
                Metric::counter("hits", "", hits),
                Metric::counter("refused", "", refused),
                Metric::counter("bytes_to_clients", "", requests * 1024),
            ],
            latency: Latency { buckets: vec![(80, requests)], sum_us: 0 },
            origin_latency: Default::default(),
        }
    }

    fn readings(refused: u64) -> Readings {
        let status = Status {
            version: "1.2.3".to_owned(),
            pid: 7,
            state: State::Running,
            started: String::new(),
            uptime_seconds: 61,
            draining_seconds: None,
            config: None,
            profile: "safe".to_owned(),
            threads: 2,
            predecessors: Vec::new(),
            listeners: vec!["127.0.0.1:8080".to_owned()],
            admin: String::new(),
            cache: CacheStatus { limit_bytes: 1 << 30, used_bytes: 2048, objects: 3 },
            holdings: HoldingsStatus::default(),
            panics: Vec::new(),
            shared: Vec::new(),
            pools: Vec::new(),
        };
        Readings { status, before: stats(1000, 1000, 900, 0), now: stats(3000, 5000, 4896, refused) }
    }

    fn line(host: &str, target: &str, status: u64, cache: &str) -> String {
        serde_json::json!({"host": host, "target": target, "status": status, "cache": cache, "duration_us": 50})
            .to_string()
    }

    #[test]
    fn a_screen_shows_rates_and_the_busiest_urls() {
        let mut sample = LogSample::default();
        (0..3).for_each(|_| sample.add(&line("a", "/1", 200, "hit")));
        sample.add(&line("a", "/\u{1b}[2J", 404, "miss"));
        sample.add("{\"skipped\":9}");
        assert_eq!(
            render(&readings(0), &sample, 120, 40),
            "\
sandarac 1.2.3  pid 7  up 1 m 1 s  127.0.0.1:8080  (q quits)
requests 2 000/s   hits 99.9 %   p50 0.08 ms   p99 0.08 ms   out 2 MiB/s
to origins 0/s   failed 0/s   in flight 0   waited for another's fetch 0/s
cache 2 KiB of 1 GiB, 3 objects
status   2xx 75.0 %   4xx 25.0 %

  share     hits       mean  URL
 75.0 %  100.0 %    0.05 ms  a/1
 25.0 %    0.0 %    0.05 ms  a/\u{fffd}[2J
"
        );
    }

    #[test]
    fn pools_show_where_there_is_something_to_balance_or_something_wrong() {
        let pool = |name: &str, states: &[&str]| PoolStatus {
            name: name.to_owned(),
            mean_backlog: 1.5,
            oldest_seconds: Some(0.25),
            backends: states
                .iter()
                .map(|state| BackendStatus {
                    address: String::new(),
                    state: (*state).to_owned(),
                    in_flight: states.len() as u64,
                })
                .collect(),
            waiting: 0,
        };
        let mut readings = readings(0);
        readings.status.pools = vec![
            pool("single", &["healthy"]),
            pool("broken", &["failing"]),
            pool("app", &["healthy", "draining", "healthy"]),
        ];
        let screen = render(&readings, &LogSample::default(), 120, 40);
        let lines: Vec<_> = screen.lines().filter(|line| line.starts_with("pool ")).collect();
        assert_eq!(
            lines,
            [
                "pool app   2 of 3 healthy   in flight 9   mean backlog 1.5   oldest 0.25 s",
                "pool broken   0 of 1 healthy   in flight 1   mean backlog 1.5   oldest 0.25 s",
            ]
        );
    }

    #[test]
    fn troubles_show_only_where_there_are_some() {
        let sample = LogSample::default();
        assert!(!render(&readings(0), &sample, 80, 24).contains("trouble"));
        assert!(render(&readings(4), &sample, 80, 24).contains("\ntrouble   refused 4\n"));
    }

    #[test]
    fn a_trouble_that_is_counted_by_reason_shows_how_much_it_grew_and_the_main_reason() {
        let faults = |pings, resets| {
            [("ping-flood", pings), ("rapid-reset", resets)]
                .map(|(reason, count)| Metric::counter("http2_faults", "", count).with("reason", reason))
        };
        let mut readings = readings(0);
        readings.before.metrics.extend(faults(1000, 3));
        readings.now.metrics.extend(faults(1002, 8));
        let screen = render(&readings, &LogSample::default(), 80, 24);
        assert!(screen.contains("\ntrouble   http2 faults 7 (rapid-reset)\n"), "{screen}");
    }

    #[test]
    fn a_screen_fits_its_terminal_and_the_past_fades() {
        let mut sample = LogSample::default();
        (0..100).for_each(|number| sample.add(&line("host", &format!("/{number}"), 200, "hit")));
        let screen = render(&readings(0), &sample, 30, 12);
        assert_eq!(screen.lines().count(), 12);
        assert!(screen.lines().all(|line| line.chars().count() <= 30));
        (0..16).for_each(|_| sample.fade());
        assert!(sample.urls.is_empty());
    }

    #[test]
    fn a_flood_of_urls_does_not_grow_the_count_without_end() {
        let mut sample = LogSample::default();
        (0..MAX_URLS * 2).for_each(|number| sample.add(&line("h", &format!("/{number}"), 200, "miss")));
        assert!(sample.urls.len() <= MAX_URLS);
    }
}
