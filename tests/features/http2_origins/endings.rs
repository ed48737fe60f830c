//! GOAWAY, refused streams, resets, and clients that leave.

use sandarac_test_support::{Listener, get, post};

use super::{accept, before, client, proxy};

const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;

/// The request above the last stream was not processed, so it is sent again although it is a POST.
#[test]
fn a_request_above_the_last_stream_of_goaway_is_sent_again() {
    let (proxy, listener) = before("");
    let (mut first, mut second) = (proxy.connect(), proxy.connect());
    first.send(post("/first", "one").to_bytes());
    let mut old = accept(&listener);
    let one = old.request();
    second.send(post("/second", "two").to_bytes());
    let two = old.request();
    old.body(two.stream);
    old.go_away(one.stream, 0);
    let mut new = accept(&listener);
    let again = new.request();
    assert_eq!((again.path(), new.body(again.stream).0.as_slice()), ("/second", &b"two"[..]));
    new.answer(again.stream, "second");
    assert_eq!(second.response().text(), "second");
    // What was processed ends on the old connection.
    old.answer(one.stream, "first");
    assert_eq!(first.response().text(), "first");
    old.expect_end();
}

#[test]
fn a_refused_request_is_sent_again_even_to_the_only_backend() {
    let (proxy, listener) = before("");
    let mut conn = proxy.connect();
    conn.send(post("/", "body").to_bytes());
    let mut origin = accept(&listener);
    let asked = origin.request();
    origin.body(asked.stream);
    origin.reset(asked.stream, REFUSED_STREAM);
    let again = origin.request();
    assert_eq!(origin.body(again.stream).0, b"body");
    origin.answer(again.stream, "taken");
    assert_eq!(conn.response().text(), "taken");
}

#[test]
fn a_refused_request_goes_to_another_backend() {
    let (one, other) = (Listener::new(), Listener::new());
    let proxy = proxy(&[&one, &other], "balance = \"fallback\"", "pass");
    let mut conn = proxy.connect();
    conn.send(post("/", "body").to_bytes());
    let mut refusing = accept(&one);
    let asked = refusing.request();
    refusing.reset(asked.stream, REFUSED_STREAM);
    let mut taking = accept(&other);
    let again = taking.request();
    assert_eq!(taking.body(again.stream).0, b"body");
    taking.answer(again.stream, "taken");
    assert_eq!(conn.response().text(), "taken");
}

#[test]
fn a_backend_that_refuses_everything_is_asked_three_times() {
    let (proxy, listener) = before("");
    let mut conn = proxy.connect();
    conn.send(get("/").to_bytes());
    let mut origin = accept(&listener);
    for _ in 0..3 {
        let asked = origin.request();
        origin.reset(asked.stream, REFUSED_STREAM);
    }
    let response = conn.response();
    assert_eq!(response.status, 502);
    proxy.says("the backend refused the stream");
    assert!(!origin.has_request());
}

#[test]
fn a_reset_fails_its_own_request_only() {
    let (proxy, listener) = before("");
    let mut client = client(&proxy);
    let (lost, whole) = (client.post("/lost", &[]), client.get("/whole", &[]));
    client.data(lost, "body", true);
    let mut origin = accept(&listener);
    let asked = [origin.request(), origin.request()];
    let find = |path: &str| asked.iter().find(|head| head.path() == path).expect("both came").stream;
    origin.reset(find("/lost"), INTERNAL_ERROR);
    assert_eq!(client.response(lost).status, 502);
    origin.answer(find("/whole"), "whole");
    assert_eq!(client.response(whole).text(), "whole");
    proxy.says("the backend reset the stream: INTERNAL_ERROR");
}

#[test]
fn a_response_that_is_reset_in_its_middle_never_looks_whole() {
    let (proxy, listener) = before("");
    let mut conn = proxy.connect();
    conn.send(get("/").to_bytes());
    let mut origin = accept(&listener);
    let asked = origin.request();
    origin.head(asked.stream, "200", &[], false).data(asked.stream, "a part", false);
    let head = conn.response_head();
    assert_eq!(head.status, 200);
    origin.reset(asked.stream, INTERNAL_ERROR);
    let mut response = head;
    assert!(conn.try_response_body("GET", &mut response).is_err());
}

#[test]
fn a_stream_is_cancelled_when_its_client_leaves() {
    let (proxy, listener) = before("");
    let mut client = client(&proxy);
    let (left, stays) = (client.get("/left", &[]), client.get("/stays", &[]));
    let mut origin = accept(&listener);
    let asked = [origin.request(), origin.request()];
    let find = |path: &str| asked.iter().find(|head| head.path() == path).expect("both came").stream;
    client.reset(left);
    assert_eq!(origin.reset_of(find("/left")), CANCEL);
    origin.answer(find("/stays"), "stays");
    assert_eq!(client.response(stays).text(), "stays");
}

/// Regression: a client that left while its response had begun and the backend was silent was noticed only when more came.
#[test]
fn a_stream_is_cancelled_when_its_client_leaves_a_response_that_has_begun() {
    let (proxy, listener) = before("");
    let mut client = client(&proxy);
    let stream = client.get("/", &[]);
    let mut origin = accept(&listener);
    let asked = origin.request();
    origin.head(asked.stream, "200", &[], false).data(asked.stream, "begun", false);
    while client.begun(stream).body.is_empty() {
        client.settle();
    }
    client.reset(stream);
    assert_eq!(origin.reset_of(asked.stream), CANCEL);
}

#[test]
fn a_late_response_resets_its_stream_and_leaves_a_living_connection() {
    let (proxy, listener) = before("first_byte_timeout = \"200ms\"");
    let mut conn = proxy.connect();
    conn.send(get("/late").to_bytes());
    let mut origin = accept(&listener);
    let asked = origin.request();
    assert_eq!(origin.reset_of(asked.stream), CANCEL);
    assert_eq!(conn.response().status, 504);
    // It was asked for a sign of life, and gave one.
    origin.await_frame(6);
    origin.settle();
    conn.send(get("/again").to_bytes());
    let again = origin.request();
    origin.answer(again.stream, "alive");
    assert_eq!(conn.response().text(), "alive");
}

#[test]
fn a_connection_that_gives_no_sign_of_life_gets_no_more_requests() {
    let (proxy, listener) = before("first_byte_timeout = \"200ms\"");
    let mut conn = proxy.connect();
    conn.send(get("/late").to_bytes());
    let mut dead = accept(&listener);
    dead.replies = false;
    let asked = dead.request();
    assert_eq!(dead.reset_of(asked.stream), CANCEL);
    assert_eq!(conn.response().status, 504);
    conn.send(get("/again").to_bytes());
    let mut alive = accept(&listener);
    let again = alive.request();
    alive.answer(again.stream, "alive");
    assert_eq!(conn.response().text(), "alive");
}
