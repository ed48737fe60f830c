//! Connections that requests share.

use std::thread;
use std::time::Duration;

use sandarac_test_support::{Http2Server, Listener, get};

use super::{accept, before, client, proxy, url};
use crate::sandarac;

#[test]
fn requests_of_a_core_share_a_connection() {
    let (proxy, listener) = before("");
    let mut clients: Vec<_> = (0..20).map(|_| proxy.connect()).collect();
    for (at, conn) in clients.iter_mut().enumerate() {
        conn.send(get(&format!("/{at}")).to_bytes());
    }
    let mut origin = accept(&listener);
    let mut asked: Vec<_> = (0..20).map(|_| origin.request()).collect();
    // In another order than they came.
    asked.reverse();
    for head in &asked {
        origin.answer(head.stream, head.path());
    }
    for (at, conn) in clients.iter_mut().enumerate() {
        assert_eq!(conn.response().text(), format!("/{at}"));
    }
    assert!(listener.is_silent());
}

#[test]
fn more_connections_are_made_when_streams_run_out() {
    const MAX_CONCURRENT_STREAMS: u16 = 3;
    let (proxy, listener) = before("");
    let mut clients: Vec<_> = (0..4).map(|_| proxy.connect()).collect();
    for (at, conn) in clients.iter_mut().enumerate() {
        conn.send(get(&format!("/{at}")).to_bytes());
    }
    let settings = [(MAX_CONCURRENT_STREAMS, 2)];
    let mut first = Http2Server::over(listener.accept(), &settings);
    let mut asked = vec![first.request(), first.request()];
    let mut second = Http2Server::over(listener.accept(), &settings);
    let more = [second.request(), second.request()];
    assert!(!first.has_request());
    asked.iter().for_each(|head| _ = first.answer(head.stream, head.path()));
    more.iter().for_each(|head| _ = second.answer(head.stream, head.path()));
    for (at, conn) in clients.iter_mut().enumerate() {
        assert_eq!(conn.response().text(), format!("/{at}"));
    }
    // Both are kept, and the first is filled first.
    clients[0].send(get("/again").to_bytes());
    asked = vec![first.request()];
    first.answer(asked[0].stream, "again");
    assert_eq!(clients[0].response().text(), "again");
}

#[test]
fn unasked_settings_and_pings_do_not_end_a_kept_connection() {
    let (proxy, listener) = before("");
    let mut conn = proxy.connect();
    conn.send(get("/1").to_bytes());
    let mut origin = accept(&listener);
    let asked = origin.request();
    origin.answer(asked.stream, "one");
    assert_eq!(conn.response().text(), "one");
    origin.settings(&[(4, 100_000)]).frame(6, 0, 0, *b"01234567");
    origin.settle();
    assert_eq!(origin.await_frame(6).payload, b"01234567");
    conn.send(get("/2").to_bytes());
    let asked = origin.request();
    origin.answer(asked.stream, "two");
    assert_eq!(conn.response().text(), "two");
    assert!(listener.is_silent());
}

#[test]
fn an_idle_connection_ends_in_order_after_its_time() {
    let (proxy, listener) = before("idle_timeout = \"100ms\"");
    let mut conn = proxy.connect();
    conn.send(get("/").to_bytes());
    let mut origin = accept(&listener);
    let asked = origin.request();
    origin.answer(asked.stream, "");
    conn.response();
    assert_eq!(origin.await_frame(7).number(4), 0);
    origin.expect_end();
}

#[test]
fn an_old_connection_is_replaced_and_its_requests_end() {
    let (proxy, listener) = before("connection_age = \"50ms\"");
    let (mut long, mut short) = (proxy.connect(), proxy.connect());
    long.send(get("/long").to_bytes());
    let mut old = accept(&listener);
    let asked = old.request();
    // It is too old after this.
    thread::sleep(Duration::from_millis(100));
    short.send(get("/short").to_bytes());
    let mut new = accept(&listener);
    let head = new.request();
    new.answer(head.stream, "short");
    assert_eq!(short.response().text(), "short");
    old.answer(asked.stream, "long");
    assert_eq!(long.response().text(), "long");
    old.await_frame(7);
    old.expect_end();
}

#[test]
fn a_connection_that_the_backend_has_closed_is_not_used() {
    let (proxy, listener) = before("retries = 0");
    let mut conn = proxy.connect();
    for turn in 0..3 {
        conn.send(format!("POST /{turn} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"));
        let mut origin = accept(&listener);
        let asked = origin.request();
        origin.answer(asked.stream, "");
        assert_eq!(conn.response().status, 200);
        origin.close();
    }
}

#[test]
fn checks_speak_the_protocol_of_the_backend() {
    let listener = Listener::new();
    let proxy = proxy(&[&listener], "check = { path = \"/health\", interval = \"100ms\", fall = 1 }", "pass");
    let mut origin = accept(&listener);
    let check = origin.request();
    assert_eq!((check.path(), check.field(":method")), ("/health", Some("GET")));
    assert!(check.field("user-agent").is_some_and(|agent| agent.starts_with("sandarac/")));
    origin.head(check.stream, "500", &[], true);
    proxy.says("it answered 500");
}

#[test]
fn a_unix_socket_may_speak_http_2() {
    let setup = sandarac();
    let path = setup.dir().join("origin.sock");
    let listener = Listener::on_unix(&path);
    let config = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\n[pool.app]\nbackends = [\"h2+unix:{}\"]\n\n[[route]]\npool = \"app\"\n",
        path.display()
    );
    let proxy = setup.config(config).start();
    let mut conn = proxy.connect();
    conn.send(get("/").to_bytes());
    let mut origin = accept(&listener);
    let asked = origin.request();
    origin.answer(asked.stream, "over a socket");
    assert_eq!(conn.response().text(), "over a socket");
}

#[test]
fn a_backend_that_speaks_http_1_only_is_named() {
    let listener = Listener::new();
    let proxy = proxy(&[&listener], "retries = 0", "pass");
    let mut conn = proxy.connect();
    conn.send(get("/").to_bytes());
    listener.accept().send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(conn.response().status, 502);
    proxy.says(&format!("{}: the backend does not speak HTTP/2", url(&listener)));
}

#[test]
fn clients_of_http_2_are_served_over_http_2() {
    let (proxy, listener) = before("");
    let mut client = client(&proxy);
    let streams: Vec<u32> = (0..30).map(|at| client.get(&format!("/{at}"), &[])).collect();
    let mut origin = accept(&listener);
    for _ in &streams {
        let head = origin.request();
        origin.answer(head.stream, head.path());
    }
    for (at, stream) in streams.into_iter().enumerate() {
        assert_eq!(client.response(stream).text(), format!("/{at}"));
    }
}
