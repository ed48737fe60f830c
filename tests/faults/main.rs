//! Tests of what must not happen: ambiguous messages, slow and broken peers, floods, and access to the pages of another client.

mod clients;
#[path = "../../crates/wire/tests/support/corpus.rs"]
mod corpus;
mod descriptors;
mod fastcgi;
mod held_classes;
mod holding;
mod limits;
mod load;
mod memory;
mod origins;
mod poisoning;
mod resets;
mod shared_tier;
mod shared_tier_history;
mod shared_tier_slow;
mod smuggling;
mod strays;
mod unheard;
mod uploads;

use sandarac_test_support::{Conn, Origin, Reply, Request, Sandarac, Setup};

/// The binary under test, not started yet.
pub(crate) fn sandarac() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_sandarac"))
}

/// Sandarac as started by default, before an origin that answers by `rule`.
pub(crate) fn before(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Sandarac, Origin) {
    let origin = Origin::new(rule);
    (sandarac().before(&origin).start(), origin)
}

/// A configuration with one listener, one pool with `pool_keys` and `backend`, one route to it, then `tables`.
pub(crate) fn site(backend: &str, pool_keys: &str, tables: &str) -> String {
    format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\n[pool.app]\nbackends = [\"{backend}\"]\n{pool_keys}\n\n\
         [[route]]\npool = \"app\"\n\n{tables}\n"
    )
}

/// Begins another request of the client, whose body is still to come. An idle connection, or one with a part of
/// a head, would give way to a new one.
pub(crate) fn begin_another(client: &mut Conn) {
    client.send("POST /another HTTP/1.1\r\nHost: www.example\r\nContent-Length: 1\r\n\r\n");
}

/// Ends that request.
#[track_caller]
pub(crate) fn end_another(client: &mut Conn) {
    client.send("x");
    client.response().expect(200);
}

/// A metric without labels, as `stats` shows it.
pub(crate) fn stat(proxy: &Sandarac, name: &str) -> u64 {
    let stats = proxy.admin_json(&["stats", "--json"]);
    let metrics = stats["metrics"].as_array().expect("metrics");
    let found = metrics.iter().find(|metric| metric["name"] == name && metric.get("labels").is_none());
    found.and_then(|metric| metric["value"].as_u64()).unwrap_or_else(|| panic!("no metric {name}"))
}
