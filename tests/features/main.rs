//! What Sandarac does, seen from outside: the real binary between a raw client and origins that do as they are told.

mod admin;
mod backends;
mod bodies;
mod coalescing;
mod config;
mod conformance_newer;
mod connections;
mod fields;
mod invalidation;
mod lifecycle;
mod logs;
mod methods;
mod names;
mod partial;
mod peers;
mod pools;
mod ranges;
mod routes;
mod safe;
mod stale;
mod statuses;
mod store;
mod storing;
mod tags;
mod targeted;
mod targets;
mod tunnels;
mod validation;
mod variants;

use sandarac_test_support::{Origin, Reply, Request, Sandarac, Setup};

/// The binary under test, yet to be started.
pub(crate) fn sandarac() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_sandarac"))
}

/// Sandarac as started by default, before an origin that answers by `rule`.
pub(crate) fn before(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Sandarac, Origin) {
    let origin = Origin::new(rule);
    (sandarac().before(&origin).start(), origin)
}

/// Sandarac in the profile in which RFC 9111 alone decides, before an origin whose every answer is `rule`'s with the serial number
/// of the request at the origin for a body. A second response with the same body was reused.
pub(crate) fn cache(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Sandarac, Origin) {
    let origin = Origin::new(numbered(rule));
    (sandarac().before(&origin).rfc().start(), origin)
}

/// A configuration with one listener on a free port, one pool with one backend, and one route to it with `route_keys` of its own,
/// then `tables`.
pub(crate) fn site(backend: &str, route_keys: &str, tables: &str) -> String {
    format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\n[pool.app]\nbackends = [\"{backend}\"]\n\n\
         [[route]]\npool = \"app\"\n{route_keys}\n\n{tables}\n"
    )
}

/// A metric without labels, as `stats` shows it.
pub(crate) fn stat(proxy: &Sandarac, name: &str) -> u64 {
    let stats = proxy.admin_json(&["stats", "--json"]);
    let metrics = stats["metrics"].as_array().expect("metrics");
    let found = metrics.iter().find(|metric| metric["name"] == name && metric.get("labels").is_none());
    found.and_then(|metric| metric["value"].as_u64()).unwrap_or_else(|| panic!("no metric {name}"))
}

/// `rule`, with the serial number of the request for a body.
pub(crate) fn numbered(
    rule: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    move |request| rule(request).body(request.serial.to_string())
}
