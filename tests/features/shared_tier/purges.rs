//! Purges, bans and unsafe requests reach the other node: at once on the node that purges, after `local_ttl` on the other.

use sandarac_test_support::{Gate, Output, Reply, Req, Request, Sandarac, get, post, reply, request, within};

use super::{Fleet, LOCAL_TTL, SHARED, Settings, entries, has_entries, is_shared};
use crate::numbered;

const PAGE: &str = "http://www.example/page";

fn tagged(request: &Request) -> Reply {
    match request.method.as_str() {
        "GET" => reply(200).cache("max-age=600").with("Surrogate-Key", "news front").body(""),
        _ => reply(204),
    }
}

/// Runs an admin command that reaches the server of the tier.
#[track_caller]
fn acknowledged(node: &Sandarac, command: &[&str]) -> Output {
    let output = node.admin(command).success();
    assert!(!format!("{output:?}").contains("not reached"), "{output:?}");
    output
}

/// Both nodes serve page 1; `remove` removes it at the first; both get page 2.
#[track_caller]
fn removes(fleet: &Fleet, remove: impl FnOnce(&Sandarac)) {
    fleet.load("/page");
    let fetched = fleet.origin.requests().iter().filter(|request| request.method == "GET").count();
    assert_eq!(fetched, 1);
    remove(&fleet.first);
    let now = fleet.first.get("/page").expect(200);
    assert!(!now.is_hit(), "{now:?}");
    assert_ne!(now.text(), "1");
    assert_eq!(fleet.follows("/page", "1"), now.text());
    let fetched = fleet.origin.requests().iter().filter(|request| request.method == "GET").count();
    assert_eq!(fetched, 2, "the other node gets what this one fetched");
}

#[test]
fn a_purge_request_removes_a_page_on_both_nodes() {
    removes(&Fleet::new(numbered(tagged)), |node| {
        node.exchange(&request("PURGE", "/page")).expect(200);
    });
}

#[test]
fn purges_and_bans_by_command_remove_a_page_on_both_nodes() {
    let commands: [&[&str]; 5] = [
        &["purge", PAGE],
        &["purge", "--tag", "none", "front"],
        &["purge", "--all"],
        &["ban", "path ~ \"^/pa\" && host == \"www.example\""],
        &["ban", "status == 200"],
    ];
    for command in commands {
        removes(&Fleet::new(numbered(tagged)), |node| drop(acknowledged(node, command)));
    }
}

#[test]
fn an_unsafe_request_removes_its_page_on_both_nodes() {
    for method in ["POST", "PUT", "DELETE"] {
        removes(&Fleet::new(numbered(tagged)), |node| {
            node.exchange(&request(method, "/page").body("x")).expect(204);
        });
    }
}

#[test]
fn what_an_unsafe_request_names_is_removed_on_both_nodes() {
    removes(
        &Fleet::new(numbered(|request| match request.method.as_str() {
            "GET" => reply(200).cache("max-age=600"),
            _ => reply(303).with("Location", "/page"),
        })),
        |node| drop(node.exchange(&post("/form", "x")).expect(303)),
    );
}

#[test]
fn a_group_is_removed_on_both_nodes() {
    removes(
        &Fleet::new(numbered(|request| match request.method.as_str() {
            "GET" => reply(200).cache("max-age=600").with("Cache-Groups", "\"scripts\""),
            _ => reply(204).with("Cache-Group-Invalidation", "\"scripts\""),
        })),
        |node| drop(node.exchange(&post("/update", "x")).expect(204)),
    );
}

#[test]
fn an_unsafe_request_that_fails_removes_nothing() {
    let fleet = Fleet::new(numbered(|request| match request.method.as_str() {
        "GET" => reply(200).cache("max-age=600"),
        _ => reply(403),
    }));
    fleet.load("/page");
    fleet.first.exchange(&post("/page", "x")).expect(403);
    assert_eq!(entries(&fleet.server), 1);
    assert_eq!([fleet.first.get("/page").text(), fleet.second.get("/page").text()], ["1", "1"]);
}

#[test]
fn a_purge_leaves_other_pages_alone() {
    let fleet = Fleet::new(numbered(|request| match request.path() {
        "/other" => reply(200).cache("max-age=600").with("Surrogate-Key", "sport"),
        _ => reply(200).cache("max-age=600").with("Surrogate-Key", "news"),
    }));
    fleet.load("/page");
    fleet.load("/other");
    acknowledged(&fleet.first, &["purge", "--tag", "news"]);
    assert_eq!(fleet.first.get("/page").text(), "3");
    assert_eq!(fleet.follows("/page", "1"), "3");
    assert_eq!([fleet.first.get("/other").text(), fleet.second.get("/other").text()], ["2", "2"]);
    assert_eq!(fleet.origin.count(), 3);
}

#[test]
fn a_purge_removes_every_variant_on_both_nodes() {
    let fleet = Fleet::new(numbered(|_| reply(200).cache("max-age=600").with("Vary", "Sec-CH-Kind")));
    let of = |kind: &str| get("/page").with("Sec-CH-Kind", kind);
    for node in [&fleet.first, &fleet.second] {
        assert_eq!(["a", "b"].map(|kind| node.exchange(&of(kind)).text()), ["1", "2"]);
        has_entries(&fleet.server, 3);
    }
    acknowledged(&fleet.second, &["purge", PAGE]);
    assert_eq!(["a", "b"].map(|kind| fleet.second.exchange(&of(kind)).text()), ["3", "4"]);
    for (kind, old, new) in [("a", "1", "3"), ("b", "2", "4")] {
        let now = within("the other node to follow", || {
            Some(fleet.first.exchange(&of(kind)).text()).filter(|now| now != old)
        });
        assert_eq!(now, new);
    }
}

#[test]
fn a_purge_removes_what_only_the_tier_and_other_nodes_have() {
    let commands: [&[&str]; 4] =
        [&["purge", PAGE], &["purge", "--tag", "news"], &["purge", "--all"], &["ban", "path == \"/page\""]];
    for command in commands {
        let fleet = Fleet::new(numbered(tagged));
        fleet.first.get("/page").expect(200);
        has_entries(&fleet.server, 1);
        acknowledged(&fleet.second, command);
        assert_eq!(fleet.second.get("/page").text(), "2", "{command:?}");
    }
}

#[test]
fn a_node_that_starts_after_a_purge_does_not_serve_what_was_purged() {
    for command in [["purge", "--tag", "news"], ["ban", "path ~ \"page\"", "--json"]] {
        let fleet = Fleet::new(numbered(tagged));
        fleet.first.get("/page").expect(200);
        has_entries(&fleet.server, 1);
        acknowledged(&fleet.first, &command);
        let third = super::node(&fleet.origin, &[&fleet.server], &Settings::default());
        assert_eq!(third.get("/page").text(), "2");
    }
}

#[test]
fn a_fetch_in_flight_is_not_stored_for_anybody_after_a_purge_at_another_node() {
    let gate = Gate::new();
    let held = gate.clone();
    let fleet = Fleet::new(numbered(move |request| {
        let page = reply(200).cache("max-age=600");
        if request.serial == 1 { page.hold(&held) } else { page }
    }));
    let mut client = fleet.first.connect();
    client.send(get("/page").to_bytes());
    gate.reached(1);
    acknowledged(&fleet.second, &["purge", PAGE]);
    gate.open();
    assert_eq!(client.response().expect(200).text(), "1");
    assert_eq!(fleet.second.get("/page").text(), "2");
    within("the first node to follow", || (fleet.first.get("/page").text() == "2").then_some(()));
    assert_eq!(fleet.second.get("/page").text(), "2");
}

/// Regression: a node that had read an entry, and could not use it, put it into memory when its own fetch began, also if it had
/// been purged while the node waited for another.
#[test]
fn an_entry_that_was_read_before_a_purge_does_not_enter_memory_after_it() {
    let (first, second) = (Gate::new(), Gate::new());
    let held = [first.clone(), second.clone()];
    let shared = format!("{SHARED}\nwait = \"1m\"");
    let settings = Settings { cache: "profile = \"rfc\"", shared: &shared, ..Settings::default() };
    let fleet = Fleet::with(
        &settings,
        numbered(move |request| match request.serial {
            1 => reply(200).cache("max-age=600"),
            2 => reply(500).hold(&held[0]),
            _ => reply(200).cache("max-age=600").hold(&held[1]),
        }),
    );
    fleet.first.get("/page").expect(200);
    has_entries(&fleet.server, 1);
    let ask = |node: &Sandarac, request: Req| {
        let mut client = node.connect();
        client.send(request.to_bytes());
        client
    };
    // Only the origin may answer these. The second node reads the entry, and waits for the fetch of the first.
    let mut failing = ask(&fleet.first, get("/page").with("Cache-Control", "no-cache"));
    first.reached(1);
    let mut waiting = ask(&fleet.second, get("/page").with("Cache-Control", "no-cache"));
    within("the second node to wait", || (fleet.second.metric("tier_waits") > 0).then_some(()));
    acknowledged(&fleet.second, &["purge", PAGE]);
    first.open();
    failing.response().expect(500);
    second.reached(1);
    let mut client = ask(&fleet.second, get("/page"));
    fleet.second.counts("cache_waiters", 1);
    second.open();
    for client in [&mut waiting, &mut client] {
        assert_eq!(client.response().expect(200).text(), "3");
    }
}

/// A page with a validator, which an origin confirms.
fn validated(request: &Request) -> Reply {
    let page = reply(200).cache("max-age=600").with("ETag", "\"one\"");
    if request.field("if-none-match").is_some() {
        reply(304).cache("max-age=600").with("ETag", "\"one\"")
    } else {
        page.body("page")
    }
}

#[test]
fn a_soft_purge_has_both_nodes_validate_the_page() {
    let settings = Settings { cache: "profile = \"rfc\"", ..Settings::default() };
    let fleet = Fleet::with(&settings, validated);
    fleet.load("/page");
    acknowledged(&fleet.first, &["purge", "--soft", PAGE]);
    let response = fleet.first.get("/page").expect(200);
    assert_eq!(response.text(), "page");
    assert_eq!(response.cache_parameter("fwd-status").as_deref(), Some("304"), "{response:?}");
    assert_eq!(fleet.origin.count(), 2);
    assert!(fleet.first.get("/page").is_hit());
    // The other node gets the page that was confirmed, or has it confirmed itself. It never fetches it whole.
    within("the other node to follow", || {
        let response = fleet.second.get("/page").expect(200);
        assert_eq!(response.text(), "page");
        (is_shared(&response) || response.cache_parameter("fwd-status").is_some()).then_some(())
    });
    assert!(fleet.origin.requests().iter().skip(1).all(|request| request.field("if-none-match").is_some()));
}

/// Regression: memory forgot the page, but the tier got it with the new tags and fields.
#[test]
fn a_removal_by_what_the_page_was_before_it_is_confirmed_keeps_it_out_of_the_tier() {
    let settings = Settings { cache: "profile = \"rfc\"", ..Settings::default() };
    let removals: [&[&str]; 2] = [&["purge", "--tag", "old"], &["ban", "field.X-Tag == \"old\""]];
    for removal in removals {
        let gate = Gate::new();
        let held = gate.clone();
        let fleet = Fleet::with(&settings, move |request| {
            let is_asked = request.field("if-none-match").is_some();
            let tag = if is_asked { "new" } else { "old" };
            let tagged = |reply: Reply| {
                reply
                    .cache("max-age=600")
                    .with("ETag", "\"one\"")
                    .with("Surrogate-Key", tag)
                    .with("X-Tag", tag)
            };
            if is_asked { tagged(reply(304)).hold(&held) } else { tagged(reply(200)).body("page") }
        });
        fleet.load("/page");
        acknowledged(&fleet.first, &["purge", "--soft", PAGE]);
        let mut client = fleet.first.connect();
        client.send(get("/page").to_bytes());
        gate.reached(1);
        acknowledged(&fleet.first, removal);
        gate.open();
        assert_eq!(client.response().expect(200).text(), "page");
        let after = fleet.first.get("/page").expect(200);
        assert!(!after.is_hit(), "{removal:?}: {after:?}");
    }
}

#[test]
fn a_soft_purge_leaves_a_page_to_serve_while_it_is_fetched() {
    let settings = Settings { cache: "grace = \"10m\"", ..Settings::default() };
    for command in [["purge", "--soft", PAGE], ["purge", "--soft", "--all"]] {
        let gate = Gate::new();
        let held = gate.clone();
        let fleet = Fleet::with(
            &settings,
            numbered(move |request| {
                let page = reply(200).cache("max-age=600");
                if request.serial == 1 { page } else { page.hold(&held) }
            }),
        );
        fleet.load("/page");
        acknowledged(&fleet.first, &command);
        // The copy is checked before it is served.
        fleet.first.paused(|| std::thread::sleep(LOCAL_TTL));
        assert_eq!(fleet.first.get("/page").text(), "1", "stale");
        gate.reached(1);
        assert_eq!(fleet.second.get("/page").text(), "1");
        gate.open();
        within("the new page", || (fleet.first.get("/page").text() == "2").then_some(()));
        assert_ne!(fleet.follows("/page", "1"), "1");
    }
}

#[test]
fn a_copy_older_than_local_ttl_is_checked_before_it_is_served() {
    let commands: [&[&str]; 4] =
        [&["purge", PAGE], &["purge", "--tag", "news"], &["purge", "--all"], &["ban", "path == \"/page\""]];
    for command in commands {
        let fleet = Fleet::new(numbered(tagged));
        fleet.load("/page");
        let mut client = fleet.second.connect();
        fleet.second.paused(|| {
            acknowledged(&fleet.first, command);
            std::thread::sleep(LOCAL_TTL);
            client.send(get("/page").to_bytes());
        });
        assert_eq!(client.response().expect(200).text(), "2", "{command:?}");
    }
}

/// Regression: where the clock had not ticked meanwhile, the log was read until the lookup was given up.
#[test]
fn an_entry_that_is_newer_than_the_known_log_is_used() {
    let shared = "local_ttl = \"1m\"\ntimeout = \"5s\"";
    let fleet = Fleet::with(
        &Settings { shared, ..Settings::default() },
        numbered(|_| reply(200).cache("max-age=600")),
    );
    fleet.load("/known");
    for number in 1..=20 {
        acknowledged(&fleet.first, &["purge", "--tag", "none"]);
        let target = format!("/{number}");
        let fetched = fleet.first.get(&target).expect(200);
        has_entries(&fleet.server, number + 1);
        let shared = fleet.second.get(&target).expect(200);
        assert!(is_shared(&shared), "{number}: {shared:?}");
        assert_eq!(shared.text(), fetched.text());
    }
}

/// A trial lost the invalidation with the tombstone, and a copy of another node came back as an entry.
#[test]
fn what_an_unsafe_request_has_removed_stays_removed_when_the_server_forgets() {
    let fleet = Fleet::new(numbered(tagged));
    fleet.load("/page");
    fleet.first.exchange(&post("/page", "")).expect(204);
    fleet.server.ask("flush_all\r\n", "OK\r\n");
    assert!(fleet.follows("/page", "1") != "1");
    assert_ne!(fleet.first.get("/page").expect(200).text(), "1");
}

/// What a node stores although the response before could not be shared is fetched without asking the tier. Purges of other
/// nodes reach it all the same.
#[test]
fn a_purge_reaches_what_was_fetched_past_the_tier() {
    let fleet = Fleet::new(numbered(|request| match request.serial {
        1 => reply(200).cache("no-store"),
        _ => reply(200).cache("max-age=600"),
    }));
    assert_eq!(["1", "2"].map(|_| fleet.second.get("/page").expect(200).text()), ["1", "2"]);
    assert!(fleet.second.get("/page").is_hit());
    acknowledged(&fleet.first, &["purge", PAGE]);
    assert_ne!(fleet.follows("/page", "2"), "2");
}
