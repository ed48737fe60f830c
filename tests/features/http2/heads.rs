//! Heads that are refused, and what becomes of the rest: nothing of an attack on HTTP/1.1 reaches an origin.

use sandarac_test_support::http2::{END_HEADERS, END_STREAM, Ended, block, kind, usual};
use sandarac_test_support::{Origin, reply};

use super::{before, before_with, config, connect};
use crate::{labelled, sandarac};

/// PROTOCOL_ERROR (RFC 9113 §7).
const PROTOCOL_ERROR: u32 = 1;

/// A field, whatever bytes it has.
type Field = (&'static [u8], &'static [u8]);

/// The names of faults, and the fields of requests that have them.
const MALFORMED: &[(&str, &[Field])] = &[
    ("invalid-field-value", &[(b"x", b"a\r\nTransfer-Encoding: chunked")]),
    ("invalid-field-value", &[(b"x", b"a\nHost: b")]),
    ("invalid-field-value", &[(b"x", b"a\rb")]),
    ("invalid-field-value", &[(b"x", b"a\0b")]),
    ("padded-field-value", &[(b"x", b" a")]),
    ("invalid-field-name", &[(b"x: a\r\ny", b"b")]),
    ("invalid-field-name", &[(b"x:y", b"b")]),
    ("invalid-field-name", &[(b"x y", b"b")]),
    ("invalid-field-name", &[(b"", b"b")]),
    ("upper-case-name", &[(b"X-Upper", b"b")]),
    ("connection-field", &[(b"transfer-encoding", b"chunked")]),
    ("connection-field", &[(b"connection", b"close")]),
    ("connection-field", &[(b"upgrade", b"h2c")]),
    ("connection-field", &[(b"http2-settings", b"AAMAAABkAAQAAP__")]),
    ("connection-field", &[(b"keep-alive", b"1")]),
    ("connection-field", &[(b"proxy-connection", b"close")]),
    ("invalid-te", &[(b"te", b"chunked")]),
    ("late-pseudo-field", &[(b"x", b"y"), (b":protocol", b"b")]),
    ("repeated-pseudo-field", &[(b":path", b"/other")]),
    ("unknown-pseudo-field", &[(b":other", b"b")]),
    ("unknown-pseudo-field", &[(b":status", b"200")]),
    ("host-mismatch", &[(b"host", b"other.example")]),
    ("repeated-host", &[(b"host", b"test.example"), (b"host", b"test.example")]),
    ("repeated-content-length", &[(b"content-length", b"0"), (b"content-length", b"0")]),
];

#[test]
fn malformed_heads_reset_their_streams_and_reach_nobody() {
    let (proxy, origin) = before(|_| reply(200).cache("no-store"));
    for (name, fields) in MALFORMED {
        let mut client = connect(&proxy);
        let counted = labelled(&proxy, "refused", name);
        let own = usual("GET", "/attack").map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let all: Vec<(&[u8], &[u8])> = own.into_iter().chain(fields.iter().copied()).collect();
        client.frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, block(&all));
        assert_eq!(client.outcome(1).unwrap_err(), Ended::Reset(PROTOCOL_ERROR), "{name}");
        assert_eq!(labelled(&proxy, "refused", name), counted + 1, "{name}");
        // The connection goes on.
        client.frame(kind::HEADERS, END_HEADERS | END_STREAM, 3, block(&usual("GET", "/after")));
        assert_eq!(client.response(3).status, 200, "{name}");
    }
    assert_eq!(origin.count_of("/attack"), 0);
}

#[test]
fn targets_and_methods_that_would_split_a_request_line_are_refused() {
    let (proxy, origin) = before(|_| reply(200).cache("no-store"));
    for (name, value) in [
        (":path", "/a b"),
        (":path", "/a HTTP/1.1\r\nX: y"),
        (":path", ""),
        (":path", "http://other.example/"),
        (":path", "a"),
        (":path", "*"),
        (":method", "GET / HTTP/1.1\r\nX:"),
        (":method", "G T"),
        (":method", ""),
        (":scheme", "gopher"),
        (":authority", "a b"),
        (":authority", "user@test.example"),
        (":authority", "a/b"),
        (":authority", ""),
    ] {
        let mut client = connect(&proxy);
        let fields = usual("GET", "/").map(|(own, usual)| (own, if own == name { value } else { usual }));
        let stream = client.head(&fields, true);
        assert_eq!(client.outcome(stream).unwrap_err(), Ended::Reset(PROTOCOL_ERROR), "{name} {value:?}");
    }
    for missing in [":path", ":method", ":scheme", ":authority"] {
        let mut client = connect(&proxy);
        let fields: Vec<_> = usual("GET", "/").into_iter().filter(|(name, _)| *name != missing).collect();
        let stream = client.head(&fields, true);
        assert_eq!(client.outcome(stream).unwrap_err(), Ended::Reset(PROTOCOL_ERROR), "{missing}");
    }
    assert_eq!(origin.count(), 0);
}

#[test]
fn data_that_contradicts_content_length_resets_the_stream() {
    let (proxy, origin) = before(|_| reply(200).cache("no-store"));
    let mut client = connect(&proxy);
    let (long, short) =
        (client.post("/", &[("content-length", "3")]), client.post("/", &[("content-length", "9")]));
    client.data(long, "too long", true).data(short, "short", true);
    for stream in [long, short] {
        assert_eq!(client.outcome(stream).unwrap_err(), Ended::Reset(PROTOCOL_ERROR));
    }
    let stream = client.head(&[&usual("POST", "/")[..], &[("content-length", "5")]].concat(), true);
    assert_eq!(client.outcome(stream).unwrap_err(), Ended::Reset(PROTOCOL_ERROR));
    // What has reached the origin is not a whole request.
    assert!(origin.requests().iter().all(|request| request.body.len() < 3), "{:?}", origin.requests());
    let stream = client.get("/", &[]);
    assert_eq!(client.response(stream).status, 200);
}

#[test]
fn cookies_are_joined_and_host_is_the_authority() {
    let (proxy, origin) = before(|_| reply(200).cache("no-store"));
    let mut client = connect(&proxy);
    let stream =
        client.get("/", &[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2"), ("host", "test.example")]);
    assert_eq!(client.response(stream).status, 200);
    let received = origin.last();
    assert_eq!(received.fields.all("Cookie"), ["a=1; b=2"]);
    assert_eq!(received.fields.all("Host"), ["test.example"]);
}

/// RFC 9110 §7.4: what is stored for http must not be had, or filled, by requests for https, and the reverse.
#[test]
fn a_request_for_the_other_scheme_is_misdirected() {
    let (proxy, origin) = before(|_| reply(200).cache("max-age=60"));
    let https =
        usual("GET", "/").map(|(name, value)| (name, if name == ":scheme" { "https" } else { value }));
    let mut client = connect(&proxy);
    let stream = client.head(&https, true);
    assert_eq!(client.response(stream).status, 421);
    assert_eq!(origin.count(), 0);
    let stream = client.get("/", &[]);
    assert_eq!(client.response(stream).status, 200);
    proxy
        .reload(
            &config(&origin, "").replace("http2 = true", "http2 = true\ntrusted_proxies = [\"127.0.0.1\"]"),
        )
        .success();
    // A proxy may state its client's scheme here, or that of its own connection here and its client's in a field.
    for (fields, forwarded) in [
        (&https[..], "https"),
        (&[&usual("GET", "/other")[..], &[("x-forwarded-proto", "https")]].concat(), "https"),
        (&usual("GET", "/clear"), "http"),
    ] {
        let stream = client.head(fields, true);
        assert_eq!(client.response(stream).status, 200);
        assert_eq!(origin.last().field("X-Forwarded-Proto"), Some(forwarded), "{fields:?}");
    }
}

#[test]
fn heads_above_the_limits_are_answered() {
    let (proxy, origin) = before_with("[limits]\nhead = \"8KiB\"\ntarget = \"1KiB\"\n", |_| reply(200));
    let mut client = connect(&proxy);
    let padding = "x".repeat(9000);
    let stream = client.get("/", &[("x-padding", &padding)]);
    assert_eq!(client.response(stream).status, 431);
    let stream = client.get(&format!("/{}", "y".repeat(2000)), &[]);
    assert_eq!(client.response(stream).status, 414);
    let stream = client.get("/", &[]);
    assert_eq!(client.response(stream).status, 200);
    assert_eq!(origin.count(), 1);
    assert_eq!(labelled(&proxy, "refused", "target-too-long"), 1);
}

#[test]
fn trailers_of_requests_obey_the_rule_of_http_1() {
    let (proxy, origin) = before(|_| reply(200).cache("no-store"));
    let mut client = connect(&proxy);
    let stream = client.post("/", &[]);
    client.data(stream, "hello", false).trailers(stream, &[("x-sum", "42"), ("authorization", "x")]);
    assert_eq!(client.response(stream).status, 200);
    let received = origin.last();
    assert_eq!(received.body, b"hello");
    assert!(!received.trailers.has("x-sum") && !received.fields.has("x-sum"), "{received:?}");
    let stream = client.post("/", &[]);
    client.data(stream, "hello", false).trailers(stream, &[(":path", "/")]);
    assert_eq!(client.outcome(stream).unwrap_err(), Ended::Reset(PROTOCOL_ERROR));
}

#[test]
fn fields_of_the_connection_to_a_backend_are_not_passed_on() {
    for control in ["no-store", "max-age=60"] {
        let (proxy, _origin) = before(move |_| {
            reply(200)
                .cache(control)
                .with("HTTP2-Settings", "AAMAAABk")
                .with("Keep-Alive", "timeout=5")
                .with("X-Own", "1")
        });
        let mut client = connect(&proxy);
        for _ in 0..2 {
            let stream = client.get("/", &[]);
            let response = client.response(stream);
            assert_eq!(response.field("x-own"), Some("1"));
            assert!(
                !response.fields.has("http2-settings") && !response.fields.has("keep-alive"),
                "{response:?}"
            );
        }
    }
}

#[test]
fn trailers_that_are_forwarded_pass_the_filters_of_http_1() {
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let text = config(&origin, "").replace("[[route]]", "forward_trailers = true\n\n[[route]]");
    let proxy = sandarac().config(text).start();
    let refused = [
        ("accept-encoding", "br"),
        ("authorization", "x"),
        ("client-cert", ":AA==:"),
        ("content-length", "7"),
        ("content-type", "x/y"),
        ("cookie", "a=b"),
        ("expect", "100-continue"),
        ("forwarded", "for=6.6.6.6"),
        ("host", "evil.example"),
        ("if-match", "*"),
        ("max-forwards", "0"),
        ("proxy", "http://6.6.6.6/"),
        ("range", "bytes=0-"),
        ("trailer", "x"),
        ("via", "x"),
        ("x-forwarded-for", "6.6.6.6"),
        ("x-http-method-override", "PUT"),
        ("x-real-ip", "6.6.6.6"),
        ("x_underscore", "1"),
    ];
    let all = [&[("x-first", "1")][..], &refused, &[("x-last", "2")]].concat();
    let lines: String = all.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut over_http1 = proxy.connect();
    over_http1.send(format!(
        "POST / HTTP/1.1\r\nHost: test.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n{lines}\r\n"
    ));
    over_http1.response().expect(200);
    let expected = origin.last().trailers;
    let mut client = connect(&proxy);
    let stream = client.post("/", &[]);
    client.data(stream, "hello", false).trailers(stream, &all);
    assert_eq!(client.response(stream).status, 200);
    let received = origin.last();
    assert_eq!((received.version.as_str(), received.text().as_str()), ("HTTP/1.1", "hello"));
    assert_eq!(received.trailers.names(), expected.names());
    assert_eq!((received.trailers.get("x-first"), received.trailers.get("x-last")), (Some("1"), Some("2")));
    for (name, _) in refused {
        assert!(!received.trailers.has(name), "{name}");
    }
}

#[test]
fn a_head_in_several_frames_is_one_head() {
    let (proxy, origin) = before(|_| reply(200).cache("no-store"));
    let mut client = connect(&proxy);
    let block = block(&[&usual("GET", "/")[..], &[("x-long", &"z".repeat(5000))]].concat());
    let (first, rest) = block.split_at(2000);
    let (second, third) = rest.split_at(2000);
    client.frame(kind::HEADERS, END_STREAM, 1, first);
    client.frame(kind::CONTINUATION, 0, 1, second).frame(kind::CONTINUATION, END_HEADERS, 1, third);
    assert_eq!(client.response(1).status, 200);
    assert_eq!(origin.last().field("X-Long").map(str::len), Some(5000));
}
