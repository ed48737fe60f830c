//! One fetch for both nodes, and stale responses.

use std::time::{Duration, Instant};

use sandarac_test_support::{Conn, Gate, Reply, Sandarac, get, reply, request, within};

use super::{Fleet, SHARED, Settings, has_entries, is_local, is_shared};
use crate::numbered;

/// A request waits longer for another node than the test does.
const PATIENT: &str = "local_ttl = \"300ms\"\ntimeout = \"5s\"\nwait = \"1m\"";

fn ask(node: &Sandarac, target: &str) -> Conn {
    let mut client = node.connect();
    client.send(get(target).to_bytes());
    client
}

#[test]
fn requests_at_both_nodes_cause_one_fetch() {
    const CLIENTS: u64 = 10;
    let gate = Gate::new();
    let held = gate.clone();
    let fleet = Fleet::with(
        &Settings { shared: PATIENT, ..Settings::default() },
        numbered(move |_| reply(200).cache("max-age=600").hold(&held)),
    );
    let mut clients: Vec<Conn> = (0..CLIENTS).map(|_| ask(&fleet.first, "/page")).collect();
    gate.reached(1);
    clients.extend((0..CLIENTS).map(|_| ask(&fleet.second, "/page")));
    fleet.first.counts("cache_waiters", CLIENTS - 1);
    fleet.second.counts("cache_waiters", CLIENTS - 1);
    gate.open();
    for client in &mut clients {
        assert_eq!(client.response().expect(200).text(), "1");
    }
    assert_eq!(fleet.origin.count(), 1);
}

#[test]
fn requests_for_different_pages_do_not_wait_for_each_other() {
    let gate = Gate::new();
    let held = gate.clone();
    let fleet = Fleet::with(
        &Settings { shared: PATIENT, ..Settings::default() },
        numbered(move |_| reply(200).cache("max-age=600").hold(&held)),
    );
    let mut clients = [ask(&fleet.first, "/a"), ask(&fleet.second, "/b"), ask(&fleet.second, "/c")];
    gate.reached(3);
    gate.open();
    clients.iter_mut().for_each(|client| drop(client.response().expect(200)));
}

#[test]
fn a_node_that_dies_during_a_fetch_is_replaced_by_another() {
    let gate = Gate::new();
    let held = gate.clone();
    let fleet = Fleet::with(
        &Settings { shared: PATIENT, ..Settings::default() },
        numbered(move |request| {
            let page = reply(200).cache("max-age=600");
            if request.serial == 1 { page.hold(&held) } else { page }
        }),
    );
    let _dying = ask(&fleet.first, "/page");
    gate.reached(1);
    let mut client = ask(&fleet.second, "/page");
    drop(fleet.first);
    assert_eq!(client.response().expect(200).text(), "2");
    gate.open();
}

#[test]
fn a_fetch_that_fails_is_taken_over_by_another_node() {
    let gate = Gate::new();
    let held = gate.clone();
    let fleet = Fleet::with(
        &Settings { shared: PATIENT, ..Settings::default() },
        numbered(move |request| match request.serial {
            1 => reply(500).cache("no-store").hold(&held),
            _ => reply(200).cache("max-age=600"),
        }),
    );
    let mut first = ask(&fleet.first, "/page");
    gate.reached(1);
    let mut second = ask(&fleet.second, "/page");
    gate.open();
    first.response().expect(500);
    assert_eq!(second.response().expect(200).text(), "2");
}

#[test]
fn a_request_waits_no_longer_than_wait() {
    for wait in ["wait = \"0s\"", "wait = \"300ms\""] {
        let gate = Gate::new();
        let held = gate.clone();
        let shared = format!("{SHARED}\n{wait}");
        let fleet = Fleet::with(
            &Settings { shared: &shared, ..Settings::default() },
            numbered(move |request| {
                let page = reply(200).cache("max-age=600");
                if request.serial == 1 { page.hold(&held) } else { page }
            }),
        );
        let mut first = ask(&fleet.first, "/page");
        gate.reached(1);
        assert_eq!(fleet.second.get("/page").expect(200).text(), "2", "{wait}");
        gate.open();
        assert_eq!(first.response().expect(200).text(), "1");
    }
}

/// Settings under which the origin's directives alone decide, so that nothing is served stale that it does not allow.
fn strict() -> Settings<'static> {
    Settings { cache: "profile = \"rfc\"", ..Settings::default() }
}

/// A response that is fresh for two seconds more.
fn short(directives: &str) -> Reply {
    reply(200).cache(&format!("max-age=3602{directives}")).with("Age", "3600")
}

#[test]
fn stale_while_revalidate_reaches_the_other_node() {
    let gate = Gate::new();
    let held = gate.clone();
    let fleet = Fleet::with(
        &strict(),
        numbered(move |request| match request.serial {
            1 => short(", stale-while-revalidate=600"),
            _ => reply(200).cache("max-age=600").hold(&held),
        }),
    );
    fleet.load("/page");
    within("a request at the origin", || {
        for node in [&fleet.first, &fleet.second] {
            assert_eq!(node.get("/page").expect(200).text(), "1", "nobody waits");
        }
        (fleet.origin.count() >= 2).then_some(())
    });
    gate.open();
    assert_eq!(fleet.follows("/page", "1"), "2");
    within("the first node to follow", || (fleet.first.get("/page").text() == "2").then_some(()));
    assert_eq!(fleet.origin.count(), 2, "one of the nodes fetched");
}

#[test]
fn stale_if_error_reaches_the_other_node() {
    let fleet = Fleet::with(
        &strict(),
        numbered(|request| match request.serial {
            1 => short(", stale-if-error=600"),
            _ => reply(503),
        }),
    );
    fleet.first.get("/page").expect(200);
    has_entries(&fleet.server, 1);
    within("the page to be stale", || {
        let response = fleet.second.get("/page").expect(200);
        assert_eq!(response.text(), "1");
        (response.cache_parameter("fwd-status").as_deref() == Some("503")).then_some(())
    });
}

#[test]
fn a_stale_entry_that_nobody_may_serve_is_fetched() {
    let fleet = Fleet::with(&strict(), numbered(|_| short("")));
    fleet.load("/page");
    within("the page to be stale", || (fleet.second.get("/page").text() != "1").then_some(()));
    within("the first node to follow", || (fleet.first.get("/page").text() != "1").then_some(()));
}

#[test]
fn a_page_confirmed_by_the_origin_is_fresh_for_the_other_node() {
    let fleet = Fleet::with(&strict(), |request| match request.field("if-none-match") {
        Some(_) => reply(304).cache("max-age=600").with("ETag", "\"one\"").with("X-Round", "second"),
        None => short("").with("ETag", "\"one\"").with("X-Round", "first").body("page"),
    });
    fleet.load("/page");
    let cas = || fleet.server.items("sandarac:e1:").first().map(|item| item.cas);
    let fetched = cas();
    within("the page to be confirmed", || {
        assert_eq!(fleet.first.get("/page").expect(200).text(), "page");
        (fleet.origin.count() == 2).then_some(())
    });
    within("the entry to be refreshed", || (cas() != fetched).then_some(()));
    let response = within("the second node to follow", || {
        Some(fleet.second.get("/page").expect(200)).filter(|page| page.field("x-round") == Some("second"))
    });
    assert_eq!(response.text(), "page");
    assert!(is_shared(&response) || is_local(&response), "{response:?}");
    assert_eq!(fleet.origin.count(), 2);
}

/// Regression: a node that won a claim together with the finished entry kept it, and the page stalled for 3 s after a purge.
#[test]
fn a_claim_that_is_not_needed_ends() {
    let gate = Gate::new();
    let held = gate.clone();
    let fleet = Fleet::with(
        &Settings { shared: PATIENT, ..Settings::default() },
        numbered(move |_| reply(200).cache("max-age=600").hold(&held)),
    );
    let mut clients = vec![ask(&fleet.first, "/page")];
    gate.reached(1);
    clients.push(ask(&fleet.second, "/page"));
    within("the second node to wait", || (fleet.second.metric("tier_waits") > 1).then_some(()));
    gate.open();
    clients.iter_mut().for_each(|client| assert_eq!(client.response().expect(200).text(), "1"));
    claims_end_early(&fleet);
}

#[test]
fn a_claim_ends_with_its_fetch_whatever_comes_of_that() {
    let fleet = Fleet::new(numbered(|request| match request.path() {
        "/private" => reply(200).cache("private"),
        "/failed" => reply(500).cache("no-store"),
        "/short" => reply(200).cache("max-age=0"),
        "/varying" => reply(200).cache("max-age=600").with("Vary", "X-Kind"),
        _ => reply(200).cache("max-age=600"),
    }));
    for target in ["/page", "/private", "/failed", "/short", "/varying"] {
        for (node, method) in [(&fleet.first, "HEAD"), (&fleet.second, "GET"), (&fleet.first, "GET")] {
            node.exchange(&request(method, target).with("X-Kind", method));
        }
        claims_end_early(&fleet);
    }
}

/// Waits until there are no claims, for less than the 3 s after which they end by themselves.
#[track_caller]
fn claims_end_early(fleet: &Fleet) {
    let began = Instant::now();
    within("the claims to end", || fleet.server.items("sandarac:f1:").is_empty().then_some(()));
    assert!(began.elapsed() < Duration::from_millis(1500), "{:?}", began.elapsed());
}

/// Regression: the node that waited for a page with `Vary` found its index before its variant, and fetched it too.
#[test]
fn cold_pages_with_vary_are_fetched_once_for_both_nodes() {
    const PAGES: usize = 60;
    let gate = Gate::new();
    let held = gate.clone();
    let fleet = Fleet::with(
        &Settings { shared: PATIENT, ..Settings::default() },
        numbered(move |_| reply(200).cache("max-age=600").with("Vary", "X-Kind").hold(&held)),
    );
    let targets: Vec<String> = (0..PAGES).map(|number| format!("/{number}")).collect();
    let mut clients: Vec<Conn> = targets.iter().map(|target| ask(&fleet.first, target)).collect();
    gate.reached(PAGES);
    clients.extend(targets.iter().map(|target| ask(&fleet.second, target)));
    within("the second node to wait", || {
        (fleet.second.metric("tier_waits") > 2 * PAGES as u64).then_some(())
    });
    gate.open();
    clients.iter_mut().for_each(|client| drop(client.response().expect(200)));
    assert_eq!(fleet.origin.count(), PAGES);
}
