//! Limits on the requests of a client, and on the number of connections.

use sandarac_test_support::{Conn, Gate, Origin, eventually, get, reply, request, within};

use crate::{begin_another, end_another, sandarac, site};

#[test]
fn a_head_a_target_and_a_body_that_are_too_large_have_statuses_of_their_own() {
    let origin = Origin::new(|_| reply(200));
    let limits = "[limits]\nhead = \"4KiB\"\ntarget = \"1KiB\"\nfields = 20\nbody = \"10KiB\"";
    let proxy = sandarac().config(site(&origin.url(), "", limits)).start();
    let many = (0..30).fold(get("/"), |request, number| request.with(&format!("X-{number}"), "y"));
    for (sent, status) in [
        (get("/").with("X-Large", &"y".repeat(5000)), 431),
        (many, 431),
        (get(&format!("/{}", "a".repeat(2000))), 414),
        (request("POST", "/").body("x".repeat(20_000)), 413),
        (request("POST", "/").chunked(&[&"x".repeat(9_000), &"x".repeat(9_000)]), 413),
    ] {
        let mut client = proxy.connect();
        let _ = client.try_send(sent.to_bytes());
        client.response().expect(status);
        if status != 413 {
            client.expect_end();
        }
    }
    assert_eq!(origin.count(), 0);
    let at_the_limit = request("POST", &format!("/{}", "a".repeat(1000)))
        .with("X-Large", &"y".repeat(2000))
        .body("x".repeat(10_240));
    proxy.exchange(&at_the_limit).expect(200);
}

#[test]
fn what_is_wrong_with_a_body_after_a_part_of_it_went_on_breaks_off_the_forwarded_request() {
    let origin = Origin::new(|_| reply(200));
    let proxy = sandarac().config(site(&origin.url(), "", "[limits]\nbody = \"10KiB\"")).start();
    for (number, (target, rest, status)) in [
        ("/malformed", "0x1\r\n".to_owned(), 400),
        ("/large", format!("2710\r\n{}", "x".repeat(10_000)), 413),
    ]
    .into_iter()
    .enumerate()
    {
        let mut client = proxy.connect();
        client.send(format!("POST {target} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"));
        client.send(format!("800\r\n{}\r\n", "x".repeat(2048)));
        within("the request to go on", || (origin.connections() > number).then_some(()));
        client.send(rest);
        client.response().expect(status);
        client.expect_end();
        within("the forwarded request to break off", || {
            origin
                .requests()
                .iter()
                .find(|request| request.target == target)
                .filter(|seen| !seen.whole)
                .map(drop)
        });
    }
}

#[test]
fn a_body_too_large_by_its_announcement_is_refused_before_it_is_sent() {
    let origin = Origin::new(|_| reply(200));
    let proxy = sandarac().config(site(&origin.url(), "", "[limits]\nbody = \"1KiB\"")).start();
    let mut client = proxy.connect();
    client
        .send("POST / HTTP/1.1\r\nHost: www.example\r\nExpect: 100-continue\r\nContent-Length: 2000\r\n\r\n");
    client.response().expect(413);
    assert_eq!(origin.count(), 0);
}

#[test]
fn more_connections_than_allowed_are_told_so() {
    let origin = Origin::new(|_| reply(200));
    let proxy = sandarac().config(site(&origin.url(), "", "[limits]\nconnections = 4")).start();
    let mut held: Vec<Conn> = (0..4).map(|_| proxy.connect()).collect();
    held.iter_mut().for_each(|client| drop(client.get("/").expect(200)));
    held.iter_mut().for_each(begin_another);
    let mut fifth = proxy.connect();
    let _ = fifth.try_send(get("/").to_bytes());
    fifth.response().expect(503);
    fifth.expect_end();
    held.iter_mut().for_each(end_another);
    held.iter_mut().for_each(|client| drop(client.get("/").expect(200)));
    drop(held.pop());
    within("a place to be free", || {
        let mut client = proxy.connect();
        let _ = client.try_send(get("/").to_bytes());
        client.try_response("GET").is_ok_and(|response| response.status == 200).then_some(())
    });
}

/// Regression: clients that kept their connections, and had no use for them, locked out everybody else.
#[test]
fn the_connection_that_has_been_idle_longest_gives_way_to_a_new_one() {
    let origin = Origin::new(|_| reply(200).cache("max-age=60"));
    let limits = "[limits]\nconnections = 4";
    let proxy = sandarac().config(format!("threads = 1\n{}", site(&origin.url(), "", limits))).start();
    let [mut first, mut second, mut third, mut busy] = std::array::from_fn(|_| proxy.connect());
    for client in [&mut first, &mut second, &mut third, &mut busy] {
        client.get("/").expect(200);
    }
    first.get("/").expect(200);
    begin_another(&mut busy);
    let mut new = proxy.connect();
    new.get("/").expect(200);
    second.expect_end();
    let mut newer = proxy.connect();
    newer.get("/").expect(200);
    third.expect_end();
    end_another(&mut busy);
    for client in [&mut busy, &mut first, &mut new, &mut newer] {
        client.get("/").expect(200);
    }
    assert_eq!((proxy.metric("connections_gave_way"), proxy.metric("connections_refused")), (2, 0));
}

#[test]
fn idle_connections_of_any_core_give_way() {
    let origin = Origin::new(|_| reply(200).cache("max-age=60"));
    let limits = "[limits]\nconnections = 30";
    let proxy = sandarac().config(format!("threads = 3\n{}", site(&origin.url(), "", limits))).start();
    let served = |count: usize| -> Vec<Conn> {
        let mut clients: Vec<Conn> = (0..count).map(|_| proxy.connect()).collect();
        clients.iter_mut().for_each(|client| drop(client.get("/").expect(200)));
        clients
    };
    let _idle = served(30);
    let _new = served(20);
    assert_eq!((proxy.metric("connections_gave_way"), proxy.metric("connections_refused")), (20, 0));
}

/// Regression: after a reload that lowered the limit, a dozen visitors got 503 beside idle connections.
#[test]
fn idle_connections_give_way_to_a_lower_limit() {
    let origin = Origin::new(|_| reply(200).cache("max-age=60"));
    let config = |most: usize| site(&origin.url(), "", &format!("[limits]\nconnections = {most}"));
    let proxy = sandarac().config(config(200)).start();
    let mut idle: Vec<Conn> = (0..150).map(|_| proxy.connect()).collect();
    idle.iter_mut().for_each(|client| drop(client.get("/").expect(200)));
    proxy.write_config(&config(20));
    assert!(proxy.admin(&["reload"]).status.success());
    for _ in 0..5 {
        proxy.connect().get("/").expect(200);
    }
    assert!(proxy.metric("connections_open") <= 20);
}

/// A connection whose request is on its way has a moment; one that does not ask, or not to the end, in a second
/// gives way, too.
#[test]
fn connections_that_never_ask_give_way() {
    let origin = Origin::new(|_| reply(200).cache("max-age=60"));
    let proxy = sandarac().config(site(&origin.url(), "", "[limits]\nconnections = 4")).start();
    let mut silent: Vec<Conn> = (0..4).map(|_| proxy.connect()).collect();
    silent[..2].iter_mut().for_each(|client| _ = client.send("GET / HTTP/1.1\r\nHost: www.example\r\n"));
    proxy.counts("connections_open", 4);
    proxy.connect().response().expect(503);
    eventually("one to give way", || {
        let mut client = proxy.connect();
        let _ = client.try_send(get("/").to_bytes());
        client.try_response("GET").is_ok_and(|response| response.status == 200).then_some(())
    });
    drop(silent);
}

#[test]
fn a_connection_that_is_used_gives_way_to_nobody() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |_| reply(200).cache("no-store").hold(&held));
    let proxy = sandarac().config(site(&origin.url(), "", "[limits]\nconnections = 1")).start();
    let mut first = proxy.connect();
    first.send(get("/").to_bytes());
    origin.reached(1);
    proxy.connect().response().expect(503);
    gate.open();
    first.response().expect(200);
}

/// Regression: a refused client that stayed connected held its descriptor for two more seconds.
#[test]
fn those_that_are_too_many_are_let_go_soon() {
    let origin = Origin::new(|_| reply(200));
    let proxy = sandarac().config(site(&origin.url(), "", "[limits]\nconnections = 2")).start();
    let _held: Vec<Conn> = (0..2)
        .map(|_| {
            let mut client = proxy.connect();
            client.get("/").expect(200);
            begin_another(&mut client);
            client
        })
        .collect();
    let resting = proxy.open_descriptors();
    let mut refused: Vec<Conn> = (0..20).map(|_| proxy.connect()).collect();
    let asked = std::time::Instant::now();
    refused.iter_mut().for_each(|client| drop(client.response().expect(503)));
    within("their descriptors to be free", || (proxy.open_descriptors() <= resting + 1).then_some(()));
    assert!(asked.elapsed() < std::time::Duration::from_millis(1500), "{:?}", asked.elapsed());
}

#[test]
fn a_connection_is_closed_in_good_order_after_its_last_request() {
    let origin = Origin::new(|_| reply(200));
    let proxy = sandarac().config(site(&origin.url(), "", "[limits]\nrequests_per_connection = 3")).start();
    let mut client = proxy.connect();
    for number in 1..=3 {
        let response = client.get("/").expect(200);
        assert_eq!(response.field("connection") == Some("close"), number == 3, "{number}");
    }
    client.expect_end();
}

#[test]
fn hundreds_of_idle_connections_cost_little() {
    let origin = Origin::new(|_| reply(200).cache("max-age=60").body("x".repeat(1000)));
    let proxy = sandarac().before(&origin).start();
    let connect = |count: usize| -> Vec<Conn> {
        // Each connection is used at once, because the timeout of its request starts at the connect.
        let used = (0..count).map(|_| {
            let mut client = proxy.connect();
            client.get("/").expect(200);
            client
        });
        used.collect()
    };
    let _first = connect(100);
    let resting = proxy.resident_bytes();
    let _others = connect(800);
    let each = proxy.resident_bytes().saturating_sub(resting) / 800;
    assert!(each < 8 << 10, "an idle connection holds {each} bytes");
}

#[test]
fn a_flood_of_connections_that_say_nothing_does_not_stop_the_others() {
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let proxy = sandarac().before(&origin).start();
    let _silent: Vec<Conn> = (0..500).map(|_| proxy.connect()).collect();
    proxy.get("/").expect(200);
}

#[test]
fn pipelined_requests_are_not_read_without_bound() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |_| reply(200).cache("no-store").hold(&held));
    let proxy = sandarac().before(&origin).start();
    let resting = proxy.resident_bytes();
    let mut client = proxy.connect();
    let requests = get("/").to_bytes().repeat(1000);
    let mut writer = std::iter::repeat_n(&requests, 2000);
    client.send(get("/").to_bytes());
    gate.reached(1);
    client.set_write_patience(std::time::Duration::from_millis(200));
    let stopped = writer.any(|bytes| client.try_send(bytes).is_err());
    assert!(stopped, "86 MB of requests were taken in advance");
    let grown = proxy.resident_bytes().saturating_sub(resting);
    assert!(grown < 8 << 20, "the resident set grew by {grown} bytes");
    gate.open();
}
