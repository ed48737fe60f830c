//! Backends that break the protocol.

use sandarac_test_support::http2::{frame, kind};
use sandarac_test_support::{Http2Server, Listener, get, post, within};
use std::thread;

use super::{accept, before, proxy};
use crate::{pool, sandarac};

#[test]
fn a_body_that_contradicts_its_length_never_looks_whole_and_is_not_stored() {
    let listener = Listener::new();
    let proxy = proxy(&[&listener], "", "lookup");
    let mut origin = None;
    for (body, ends) in [("too long for it", true), ("short", true)] {
        let mut conn = proxy.connect();
        conn.send(get("/").to_bytes());
        let origin = origin.get_or_insert_with(|| accept(&listener));
        let asked = origin.request();
        let fields = [("content-length", "10"), ("cache-control", "max-age=60")];
        origin.head(asked.stream, "200", &fields, false).data(asked.stream, body, ends);
        let mut response = conn.try_response_head().expect("a head, or a response of the proxy's");
        let whole = conn.try_response_body("GET", &mut response);
        assert!(response.status == 502 || whole.is_err(), "{response:?}");
    }
}

/// A response is complete with END_STREAM only (RFC 9113 §8.1), and more than Content-Length makes it malformed
/// (§8.1.1).
#[test]
fn a_body_of_its_length_is_not_whole_before_its_stream_has_ended() {
    const INTERNAL_ERROR: u32 = 2;
    const NO_ERROR: u32 = 0;
    for (cache, fields) in [("pass", "no-store"), ("lookup", "max-age=60")] {
        let listener = Listener::new();
        let proxy = proxy(&[&listener], "", cache);
        let mut origin = None;
        for path in ["/more", "/reset", "/left", "/trailers"] {
            let mut conn = proxy.connect();
            conn.send(get(path).to_bytes());
            let origin = origin.get_or_insert_with(|| accept(&listener));
            let asked = origin.request();
            let fields = [("content-length", "10"), ("cache-control", fields)];
            origin.head(asked.stream, "200", &fields, false).data(asked.stream, "ten bytes.", false);
            // The proxy has all that the backend sent.
            origin.settle();
            match path {
                "/more" => origin.data(asked.stream, "!", true),
                "/reset" => origin.reset(asked.stream, INTERNAL_ERROR),
                "/left" => origin.reset(asked.stream, NO_ERROR),
                _ => origin.trailers(asked.stream, &[(":status", "200")]),
            };
            let mut response = conn.response_head();
            assert!(conn.try_response_body("GET", &mut response).is_err(), "{cache} {path}: {response:?}");
            // Nothing that looks whole is stored.
            if cache == "lookup" {
                let mut conn = proxy.connect();
                conn.send(get(path).to_bytes());
                let again = origin.request();
                origin.answer(again.stream, "again");
                assert_eq!(conn.response().text(), "again");
            }
        }
    }
}

/// The reset asks for no more of the upload (RFC 9113 §8.1).
#[test]
fn a_reset_after_the_end_of_a_response_takes_nothing_of_it() {
    let (proxy, listener) = before("");
    let mut conn = proxy.connect();
    conn.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nbegun");
    let mut origin = accept(&listener);
    let asked = origin.request();
    origin.head(asked.stream, "200", &[("content-length", "10")], false);
    origin.data(asked.stream, "ten bytes.", true).reset(asked.stream, 0);
    assert_eq!(conn.response().text(), "ten bytes.");
}

/// The end may come in a frame of its own, some time after the last byte.
#[test]
fn a_body_whose_stream_ends_later_is_whole_then() {
    let (proxy, listener) = before("");
    let mut conn = proxy.connect();
    conn.send(get("/").to_bytes());
    let mut origin = accept(&listener);
    let asked = origin.request();
    origin.head(asked.stream, "200", &[("content-length", "10")], false);
    origin.data(asked.stream, "ten bytes.", false);
    let mut response = conn.response_head();
    assert_eq!(conn.try_read(9).expect("all but the last byte"), b"ten bytes");
    origin.data(asked.stream, "", true);
    assert_eq!(conn.try_read(1).expect("the last byte"), b".");
    response.body.clear();
    conn.send(get("/next").to_bytes());
    let next = origin.request();
    origin.answer(next.stream, "next");
    assert_eq!(conn.response().text(), "next");
}

#[test]
fn a_violation_of_the_protocol_ends_the_connection_and_not_the_next_one() {
    let (proxy, listener) = before("retries = 0");
    for violation in [
        // Data on a stream that was never opened.
        (kind::DATA, 0, 99, &b"x"[..]),
        (kind::HEADERS, 4, 2, &[0x88][..]),
        (kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 0][..]),
        // PUSH_PROMISE, which was forbidden.
        (5, 4, 1, &[0, 0, 0, 2, 0x88][..]),
        (kind::SETTINGS, 0, 0, &[0, 5, 0, 0, 0, 1][..]),
        (kind::HEADERS, 4, 1, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff][..]),
    ] {
        let mut conn = proxy.connect();
        conn.send(get("/").to_bytes());
        let mut origin = accept(&listener);
        origin.request();
        let (kind, flags, stream, payload) = violation;
        origin.frame(kind, flags, stream, payload);
        let response = conn.response();
        assert_eq!(response.status, 502, "{violation:?}");
        origin.expect_end();
    }
    proxy.says("the backend violates HTTP/2");
    let mut conn = proxy.connect();
    conn.send(get("/").to_bytes());
    let mut origin = accept(&listener);
    let asked = origin.request();
    origin.answer(asked.stream, "fine");
    assert_eq!(conn.response().text(), "fine");
}

#[test]
fn a_flood_ends_the_connection() {
    let (proxy, listener) = before("retries = 0");
    for flood in
        [(kind::PING, 0, 0, &b"01234567"[..]), (kind::SETTINGS, 0, 0, &b""[..]), (kind::DATA, 0, 1, &b""[..])]
    {
        let mut conn = proxy.connect();
        conn.send(get("/").to_bytes());
        let mut origin = accept(&listener);
        let asked = origin.request();
        origin.head(asked.stream, "200", &[], false);
        let (kind, flags, stream, payload) = flood;
        (0..3000).for_each(|_| _ = origin.frame(kind, flags, stream, payload));
        let mut response = conn.response_head();
        let whole = conn.try_response_body("GET", &mut response);
        assert!(response.status == 502 || whole.is_err(), "{flood:?}");
        origin.expect_end();
    }
}

#[test]
fn interim_responses_without_end_are_a_fault() {
    let (proxy, listener) = before("retries = 0");
    let mut conn = proxy.connect();
    conn.send(get("/").to_bytes());
    let mut origin = accept(&listener);
    let asked = origin.request();
    (0..200).for_each(|_| _ = origin.head(asked.stream, "102", &[], false));
    assert_eq!(conn.response().status, 502);
    proxy.says("interim responses without end");
}

#[test]
fn a_backend_that_says_nothing_is_given_up_in_time() {
    let (proxy, listener) = before("retries = 0\nconnect_timeout = \"200ms\"");
    let mut conn = proxy.connect();
    conn.send(get("/").to_bytes());
    let _silent = listener.accept();
    assert_eq!(conn.response().status, 504);
}

/// A backend that takes no more of an upload: it opens no window of its stream.
#[test]
fn a_backend_that_opens_no_window_is_given_up_in_time_and_holds_up_no_other_request() {
    let (proxy, listener) = before("retries = 0\nfirst_byte_timeout = \"500ms\"");
    let mut big = proxy.connect();
    let upload = post("/big", &"b".repeat(300_000)).to_bytes();
    let sender = thread::spawn(move || {
        big.send(upload);
        big.response()
    });
    let mut origin = accept(&listener);
    origin.gives_windows = false;
    let stuck = origin.request();
    origin.partial(stuck.stream, 65_535);
    let mut small = proxy.connect();
    small.send(get("/small").to_bytes());
    let quick = origin.request();
    origin.answer(quick.stream, "quick");
    assert_eq!(small.response().text(), "quick");
    assert_eq!(sender.join().unwrap().status, 504);
    assert_eq!(origin.reset_of(stuck.stream), 8);
}

/// A backend whose process is frozen: it opened wide windows, and reads nothing.
#[test]
fn a_backend_that_stops_reading_is_given_up_in_time() {
    let (proxy, listener) = before("retries = 0\nfirst_byte_timeout = \"500ms\"");
    let mut opener = proxy.connect();
    opener.send(get("/").to_bytes());
    let mut origin = Http2Server::over(listener.accept(), &[(4, 1 << 30)]);
    origin.window(0, 1 << 30);
    let asked = origin.request();
    origin.answer(asked.stream, "first");
    assert_eq!(opener.response().text(), "first");
    // More than the system takes.
    let upload = post("/upload", &"b".repeat(32 << 20)).to_bytes();
    let sender = thread::spawn(move || {
        opener.send(upload);
        opener.response()
    });
    assert_eq!(sender.join().unwrap().status, 504);
    // The next request does not wait behind what the backend does not read.
    let mut next = proxy.connect();
    next.send(get("/next").to_bytes());
    let mut fresh = accept(&listener);
    let asked = fresh.request();
    fresh.answer(asked.stream, "fresh");
    assert_eq!(next.response().text(), "fresh");
}

/// Whatever stream data is sent on, only the request of that stream gets it.
#[test]
fn data_on_a_stream_that_was_cancelled_reaches_nobody() {
    let (proxy, listener) = before("");
    let mut gone = super::client(&proxy);
    let left = gone.get("/left", &[]);
    let mut origin = accept(&listener);
    let cancelled = origin.request();
    gone.reset(left);
    origin.reset_of(cancelled.stream);
    let mut conn = proxy.connect();
    conn.send(get("/other").to_bytes());
    let other = origin.request();
    origin.head(cancelled.stream, "200", &[], false);
    for _ in 0..100 {
        origin.data(cancelled.stream, vec![b'!'; 16 << 10], false);
    }
    origin.answer(other.stream, "its own");
    assert_eq!(conn.response().text(), "its own");
}

/// Its SETTINGS come before the request or in place of a response, as the server of gRPC sends them.
#[test]
fn a_backend_at_an_http_address_that_speaks_only_http_2_is_told_apart_in_the_log() {
    let listener = Listener::new();
    let log = "retries = 0\n\n[log]\naccess = \"stdout\"\nformat = \"json\"";
    let proxy = sandarac().config(pool(&[listener.url()], log)).start();
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    let mut origin = listener.accept();
    origin.send(frame(kind::SETTINGS, 0, 0, [0, 3, 0, 0, 0, 100]));
    let refused = client.response().expect(502);
    assert!(!refused.text().contains("h2://"), "it is for the operator: {}", refused.text());
    within("the line", || (!proxy.stdout().is_empty()).then_some(()));
    let line = proxy.stdout();
    assert!(line.contains("if it speaks HTTP/2 in clear, its address begins with h2://"), "{line}");
}
