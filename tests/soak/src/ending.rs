//! The checks when the load is over: what the process holds on to, and whether its counters add up.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sandarac_test_support::{Address, Conn, Sandarac, get};

use crate::proxy::{LIMIT, Proxy};
use crate::site::LARGE_RANK;
use crate::stage::{Stage, soon};
use crate::verdict::Count;

const MIB: u64 = 1 << 20;

/// How long the process may take to come to rest.
const TO_REST: Duration = Duration::from_secs(10);

/// How long a thread may wait for more work, of those beside the admin interface that do what may block.
const THREADS_TO_END: Duration = Duration::from_secs(20);

/// The most that the process may hold when it is at rest, beside the cache.
const OWN_AT_REST: u64 = 40 * MIB;

/// Descriptors that the process may have open at rest beside those that it began with: the caller that asks.
const MORE_DESCRIPTORS: usize = 2;

/// The outcomes of requests. Their counts, with all their reasons, add up to `requests`.
const OUTCOMES: [&str; 10] = [
    "hits",
    "hits_stale",
    "revalidated",
    "misses",
    "passes",
    "pipes",
    "files",
    "synthetic",
    "purges",
    "failed",
];

pub(crate) fn check(stage: &Stage, proxy: &Proxy) {
    {
        let running = proxy.running();
        if let Some(sandarac) = running.as_ref() {
            let reload = |limit: u64, settings: &str, what: &str| {
                proxy.write_config(limit, settings);
                stage.verdict.check(sandarac.admin(&["reload"]).status.success(), what);
            };
            reload(LIMIT, "", "a last reload succeeds");
            check_rest(stage, proxy, sandarac);
            check_counters(stage, sandarac);
            // An eighth of the limit, which is what a response may have by default, is less than the large page.
            // And a store that is full of pages that were hits does not give them up for one that was not.
            let settings = "max_object = \"32MiB\"";
            reload(2 * LIMIT, settings, "a reload with room for a large page succeeds");
            check_aborted_hits(stage, sandarac);
        }
    }
    proxy.stop(&stage.verdict);
    let [starved, slow, counted] =
        [Count::CutOff, Count::SlowCutOff, Count::TooSlow].map(|count| stage.verdict.of(count));
    stage.verdict.check(
        starved + slow <= counted,
        format!("{starved} starved and {slow} slow clients were cut off, of {counted} counted as too slow"),
    );
}

/// With no client left, the process holds what it held at the start, and its cache.
fn check_rest(stage: &Stage, proxy: &Proxy, sandarac: &Sandarac) {
    let verdict = &stage.verdict;
    let (threads, descriptors) = proxy.at_rest();
    let began = Instant::now();
    let check = |what: &str, patience: Duration, bound: u64, value: &dyn Fn() -> u64| {
        let patience = patience.saturating_sub(began.elapsed());
        let mut last = 0;
        let held = soon(patience, || {
            last = value();
            (last <= bound).then_some(())
        });
        verdict.check(held.is_some(), format!("{what} at rest: {last} of at most {bound}"));
    };
    check("client connections", TO_REST, 0, &|| sandarac.metric("connections_open"));
    check("fetches for the cache", TO_REST, 0, &|| sandarac.metric("cache_flights"));
    // Each of the two cores and the upkeep keeps two connections to each server of the shared tier.
    let tier = proxy.tier().len() * 3 * 2;
    check("descriptors", TO_REST, (descriptors + MORE_DESCRIPTORS + tier) as u64, &|| {
        sandarac.open_descriptors() as u64
    });
    check("MiB of memory", TO_REST, LIMIT + OWN_AT_REST / MIB, &|| sandarac.resident_bytes() / MIB);
    check("threads", THREADS_TO_END, threads, &|| sandarac.threads());
}

fn check_counters(stage: &Stage, sandarac: &Sandarac) {
    let metrics = metrics(sandarac);
    let of = |name: &str| metrics.get(name).copied().unwrap_or(0);
    let (requests, sum) = (of("requests"), OUTCOMES.iter().map(|name| of(name)).sum::<u64>());
    let parts: Vec<String> = OUTCOMES.iter().map(|name| format!("{name} {}", of(name))).collect();
    stage.verdict.check(
        requests == sum,
        format!(
            "{requests} requests counted are the sum of what became of them, {sum}: {}",
            parts.join(", ")
        ),
    );
    stage.verdict.check(of("panics") == 0, format!("{} panics counted", of("panics")));
}

/// Clients that leave before they take a hit add no more bytes than they took.
fn check_aborted_hits(stage: &Stage, sandarac: &Sandarac) {
    const CLIENTS: u64 = 20;
    let entry = &stage.site.entries[LARGE_RANK];
    let ask = get(&entry.target).host(crate::site::HOST);
    let length = entry.least_length();
    let mut last = String::from("no response");
    let before = metrics(sandarac);
    // Long, because on a busy machine the fetch itself takes seconds, and its origin answers `private` now
    // and then.
    let fetched = soon(4 * TO_REST, || {
        let mut conn = Conn::try_to(&stage.entrances.plain).ok()?;
        conn.try_send(ask.to_bytes()).ok()?;
        let response = conn.try_response("GET").ok()?;
        last = format!("{} with {}", response.status, response.cache_status());
        response.is_hit().then_some(())
    });
    let why = if fetched.is_some() { String::new() } else { changes(&before, &metrics(sandarac)) };
    stage.verdict.check(fetched.is_some(), format!("a large page becomes a hit: {last}{why}"));
    let before = sandarac.metric("bytes_to_clients");
    for _ in 0..CLIENTS {
        if let Ok(mut conn) = Conn::try_to(&stage.entrances.plain) {
            conn.shrink_receive_buffer();
            // So each response has begun, and most of it is still to be written.
            let _ = conn.try_send(ask.to_bytes()).is_ok() && conn.is_ready(TO_REST);
            conn.reset();
        }
    }
    let _ = soon(TO_REST, || (sandarac.metric("connections_open") == 0).then_some(()));
    let counted = sandarac.metric("bytes_to_clients") - before;
    stage.verdict.check(
        counted <= CLIENTS * length * 4 / 5,
        format!("{CLIENTS} hits of {length} bytes that nobody took are counted as {counted} bytes"),
    );
}

/// The metrics that are others now, with what they gained or lost.
fn changes(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> String {
    let changed = after.iter().filter_map(|(name, &value)| {
        let gained = value as i64 - before.get(name).map_or(0, |&value| value as i64);
        (gained != 0).then(|| format!("; {name} {gained:+}, now {value}"))
    });
    changed.collect()
}

/// All metrics by name, their labels summed.
fn metrics(sandarac: &Sandarac) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    let stats = Conn::to(&Address::Unix(sandarac.admin_path())).get("/stats").expect(200);
    let stats: serde_json::Value = serde_json::from_slice(&stats.body).unwrap_or_default();
    for metric in stats["metrics"].as_array().into_iter().flatten() {
        if let (Some(name), Some(value)) = (metric["name"].as_str(), metric["value"].as_u64()) {
            *sums.entry(name.to_owned()).or_default() += value;
        }
    }
    sums
}
