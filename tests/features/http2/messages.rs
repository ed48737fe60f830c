//! Requests and responses.

use sandarac_test_support::http2::{Http2, usual};
use sandarac_test_support::{Conn, Gate, Listener, Origin, TempDir, eventually, get, reply, within};

use super::{before, before_with, connect};
use crate::ca::Ca;
use crate::{labelled, sandarac, site};

#[test]
fn a_stored_page_is_a_hit_for_both_protocols() {
    let (proxy, origin) = before(|_| reply(200).cache("max-age=60").with("X-Kind", "page").body("hello"));
    let mut client = connect(&proxy);
    let first = client.get("/", &[]);
    assert_eq!(client.response(first).text(), "hello");
    let second = client.get("/", &[]);
    let response = client.response(second);
    assert_eq!((response.status, response.text().as_str()), (200, "hello"));
    assert!(response.is_hit(), "{response:?}");
    assert_eq!((response.field("x-kind"), response.field("content-length")), (Some("page"), Some("5")));
    assert!(response.fields.has("age") && !response.fields.has("connection"));
    let over_http1 = proxy.exchange(&get("/").host("test.example"));
    assert!(over_http1.is_hit() && over_http1.fields.names().contains(&"X-Kind"), "{over_http1:?}");
    assert_eq!(origin.count(), 1);
}

#[test]
fn the_form_of_a_stored_head_is_made_once_and_charged() {
    let (proxy, _origin) = before(|_| {
        reply(200)
            .cache("max-age=60")
            .with("X-Kind", "Page of 1")
            .with("Set-Own", "\u{e4}; ~{}")
            .body("hello")
    });
    let used =
        || proxy.admin_json(&["status", "--json"])["cache"]["used_bytes"].as_u64().expect("used_bytes");
    proxy.exchange(&get("/").host("test.example")).expect(200);
    assert!(proxy.exchange(&get("/").host("test.example")).is_hit());
    let before = used();
    let mut client = connect(&proxy);
    let mut seen = Vec::new();
    let mut charged = Vec::new();
    for _ in 0..3 {
        let stream = client.get("/", &[]);
        let response = client.response(stream);
        assert!(response.is_hit(), "{response:?}");
        assert_eq!(
            (response.field("x-kind"), response.field("content-length")),
            (Some("Page of 1"), Some("5"))
        );
        seen.push(response.field("set-own").map(str::to_owned));
        charged.push(used() - before);
    }
    assert!((50..1000).contains(&charged[0]), "{charged:?}");
    assert!(charged.iter().all(|bytes| *bytes == charged[0]), "made once: {charged:?}");
    assert!(seen.iter().all(|value| *value == seen[0] && value.is_some()), "{seen:?}");
    let response = proxy.exchange(&get("/").host("test.example"));
    assert!(response.is_hit() && response.fields.names().contains(&"X-Kind"), "{response:?}");
    proxy.admin(&["purge", "http://test.example/"]).success();
    eventually("what was charged to be released", || (used() < before).then_some(()));
}

#[test]
fn a_request_reaches_an_origin_as_one_of_http_1() {
    let (proxy, origin) = before(|_| reply(200).cache("no-store"));
    let mut client = connect(&proxy);
    let stream = client.get("/a?b=c", &[("user-agent", "test"), ("x-own", "1")]);
    assert_eq!(client.response(stream).status, 200);
    let received = origin.last();
    assert_eq!((received.method.as_str(), received.target.as_str()), ("GET", "/a?b=c"));
    assert_eq!((received.field("Host"), received.field("X-Own")), (Some("test.example"), Some("1")));
    assert_eq!(received.field("X-Forwarded-For"), Some("127.0.0.1"));
    assert_eq!(received.field("Via"), Some("2 sandarac"));
    assert!(!received.fields.names().iter().any(|name| name.starts_with(':')), "{received:?}");
}

#[test]
fn many_streams_are_served_at_a_time() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, origin) =
        before(move |request| reply(200).cache("no-store").body(&request.target).hold(&held));
    let mut client = connect(&proxy);
    let streams: Vec<u32> = (0..50).map(|n| client.get(&format!("/{n}"), &[])).collect();
    origin.reached(50);
    gate.open();
    for (n, stream) in streams.into_iter().enumerate().rev() {
        assert_eq!(client.response(stream).text(), format!("/{n}"));
    }
}

#[test]
fn responses_without_a_body_end_with_their_head() {
    let (proxy, _origin) = before(|request| match request.path() {
        "/none" => reply(204).cache("no-store"),
        _ => reply(200).cache("max-age=60").with("ETag", "\"1\"").body("hello"),
    });
    let mut client = connect(&proxy);
    let stream = client.head(&usual("HEAD", "/"), true);
    let response = client.response(stream);
    assert_eq!((response.status, response.body.len(), response.field("content-length")), (200, 0, Some("5")));
    let stream = client.get("/", &[]);
    assert_eq!(client.response(stream).text(), "hello");
    let stream = client.get("/", &[("if-none-match", "\"1\"")]);
    assert_eq!(client.response(stream).status, 304);
    let stream = client.head(&usual("HEAD", "/"), true);
    assert_eq!(client.response(stream).body.len(), 0);
    let stream = client.get("/none", &[]);
    assert_eq!(client.response(stream).status, 204);
    assert!(client.order.iter().all(|(_, len)| *len > 0), "{:?}", client.order);
}

#[test]
fn ranges_of_a_stored_page_are_sent() {
    let (proxy, _origin) =
        before(|_| reply(200).cache("max-age=60").with("ETag", "\"1\"").body("0123456789"));
    let mut client = connect(&proxy);
    let stream = client.get("/", &[]);
    client.response(stream);
    let stream = client.get("/", &[("range", "bytes=2-4")]);
    let response = client.response(stream);
    assert_eq!((response.status, response.text().as_str()), (206, "234"));
}

#[test]
fn bodies_and_trailers_go_both_ways() {
    let (proxy, origin) =
        before(|request| reply(200).cache("no-store").body(&request.body).chunked().trailer("X-Sum", "42"));
    let mut client = connect(&proxy);
    let stream = client.post("/", &[("content-length", "10"), ("te", "trailers")]);
    client.data(stream, "01234", false).data(stream, "56789", true);
    let response = client.response(stream);
    assert_eq!((response.text().as_str(), response.trailers.get("x-sum")), ("0123456789", Some("42")));
    let received = origin.last();
    assert_eq!((received.field("Content-Length"), received.field("TE")), (Some("10"), Some("trailers")));
}

#[test]
fn a_short_body_without_a_length_gets_one_and_a_long_or_slow_one_goes_up_in_chunks() {
    let (proxy, origin) = before(|_| reply(200).cache("no-store"));
    let mut client = connect(&proxy);
    let stream = client.post("/short", &[]);
    client.data(stream, "hello", true);
    assert_eq!(client.response(stream).status, 200);
    let received = origin.last();
    assert_eq!((received.field("Content-Length"), received.body.as_slice()), (Some("5"), &b"hello"[..]));

    let stream = client.post("/long", &[]);
    let part = vec![b'x'; 16_000];
    for _ in 0..5 {
        client.data(stream, &part, false);
    }
    client.settle().data(stream, "", true);
    assert_eq!(client.response(stream).status, 200);
    let received = origin.last();
    assert_eq!((received.field("Transfer-Encoding"), received.body.len()), (Some("chunked"), 80_000));
}

#[test]
fn a_body_whose_end_does_not_come_soon_goes_up_at_once() {
    let listener = Listener::new();
    let text = site(&listener.url(), "", "").replace("\"127.0.0.1:0\"", "\"127.0.0.1:0\"\nhttp2 = true");
    let proxy = sandarac().config(text).start();
    let mut client = connect(&proxy);
    let stream = client.post("/slow", &[]);
    client.data(stream, "first", false);
    let mut conn = listener.accept();
    let head = conn.request_head();
    assert_eq!(head.field("Transfer-Encoding"), Some("chunked"));
    conn.expect("5\r\nfirst\r\n");
    client.data(stream, "last", true);
    conn.expect("4\r\nlast\r\n0\r\n\r\n");
    conn.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(client.response(stream).status, 200);
}

#[test]
fn a_body_of_grpc_is_never_held_back() {
    let listener = Listener::new();
    let text = site(&listener.url(), "", "").replace("\"127.0.0.1:0\"", "\"127.0.0.1:0\"\nhttp2 = true");
    let proxy = sandarac().config(text).start();
    let mut client = connect(&proxy);
    let stream = client.post("/grpc", &[("content-type", "application/grpc"), ("te", "trailers")]);
    client.data(stream, "message", true);
    let request = listener.accept().request_head();
    assert_eq!(request.field("Transfer-Encoding"), Some("chunked"));
}

#[test]
fn interim_responses_are_passed_on() {
    let (proxy, _origin) =
        before(|_| reply(200).cache("no-store").interim(103, "Link: </a.css>; rel=preload\r\n").body("page"));
    let mut client = connect(&proxy);
    let stream = client.get("/", &[]);
    let response = client.response(stream);
    let interim = &response.interim[0];
    assert_eq!((interim.status, interim.field("link")), (103, Some("</a.css>; rel=preload")));
    assert_eq!(response.text(), "page");
}

#[test]
fn a_client_that_waits_for_100_gets_it() {
    let (proxy, origin) = before(|_| reply(200).cache("no-store"));
    let mut client = connect(&proxy);
    let stream = client.post("/", &[("content-length", "5"), ("expect", "100-continue")]);
    client.begun_interim(stream);
    client.data(stream, "hello", true);
    assert_eq!(client.response(stream).status, 200);
    assert_eq!(origin.last().body, b"hello");
}

#[test]
fn the_log_names_the_protocol() {
    let log = TempDir::new();
    let path = log.join("access.log");
    let (proxy, _origin) = before_with(&format!("[log]\naccess = \"{}\"\n", path.display()), |_| reply(200));
    let mut client = connect(&proxy);
    let stream = client.get("/logged", &[]);
    client.response(stream);
    let line =
        within("a line", || std::fs::read_to_string(&path).ok().filter(|text| text.contains("/logged")));
    assert!(line.contains("\"GET /logged HTTP/2.0\" 200"), "{line}");
}

#[test]
fn without_permission_the_preface_is_refused() {
    let origin = Origin::new(|_| reply(200));
    let proxy = sandarac().before(&origin).start();
    let mut conn = proxy.connect();
    conn.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_eq!(conn.response().status, 505);
    assert_eq!(labelled(&proxy, "refused", "http2-preface"), 1);
}

#[test]
fn http_1_is_still_spoken_where_http_2_is_allowed() {
    let (proxy, origin) = before(|_| reply(200).body("hello"));
    let upgrade = get("/").with("Connection", "Upgrade, HTTP2-Settings").with("Upgrade", "h2c");
    let response = proxy.exchange(&upgrade.with("HTTP2-Settings", "AAMAAABkAAQAAP__"));
    assert_eq!((response.status, response.text().as_str()), (200, "hello"));
    let received = origin.last();
    for name in ["Upgrade", "HTTP2-Settings"] {
        assert!(!received.fields.has(name), "{received:?}");
    }
}

#[test]
fn over_tls_the_client_and_the_setting_decide() {
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200).cache("max-age=60").body("hello")));
    ca.issue("a", "a.example");
    for (setting, offered, negotiated) in [
        ("", &[&b"h2"[..], b"http/1.1"][..], &b"h2"[..]),
        ("", &[b"http/1.1"], b"http/1.1"),
        ("http2 = false", &[b"h2", b"http/1.1"], b"http/1.1"),
    ] {
        let tls = format!(
            "\"127.0.0.1:0\"\n{setting}\ntls = {{ directory = \"{}\" }}",
            ca.directory.path().display()
        );
        let proxy = sandarac().config(site(&origin.url(), "", "").replace("\"127.0.0.1:0\"", &tls)).start();
        let mut config = (*ca.client()).clone();
        config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
        let name = rustls::pki_types::ServerName::try_from("a.example").unwrap();
        let mut conn = Conn::try_tls(proxy.address(), &std::sync::Arc::new(config), name).unwrap();
        if negotiated == b"h2" {
            let mut client = Http2::over(conn, &[]);
            let fields =
                [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/")];
            let stream = client.head(&fields, true);
            assert_eq!(client.response(stream).text(), "hello");
            assert_eq!(origin.last().field("X-Forwarded-Proto"), Some("https"));
            let stream = client.head(&fields.map(|(name, value)| (name, value.trim_end_matches('s'))), true);
            assert_eq!(client.response(stream).status, 421, "`:scheme` is http");
        } else {
            assert_eq!(conn.exchange(&get("/").host("a.example")).text(), "hello");
        }
    }
}
