//! Sandarac's behaviour, seen from outside: the real binary between raw clients and scripted origins.

mod acme;
mod admin;
mod algorithms;
mod backends;
mod bodies;
mod broken_off;
mod ca;
mod classes;
mod client_hellos;
mod coalescing;
mod compression;
mod compression_faults;
mod compression_parts;
mod config;
mod conformance_newer;
mod connections;
mod counters;
mod ejection;
mod fields;
mod files;
mod fragment_failures;
mod fragments;
mod health;
mod hedging;
mod http2;
mod http2_origins;
mod inferred;
mod invalidation;
mod large_bodies;
mod lifecycle;
mod logs;
mod methods;
mod named_files;
mod names;
mod partial;
mod peers;
mod placeholders;
mod pools;
mod queues;
mod ranges;
mod replay;
mod restarts;
mod resume_fields;
mod resumes;
mod resumes_bad;
mod retries;
mod routes;
mod safe;
mod service_manager;
mod shared_tier;
mod sharing;
mod silence;
mod slow_clients;
mod sources;
mod stale;
mod statuses;
mod sticky;
mod store;
mod storing;
mod tags;
mod targeted;
mod targets;
mod tls;
mod tls_origins;
mod tunnels;
mod unsafe_pool;
mod upgrades;
mod users;
mod validation;
mod variants;
mod vcl;
mod vcl_upgrade;
mod versions;

use sandarac_test_support::{Gate, Origin, Reply, Request, Sandarac, Setup, reply};

/// The binary under test, not started yet.
pub(crate) fn sandarac() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_sandarac"))
}

/// Sandarac as started by default, before an origin that answers by `rule`.
pub(crate) fn before(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Sandarac, Origin) {
    let origin = Origin::new(rule);
    (sandarac().before(&origin).start(), origin)
}

/// An origin that answers `/hold` when the gate is open, and everything else at once.
pub(crate) fn holding() -> (Origin, Gate) {
    let gate = Gate::new();
    let before = gate.clone();
    let origin = Origin::new(move |request| {
        let answer = reply(200).cache("no-store");
        if request.path() == "/hold" { answer.hold(&before) } else { answer }
    });
    (origin, gate)
}

/// Sandarac in the profile `rfc`, before an origin that answers by `rule`, with the serial number of the
/// request as the body. A second response with the same body was reused.
pub(crate) fn cache(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Sandarac, Origin) {
    let origin = Origin::new(numbered(rule));
    (sandarac().before(&origin).rfc().start(), origin)
}

/// A configuration with one listener on a free port, one pool with one backend, and one route to it with
/// `route_keys` of its own, then `tables`.
pub(crate) fn site(backend: &str, route_keys: &str, tables: &str) -> String {
    format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\n[pool.app]\nbackends = [\"{backend}\"]\n\n\
         [[route]]\npool = \"app\"\n{route_keys}\n\n{tables}\n"
    )
}

/// A configuration with one core, a listener on a free port, one pool of `backends` with `keys` of its own,
/// and one route to it past the cache.
pub(crate) fn pool(backends: &[String], keys: &str) -> String {
    format!(
        "threads = 1\n\n[[listen]]\naddress = \"127.0.0.1:0\"\n\n[pool.app]\nbackends = {backends:?}\n{keys}\n\n\
         [[route]]\npool = \"app\"\ncache = \"pass\"\n"
    )
}

/// The value of the metric `name` whose label is `value`.
pub(crate) fn labelled(proxy: &Sandarac, name: &str, value: &str) -> u64 {
    let stats = proxy.admin_json(&["stats", "--json"]);
    let metrics = stats["metrics"].as_array().expect("metrics");
    let has = |metric: &serde_json::Value| {
        let labels = metric["labels"].as_array();
        metric["name"] == name && labels.is_some_and(|labels| labels.iter().any(|label| label[1] == value))
    };
    metrics.iter().filter(|metric| has(metric)).filter_map(|metric| metric["value"].as_u64()).sum()
}

/// A metric without labels, as `stats` shows it.
pub(crate) fn stat(proxy: &Sandarac, name: &str) -> u64 {
    let stats = proxy.admin_json(&["stats", "--json"]);
    let metrics = stats["metrics"].as_array().expect("metrics");
    let found = metrics.iter().find(|metric| metric["name"] == name && metric.get("labels").is_none());
    found.and_then(|metric| metric["value"].as_u64()).unwrap_or_else(|| panic!("no metric {name}"))
}

/// `rule`, with the serial number of the request as the body.
pub(crate) fn numbered(
    rule: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    move |request| rule(request).body(request.serial.to_string())
}
