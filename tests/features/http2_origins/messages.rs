//! Requests and responses.

use sandarac_test_support::http2::usual;
use sandarac_test_support::{Listener, get, head, post, request};

use super::{FIRST_WINDOW, accept, before, client, proxy};

#[test]
fn a_request_of_http_1_becomes_one_of_http_2() {
    let (proxy, listener) = before("");
    let mut conn = proxy.connect();
    conn.send(
        get("/a?b")
            .host("www.example")
            .with("X-Own", "1")
            .with("Connection", "keep-alive, x-hop")
            .with("X-Hop", "1")
            .with("Cookie", "a=1; b=2")
            .to_bytes(),
    );
    let mut origin = accept(&listener);
    let asked = origin.request();
    assert!(asked.ends);
    let lines: Vec<(&str, &str)> = asked.fields.lines();
    assert_eq!(
        &lines[..4],
        [(":method", "GET"), (":scheme", "http"), (":path", "/a?b"), (":authority", "www.example")]
    );
    assert_eq!((asked.field("x-own"), asked.field("cookie")), (Some("1"), Some("a=1; b=2")));
    for absent in ["host", "connection", "x-hop", "te", "transfer-encoding", "content-length"] {
        assert_eq!(asked.field(absent), None, "{absent}");
    }
    assert!(asked.fields.names().iter().all(|name| !name.bytes().any(|byte| byte.is_ascii_uppercase())));
    origin.head(asked.stream, "200", &[("x-theirs", "2"), ("content-length", "4")], false);
    origin.data(asked.stream, "body", true);
    let response = conn.response();
    assert_eq!((response.status, response.text().as_str()), (200, "body"));
    assert_eq!((response.field("x-theirs"), response.field("content-length")), (Some("2"), Some("4")));
}

#[test]
fn bodies_go_both_ways_with_and_without_a_length() {
    let (proxy, listener) = before("");
    let mut conn = proxy.connect();
    conn.send(post("/known", "sent").to_bytes());
    let mut origin = accept(&listener);
    let known = origin.request();
    assert_eq!(known.field("content-length"), Some("4"));
    assert_eq!(origin.body(known.stream).0, b"sent");
    origin.answer(known.stream, "one");
    assert_eq!(conn.response().text(), "one");
    conn.send(request("POST", "/unknown").chunked(&["in ", "chunks"]).to_bytes());
    let unknown = origin.request();
    assert_eq!((unknown.field("content-length"), unknown.field("transfer-encoding")), (None, None));
    assert_eq!(origin.body(unknown.stream).0, b"in chunks");
    origin.answer(unknown.stream, "two");
    assert_eq!(conn.response().text(), "two");
    conn.send(post("/none", "").to_bytes());
    let none = origin.request();
    assert_eq!((none.field("content-length"), none.ends), (Some("0"), true));
    origin.head(none.stream, "204", &[], true);
    assert_eq!(conn.response().status, 204);
}

#[test]
fn a_response_may_begin_and_go_on_while_the_request_is_sent() {
    let (proxy, listener) = before("");
    let mut client = client(&proxy);
    let fields =
        [&usual("POST", "/")[..], &[("content-type", "application/grpc"), ("te", "trailers")]].concat();
    let stream = client.head(&fields, false);
    let mut origin = accept(&listener);
    let asked = origin.request();
    origin.head(asked.stream, "200", &[("content-type", "application/grpc")], false);
    assert_eq!(client.begun(stream).status, 200);
    for turn in 1..=3 {
        client.data(stream, "ping!", false);
        origin.partial(asked.stream, 5 * turn);
        origin.data(asked.stream, "pong!", false);
        while client.begun(stream).body.len() < 5 * turn {
            client.settle();
        }
    }
    client.data(stream, "", true);
    assert_eq!(origin.body(asked.stream).0.len(), 15);
    origin.trailers(asked.stream, &[("grpc-status", "0")]);
    let response = client.response(stream);
    assert_eq!((response.body.len(), response.trailers.get("grpc-status")), (15, Some("0")));
}

#[test]
fn te_is_sent_for_clients_that_read_trailers_and_for_grpc() {
    let (proxy, listener) = before("");
    let mut client = client(&proxy);
    let plain = client.get("/plain", &[]);
    let mut origin = accept(&listener);
    let mut asked = origin.request();
    assert_eq!(asked.field("te"), None);
    origin.head(asked.stream, "200", &[], false).trailers(asked.stream, &[("x-late", "1")]);
    assert!(!client.response(plain).trailers.has("x-late"));
    let reads = client.get("/reads", &[("te", "trailers")]);
    asked = origin.request();
    assert_eq!(asked.field("te"), Some("trailers"));
    origin.head(asked.stream, "200", &[], false).trailers(asked.stream, &[("x-late", "1")]);
    assert_eq!(client.response(reads).trailers.get("x-late"), Some("1"));
    let claims = client.get("/claims", &[("content-type", "application/grpc")]);
    asked = origin.request();
    assert_eq!(asked.field("te"), None, "a GET is no call");
    origin.head(asked.stream, "200", &[], false).trailers(asked.stream, &[("x-late", "1")]);
    assert!(!client.response(claims).trailers.has("x-late"));
    let grpc = client.post("/grpc", &[("content-type", "application/grpc+proto")]);
    client.data(grpc, "call", true);
    asked = origin.request();
    assert_eq!(asked.field("te"), Some("trailers"));
    origin.head(asked.stream, "200", &[], false).trailers(asked.stream, &[("grpc-status", "5")]);
    assert_eq!(client.response(grpc).trailers.get("grpc-status"), Some("5"));
}

#[test]
fn a_response_of_trailers_only_stays_one() {
    let (proxy, listener) = before("");
    let mut client = client(&proxy);
    let stream = client.post("/", &[("content-type", "application/grpc"), ("te", "trailers")]);
    client.data(stream, "call", true);
    let mut origin = accept(&listener);
    let asked = origin.request();
    origin.head(asked.stream, "200", &[("content-type", "application/grpc"), ("grpc-status", "12")], true);
    let response = client.response(stream);
    assert_eq!((response.field("grpc-status"), response.body.len()), (Some("12"), 0));
    assert!(client.order.is_empty(), "a frame of data: {:?}", client.order);
}

#[test]
fn trailers_of_requests_go_on_where_the_pool_says_so() {
    let (proxy, listener) = before("forward_trailers = true");
    let mut client = client(&proxy);
    let stream = client.post("/", &[]);
    client.data(stream, "body", false).trailers(stream, &[("x-sum", "9"), ("host", "evil.example")]);
    let mut origin = accept(&listener);
    let asked = origin.request();
    let (body, trailers) = origin.body(asked.stream);
    assert_eq!((body.as_slice(), trailers.lines()), (&b"body"[..], vec![("x-sum", "9")]));
    origin.answer(asked.stream, "");
    assert_eq!(client.response(stream).status, 200);
}

#[test]
fn interim_responses_go_on() {
    let (proxy, listener) = before("");
    let mut conn = proxy.connect();
    conn.send(request("POST", "/").with("Expect", "100-continue").with("Content-Length", "4").to_bytes());
    let mut origin = accept(&listener);
    let asked = origin.request();
    assert_eq!(asked.field("expect"), Some("100-continue"));
    origin.head(asked.stream, "103", &[("link", "</a.css>"), ("content-length", "0")], false).head(
        asked.stream,
        "100",
        &[],
        false,
    );
    let early = conn.response_head();
    assert_eq!((early.status, early.field("link")), (103, Some("</a.css>")));
    // RFC 9110 §8.6; clients of HTTP/2 took it for that of the final response.
    assert_eq!(early.field("content-length"), None);
    assert_eq!(conn.response_head().status, 100);
    conn.send("body");
    assert_eq!(origin.body(asked.stream).0, b"body");
    origin.answer(asked.stream, "done");
    assert_eq!(conn.response().text(), "done");
}

#[test]
fn head_and_not_modified_have_a_length_and_no_body() {
    let (proxy, listener) = before("");
    let mut conn = proxy.connect();
    conn.send(head("/").to_bytes());
    let mut origin = accept(&listener);
    let mut asked = origin.request();
    assert_eq!(asked.field(":method"), Some("HEAD"));
    origin.head(asked.stream, "200", &[("content-length", "10")], true);
    let response = conn.response_to("HEAD");
    assert_eq!((response.status, response.field("content-length")), (200, Some("10")));
    conn.send(get("/").with("If-None-Match", "\"a\"").to_bytes());
    asked = origin.request();
    origin.head(asked.stream, "304", &[("etag", "\"a\"")], true);
    assert_eq!(conn.response().status, 304);
}

#[test]
fn responses_over_http_2_are_stored_and_served() {
    let listener = Listener::new();
    let proxy = proxy(&[&listener], "", "lookup");
    let mut conn = proxy.connect();
    conn.send(get("/stored").to_bytes());
    let mut origin = accept(&listener);
    let asked = origin.request();
    let body = "0123456789".repeat(6_500);
    origin.head(asked.stream, "200", &[("cache-control", "max-age=60")], false);
    origin.data_within(FIRST_WINDOW, asked.stream, body.as_bytes()).data(asked.stream, "", true);
    assert_eq!(conn.response().text(), body);
    let stored = conn.get("/stored");
    assert!(stored.is_hit() && stored.text() == body);
}

#[test]
fn a_malformed_response_is_a_fault_of_the_backend() {
    let (proxy, listener) = before("retries = 0");
    let mut conn = proxy.connect();
    conn.send(get("/").to_bytes());
    let mut origin = accept(&listener);
    let asked = origin.request();
    origin.head(asked.stream, "200", &[("connection", "close")], true);
    let response = conn.response();
    assert_eq!(response.status, 502);
    assert!(response.field("proxy-status").is_some_and(|status| status.contains("http_protocol_error")));
    // The connection goes on.
    conn.send(get("/again").to_bytes());
    let again = origin.request();
    origin.answer(again.stream, "fine");
    assert_eq!(conn.response().text(), "fine");
}
