//! WebSocket over a stream (RFC 8441).

use sandarac_test_support::http2::{Ended, usual};
use sandarac_test_support::{Listener, reply};

use super::{before, connect};
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
