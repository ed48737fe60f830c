//! Unsafe requests reach the copies of other nodes, whatever the rules of the node that gets them.

use sandarac_test_support::{Memcached, Origin, Reply, Request, get, post, reply, within};

use super::{Fleet, SHARED, Settings, config, has_entries, node};
use crate::{numbered, sandarac};

fn page(request: &Request) -> Reply {
    match request.method.as_str() {
        "GET" => reply(200).cache("max-age=600"),
        _ => reply(204),
    }
}

/// Regression: only a node with the same rules removed the page of other nodes.
#[test]
fn an_unsafe_request_reaches_nodes_with_other_rules() {
    for (route, tables) in [
        ("shared = \"read\"", ""),
        ("response = { set = { X-Edited = \"yes\" } }", ""),
        // Another route uses the tier.
        ("shared = false", "\n[[route]]\nmatch = \"/other\"\npool = \"app\"\n"),
    ] {
        let (origin, server) = (Origin::new(numbered(page)), Memcached::start(&[]));
        let keeping = node(&origin, &[&server], &Settings::default());
        let settings = Settings { route, ..Settings::default() };
        let text = config(&origin, &[&server], &settings) + tables;
        let changing = sandarac().config(text).start();
        assert_eq!(keeping.get("/page").expect(200).text(), "1");
        has_entries(&server, 1);
        changing.exchange(&post("/page", "x")).expect(204);
        within(&format!("the page to be fetched again: {route}"), || {
            (keeping.get("/page").expect(200).text() != "1").then_some(())
        });
    }
}

/// Regression: what a POST had not found was kept in mind on the server for a day.
#[test]
fn an_unsafe_request_leaves_nothing_where_nothing_is_stored() {
    let fleet = Fleet::new(numbered(page));
    fleet.first.get("/page").expect(200);
    has_entries(&fleet.server, 1);
    for number in 0..10 {
        fleet.first.exchange(&post(&format!("/form/{number}"), "x")).expect(204);
    }
    assert_eq!(fleet.server.items("sandarac:e1:").len(), 1);
    fleet.first.exchange(&post("/page", "x")).expect(204);
    assert_ne!(fleet.second.get("/page").expect(200).text(), "1");
}

/// A page that is being fetched when an unsafe request changes it is served to nobody later.
#[test]
fn a_fetch_in_flight_during_an_unsafe_request_is_not_shared() {
    let gate = sandarac_test_support::Gate::new();
    let held = gate.clone();
    let fleet = Fleet::with(
        &Settings { shared: SHARED, ..Settings::default() },
        numbered(move |request| {
            let page = page(request);
            if request.serial == 1 { page.hold(&held) } else { page }
        }),
    );
    let mut client = fleet.first.connect();
    client.send(get("/page").to_bytes());
    gate.reached(1);
    fleet.second.exchange(&post("/page", "x")).expect(204);
    gate.open();
    assert_eq!(client.response().expect(200).text(), "1");
    assert_ne!(fleet.second.get("/page").expect(200).text(), "1");
    within("the first node to follow", || (fleet.first.get("/page").text() != "1").then_some(()));
}

/// An endpoint that is never cached needs no record.
#[test]
fn an_unsafe_request_to_what_is_never_cached_is_not_noted() {
    let route = "match = \"/form\"\ncache = \"pass\"";
    let settings = Settings { route, ..Settings::default() };
    let (origin, server) = (Origin::new(numbered(page)), Memcached::start(&[]));
    let text = config(&origin, &[&server], &settings) + "\n[[route]]\npool = \"app\"\n";
    let node = sandarac().config(text).start();
    node.get("/other").expect(200);
    has_entries(&server, 1);
    let log = || server.items("sandarac:l1:").remove(0).size;
    let before = log();
    node.exchange(&post("/form", "x")).expect(204);
    node.admin(&["purge", "--tag", "none"]).success();
    let record = log() - before;
    node.exchange(&post("/form", "x")).expect(204);
    node.admin(&["purge", "--tag", "none"]).success();
    assert_eq!(log() - before, 2 * record);
    assert!(record < 100, "one record: {record} bytes");
}
