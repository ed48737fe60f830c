//! Connections that become something else: Upgrade and CONNECT.

use sandarac_test_support::{Conn, Listener, Sandarac, Signal, get};

use crate::{sandarac, site};

fn handshake() -> Vec<u8> {
    get("/socket")
        .with("Connection", "keep-alive, Upgrade")
        .with("Upgrade", "websocket")
        .with("Sec-WebSocket-Key", "eA==")
        .to_bytes()
}

#[test]
fn a_websocket_is_a_tunnel_after_the_switch() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let mut client = proxy.connect();
    client.send(handshake());
    let mut origin = listener.accept();
    let request = origin.request();
    assert_eq!(request.field("upgrade"), Some("websocket"));
    assert!(request.fields.list("connection").to_ascii_lowercase().contains("upgrade"));
    assert_eq!(request.field("sec-websocket-key"), Some("eA=="));
    origin.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: y\r\n\r\nhello");
    let switched = client.response().expect(101);
    assert_eq!(switched.field("upgrade"), Some("websocket"));
    assert_eq!(switched.field("sec-websocket-accept"), Some("y"));
    client.expect("hello").send(b"\x81\x00\xff\r\n\r\nGET");
    assert_eq!(origin.read(8), b"\x81\x00\xff\r\n\r\nG");
    origin.expect("ET").send("more");
    client.expect("more").finish();
    origin.expect_end();
    origin.send("last");
    drop(origin);
    client.expect("last").expect_end();
}

#[test]
fn a_refused_upgrade_is_an_answer_like_any_other() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let mut client = proxy.connect();
    client.send(handshake());
    let mut origin = listener.accept();
    origin.request();
    origin.send("HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno");
    assert_eq!(client.response().expect(426).text(), "no");
    // Some servers may take the following bytes for the other protocol.
    origin.expect_end();
    client.send(get("/next").to_bytes());
    assert_eq!(listener.accept().request().target, "/next");
}

#[test]
fn only_protocols_of_the_route_are_offered() {
    let listener = Listener::new();
    let proxy = sandarac().config(site(&listener.url(), "upgrade = [\"chat\"]", "")).start();
    let mut client = proxy.connect();
    client.send(handshake());
    let mut origin = listener.accept();
    let request = origin.request();
    assert!(
        !request.fields.has("upgrade")
            && !request.fields.list("connection").to_ascii_lowercase().contains("upgrade")
    );
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    client.response().expect(200);
    client.send(get("/chat").with("Connection", "upgrade").with("Upgrade", "chat").to_bytes());
    assert_eq!(origin.request().field("upgrade"), Some("chat"));
    origin.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: chat\r\n\r\n");
    client.response().expect(101);
    client.send("hi");
    origin.expect("hi");
}

#[test]
fn a_switch_nobody_asked_for_is_refused() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    let mut origin = listener.accept();
    origin.request();
    origin.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    client.response().expect(502);
    origin.expect_end();
}

#[test]
fn h2c_is_never_upgraded_to() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let mut client = proxy.connect();
    client.send(
        get("/")
            .with("Connection", "Upgrade, HTTP2-Settings")
            .with("Upgrade", "h2c")
            .with("HTTP2-Settings", "AAMAAABkAAQA")
            .to_bytes(),
    );
    let request = listener.accept().request();
    assert!(!request.fields.has("upgrade") && !request.fields.has("http2-settings"), "{request:?}");
}

/// RFC 9110 §7.8.
#[test]
fn an_http_1_0_client_cannot_upgrade() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let mut client = proxy.connect();
    client.send(get("/").http10().with("Connection", "Upgrade").with("Upgrade", "websocket").to_bytes());
    let mut origin = listener.accept();
    assert!(!origin.request().fields.has("upgrade"));
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    assert_eq!(client.response().expect(200).text(), "ok");
}

#[test]
fn connect_is_a_tunnel_where_a_rule_allows_it() {
    let listener = Listener::new();
    let proxy = sandarac().config(site(&listener.url(), "connect = true", "")).start();
    let mut client = proxy.connect();
    client.send("CONNECT db.example:5432 HTTP/1.1\r\nHost: db.example:5432\r\n\r\n");
    let mut origin = listener.accept();
    let request = origin.request_head();
    assert_eq!(request.method, "CONNECT");
    assert_eq!(request.target, "db.example:5432");
    origin.send("HTTP/1.1 200 Connected\r\n\r\n");
    client.response_to("CONNECT").expect(200);
    client.send("ping");
    origin.expect("ping").send("pong");
    client.expect("pong");
}

/// Content in a CONNECT request has no meaning (RFC 9110 §9.3.6): a backend may take it for the start of the tunnel's bytes.
#[test]
fn connect_with_a_body_is_refused() {
    let listener = Listener::new();
    let proxy = sandarac().config(site(&listener.url(), "connect = true", "")).start();
    for body in ["Content-Length: 4\r\n\r\nping", "Transfer-Encoding: chunked\r\n\r\n4\r\nping\r\n0\r\n\r\n"]
    {
        let mut client = proxy.connect();
        client.send(format!("CONNECT db.example:5432 HTTP/1.1\r\nHost: db.example:5432\r\n{body}"));
        client.response().expect(400);
    }
    assert!(listener.is_silent());
    let mut client = proxy.connect();
    client.send("CONNECT db.example:5432 HTTP/1.1\r\nHost: db.example:5432\r\nContent-Length: 0\r\n\r\n");
    let mut origin = listener.accept();
    assert!(!origin.request_head().fields.has("content-length"));
    origin.send("HTTP/1.1 200 Connected\r\n\r\n");
    client.response_to("CONNECT").expect(200);
}

#[test]
fn a_backend_that_switches_in_the_middle_of_a_request_gets_no_tunnel() {
    // RFC 9110 §7.8
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let mut client = proxy.connect();
    client.send(
        "POST /socket HTTP/1.1\r\nHost: www.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    );
    let mut origin = listener.accept();
    origin.request_head();
    origin.expect("3\r\nabc\r\n");
    origin.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    client.response().expect(502);
    origin.expect_end();
}

/// Both ends of a tunnel through `proxy`.
fn tunnel(proxy: &Sandarac, listener: &Listener) -> (Conn, Conn) {
    let mut client = proxy.connect();
    client.send(handshake());
    let mut origin = listener.accept();
    origin.request();
    origin.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    client.response().expect(101);
    (client, origin)
}

/// Regression: a reset on one side became an orderly close on the other, so that truncated data looked complete.
#[test]
fn a_reset_at_one_side_is_a_reset_at_the_other() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let (mut client, mut origin) = tunnel(&proxy, &listener);
    client.send("cut");
    origin.expect("cut");
    client.reset();
    origin.expect_reset();

    let (mut client, mut origin) = tunnel(&proxy, &listener);
    origin.send("cut");
    client.expect("cut");
    origin.reset();
    client.expect_reset();
}

#[test]
fn what_came_before_a_reset_still_arrives() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let (mut client, mut origin) = tunnel(&proxy, &listener);
    proxy.paused(|| {
        client.send("lost");
        origin.send("last words");
        origin.reset();
    });
    client.expect("last words").expect_reset();

    let (mut client, mut origin) = tunnel(&proxy, &listener);
    proxy.paused(|| {
        origin.send("lost");
        client.send("last words");
        client.reset();
    });
    origin.expect("last words").expect_reset();
}

#[test]
fn a_reset_after_one_side_has_ended_is_a_reset() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let (mut client, mut origin) = tunnel(&proxy, &listener);
    client.finish();
    origin.expect_end();
    origin.send("cut");
    client.expect("cut");
    origin.reset();
    client.expect_reset();
}

#[test]
fn a_tunnel_that_is_cut_here_is_reset_at_both_sides() {
    let listener = Listener::new();
    let idle = sandarac().config(site(&listener.url(), "", "[timeouts]\ntunnel = \"1s\"")).start();
    let (mut client, mut origin) = tunnel(&idle, &listener);
    client.expect_reset();
    origin.expect_reset();

    let drained = sandarac().config(site(&listener.url(), "", "[timeouts]\ndrain = \"1s\"")).start();
    let (mut client, mut origin) = tunnel(&drained, &listener);
    drained.signal(Signal::Terminate);
    client.expect_reset();
    origin.expect_reset();
}

#[test]
fn a_switch_to_a_protocol_that_was_not_asked_for_is_refused() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    for upgrade in
        ["Upgrade: chat\r\nConnection: upgrade\r\n", "Connection: upgrade\r\n", "Upgrade: websocket\r\n", ""]
    {
        let mut client = proxy.connect();
        client.send(handshake());
        let mut origin = listener.accept();
        origin.request();
        origin.send(format!("HTTP/1.1 101 Switching Protocols\r\n{upgrade}\r\nhello"));
        client.response().expect(502);
        origin.expect_end();
    }
}
