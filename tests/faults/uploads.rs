//! Request bodies that stop, are late, or are malformed, and backends that do not read them.

use std::thread::JoinHandle;

use sandarac_test_support::{Conn, Listener, Sandarac, within};

use crate::{sandarac, site};

fn start(pool_keys: &str, tables: &str) -> (Sandarac, Listener) {
    let listener = Listener::new();
    let config = site(&listener.url(), pool_keys, tables);
    (sandarac().config(config).start(), listener)
}

/// Sends `bytes` bytes, or as many as the peer takes.
fn push(client: &mut Conn, bytes: usize) {
    client.set_write_patience(std::time::Duration::from_millis(200));
    let _ = client.try_send(vec![b'x'; bytes]);
}

/// Sends a body of `length` bytes on another thread.
fn send_aside(mut client: Conn, length: usize) -> JoinHandle<Conn> {
    std::thread::spawn(move || {
        client.send(vec![b'x'; length]);
        client
    })
}

/// Regression: the timeout for the body ran while the proxy waited for the backend, and the client got a 408.
#[test]
fn a_backend_that_does_not_take_a_body_is_answered_for_with_504() {
    let (proxy, listener) = start("first_byte_timeout = \"2s\"", "[timeouts]\nbody = \"1s\"");
    let mut client = proxy.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
    let _origin = listener.accept();
    push(&mut client, 64 << 20);
    client.response().expect(504);
}

/// Regression: the same, with a backend that goes on reading in time.
#[test]
fn a_backend_may_pause_amid_a_body_for_longer_than_a_client_may() {
    const LENGTH: usize = 32 << 20;
    let (proxy, listener) = start("first_byte_timeout = \"60s\"", "[timeouts]\nbody = \"1s\"");
    let mut client = proxy.connect();
    client.send(format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {LENGTH}\r\n\r\n"));
    let mut origin = listener.accept();
    origin.request_head();
    let pause = std::time::Instant::now();
    let sending = send_aside(client, LENGTH);
    // The backend pauses on purpose; the first bytes stay in the socket buffers meanwhile.
    within("the time for the body to be over", || (pause.elapsed().as_secs() >= 2).then_some(()));
    assert_eq!(origin.read(LENGTH).len(), LENGTH);
    origin.send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    sending.join().unwrap().response().expect(201);
}

/// A client that waits for `100 Continue` from the backend is not late.
#[test]
fn a_backend_that_never_says_to_go_on_is_answered_for_with_504() {
    let (proxy, listener) = start("first_byte_timeout = \"2s\"", "[timeouts]\nbody = \"1s\"");
    let mut client = proxy.connect();
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    let _origin = listener.accept();
    client.response().expect(504);
}

const EARLY: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";

/// A client that is sending a body in chunks, and the backend, which has begun to answer after the first chunk, `3\r\nabc`.
fn answered_early(proxy: &Sandarac, listener: &Listener) -> (Conn, Conn) {
    let mut client = proxy.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc");
    let mut origin = listener.accept();
    origin.request_head();
    origin.expect("3\r\nabc\r\n").send(EARLY);
    client.read_through("hello");
    (client, origin)
}

/// Asserts that the backend sees the request break off, and the client the response.
#[track_caller]
fn both_break_off(client: &mut Conn, origin: &mut Conn) {
    // More bytes from the backend must not make the proxy read the body again.
    let _ = origin.try_send("1\r\n.\r\n");
    origin.expect_end();
    assert!(!client.read_to_end().ends_with(b"0\r\n\r\n"), "the response came to an end");
}

/// Regression: a refused body was read again from the middle of a chunk size, and forwarded as another body, with an end.
#[test]
fn a_body_that_is_malformed_after_an_early_response_breaks_off() {
    let (proxy, listener) = start("", "");
    for rest in ["\r\n5GXYZ\r\n0\r\n\r\n", "XX3\r\nabc\r\n0\r\n\r\n"] {
        let (mut client, mut origin) = answered_early(&proxy, &listener);
        client.send(rest);
        both_break_off(&mut client, &mut origin);
    }
    assert_eq!(proxy.metric("bodies_truncated"), 0, "the backend is to blame for nothing");
}

/// Regression: the content of the chunk that was too large was read as the next chunks.
#[test]
fn a_body_that_is_too_large_after_an_early_response_breaks_off() {
    let (proxy, listener) = start("", "[limits]\nbody = \"20B\"");
    let (mut client, mut origin) = answered_early(&proxy, &listener);
    client.send("\r\n19\r\n");
    client.send("\r\n0\r\n\r\nAAAAAAAAAAAAAAAAAAAA\r\n0\r\n\r\n");
    both_break_off(&mut client, &mut origin);
}

/// Regression: the client had no timeout any more, and the backend's timeout ran instead.
#[test]
fn a_client_that_stops_after_an_early_response_is_late_itself() {
    let (proxy, listener) = start("between_bytes_timeout = \"1s\"", "[timeouts]\nbody = \"2s\"");
    let (mut client, mut origin) = answered_early(&proxy, &listener);
    origin.expect_end();
    assert!(!client.read_to_end().ends_with(b"0\r\n\r\n"), "the response came to an end");
    assert_eq!(proxy.metric("bodies_truncated"), 0, "the backend is to blame for nothing");
    proxy.counts("uploads_broken", 1);
}

/// Regression: the minimum rate was not enforced.
#[test]
fn a_body_that_trickles_after_an_early_response_breaks_off() {
    let (proxy, listener) = start("", "[limits]\nmin_rate_in = \"100KiB\"\nmin_rate_after = \"1s\"");
    let (mut client, mut origin) = answered_early(&proxy, &listener);
    client.send("\r\n");
    within("the connection to end", || client.try_send("1\r\ny\r\n").is_err().then_some(()));
    assert!(!origin.read_to_end().ends_with(b"0\r\n\r\n"), "the request came to an end");
}

#[test]
fn a_body_goes_on_to_its_end_after_an_early_response() {
    const LENGTH: usize = 8 << 20;
    let (proxy, listener) = start("", "");
    let mut client = proxy.connect();
    client.send(format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {LENGTH}\r\n\r\n"));
    let mut origin = listener.accept();
    origin.request_head();
    origin.send(EARLY);
    client.read_through("hello");
    let sending = send_aside(client, LENGTH);
    assert_eq!(origin.read(LENGTH).len(), LENGTH);
    origin.send("0\r\n\r\n");
    sending.join().unwrap().read_through("0\r\n\r\n");
}

/// Regression: the body of a response had to begin within what was left of the timeout for its head.
#[test]
fn a_backend_has_its_time_for_the_body_from_the_head_on() {
    let (proxy, listener) = start("first_byte_timeout = \"1s\"\nbetween_bytes_timeout = \"60s\"", "");
    let mut client = proxy.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nCookie: a=1\r\n\r\n");
    let mut origin = listener.accept();
    origin.request();
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nCache-Control: no-store\r\n\r\n");
    client.response_head();
    let pause = std::time::Instant::now();
    within("the time for the head to be over", || (pause.elapsed().as_secs() >= 2).then_some(()));
    let _ = origin.try_send("body");
    client.expect("body");
}

/// Regression: the response was stored, and the connection reused for the next request, which the backend took for the rest of
/// the body.
#[test]
fn a_connection_whose_request_is_not_whole_is_not_used_again() {
    let (proxy, listener) = start("", "[cache]\nprofile = \"rfc\"");
    let mut client = proxy.connect();
    client.send("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nsome");
    let mut origin = listener.accept();
    origin.request_head();
    origin.expect("some").send(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Location: http://a/a\r\nContent-Length: 5\r\n\r\nearly",
    );
    assert_eq!(client.response().expect(200).text(), "early");
    let mut other = proxy.connect();
    other.send("GET /b HTTP/1.1\r\nHost: a\r\n\r\n");
    origin.expect_end();
    let mut next = listener.accept();
    assert_eq!(next.request().target, "/b");
    next.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    other.response().expect(200);
}

/// Regression: no limit applied to how long the connection was kept for the client to read the response.
#[test]
fn a_client_that_sends_a_body_without_end_and_takes_no_answer_is_let_go() {
    let (proxy, listener) = start("", "[timeouts]\nwrite = \"1s\"");
    let mut client = proxy.connect();
    client.shrink_receive_buffer();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\nsome");
    let mut origin = listener.accept();
    origin.request_head();
    origin.expect("some");
    let length = 6 << 20;
    origin.send(format!("HTTP/1.1 413 Content Too Large\r\nContent-Length: {length}\r\n\r\n"));
    // The system decides how much of it is taken before the client is disconnected.
    let _ = origin.try_send(vec![b'x'; length]);
    proxy.counts("connections_open", 0);
    drop(client);
}
