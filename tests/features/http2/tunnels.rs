//! WebSocket over a stream (RFC 8441).

use sandarac_test_support::http2::{Ended, usual};
use sandarac_test_support::{Listener, Origin, reply};

use super::{before, config, connect};
use crate::{sandarac, site};

fn upgrade() -> Vec<(&'static str, &'static str)> {
    [&usual("CONNECT", "/chat")[..], &[(":protocol", "websocket")], &[("sec-websocket-version", "13")]]
        .concat()
}

#[test]
fn a_websocket_is_a_tunnel_in_a_stream() {
    let listener = Listener::new();
    let text = site(&listener.url(), "", "").replace("\"127.0.0.1:0\"", "\"127.0.0.1:0\"\nhttp2 = true");
    let proxy = sandarac().config(text).start();
    let mut client = connect(&proxy);
    let stream = client.head(&upgrade(), false);
    let mut conn = listener.accept();
    let request = conn.request_head();
    assert_eq!((request.method.as_str(), request.target.as_str()), ("GET", "/chat"));
    assert_eq!(request.field("Upgrade"), Some("websocket"));
    assert_eq!(request.field("Connection").map(str::to_ascii_lowercase).as_deref(), Some("upgrade"));
    assert_eq!(request.field("Sec-WebSocket-Key").map(str::len), Some(24));
    conn.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    let response = client.begun(stream);
    assert_eq!((response.status, response.fields.has("upgrade")), (200, false));
    client.data(stream, "to the server", false);
    conn.expect("to the server");
    conn.send("to the client");
    while client.begun(stream).body.len() < 13 {
        client.settle();
    }
    conn.finish();
    client.data(stream, "", true);
    assert_eq!(client.response(stream).text(), "to the client");
    conn.expect_end();
}

#[test]
fn a_backend_may_decline_a_websocket() {
    let (proxy, _origin) = before(|_| reply(403).body("no"));
    let mut client = connect(&proxy);
    let stream = client.head(&upgrade(), false);
    let response = client.response(stream);
    assert_eq!((response.status, response.text().as_str()), (403, "no"));
}

#[test]
fn a_request_for_a_tunnel_that_is_not_opened_does_not_succeed() {
    let route = |path: &str, keys: &str| format!("[[route]]\nmatch = \"{path}\"\n{keys}\n\n");
    let tables = [
        route("/none/", "pool = \"app\"\nupgrade = []"),
        route("/answer/", "answer = { status = 200, body = \"ok\" }"),
        route("/moved/", "redirect = { to = \"https://other.example/\", status = 307 }"),
    ]
    .concat();
    let origin = Origin::new(|_| reply(200).cache("max-age=60").body("page"));
    let text = config(&origin, "").replacen("[[route]]", &format!("{tables}[[route]]"), 1);
    let proxy = sandarac().config(text).start();
    let mut client = connect(&proxy);
    for path in ["/chat", "/none/chat"] {
        let stream = client.get(path, &[]);
        assert_eq!(client.response(stream).status, 200);
    }
    let mut connect = |path: &str, protocol: &str| {
        let fields = [&usual("CONNECT", path)[..], &[(":protocol", protocol)]].concat();
        let stream = client.head(&fields, false);
        let response = client.response(stream);
        (response.status, response.field("proxy-status").unwrap_or_default().to_owned(), response)
    };
    // Not the stored pages, and nothing of the backend.
    for (path, protocol) in [
        ("/chat", "connect-udp"),
        ("/chat", "h2c"),
        ("/none/chat", "websocket"),
        ("/answer/chat", "websocket"),
        ("/answer/chat", "connect-ip"),
    ] {
        let (status, proxy_status, response) = connect(path, protocol);
        assert_eq!(status, 501, "{path} {protocol}: {response:?}");
        assert!(proxy_status.contains("http_request_denied"), "{response:?}");
        assert!(!response.is_hit(), "{response:?}");
    }
    assert_eq!(connect("/moved/chat", "websocket").0, 307);
    assert_eq!(origin.count(), 2);
    // The backend has answered like a page, and opened no tunnel.
    let (status, proxy_status, response) = connect("/chat", "websocket");
    assert_eq!(status, 502, "{response:?}");
    assert!(proxy_status.contains("http_protocol_error"), "{response:?}");
    assert_eq!(origin.count(), 3);
}

#[test]
fn a_fixed_answer_of_success_is_none_to_a_request_for_a_tunnel() {
    let answer =
        site("http://127.0.0.1:9", "", "").replace("pool = \"app\"\n", "answer = { body = \"ok\" }\n");
    let proxy = sandarac().config(answer.replace("\"127.0.0.1:0\"", "\"127.0.0.1:0\"\nhttp2 = true")).start();
    let mut client = connect(&proxy);
    let page = client.get("/", &[]);
    assert_eq!(client.response(page).status, 200);
    let plain = client.head(&[(":method", "CONNECT"), (":authority", "test.example:443")], false);
    assert_eq!(client.response(plain).status, 405);
    let extended = client.head(&upgrade(), false);
    assert_eq!(client.response(extended).status, 501);
    let mut over_http1 = proxy.connect();
    over_http1.send("CONNECT test.example:443 HTTP/1.1\r\nHost: test.example:443\r\n\r\n");
    over_http1.response().expect(405);
}

/// Regression: it went on to the client, which takes such a response for malformed (RFC 9110 §9.3.6).
#[test]
fn the_answer_that_opens_a_tunnel_has_no_length() {
    let listener = Listener::new();
    let text = site(&listener.url(), "connect = true", "");
    let proxy = sandarac().config(text.replace("\"127.0.0.1:0\"", "\"127.0.0.1:0\"\nhttp2 = true")).start();
    for framing in ["Content-Length: 2", "Transfer-Encoding: chunked"] {
        let mut client = connect(&proxy);
        let stream = client.head(&[(":method", "CONNECT"), (":authority", "test.example:443")], false);
        let mut origin = listener.accept();
        origin.request_head();
        origin.send(format!("HTTP/1.1 200 Connected\r\n{framing}\r\nX-Kept: 1\r\n\r\n"));
        let response = client.begun(stream);
        assert_eq!((response.status, response.field("x-kept")), (200, Some("1")));
        assert!(
            !response.fields.has("content-length") && !response.fields.has("transfer-encoding"),
            "{response:?}"
        );
        client.data(stream, "to the server", true);
        origin.expect("to the server");
        origin.send("to the client").finish();
        assert_eq!(client.response(stream).text(), "to the client");
    }
}

#[test]
fn a_key_of_the_client_is_not_forwarded_beside_the_own_one() {
    let (proxy, origin) = before(|_| reply(403));
    let mut client = connect(&proxy);
    let own = [("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="), ("sec-websocket-accept", "x")];
    let stream = client.head(&[&upgrade()[..], &own].concat(), false);
    assert_eq!(client.response(stream).status, 403);
    let request = origin.last();
    let keys = request.fields.all("sec-websocket-key");
    assert!(keys.len() == 1 && keys[0] != own[0].1, "{request:?}");
    assert!(!request.fields.has("sec-websocket-accept"), "{request:?}");
}

#[test]
fn a_backend_that_breaks_off_resets_the_stream() {
    let listener = Listener::new();
    let text = site(&listener.url(), "", "").replace("\"127.0.0.1:0\"", "\"127.0.0.1:0\"\nhttp2 = true");
    let proxy = sandarac().config(text).start();
    let mut client = connect(&proxy);
    let stream = client.head(&upgrade(), false);
    let mut conn = listener.accept();
    conn.request_head();
    conn.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    client.begun(stream);
    conn.reset();
    assert!(matches!(client.outcome(stream), Err(Ended::Reset(_))));
}
