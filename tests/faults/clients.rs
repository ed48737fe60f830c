//! Clients that are slow, stop, or go away.

use sandarac_test_support::{
    Conn, Gate, Origin, Reply, Request, Sandarac, Signal, Trouble, get, reply, within,
};

use crate::{sandarac, site};

fn start(tables: &str, rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Sandarac, Origin) {
    let origin = Origin::new(rule);
    (sandarac().config(site(&origin.url(), "", tables)).start(), origin)
}

/// A connection on which one request was answered, so that the timeout of the next request starts at its first byte. The
/// timeout of the first request starts at the connect; if the machine was too slow for that, another connection is made.
fn used(proxy: &Sandarac) -> Conn {
    within("a connection that is used in time", || {
        let mut client = proxy.connect();
        client.try_send(get("/used").to_bytes()).ok()?;
        client.try_response("GET").ok()?.expect(200);
        Some(client)
    })
}

#[test]
fn a_head_that_never_ends_is_answered_408() {
    let (proxy, origin) = start("[timeouts]\nhead = \"1s\"", |_| reply(200));
    let mut client = used(&proxy);
    client.send("GET / HTTP/1.1\r\nHost: www.exam");
    client.response().expect(408);
    client.expect_end();
    assert_eq!(origin.count_of("/"), 0);
}

#[test]
fn a_head_that_comes_in_drops_gets_no_more_time() {
    let (proxy, _origin) = start("[timeouts]\nhead = \"1s\"", |_| reply(200));
    let mut client = proxy.connect();
    client.send("GET / HTTP/1.1\r\nHost: www.example\r\nX: ");
    within("the connection to end", || client.try_send("y").is_err().then_some(()));
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    let (proxy, _origin) = start("[timeouts]\nidle = \"1s\"\nhead = \"1s\"", |_| reply(200));
    let mut fresh = proxy.connect();
    used(&proxy).expect_end();
    fresh.expect_end();
}

#[test]
fn a_body_that_stops_is_answered_408() {
    let (proxy, origin) = start("[timeouts]\nbody = \"1s\"", |_| reply(200));
    let mut client = proxy.connect();
    client.send("POST / HTTP/1.1\r\nHost: www.example\r\nContent-Length: 100\r\n\r\nsome");
    client.response().expect(408);
    client.expect_end();
    assert!(origin.requests().iter().all(|request| !request.whole));
}

#[test]
fn a_body_that_trickles_is_answered_408() {
    let (proxy, origin) =
        start("[limits]\nmin_rate_in = \"100KiB\"\nmin_rate_after = \"1s\"", |_| reply(200));
    let mut client = proxy.connect();
    client.send("POST / HTTP/1.1\r\nHost: www.example\r\nContent-Length: 1000000\r\n\r\n");
    within("the connection to end", || (client.try_send("y").is_err() || !client.is_silent()).then_some(()));
    client.response().expect(408);
    assert!(origin.requests().iter().all(|request| !request.whole));
}

#[test]
fn a_client_that_takes_nothing_is_cut_off() {
    let (proxy, _origin) =
        start("[timeouts]\nwrite = \"1s\"", |_| reply(200).cache("no-store").body("x".repeat(32 << 20)));
    let mut client = proxy.connect();
    client.shrink_receive_buffer();
    client.send(get("/").to_bytes());
    client.response_head();
    proxy.counts("clients_slow", 1);
    within("the place to be free", || {
        (proxy.admin_json(&["status", "--json"])["pools"][0]["backends"][0]["in_flight"] == 0).then_some(())
    });
    let received = client.read_to_end().len();
    assert!(received < 32 << 20, "all {received} bytes were delivered");
}

#[test]
fn a_client_that_takes_nothing_is_also_too_slow() {
    let tables = "[limits]\nmin_rate_out = \"10MiB\"\nmin_rate_after = \"1s\"\n[timeouts]\nwrite = \"1h\"";
    let (proxy, _origin) = start(tables, |_| reply(200).cache("no-store").body("x".repeat(32 << 20)));
    let mut client = proxy.connect();
    client.shrink_receive_buffer();
    client.send(get("/").to_bytes());
    client.response_head();
    proxy.counts("clients_slow", 1);
    let received = client.read_to_end().len();
    assert!(received < 32 << 20, "all {received} bytes were delivered");
}

/// Regression: the session waited for the client a second time, and counted it again.
#[test]
fn a_client_that_takes_nothing_is_waited_for_once() {
    let (proxy, _origin) =
        start("[timeouts]\nwrite = \"1s\"", |_| reply(200).cache("no-store").body("x".repeat(32 << 20)));
    let open = || proxy.metric("connections_open");
    let mut client = proxy.connect();
    client.shrink_receive_buffer();
    client.send(get("/").to_bytes());
    client.response_head();
    assert_eq!(open(), 1);
    within("the connection to end", || (open() == 0).then_some(()));
    assert_eq!(proxy.metric("clients_slow"), 1);
}

#[test]
fn a_client_that_takes_too_slowly_is_cut_off() {
    let tables = "[limits]\nmin_rate_out = \"10MiB\"\nmin_rate_after = \"1s\"";
    let (proxy, _origin) = start(tables, |_| reply(200).cache("no-store").body("x".repeat(32 << 20)));
    let mut client = proxy.connect();
    client.shrink_receive_buffer();
    client.send(get("/").to_bytes());
    client.response_head();
    let mut received = 0;
    within("the client to be let go", || {
        received += client.try_read(1024).map_or(0, |bytes| bytes.len());
        (proxy.metric("clients_slow") == 1).then_some(())
    });
    received += client.read_to_end().len();
    assert!(received < 32 << 20, "all {received} bytes were delivered");
}

#[test]
fn a_slow_client_does_not_hold_a_worker_of_the_origin() {
    let unhurried = "[timeouts]\nwrite = \"1h\"";
    let (proxy, origin) = start(unhurried, |_| reply(200).cache("max-age=60").body("x".repeat(16 << 20)));
    let mut slow: Vec<_> = (0..2).map(|_| proxy.connect()).collect();
    for (number, client) in slow.iter_mut().enumerate() {
        client.shrink_receive_buffer();
        client.send(get(&format!("/{number}")).to_bytes());
        client.response_head();
    }
    within("the origin to be done with all", || {
        (proxy.admin_json(&["status", "--json"])["pools"][0]["backends"][0]["in_flight"] == 0).then_some(())
    });
    assert_eq!(origin.count(), 2);
    for client in &mut slow {
        assert_eq!(client.read(16 << 20).len(), 16 << 20);
    }
}

#[test]
fn a_client_that_goes_away_frees_the_origin_when_nobody_else_wants_it() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, origin) = start("", move |request| match request.path() {
        "/private" => {
            reply(200).cache("no-store").chunked().body("begun").pause(&held).body("x".repeat(1 << 20)).hang()
        }
        _ => reply(200),
    });
    let mut client = proxy.connect();
    client.send(get("/private").to_bytes()).read_through("begun");
    client.reset();
    gate.open();
    within("the exchange with the origin to end", || (origin.open_connections() == 0).then_some(()));
    proxy.get("/after").expect(200);
}

#[test]
fn a_client_that_resets_while_its_request_waits_frees_the_backend_at_once() {
    let (proxy, origin) = start("", |request| match request.path() {
        "/private" => Reply::verbatim("").hang(),
        _ => reply(200).cache("no-store"),
    });
    for method in ["GET", "POST"] {
        let mut client = proxy.connect();
        client.send(format!("{method} /private HTTP/1.1\r\nHost: www.example\r\nCookie: a=1\r\n\r\n"));
        within("the origin to be asked", || (origin.open_connections() == 1).then_some(()));
        client.reset();
        within("the exchange with the origin to end", || (origin.open_connections() == 0).then_some(()));
    }
    // The connection closes a moment before the place is freed.
    let backend = || proxy.admin_json(&["status", "--json"])["pools"][0]["backends"][0].clone();
    within("the place at the backend to be free", || (backend()["in_flight"] == 0).then_some(()));
    assert_eq!(backend()["state"], "untried");
}

/// Regression: the client held its place among the connections until the fetch it waited for was over.
#[test]
fn a_client_that_leaves_while_it_waits_for_the_fetch_of_another_is_let_go() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, origin) = start("", move |_| reply(200).cache("max-age=60").hold(&held).body("shared"));
    let mut leader = proxy.connect();
    leader.send(get("/").to_bytes());
    gate.reached(1);
    let waiting: Vec<Conn> = (0..5)
        .map(|_| {
            let mut client = proxy.connect();
            client.send(get("/").to_bytes());
            client
        })
        .collect();
    proxy.counts("cache_waiters", 5);
    drop(waiting);
    proxy.counts("connections_open", 1);
    proxy.counts("cache_waiters", 0);
    gate.open();
    assert_eq!(leader.response().expect(200).text(), "shared");
    assert_eq!(origin.count(), 1);
}

/// Regression: the client held its place among the connections until the fetch was over.
#[test]
fn a_client_that_leaves_while_its_request_fills_the_cache_is_let_go_and_the_fetch_goes_on() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, origin) = start("", move |_| reply(200).cache("max-age=60").hold(&held).body("shared"));
    let mut leader = proxy.connect();
    leader.send(get("/").to_bytes());
    gate.reached(1);
    let mut waiting = proxy.connect();
    waiting.send(get("/").to_bytes());
    proxy.counts("cache_waiters", 1);
    drop(leader);
    proxy.counts("connections_open", 1);
    gate.open();
    assert_eq!(waiting.response().expect(200).text(), "shared");
    assert!(proxy.get("/").expect(200).is_hit());
    assert_eq!(origin.count(), 1);
}

/// Clients that have left hold no place among the connections, so fetches without a client need a limit of their own.
#[test]
fn few_fetches_go_on_without_their_clients() {
    let origin = Origin::new(|_| Reply::verbatim("").hang());
    let limits = "[limits]\nconnections = 16";
    let proxy = sandarac().config(site(&origin.url(), "", limits)).start();
    for number in 0..10 {
        let mut client = proxy.connect();
        client.send(get(&format!("/{number}")).to_bytes());
        within("the origin to be asked", || (origin.count() == number + 1).then_some(()));
        client.reset();
        proxy.counts("connections_open", 0);
    }
    within("most fetches to be given up", || (origin.open_connections() == 2).then_some(()));
    proxy.counts("fetches_detached", 2);
}

/// The timer for the response moves from the exchange to a task of its own.
#[test]
fn a_fetch_whose_client_has_left_ends_in_its_time() {
    let origin = Origin::new(|_| Reply::verbatim("").hang());
    let proxy = sandarac().config(site(&origin.url(), "first_byte_timeout = \"2s\"", "")).start();
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    within("the origin to be asked", || (origin.open_connections() == 1).then_some(()));
    client.reset();
    proxy.counts("connections_open", 0);
    assert_eq!(origin.open_connections(), 1);
    within("the fetch to be given up", || (origin.open_connections() == 0).then_some(()));
}

#[test]
fn a_client_that_has_ended_its_side_is_answered_where_the_pool_says_so() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |_| reply(200).cache("max-age=60").hold(&held).body("late"));
    let proxy = sandarac().config(site(&origin.url(), "abort_on_close = false", "")).start();
    let mut client = proxy.connect();
    client.send("GET / HTTP/1.1\r\nHost: www.example\r\n\r\n").finish();
    origin.reached(1);
    gate.open();
    assert_eq!(client.response().expect(200).body, b"late");
}

#[test]
fn a_client_that_resets_mid_request_leaves_nothing_behind() {
    let (proxy, origin) = start("", |_| reply(200).cache("no-store"));
    proxy.get("/").expect(200);
    let resting = proxy.open_descriptors();
    for _ in 0..50 {
        let mut client = proxy.connect();
        client.send("POST / HTTP/1.1\r\nHost: www.example\r\nContent-Length: 10\r\n\r\nhalf");
        client.reset();
        let mut client = proxy.connect();
        client.send("GET / HT");
        client.reset();
    }
    within("the descriptors to be given back", || (proxy.open_descriptors() <= resting + 2).then_some(()));
    assert!(
        origin.requests().iter().filter(|request| request.method == "POST").all(|request| !request.whole)
    );
}

/// HTTP/1.0 has no other way to show that a body of unknown length is truncated.
#[test]
fn a_client_of_http10_sees_that_a_body_was_cut_as_the_process_ended() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, _origin) = start("[timeouts]\ndrain = \"1s\"", move |request| {
        let answer = if request.target == "/stored" { reply(200).cache("max-age=60") } else { reply(200) };
        answer.chunked().body("some").pause(&held).body("more")
    });
    let mut clients = ["/stored", "/passed"].map(|target| {
        let mut client = proxy.connect();
        client.send(get(target).http10().to_bytes()).read_through("\r\n\r\nsome");
        client
    });
    proxy.signal(Signal::Terminate);
    clients.iter_mut().for_each(Conn::expect_reset);
    gate.open();
}

#[test]
fn a_client_of_http10_that_is_too_slow_sees_that_its_body_was_cut() {
    const LENGTH: usize = 8 << 20;
    let (proxy, _origin) = start("[timeouts]\nwrite = \"1s\"", |_| {
        reply(200).cache("no-store").chunked().body(vec![b'x'; LENGTH])
    });
    let mut client = proxy.connect();
    client.shrink_receive_buffer();
    client.send(get("/").http10().to_bytes());
    proxy.counts("clients_slow", 1);
    let end = client.try_read(LENGTH).err();
    assert!(matches!(end, Some(Trouble::Reset(_))), "{end:?}");
}

/// Regression: such a connection was closed at once, and the client's next bytes caused a reset, which destroyed the part of
/// the response that was still on its way.
#[test]
fn a_client_that_sends_on_after_the_last_response_is_not_reset() {
    let (proxy, _origin) = start("[limits]\nrequests_per_connection = 2", move |request| {
        let reply = reply(200).cache(if request.path() == "/hit" { "max-age=60" } else { "no-store" });
        if request.path() == "/broken" { reply.length(100).body("part").cut() } else { reply.body("whole") }
    });
    proxy.get("/hit").expect(200);
    let post = "POST /post HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx";
    let gets = |first: &str, second: &str| {
        format!("GET {first} HTTP/1.1\r\nHost: a\r\n\r\nGET {second} HTTP/1.1\r\nHost: a\r\n\r\n")
    };
    let cases = [gets("/hit", "/hit"), gets("/pass", "/pass"), gets("/pass", "/broken"), post.to_owned()];
    for requests in cases {
        let mut client = proxy.connect();
        client.send(&requests).response().expect(200);
        if requests.contains("/broken") {
            client.read_through("part");
        } else if requests.starts_with("GET") {
            client.response().expect(200);
        }
        client.expect_end();
        // Some clients send an empty line after a body. The second would find the connection reset.
        for _ in 0..2 {
            assert!(client.try_send("\r\n").is_ok(), "{requests}");
        }
    }
}

/// Regression: after a purge, or a reload with less memory, clients that read purged objects have to keep a minimum rate.
/// Steady readers seemed to read nothing, because the system reports room in a socket's buffer only after a third of it,
/// megabytes, has drained.
#[test]
fn a_client_that_reads_steadily_is_not_cut_off_by_a_purge() {
    let tables = "[cache]\nmemory = \"64MiB\"\nmax_object = \"32MiB\"";
    let (proxy, _origin) = start(tables, |_| reply(200).cache("max-age=60").body(vec![b'x'; 16 << 20]));
    proxy.get("/large").expect(200);
    // 320 KiB per second, ten times the minimum rate.
    let mut client = proxy.connect().paced(32 << 10, std::time::Duration::from_millis(100));
    client.send(get("/large").to_bytes()).read(512 << 10);
    proxy.admin(&["purge", "--all"]).success();
    client.read(3 << 19);
}
