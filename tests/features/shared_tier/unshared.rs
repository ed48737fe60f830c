//! Responses for one client only: never shared, and no request waits for them.

use sandarac_test_support::{Gate, Reply, Req, get, reply, within};

use super::{Fleet, Settings, has_entries, is_shared, node};
use crate::numbered;

/// Responses that may not be shared, and the requests for them.
fn personal(target: &str) -> (Req, Reply) {
    let fresh = || reply(200).cache("max-age=600");
    let request = get(target);
    match target {
        "/private" => (request, reply(200).cache("private, max-age=600")),
        "/no-store" => (request, reply(200).cache("no-store")),
        "/set-cookie" => (request, fresh().with("Set-Cookie", "session=1")),
        "/authorization" => (request.with("Authorization", "Basic YTpi"), fresh()),
        "/vary-star" => (request, fresh().with("Vary", "*")),
        _ => panic!("no page {target}"),
    }
}

const PERSONAL: [&str; 5] = ["/private", "/no-store", "/set-cookie", "/authorization", "/vary-star"];

#[test]
fn personal_responses_are_not_shared() {
    let fleet = Fleet::new(numbered(|request| personal(request.path()).1));
    let mut serial = 0;
    for target in PERSONAL {
        let (request, _) = personal(target);
        for node in [&fleet.first, &fleet.second, &fleet.second, &fleet.first] {
            serial += 1;
            let response = node.exchange(&request).expect(200);
            assert_eq!(response.text(), serial.to_string(), "{target}");
            assert!(!response.is_hit(), "{target}: {response:?}");
        }
    }
}

/// A request that waited for another node would wait longer than the test does.
const PATIENT: &str = "local_ttl = \"300ms\"\ntimeout = \"5s\"\nwait = \"1m\"";

#[test]
fn no_request_waits_for_a_personal_response_of_another_node() {
    for target in PERSONAL {
        let gate = Gate::new();
        let held = gate.clone();
        let fleet = Fleet::with(
            &Settings { shared: PATIENT, ..Settings::default() },
            numbered(move |request| {
                let (_, answer) = personal(request.path());
                if request.serial == 1 { answer } else { answer.hold(&held) }
            }),
        );
        let (request, _) = personal(target);
        fleet.first.exchange(&request).expect(200);
        // Requests with a login are not looked up, so they leave no mark.
        has_entries(&fleet.server, usize::from(target != "/authorization"));
        let nodes = [&fleet.first, &fleet.second, &fleet.second, &fleet.first];
        let mut clients = nodes.map(|node| {
            let mut client = node.connect();
            client.send(request.to_bytes());
            client
        });
        within(&format!("all requests for {target} at the origin"), || {
            (fleet.origin.count() == 5).then_some(())
        });
        gate.open();
        for client in &mut clients {
            client.response().expect(200);
        }
        assert_eq!(fleet.origin.count(), 5, "{target}");
    }
}

#[test]
fn a_private_response_is_not_given_to_a_client_that_waited_at_another_node() {
    let gate = Gate::new();
    let held = gate.clone();
    let fleet = Fleet::with(
        &Settings { shared: PATIENT, ..Settings::default() },
        numbered(move |request| {
            let answer = reply(200).cache("private, max-age=600");
            if request.serial == 1 { answer.hold(&held) } else { answer }
        }),
    );
    let mut first = fleet.first.connect();
    first.send(get("/page").to_bytes());
    gate.reached(1);
    let mut second = fleet.second.connect();
    second.send(get("/page").to_bytes());
    gate.open();
    let texts = [first.response().expect(200).text(), second.response().expect(200).text()];
    assert_eq!(texts, ["1", "2"]);
}

#[test]
fn a_page_that_becomes_public_is_shared_from_then_on() {
    let fleet = Fleet::new(numbered(|request| match request.serial {
        1 => reply(200).cache("private"),
        _ => reply(200).cache("max-age=600"),
    }));
    assert_eq!(fleet.first.get("/page").text(), "1");
    has_entries(&fleet.server, 1);
    let mark = fleet.server.items("sandarac:e1:");
    assert_eq!(fleet.second.get("/page").text(), "2");
    within("the entry in place of the mark", || {
        (fleet.server.items("sandarac:e1:")[0].size > mark[0].size).then_some(())
    });
    let third = node(&fleet.origin, &[&fleet.server], &Settings::default());
    let response = third.get("/page").expect(200);
    assert!(is_shared(&response), "{response:?}");
    assert_eq!((response.text().as_str(), fleet.origin.count()), ("2", 2));
}

#[test]
fn a_request_with_a_login_gets_no_page_of_the_tier_and_leaves_none() {
    let fleet = Fleet::new(|request| {
        reply(200).cache("max-age=600").body(request.field("authorization").unwrap_or("nobody"))
    });
    let with_login = get("/page").with("Authorization", "Basic YTpi");
    assert_eq!(fleet.first.exchange(&with_login).text(), "Basic YTpi");
    assert_eq!(fleet.second.get("/page").text(), "nobody");
    has_entries(&fleet.server, 1);
    assert_eq!(fleet.first.exchange(&with_login).text(), "Basic YTpi");
    assert_eq!(fleet.first.get("/page").text(), "nobody");
    assert_eq!(fleet.origin.count(), 3);
}

#[test]
fn errors_of_the_origin_are_not_shared() {
    for status in [500, 502, 503] {
        let fleet = Fleet::new(numbered(move |request| match request.serial {
            1 => reply(status),
            _ => reply(200).cache("max-age=600"),
        }));
        fleet.first.get("/page").expect(status);
        assert_eq!(fleet.second.get("/page").expect(200).text(), "2");
    }
}

/// Regression: a mark of another node left the requests of this node waiting for each other, as if it had none.
#[test]
fn requests_that_wait_for_a_page_go_on_when_a_mark_is_found() {
    let gate = Gate::new();
    let held = gate.clone();
    let fleet = Fleet::with(
        &Settings { shared: PATIENT, ..Settings::default() },
        numbered(move |request| {
            let answer = reply(200).cache("private");
            if request.serial == 1 { answer } else { answer.hold(&held) }
        }),
    );
    fleet.first.get("/page").expect(200);
    has_entries(&fleet.server, 1);
    let mut clients: Vec<_> = (0..10).map(|_| fleet.second.connect()).collect();
    for client in &mut clients {
        client.send(get("/page").to_bytes());
    }
    gate.reached(clients.len());
    gate.open();
    let mut texts: Vec<_> = clients.iter_mut().map(|client| client.response().expect(200).text()).collect();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), clients.len(), "each has a response of its own");
}
