//! Connections: how long they live, in what order requests are answered, and over which sockets they run.

use sandarac_test_support::{Conn, Gate, Listener, Origin, TempDir, get, http_date_in, reply, within};

use crate::{before, cache, sandarac};

#[test]
fn a_connection_serves_many_requests_over_one_to_the_origin() {
    let (proxy, origin) = before(|request| reply(200).cache("no-store").body(&request.target));
    let mut client = proxy.connect();
    for target in ["/a", "/b", "/c", "/d"] {
        assert_eq!(client.get(target).expect(200).text(), target);
    }
    assert_eq!(origin.count(), 4);
    assert_eq!(origin.connections(), 1);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let (proxy, origin) = cache(|request| match request.path() {
        "/hit" => reply(200).cache("max-age=60").body("hit "),
        path => reply(200).cache("no-store").body(path),
    });
    proxy.get("/hit");
    let mut client = proxy.connect();
    client.send(
        "GET /hit HTTP/1.1\r\nHost: www.example\r\n\r\n\
         GET /slow HTTP/1.1\r\nHost: www.example\r\n\r\n\
         POST /post HTTP/1.1\r\nHost: www.example\r\nContent-Length: 4\r\n\r\nbody\
         GET /hit HTTP/1.1\r\nHost: www.example\r\n\r\n\
         GET /last HTTP/1.1\r\nHost: www.example\r\nConnection: close\r\n\r\n",
    );
    let bodies: Vec<String> = (0..5).map(|_| client.response().expect(200).text()).collect();
    assert_eq!(bodies, ["hit 1", "/slow2", "/post3", "hit 1", "/last4"]);
    assert_eq!(origin.requests()[2].text(), "body");
    client.expect_end();
}

#[test]
fn many_pipelined_hits_are_all_answered() {
    let (proxy, origin) = cache(|_| reply(200).cache("max-age=60"));
    proxy.get("/");
    let mut client = proxy.connect();
    client.send(get("/").to_bytes().repeat(500));
    for _ in 0..500 {
        assert_eq!(client.response().expect(200).text(), "1");
    }
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_request_cut_into_single_bytes_is_understood() {
    let (proxy, origin) = before(|_| reply(200).body("ok"));
    let mut client = proxy.connect();
    for byte in "POST /a HTTP/1.1\r\nHost: www.example\r\nContent-Length: 3\r\n\r\nxyz".as_bytes() {
        client.send([*byte]);
    }
    assert_eq!(client.response().expect(200).text(), "ok");
    assert_eq!(origin.last().text(), "xyz");
}

#[test]
fn connection_close_is_announced_and_done() {
    let (proxy, _origin) = before(|_| reply(200).body("ok"));
    let mut client = proxy.connect();
    let response = client.exchange(&get("/").with("Connection", "close")).expect(200);
    assert_eq!(response.field("connection"), Some("close"));
    client.expect_end();
}

#[test]
fn an_origin_that_closes_does_not_close_the_client() {
    let (proxy, origin) =
        before(|_| reply(200).cache("no-store").with("Connection", "close").body("ok").cut());
    let mut client = proxy.connect();
    for _ in 0..3 {
        let response = client.get("/").expect(200);
        assert_ne!(response.field("connection"), Some("close"));
    }
    assert_eq!(origin.connections(), 3);
}

#[test]
fn an_http_1_0_client_is_answered_and_the_connection_closed() {
    let (proxy, origin) = before(|_| reply(200).chunked().body("in ").body("pieces"));
    let mut client = proxy.connect();
    client.send("GET /old HTTP/1.0\r\n\r\n");
    let response = client.response().expect(200);
    assert_eq!(response.text(), "in pieces");
    assert_eq!(response.version, "HTTP/1.1");
    assert!(!response.fields.has("transfer-encoding"), "HTTP/1.0 has no chunks: {response:?}");
    client.expect_end();
    assert_eq!(origin.last().version, "HTTP/1.1");
    assert_eq!(origin.last().target, "/old");
}

#[test]
fn an_http_1_0_client_may_keep_its_connection() {
    let (proxy, _origin) = before(|_| reply(200).body("ok"));
    let mut client = proxy.connect();
    for _ in 0..2 {
        let response = client.exchange(&get("/").http10().with("Connection", "Keep-Alive")).expect(200);
        let connection = response.field("connection").unwrap_or_default().to_ascii_lowercase();
        assert_eq!(connection, "keep-alive");
    }
}

#[test]
fn a_half_closed_client_gets_its_answer_from_memory() {
    let (proxy, _origin) = before(|_| reply(200).cache("max-age=60").body("still here"));
    proxy.get("/").expect(200);
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    client.finish();
    assert_eq!(client.response().expect(200).text(), "still here");
    client.expect_end();
}

#[test]
fn an_empty_line_before_a_request_is_overlooked() {
    let (proxy, _origin) = before(|_| reply(200).body("ok"));
    let mut client = proxy.connect();
    client.get("/");
    client.send("\r\n").send(get("/").to_bytes());
    assert_eq!(client.response().expect(200).text(), "ok");
}

#[test]
fn ipv6_works_on_both_sides() {
    let origin = Origin::on(Listener::on_ipv6(), |_| reply(200).body("six"));
    let proxy = sandarac().before(&origin).option("--listen", "[::1]:0").start();
    let address = proxy.addresses().iter().find(|address| address.to_string().starts_with("[::1]:")).unwrap();
    assert_eq!(Conn::to(address).get("/").expect(200).text(), "six");
}

#[test]
fn unix_sockets_work_on_both_sides() {
    let dir = TempDir::new();
    let origin = Origin::on(Listener::on_unix(&dir.join("origin")), |_| reply(200).body("local"));
    let listen = format!("unix:{}", dir.join("front").display());
    let proxy = sandarac().before(&origin).option("--listen", &listen).start();
    let address = proxy.addresses().iter().find(|address| address.to_string() == listen).unwrap();
    assert_eq!(Conn::to(address).get("/").expect(200).text(), "local");
    assert_eq!(origin.count(), 1);
}

#[test]
fn several_listeners_share_one_cache() {
    let origin = Origin::new(|_| reply(200).cache("max-age=60").body("once"));
    let proxy = sandarac().before(&origin).option("--listen", "127.0.0.1:0").start();
    assert_eq!(proxy.addresses().len(), 2);
    for address in proxy.addresses() {
        assert_eq!(Conn::to(address).get("/").expect(200).text(), "once");
    }
    assert_eq!(origin.count(), 1);
}

#[test]
fn date_is_added_only_where_the_origin_sent_none() {
    let old = http_date_in(-86_400);
    let sent = old.clone();
    let (proxy, _origin) = before(move |request| match request.path() {
        "/dated" => reply(200).with("Date", &sent),
        _ => reply(200).undated(),
    });
    assert_eq!(proxy.get("/dated").fields.all("date"), [old.as_str()]);
    within("a Date of the present second or the one before", || {
        let added = proxy.get("/undated");
        [http_date_in(0), http_date_in(-1)].iter().any(|now| added.field("date") == Some(now)).then_some(())
    });
}

/// Regression: bytes that did not fit the socket's buffer waited for the exchange of the next request.
#[test]
fn a_large_hit_is_not_held_up_by_the_fetch_of_the_next_request() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, _origin) = cache(move |request| match request.path() {
        "/large" => reply(200).cache("max-age=60").body("x".repeat(8 << 20)),
        _ => reply(200).cache("no-store").body("slow").hold(&held),
    });
    proxy.get("/large").expect(200);
    let mut client = proxy.connect();
    client.send([get("/large").to_bytes(), get("/slow").to_bytes()].concat());
    assert!(client.response().expect(200).body.len() >= 8 << 20);
    gate.open();
    assert!(client.response().expect(200).text().starts_with("slow"));
}
