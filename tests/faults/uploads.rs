//! Request bodies that stop, come too late, or are wrong, and backends that do not take them.

use sandarac_test_support::{Conn, Listener, Sandarac, within};

use crate::{sandarac, site};

fn start(pool_keys: &str, tables: &str) -> (Sandarac, Listener) {
    let listener = Listener::new();
    let config = site(&listener.url(), pool_keys, tables);
    (sandarac().config(config).start(), listener)
}

/// Sends until the peer takes no more, or all of it.
fn push(client: &mut Conn, bytes: usize) {
    client.set_write_patience(std::time::Duration::from_millis(200));
    let _ = client.try_send(vec![b'x'; bytes]);
}

/// Regression: the time for the body ran while the backend was waited for, and the client got a 408.
#[test]
fn a_backend_that_does_not_take_a_body_is_answered_for_with_504() {
    let (proxy, listener) = start("first_byte_timeout = \"2s\"", "[timeouts]\nbody = \"1s\"");
    let mut client = proxy.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
    let _origin = listener.accept();
    push(&mut client, 64 << 20);
    client.response().expect(504);
}

/// Regression: the same, with a backend that goes on in time.
#[test]
fn a_backend_may_pause_amid_a_body_for_longer_than_a_client_may() {
    const LENGTH: usize = 32 << 20;
    let (proxy, listener) = start("first_byte_timeout = \"60s\"", "[timeouts]\nbody = \"1s\"");
    let mut client = proxy.connect();
    client.send(format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {LENGTH}\r\n\r\n"));
    let mut origin = listener.accept();
    origin.request_head();
    let pause = std::time::Instant::now();
    let sending = std::thread::spawn(move || {
        client.send(vec![b'x'; LENGTH]);
        client
    });
    // The pause is what is tested; the first bytes are left in the sockets meanwhile.
    within("the time for the body to be over", || (pause.elapsed().as_secs() >= 2).then_some(()));
    assert_eq!(origin.read(LENGTH).len(), LENGTH);
    origin.send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    sending.join().unwrap().response().expect(201);
}

/// A client that waits for a word of the backend is not late.
#[test]
fn a_backend_that_never_says_to_go_on_is_answered_for_with_504() {
    let (proxy, listener) = start("first_byte_timeout = \"2s\"", "[timeouts]\nbody = \"1s\"");
    let mut client = proxy.connect();
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    let _origin = listener.accept();
    client.response().expect(504);
}
