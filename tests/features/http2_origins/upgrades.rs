//! WebSocket to backends over HTTP/2 (RFC 8441).

use sandarac_test_support::{Http2Server, get};

use super::before;

const ENABLE_CONNECT_PROTOCOL: u16 = 8;

fn upgrade() -> Vec<u8> {
    get("/chat")
        .with("Connection", "Upgrade")
        .with("Upgrade", "websocket")
        .with("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
        .with("Sec-WebSocket-Version", "13")
        .to_bytes()
}

#[test]
fn an_upgrade_becomes_an_extended_connect() {
    let (proxy, listener) = before("");
    let mut conn = proxy.connect();
    conn.send(upgrade());
    let mut origin = Http2Server::over(listener.accept(), &[(ENABLE_CONNECT_PROTOCOL, 1)]);
    let asked = origin.request();
    assert_eq!((asked.field(":method"), asked.field(":protocol")), (Some("CONNECT"), Some("websocket")));
    assert_eq!((asked.path(), asked.field("sec-websocket-version")), ("/chat", Some("13")));
    for absent in ["sec-websocket-key", "upgrade", "connection"] {
        assert_eq!(asked.field(absent), None, "{absent}");
    }
    assert!(!asked.ends);
    origin.head(asked.stream, "200", &[("sec-websocket-protocol", "chat")], false);
    let response = conn.response();
    assert_eq!(response.status, 101);
    assert_eq!(response.field("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(response.field("sec-websocket-protocol"), Some("chat"));
    conn.send("to the server");
    assert_eq!(origin.partial(asked.stream, 13), b"to the server");
    origin.data(asked.stream, "to the client", true);
    conn.expect("to the client");
    conn.finish();
    origin.body(asked.stream);
    conn.expect_end();
}

#[test]
fn a_backend_may_decline_an_upgrade() {
    let (proxy, listener) = before("");
    let mut conn = proxy.connect();
    conn.send(upgrade());
    let mut origin = Http2Server::over(listener.accept(), &[(ENABLE_CONNECT_PROTOCOL, 1)]);
    let asked = origin.request();
    origin.head(asked.stream, "403", &[], false).data(asked.stream, "no", true);
    let response = conn.response();
    assert_eq!((response.status, response.text().as_str()), (403, "no"));
}

#[test]
fn a_backend_that_does_not_offer_it_is_not_asked() {
    let (proxy, listener) = before("");
    let mut conn = proxy.connect();
    conn.send(upgrade());
    let mut origin = Http2Server::over(listener.accept(), &[]);
    let response = conn.response();
    assert_eq!(response.status, 502);
    assert!(response.field("proxy-status").is_some_and(|status| status.contains("http_upgrade_failed")));
    // The connection serves other requests.
    let mut other = proxy.connect();
    other.send(get("/").to_bytes());
    let asked = origin.request();
    assert_eq!(asked.path(), "/");
    origin.answer(asked.stream, "other");
    assert_eq!(other.response().text(), "other");
}
