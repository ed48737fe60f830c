//! The end of a connection.

use std::time::{Duration, Instant};

use sandarac_test_support::http2::{Ended, kind};
use sandarac_test_support::{Gate, Signal, reply};

use super::{before, before_with, config, connect};

#[test]
fn at_a_stop_requests_on_their_way_are_served_and_the_connection_ends() {
    let gate = Gate::new();
    let held = gate.clone();
    let (mut proxy, origin) = before(move |request| {
        let reply = reply(200).cache("no-store").body("done");
        if request.path() == "/held" { reply.hold(&held) } else { reply }
    });
    let mut client = connect(&proxy);
    let stream = client.get("/held", &[]);
    origin.reached(1);
    proxy.signal(Signal::Terminate);
    let first = client.await_frame(kind::GOAWAY);
    assert_eq!((first.number(0), first.number(4)), (0x7fff_ffff, 0));
    // The client did not know of it yet.
    let late = client.get("/late", &[]);
    let ping = client.await_frame(kind::PING);
    client.frame(kind::PING, 1, 0, &ping.payload);
    assert_eq!(client.await_frame(kind::GOAWAY).number(0), late);
    assert_eq!(client.response(late).text(), "done");
    gate.open();
    assert_eq!(client.response(stream).text(), "done");
    assert_eq!(client.end(), Ended::Closed);
    assert!(proxy.wait().success());
}

#[test]
fn a_listener_that_is_removed_ends_its_connections_in_order() {
    let (proxy, origin) = before(|_| reply(200).cache("no-store").body("done"));
    let mut client = connect(&proxy);
    let stream = client.get("/", &[]);
    client.response(stream);
    proxy.reload(&config(&origin, "")).success();
    let stream = client.get("/", &[]);
    client.response(stream);
    let other = sandarac_test_support::Port::new();
    let moved = config(&origin, "").replace("127.0.0.1:0", &other.address().to_string());
    proxy.reload(&moved).success();
    // Regression: an idle client was told twelve seconds later.
    let told = client.await_frame(kind::GOAWAY);
    assert_eq!((told.number(0), told.number(4)), (0x7fff_ffff, 0));
    let stream = client.get("/last", &[]);
    assert_eq!(client.response(stream).text(), "done");
    assert_eq!(client.end(), Ended::Closed);
}

/// Regression: it stayed open for another twelve seconds, and so did the process.
#[test]
fn a_connection_whose_last_response_takes_longer_than_a_round_trip_ends_with_it() {
    let gate = Gate::new();
    let held = gate.clone();
    let (mut proxy, origin) = before(move |_| reply(200).cache("no-store").body("done").hold(&held));
    let mut client = connect(&proxy);
    let stream = client.get("/held", &[]);
    origin.reached(1);
    proxy.signal(Signal::Terminate);
    client.await_frame(kind::GOAWAY);
    // It accepts nothing more from a second later on.
    assert_eq!(client.await_frame(kind::GOAWAY).number(0), stream);
    gate.open();
    let opened = Instant::now();
    assert_eq!(client.response(stream).text(), "done");
    assert_eq!(client.end(), Ended::Closed);
    assert!(opened.elapsed() < Duration::from_secs(5), "{:?}", opened.elapsed());
    assert!(proxy.wait().success());
}

#[test]
fn a_connection_ends_after_its_share_of_requests() {
    let (proxy, _origin) =
        before_with("[limits]\nrequests_per_connection = 3\n", |_| reply(200).body("page"));
    let mut client = connect(&proxy);
    for _ in 0..3 {
        let stream = client.get("/", &[]);
        assert_eq!(client.response(stream).text(), "page");
    }
    assert_eq!(client.await_frame(kind::GOAWAY).number(4), 0);
    assert_eq!(client.end(), Ended::Closed);
}

#[test]
fn an_idle_connection_gives_way_with_goaway() {
    let (proxy, _origin) = before_with("[limits]\nconnections = 1\n", |_| reply(200).body("page"));
    let mut idle = connect(&proxy);
    let stream = idle.get("/", &[]);
    idle.response(stream);
    let mut new = connect(&proxy);
    let asked = new.get("/", &[]);
    assert_eq!(new.response(asked).text(), "page");
    assert_eq!(idle.await_frame(kind::GOAWAY).number(0), stream);
    assert_eq!(idle.end(), Ended::Closed);
}

#[test]
fn an_idle_connection_ends_with_goaway() {
    let (proxy, _origin) = before_with("[timeouts]\nidle = \"1s\"\n", |_| reply(200).body("page"));
    let mut client = connect(&proxy);
    let stream = client.get("/", &[]);
    client.response(stream);
    assert_eq!(client.await_frame(kind::GOAWAY).number(0), stream);
    assert_eq!(client.end(), Ended::Closed);
}

#[test]
fn a_client_that_says_goodbye_gets_what_it_asked_for() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, origin) = before(move |_| reply(200).cache("no-store").body("done").hold(&held));
    let mut client = connect(&proxy);
    let stream = client.get("/", &[]);
    origin.reached(1);
    client.frame(kind::GOAWAY, 0, 0, [0; 8]).settle();
    gate.open();
    assert_eq!(client.response(stream).text(), "done");
    assert_eq!(client.end(), Ended::Closed);
}

#[test]
fn a_head_that_comes_in_drops_ends_the_connection() {
    let (proxy, _origin) = before_with("[timeouts]\nhead = \"1s\"\n", |_| reply(200));
    let mut client = connect(&proxy);
    let stream = client.get("/", &[]);
    client.response(stream);
    client.frame(kind::HEADERS, 1, stream + 2, [0x82]);
    assert_eq!(client.await_frame(kind::GOAWAY).number(0), stream);
    assert_eq!(client.end(), Ended::Closed);
    assert_eq!(crate::labelled(&proxy, "refused", "head-late"), 1);
}

#[test]
fn a_response_that_breaks_off_at_the_origin_is_reset() {
    let (proxy, _origin) = before(|_| reply(200).cache("no-store").length(1000).body("begin").cut());
    let mut client = connect(&proxy);
    let stream = client.get("/", &[]);
    assert_eq!(client.outcome(stream).unwrap_err(), Ended::Reset(2));
    let stream = client.get("/", &[]);
    assert_eq!(client.outcome(stream).unwrap_err(), Ended::Reset(2));
}
