//! The subcommands that talk to a running process.

mod check_pool;
mod output;
mod pools;
mod shared_tier;
mod tls;

pub use check_pool::{check_pool, unreadable};
pub use pools::{pool, pools};
pub use shared_tier::shared;

use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::thread::sleep;
use std::time::Duration;

use sandarac_config::{Config, Flags, ListenAddress};
use sandarac_message::printable::printable;

use crate::admin::client::AdminClient;
use crate::admin::{
    Endpoint, Latency, MetricKind, PanicCount, Purge, SharedServerStatus, State, Stats, Status, Upgrade,
    Value,
};
use crate::cli::{BanArgs, LogArgs, ProcessArgs, PurgeArgs, ReloadArgs, StatsArgs, StatusArgs};
use crate::failure::Failure;
use crate::human::{bytes, count, grouped, milliseconds, span};
use crate::stderr::print_line;
use output::{json, table};

impl ProcessArgs {
    /// A client of the selected process: by flag, by configuration, by environment, or the default one.
    pub fn client(&self) -> Result<AdminClient, Failure> {
        let mut endpoint = self.admin.clone();
        let token = crate::cli::token("--token-file", self.token_file.as_deref())?;
        let mut shown = token.as_ref().map(|token| token.text.clone());
        if let Some(path) = &self.config {
            let flags = Flags { presented: token, ..Flags::default() };
            let config = crate::check::load_with(path, &flags)?.0;
            shown = shown.or_else(|| config.admin.token.as_deref().map(str::to_owned));
            endpoint = endpoint.or_else(|| admin_endpoint(&config));
        }
        if let Some(text) = std::env::var("SANDARAC_ADMIN").ok().filter(|_| endpoint.is_none()) {
            endpoint = Some(text.parse().map_err(|what| Failure::Usage(format!("SANDARAC_ADMIN: {what}")))?);
        }
        let shown = shown.map(|token| token.trim().to_owned());
        Ok(AdminClient::new(endpoint.unwrap_or_else(Endpoint::standard), shown))
    }
}

/// The admin interface of a configuration; `None` if it has none.
pub fn admin_endpoint(config: &Config) -> Option<Endpoint> {
    config.admin.listen.as_ref().map(|listen| match listen {
        ListenAddress::Unix(path) => Endpoint::Unix(path.clone()),
        ListenAddress::Tcp(address) => Endpoint::Tcp(*address),
        ListenAddress::Any(port) => Endpoint::Tcp((std::net::Ipv6Addr::UNSPECIFIED, *port).into()),
    })
}

/// `status`.
pub fn status(args: &StatusArgs) -> Result<(), Failure> {
    let StatusArgs { tls, show: args } = args;
    if let Some(name) = tls {
        let name = Some(name.as_str()).filter(|name| !name.is_empty());
        let status = args.process.client()?.tls(name)?;
        if args.json {
            return json(&status);
        }
        let now = (sandarac_net::wall().as_millis() / 1000) as i64;
        io::stdout().write_all(tls::show(&status, name, now).as_bytes())?;
        return Ok(());
    }
    let status = args.process.client()?.status()?;
    if args.json {
        return json(&status);
    }
    io::stdout().write_all(show_status(&status).as_bytes())?;
    Ok(())
}

fn show_status(status: &Status) -> String {
    let Status { version, pid, started, uptime_seconds, profile, threads, admin, cache, .. } = status;
    let state = match (status.state, status.draining_seconds) {
        (State::Running, _) => format!("running for {}, since {started}", span(*uptime_seconds)),
        (State::Draining, Some(seconds)) => format!("draining for {}, started {started}", span(seconds)),
        // An older version does not report the time.
        (State::Draining, None) => format!("draining, started {started}"),
    };
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![
        row("process", format!("sandarac {version}, pid {pid}, {state}")),
        row("configuration", status.config.clone().unwrap_or_else(|| "command line".to_owned())),
        row("profile", format!("{profile}, {threads} threads")),
    ];
    if !status.predecessors.is_empty() {
        let pids: Vec<String> = status.predecessors.iter().map(u32::to_string).collect();
        rows.push(row("taken over from", format!("pid {}, with connections left", pids.join(", "))));
    }
    rows.extend(status.listeners.iter().map(|listener| row("listening on", listener.clone())));
    rows.push(row("admin on", admin.clone()));
    rows.push(row(
        "cache",
        format!(
            "{} of {} in {}",
            bytes(cache.used_bytes),
            bytes(cache.limit_bytes),
            count(cache.objects, "object")
        ),
    ));
    let held = &status.holdings;
    if held.limit_bytes > 0 {
        rows.push(row("clients hold", format!("{} of {}", bytes(held.bytes), bytes(held.limit_bytes))));
    }
    let uses =
        held.descriptors.iter().map(|of| format!("{} {} of {}", of.of, grouped(of.open), grouped(of.limit)));
    if !held.descriptors.is_empty() {
        rows.push(row("descriptors", uses.collect::<Vec<_>>().join(", ")));
    }
    if !status.panics.is_empty() {
        rows.push(row("warning", panics(&status.panics)));
    }
    let servers: Vec<_> = status.shared.iter().map(shared_server).collect();
    rows.extend(table(&servers, 0).lines().map(|line| row("shared tier", line.to_owned())));
    for pool in &status.pools {
        let backends: Vec<_> = pool
            .backends
            .iter()
            .map(|backend| {
                vec![
                    backend.address.clone(),
                    backend.state.clone(),
                    format!("{} in flight", grouped(backend.in_flight)),
                ]
            })
            .collect();
        rows.extend(
            table(&backends, 0).lines().map(|line| row(&format!("pool {}", pool.name), line.to_owned())),
        );
    }
    table(&rows, 0)
}

/// A warning about panics for the operator.
fn panics(panics: &[PanicCount]) -> String {
    let parts: Vec<String> =
        panics.iter().map(|panics| format!("{} in {}", grouped(panics.count), panics.part)).collect();
    let all = count(panics.iter().map(|panics| panics.count).sum(), "panic");
    format!(
        "{all} ({}): a fault in Sandarac; please report it, with the lines on standard error",
        parts.join(", ")
    )
}

/// A server of the shared tier: address, state, use, and what an operator should know.
fn shared_server(server: &SharedServerStatus) -> Vec<String> {
    let mut notes = vec![format!(
        "{}, {} {}, {}",
        count(server.hits, "hit"),
        grouped(server.misses),
        if server.misses == 1 { "miss" } else { "misses" },
        milliseconds(Duration::from_micros(server.mean_us))
    )];
    // One in twenty of what was written came from memory because the server had dropped it.
    if server.restored >= 100 && server.restored * 20 > server.fills {
        notes.push(format!("lost {} entries in use: it may need more memory", grouped(server.restored)));
    }
    if server.owes_purges {
        notes.push("does not know of all purges yet".to_owned());
    }
    notes.extend(server.fault.clone());
    vec![server.address.clone(), server.state.clone(), notes.join("; ")]
}

/// `stats`.
pub fn stats(args: &StatsArgs) -> Result<(), Failure> {
    let client = args.show.process.client()?;
    let mut before = client.stats()?;
    let show = |stats: &Stats, before: &str, after: &str| match args.show.json {
        true => json(stats),
        false => {
            let text = format!("{before}{}{after}", show_stats(stats, args.all));
            Ok(io::stdout().write_all(text.as_bytes())?)
        }
    };
    if !args.watch {
        return show(&before, "", "");
    }
    // On a terminal each output replaces the previous one.
    let (clear, gap) = if io::stdout().is_terminal() {
        ("\x1b[H\x1b[Jin the last second (Ctrl-C ends)\n", "")
    } else {
        ("", "\n")
    };
    loop {
        sleep(Duration::from_secs(1));
        let now = client.stats()?;
        let mut between = difference(&now, &before);
        between.metrics.retain(|metric| args.all || !metric.value.is_zero());
        show(&between, clear, gap)?;
        before = now;
    }
}

/// The difference between two readings: the growth of counters, the values of gauges.
fn difference(now: &Stats, before: &Stats) -> Stats {
    let mut metrics = now.metrics.clone();
    for metric in metrics.iter_mut().filter(|metric| metric.kind == MetricKind::Counter) {
        let same = |other: &&crate::admin::Metric| other.name == metric.name && other.labels == metric.labels;
        let earlier = before.metrics.iter().find(same).map_or(Value::Whole(0), |other| other.value);
        metric.value = match (metric.value, earlier) {
            (Value::Part(now), Value::Part(earlier)) => Value::Part((now - earlier).max(0.0)),
            (now, earlier) => Value::Whole(now.whole().saturating_sub(earlier.whole())),
        };
    }
    let none = Latency::default();
    let origin_latency = now.origin_latency.iter().map(|(pool, latency)| {
        (pool.clone(), latency.since(before.origin_latency.get(pool).unwrap_or(&none)))
    });
    Stats {
        at_ms: now.at_ms,
        metrics,
        latency: now.latency.since(&before.latency),
        origin_latency: origin_latency.collect(),
    }
}

fn show_stats(stats: &Stats, all: bool) -> String {
    let mut rows: Vec<_> = stats
        .metrics
        .iter()
        .filter(|metric| all || !metric.value.is_zero())
        .map(|metric| {
            let labels: String =
                metric.labels.iter().map(|(label, value)| format!(" {label}={value}")).collect();
            let sizes = metric.name.ends_with("bytes") || metric.name.starts_with("bytes");
            let value = match metric.value {
                Value::Whole(number) if sizes => bytes(number),
                Value::Whole(number) => grouped(number),
                Value::Part(number) => number.to_string(),
            };
            match labels.is_empty() {
                true => vec![value, metric.name.to_string(), metric.text.to_string()],
                // Labels are more informative than the text, and long enough by themselves.
                false => vec![value, format!("{}{labels}", metric.name)],
            }
        })
        .collect();
    for (name, fraction) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)] {
        if let Some(us) = stats.latency.quantile_us(fraction) {
            let text = "Time from the first byte of a request to the end of its response.".to_owned();
            rows.push(vec![milliseconds(Duration::from_micros(us)), format!("latency {name}"), text]);
        }
    }
    if rows.is_empty() {
        return "nothing was counted\n".to_owned();
    }
    table(&rows, 1)
}

/// `purge`.
pub fn purge(args: &PurgeArgs) -> Result<(), Failure> {
    for url in &args.urls {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(Failure::Usage(format!("{url:?} is not a complete URL\n  help: {}", whole_url(url))));
        }
    }
    let mut tags = args.tags.clone();
    if let Some(path) = &args.tags_from {
        let read = if path.as_os_str() == "-" {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map(|_| text)
        } else {
            fs::read_to_string(path)
        };
        let text =
            read.map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?;
        tags.extend(text.lines().map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned));
    }
    if !args.all && tags.is_empty() && args.urls.is_empty() {
        return Err(Failure::Usage("the list of tags is empty".to_owned()));
    }
    if args.verify {
        return shared_tier::verify(args);
    }
    let purge = Purge { urls: args.urls.clone(), tags, all: args.all, soft: args.soft };
    let purged = args.process.client()?.purge(&purge)?;
    if args.json {
        return json(&purged);
    }
    let done = if args.soft { "marked stale" } else { "purged" };
    writeln!(io::stdout(), "{} {done}", count(purged.objects, "object"))?;
    if purged.objects == 0 && !purged.files.is_empty() {
        print_line(format_args!(
            "note: files are not cached, and a changed one is seen within `files_valid` (1 s): {}",
            purged.files.join(", ")
        ));
    }
    warn_of_unreached(&purged.unreached);
    Ok(())
}

/// The whole URL suggested for `part`.
fn whole_url(part: &str) -> String {
    let host = part.split('/').next().unwrap_or_default();
    match part.split_once("://") {
        Some((_, rest)) => format!("only http and https are cached: \"http://{rest}\""),
        None if host.contains(['.', ':']) || host == "localhost" => {
            format!("name the scheme too: \"http://{part}\"")
        }
        None => format!("name scheme and host too: \"http://HOST/{}\"", part.trim_start_matches('/')),
    }
}

/// `ban`.
pub fn ban(args: &BanArgs) -> Result<(), Failure> {
    let banned = args.process.client()?.ban(&args.expression.join(" "))?;
    if args.json {
        return json(&banned);
    }
    let active = count(banned.active, "ban");
    writeln!(io::stdout(), "banned; {active} to be tested against what is stored")?;
    warn_of_unreached(&banned.unreached);
    Ok(())
}

/// Names the servers of the shared tier that a purge has not reached.
fn warn_of_unreached(servers: &[String]) {
    if !servers.is_empty() {
        let servers = servers.join(", ");
        print_line(format_args!(
            "warning: not reached in the shared tier: {servers}\n  help: other nodes that reach them may serve \
             what was purged until then; this node tells them before it reads from them again"
        ));
    }
}

/// `reload`.
pub fn reload(args: &ReloadArgs) -> Result<(), Failure> {
    let reloaded = args.show.process.client()?.reload()?;
    if args.show.json {
        return json(&reloaded);
    }
    for warning in &reloaded.warnings {
        print_line(warning.trim_end());
    }
    // The configuration is in force, even if the message cannot be written.
    let _ = writeln!(io::stdout(), "{} is in force", reloaded.config);
    Ok(())
}

/// `upgrade`.
pub fn upgrade(args: &ReloadArgs) -> Result<(), Failure> {
    let upgraded = args.show.process.client()?.upgrade(&Upgrade::default())?;
    if args.show.json {
        return json(&upgraded);
    }
    let _ = writeln!(io::stdout(), "process {} has taken over", upgraded.pid);
    Ok(())
}

/// `log`.
pub fn log(args: &LogArgs) -> Result<(), Failure> {
    let lines = args.show.process.client()?.log(args.limit, &args.conditions())?;
    let mut out = io::stdout().lock();
    let live = out.is_terminal();
    for line in lines {
        let line = line?;
        if args.show.json {
            writeln!(out, "{line}")?;
        } else {
            writeln!(out, "{}", show_entry(&line))?;
        }
        if live {
            out.flush()?;
        }
    }
    Err(Failure::Failed(
        "the process closed the log: it has ended, or this token is no longer valid".to_owned(),
    ))
}

/// One JSON line of the log as text: time, status, outcome, duration and request.
fn show_entry(line: &str) -> String {
    let Ok(entry) = serde_json::from_str::<serde_json::Value>(line) else {
        return printable(line);
    };
    if let Some(skipped) = entry["skipped"].as_u64() {
        return format!("… {} entries skipped so far", grouped(skipped));
    }
    let text = |name: &str| printable(entry[name].as_str().unwrap_or_default());
    let time = text("time");
    let clock = time.get(11..23).unwrap_or(&time);
    let took = milliseconds(Duration::from_micros(entry["duration_us"].as_u64().unwrap_or_default()));
    let outcome = [text("cache"), text("reason")].join(" ");
    let status = entry["status"].as_u64().unwrap_or_default();
    let mut out = format!(
        "{clock}  {status:3}  {:<18}  {took:>9}  {:<15}  {} {}{}",
        outcome.trim_end(),
        text("client"),
        text("method"),
        text("host"),
        text("target")
    );
    for name in ["field", "backend", "error"] {
        if entry[name].is_string() {
            out.push_str(&format!("  {name}: {}", text(name)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::{
        BackendStatus, CacheStatus, DescriptorsStatus, HoldingsStatus, Latency, Metric, PoolStatus,
    };

    fn example() -> Status {
        let backend = |address: &str, in_flight| BackendStatus {
            address: address.to_owned(),
            state: "healthy".to_owned(),
            in_flight,
        };
        Status {
            version: "1.2.3".to_owned(),
            pid: 7,
            state: State::Running,
            started: "2026-11-21T13:55:36.042Z".to_owned(),
            uptime_seconds: 61,
            draining_seconds: None,
            config: Some("a.toml".to_owned()),
            profile: "safe".to_owned(),
            threads: 2,
            predecessors: Vec::new(),
            listeners: vec!["127.0.0.1:8080".to_owned(), "unix:/a".to_owned()],
            admin: "unix:/b".to_owned(),
            cache: CacheStatus { limit_bytes: 1 << 30, used_bytes: 12_900_000, objects: 1234 },
            holdings: HoldingsStatus {
                bytes: 3 << 20,
                limit_bytes: 528 << 20,
                descriptors: vec![DescriptorsStatus { of: "clients".to_owned(), open: 12, limit: 1963 }],
            },
            panics: Vec::new(),
            shared: Vec::new(),
            pools: vec![PoolStatus {
                name: "app".to_owned(),
                backends: vec![backend("http://a:8000", 3), backend("http://bcd:8000", 0)],
                ..PoolStatus::default()
            }],
        }
    }

    #[test]
    fn a_status_reads_as_a_table() {
        assert_eq!(
            show_status(&example()),
            "\
process        sandarac 1.2.3, pid 7, running for 1 m 1 s, since 2026-11-21T13:55:36.042Z
configuration  a.toml
profile        safe, 2 threads
listening on   127.0.0.1:8080
listening on   unix:/a
admin on       unix:/b
cache          12.3 MiB of 1 GiB in 1 234 objects
clients hold   3 MiB of 528 MiB
descriptors    clients 12 of 1 963
pool app       http://a:8000    healthy  3 in flight
pool app       http://bcd:8000  healthy  0 in flight
"
        );
    }

    #[test]
    fn a_status_warns_of_panics() {
        let of = |part: &str, count| PanicCount { part: part.to_owned(), count };
        let status = Status { panics: vec![of("fill", 2), of("sweeper", 1)], ..example() };
        let shown = show_status(&status);
        let warning = "3 panics (2 in fill, 1 in sweeper): a fault in Sandarac; please report it, with the lines on standard error";
        assert!(shown.contains(&format!("warning        {warning}\n")), "{shown}");
    }

    #[test]
    fn a_draining_process_shows_since_when_it_drains() {
        let draining =
            Status { state: State::Draining, uptime_seconds: 7200, draining_seconds: Some(3), ..example() };
        let first = |status: &Status| show_status(status).lines().next().unwrap().to_owned();
        let process = "process        sandarac 1.2.3, pid 7, draining";
        assert_eq!(first(&draining), format!("{process} for 3 s, started 2026-11-21T13:55:36.042Z"));
        let older = Status { draining_seconds: None, ..draining };
        assert_eq!(first(&older), format!("{process}, started 2026-11-21T13:55:36.042Z"));
    }

    #[test]
    fn a_part_of_a_url_is_completed_from_where_it_begins() {
        for (part, whole) in [
            ("x.example/hn", "\"http://x.example/hn\""),
            ("localhost:8080", "\"http://localhost:8080\""),
            ("/news", "\"http://HOST/news\""),
            ("news/a.html", "\"http://HOST/news/a.html\""),
            ("ftp://x.example/", "\"http://x.example/\""),
        ] {
            assert!(whole_url(part).ends_with(whole), "{part}: {}", whole_url(part));
        }
    }

    #[test]
    fn statistics_of_a_second_leave_out_what_did_not_happen() {
        let stats = |requests, latency| Stats {
            at_ms: 0,
            metrics: vec![
                Metric::counter("requests", "Requests.", requests),
                Metric::counter("misses", "Misses.", 5),
                Metric::gauge("cache_bytes", "Memory.", 2048),
            ],
            latency: Latency { buckets: vec![(999, latency)], sum_us: 0 },
            origin_latency: Default::default(),
        };
        let between = difference(&stats(1510, 3), &stats(10, 1));
        assert_eq!(between.get("requests"), 1500);
        assert_eq!(between.latency.count(), 2);
        let text = show_stats(&between, false);
        assert!(text.starts_with("  1 500  requests     "), "{text}");
        assert!(text.contains("\n  2 KiB  cache_bytes  ") && !text.contains("misses"), "{text}");
        assert!(show_stats(&between, true).contains("\n      0  misses  "), "{text}");
        assert!(text.contains("\n1.00 ms  latency p99  "), "{text}");
    }

    #[test]
    fn log_entries_read_as_columns_and_cannot_drive_the_terminal() {
        let mut line = Vec::new();
        let record = crate::logs::example();
        let record = sandarac_proxy::Record { target: b"/\x1b[2J", reason: Some("vary"), ..record };
        crate::logs::Format::Json.write(&record, &mut line);
        assert_eq!(
            show_entry(std::str::from_utf8(&line).unwrap()),
            "13:55:36.042  200  hit vary              0.31 ms  192.0.2.7        GET example.org/\u{fffd}[2J"
        );
        assert_eq!(show_entry("{\"skipped\":1234}"), "… 1 234 entries skipped so far");
    }
}
