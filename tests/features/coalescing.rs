//! Coalescing: requests for a page that is being fetched wait for that fetch and stream the response as it arrives.

use sandarac_test_support::{Conn, Gate, Origin, Reply, Sandarac, get, post, reply, within};

use crate::{sandarac, site, stat};

const CLIENTS: usize = 20;

fn start(origin: &Origin) -> Sandarac {
    sandarac().before(origin).rfc().start()
}

fn ask(proxy: &Sandarac) -> Conn {
    let mut client = proxy.connect();
    client.send(get("/page").to_bytes());
    client
}

#[test]
fn clients_that_come_together_cause_one_fetch() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |_| reply(200).cache("max-age=60").hold(&held).body("shared"));
    let proxy = start(&origin);
    let mut clients: Vec<Conn> = (0..CLIENTS).map(|_| ask(&proxy)).collect();
    gate.reached(1);
    proxy.counts("cache_waiters", CLIENTS as u64 - 1);
    assert!(clients.iter_mut().all(Conn::is_silent));
    gate.open();
    let responses: Vec<_> = clients.iter_mut().map(|client| client.response().expect(200)).collect();
    assert!(responses.iter().all(|response| response.text() == "shared"));
    let collapsed: Vec<_> =
        responses.iter().filter(|response| response.cache_parameter("collapsed").is_some()).collect();
    assert_eq!(origin.count(), 1);
    assert_eq!(collapsed.len(), CLIENTS - 1);
    // RFC 9211 §2.7: `collapsed` is for a request that was forwarded, here by means of another request.
    for response in collapsed {
        assert!(!response.is_hit(), "{}", response.cache_status());
        assert_eq!(response.cache_parameter("fwd").as_deref(), Some("miss"));
    }
}

/// Regression: a page stored meanwhile was taken for a variant for other requests.
#[test]
fn a_page_without_vary_is_missed_for_no_variant() {
    for cache in ["no-cache", "max-age=0", "private", "no-store"] {
        let gate = Gate::new();
        let held = gate.clone();
        let origin =
            Origin::new(move |_| reply(200).cache(cache).with("ETag", "\"v\"").hold(&held).body("page"));
        let proxy = start(&origin);
        let mut clients: Vec<Conn> = (0..CLIENTS).map(|_| ask(&proxy)).collect();
        gate.reached(1);
        proxy.counts("cache_waiters", CLIENTS as u64 - 1);
        gate.open();
        for client in &mut clients {
            let forwarded = client.response().expect(200).cache_parameter("fwd");
            assert_ne!(forwarded.as_deref(), Some("vary-miss"), "{cache}");
        }
    }
}

#[test]
fn those_that_wait_in_vain_are_told_like_the_first() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |_| reply(200).hold(&held));
    let text =
        site(&origin.url(), "", "").replace("[pool.app]", "[pool.app]\nfirst_byte_timeout = \"500ms\"");
    let proxy = sandarac().config(text).start();
    let mut clients: Vec<Conn> = (0..3).map(|_| ask(&proxy)).collect();
    for client in &mut clients {
        let response = client.response().expect(504);
        assert!(response.cache_parameter("fwd").is_some(), "{response:?}");
    }
    gate.open();
}

#[test]
fn everyone_streams_the_object_while_it_arrives() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |_| {
        reply(200).cache("max-age=60").chunked().body("beginning").pause(&held).body("end")
    });
    let proxy = start(&origin);
    let mut clients: Vec<Conn> = (0..CLIENTS / 2).map(|_| ask(&proxy)).collect();
    for client in &mut clients {
        client.read_through("beginning");
    }
    let mut late: Vec<Conn> = (0..CLIENTS / 2).map(|_| ask(&proxy)).collect();
    for client in &mut late {
        client.read_through("beginning");
    }
    gate.open();
    for client in clients.iter_mut().chain(&mut late) {
        client.read_through("end\r\n0\r\n\r\n");
    }
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_fetch_that_fails_is_taken_over_by_one_that_waits() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |request| match request.serial {
        1 => Reply::none().hold(&held),
        _ => reply(200).cache("max-age=60").body("second try"),
    });
    let proxy = start(&origin);
    let mut clients: Vec<Conn> = (0..CLIENTS).map(|_| ask(&proxy)).collect();
    gate.reached(1);
    proxy.counts("cache_waiters", CLIENTS as u64 - 1);
    gate.open();
    let served = clients
        .iter_mut()
        .filter_map(|client| client.try_response("GET").ok())
        .filter(|response| response.status == 200);
    assert!(served.count() >= CLIENTS - 1, "at most the first may see the failure");
    assert!(origin.count() <= 3, "{} fetches", origin.count());
}

/// Makes all clients wait for the first fetch, and then answers it.
fn wait_together(proxy: &Sandarac, first: &Gate) -> Vec<Conn> {
    let clients = (0..CLIENTS).map(|_| ask(proxy)).collect();
    first.reached(1);
    within("the others to wait", || (stat(proxy, "cache_waiters") as usize == CLIENTS - 1).then_some(()));
    first.open();
    clients
}

/// Regression: an error left no mark on its key, so that the clients fetched its page one after another.
#[test]
fn pages_of_an_error_never_queue_behind_each_other() {
    for status in [500, 503] {
        let (first, rest) = (Gate::new(), Gate::new());
        let (leading, held) = (first.clone(), rest.clone());
        let origin = Origin::new(move |request| {
            let gate = if request.serial == 1 { &leading } else { &held };
            reply(status).hold(gate).body(request.serial.to_string())
        });
        let proxy = start(&origin);
        let mut clients = wait_together(&proxy, &first);
        rest.reached(CLIENTS - 1);
        rest.open();
        let mut pages: Vec<String> =
            clients.iter_mut().map(|client| client.response().expect(status).text()).collect();
        pages.sort();
        pages.dedup();
        assert_eq!(pages.len(), CLIENTS, "an error that may not be stored was shared");
    }
}

#[test]
fn a_page_is_shared_again_as_soon_as_its_error_is_over() {
    let origin = Origin::new(|request| match request.serial {
        1 => reply(503).body("error"),
        _ => reply(200).cache("max-age=60").body("page"),
    });
    let proxy = start(&origin);
    proxy.get("/page").expect(503);
    proxy.get("/page").expect(200);
    assert!(proxy.get("/page").is_hit());
}

/// Regression: after a fetch without an answer, the waiters tried one after another.
#[test]
fn repeated_fetches_without_an_answer_let_many_that_wait_go_together() {
    for malformed in [false, true] {
        let (first, second, rest) = (Gate::new(), Gate::new(), Gate::new());
        let gates = [first.clone(), second.clone(), rest.clone()];
        let origin = Origin::new(move |request| {
            let answer =
                if malformed { Reply::verbatim("HTTP/1.1 200 OK\rX: y\r\n\r\n") } else { Reply::none() };
            answer.hold(&gates[(request.serial - 1).min(2)])
        });
        let proxy = start(&origin);
        let mut clients = wait_together(&proxy, &first);
        // The first failure may be an accident: one waiter takes over.
        second.reached(1);
        assert_eq!(origin.count(), 2);
        second.open();
        // Then 16 waiters go on their own, but not all, because a crowd must not hit a dying origin. One more leads the rest.
        rest.reached(17);
        assert_eq!(origin.count(), 19);
        rest.open();
        for client in &mut clients {
            client.response().expect(502);
        }
    }
}

#[test]
fn the_fetch_goes_on_when_its_first_client_has_gone() {
    let (gate, finish) = (Gate::new(), Gate::new());
    let (held, finishing) = (gate.clone(), finish.clone());
    let origin = Origin::new(move |_| {
        reply(200).cache("max-age=60").length(12).hold(&held).body("first ").pause(&finishing).body("second")
    });
    let proxy = start(&origin);
    let first = ask(&proxy);
    gate.reached(1);
    let mut second = ask(&proxy);
    proxy.counts("cache_waiters", 1);
    first.reset();
    gate.open();
    second.read_through("first ");
    finish.open();
    second.expect("second");
    assert!(proxy.get("/page").is_hit());
    assert_eq!(origin.count(), 1);
}

#[test]
fn the_fill_runs_at_the_origins_speed_whatever_the_first_client_does() {
    let body = "x".repeat(16 << 20);
    let expected = body.len();
    let origin = Origin::new(move |_| reply(200).cache("max-age=60").body(&body));
    let unhurried = site(&origin.url(), "", "[timeouts]\nwrite = \"1h\"");
    let proxy = sandarac().config(unhurried).rfc().start();
    let mut stalled = proxy.connect();
    stalled.shrink_receive_buffer();
    stalled.send(get("/page").to_bytes()).read_through("\r\n\r\n");
    let quick = within("the others to be served", || {
        let response = proxy.get("/page").expect(200);
        (response.body.len() == expected).then_some(response)
    });
    assert!(quick.is_hit() || quick.cache_parameter("collapsed").is_some());
    assert_eq!(origin.count(), 1);
    assert_eq!(stalled.read(expected).len(), expected);
}

#[test]
fn what_cannot_be_shared_never_queues_twice() {
    let (gate, pages) = (Gate::new(), Gate::new());
    let (first, held) = (gate.clone(), pages.clone());
    let origin = Origin::new(move |request| match request.serial {
        1 => reply(200).cache("private").hold(&first).body("1"),
        _ => reply(200).cache("private").hold(&held).body(request.serial.to_string()),
    });
    let proxy = start(&origin);
    gate.open();
    assert_eq!(proxy.get("/page").text(), "1");
    let mut clients: Vec<Conn> = (0..CLIENTS).map(|_| ask(&proxy)).collect();
    pages.reached(CLIENTS);
    pages.open();
    let mut bodies: Vec<String> =
        clients.iter_mut().map(|client| client.response().expect(200).text()).collect();
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), CLIENTS, "each has a page of its own");
}

#[test]
fn waiters_of_what_turns_out_private_get_pages_of_their_own() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |request| {
        let answer = reply(200).cache("private").body(request.serial.to_string());
        if request.serial == 1 { answer.hold(&held) } else { answer }
    });
    let proxy = start(&origin);
    let mut clients: Vec<Conn> = (0..CLIENTS).map(|_| ask(&proxy)).collect();
    gate.reached(1);
    proxy.counts("cache_waiters", CLIENTS as u64 - 1);
    gate.open();
    let mut bodies: Vec<String> =
        clients.iter_mut().map(|client| client.response().expect(200).text()).collect();
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), CLIENTS);
}

#[test]
fn different_variants_do_not_wait_for_each_other_for_ever() {
    let origin = Origin::new(|request| {
        let variant = request.field("foo").unwrap_or_default().to_owned();
        reply(200).cache("max-age=60").with("Vary", "Foo").body(variant)
    });
    let proxy = start(&origin);
    let mut clients: Vec<(usize, Conn)> = (0..CLIENTS).map(|number| (number, proxy.connect())).collect();
    for (number, client) in &mut clients {
        client.send(get("/page").with("Foo", &number.to_string()).to_bytes());
    }
    for (number, client) in &mut clients {
        assert_eq!(client.response().expect(200).text(), number.to_string());
    }
}

#[test]
fn a_revalidation_is_shared_too() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |request| match request.field("if-none-match") {
        None => reply(200).cache("max-age=3600").with("Age", "3600").with("ETag", "\"v\"").body("page"),
        Some(_) => reply(304).cache("max-age=60").with("ETag", "\"v\"").hold(&held),
    });
    let proxy = start(&origin);
    proxy.get("/page");
    let mut clients: Vec<Conn> = (0..CLIENTS).map(|_| ask(&proxy)).collect();
    gate.reached(1);
    proxy.counts("cache_waiters", CLIENTS as u64 - 1);
    gate.open();
    for client in &mut clients {
        assert_eq!(client.response().expect(200).text(), "page");
    }
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_post_to_something_else_does_not_split_those_who_wait() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |request| match request.method.as_str() {
        "GET" => reply(200).cache("max-age=60").hold(&held).body("shared"),
        _ => reply(204),
    });
    let proxy = start(&origin);
    let mut clients = vec![ask(&proxy)];
    gate.reached(1);
    for number in 0..5 {
        proxy.exchange(&post(&format!("/other/{number}"), "x")).expect(204);
        clients.push(ask(&proxy));
        proxy.counts("cache_waiters", number + 1);
    }
    gate.open();
    assert!(clients.iter_mut().all(|client| client.response().expect(200).text() == "shared"));
    let gets = origin.requests().iter().filter(|request| request.method == "GET").count();
    assert_eq!(gets, 1);
}

#[test]
fn those_who_want_different_parts_do_not_wait_for_each_other() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |request| {
        let range = request.field("range").unwrap_or_default().replace("bytes=", "");
        reply(206)
            .cache("max-age=60")
            .with("Content-Range", &format!("bytes {range}/100"))
            .hold(&held)
            .body("0123456789")
    });
    let proxy = start(&origin);
    let part = |from: u32| {
        let mut client = proxy.connect();
        client.send(get("/page").with("Range", &format!("bytes={from}-{}", from + 9)).to_bytes());
        client
    };
    let mut clients: Vec<Conn> = [10, 30, 50, 10, 50].map(part).into();
    gate.reached(3);
    proxy.counts("cache_waiters", 2);
    gate.open();
    for client in &mut clients {
        let response = client.response().expect(206);
        assert_ne!(response.cache_parameter("fwd").as_deref(), Some("vary-miss"));
    }
    assert_eq!(origin.count(), 3);
}

#[test]
fn a_range_that_cannot_be_had_marks_nothing() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |request| match request.field("range") {
        Some(_) => reply(416).with("Content-Range", "bytes */9"),
        None => reply(200).cache("max-age=60").hold(&held).body("shared"),
    });
    let proxy = start(&origin);
    proxy.exchange(&get("/page").with("Range", "bytes=999-")).expect(416);
    let mut clients: Vec<Conn> = (0..3).map(|_| ask(&proxy)).collect();
    gate.reached(1);
    proxy.counts("cache_waiters", 2);
    gate.open();
    assert!(clients.iter_mut().all(|client| client.response().expect(200).text() == "shared"));
}

#[test]
fn a_request_that_comes_back_to_the_proxy_does_not_wait_for_itself() {
    let origin = Origin::new(|_| reply(200));
    let proxy = sandarac().config(site(&origin.url(), "", "")).start();
    proxy.admin(&["pool", "add", "app", &proxy.url()]).success();
    proxy.admin(&["pool", "remove", "app", &origin.url()]).success();
    let response = proxy.get("/").expect(502);
    assert!(response.fields.list("proxy-status").contains("proxy_loop_detected"), "{response:?}");
    // Requests that passed the same number of proxies still share a fetch, and requests that passed fewer join them.
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |_| reply(200).cache("max-age=60").hold(&held).body("shared"));
    let proxy = start(&origin);
    let via = |proxies: &str| {
        let mut client = proxy.connect();
        client.send(get("/page").with("Via", proxies).to_bytes());
        client
    };
    let mut clients = vec![via("1.1 edge")];
    gate.reached(1);
    clients.extend([via("1.1 edge"), via("1.1 other"), ask(&proxy)]);
    proxy.counts("cache_waiters", 3);
    gate.open();
    assert!(clients.iter_mut().all(|client| client.response().expect(200).text() == "shared"));
    assert_eq!(origin.count(), 1);
}

#[test]
fn those_who_wait_for_a_validation_that_brings_an_error_try_together() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |request| match request.serial {
        1 => reply(200).cache("max-age=10").with("Age", "20").with("ETag", "\"v\"").body("kept"),
        _ => reply(503).cache("no-store").hold(&held),
    });
    let proxy = start(&origin);
    proxy.get("/page").expect(200);
    let mut clients: Vec<Conn> = (0..CLIENTS).map(|_| ask(&proxy)).collect();
    gate.reached(1);
    proxy.counts("cache_waiters", CLIENTS as u64 - 1);
    gate.open();
    clients.iter_mut().for_each(|client| _ = client.response().expect(503));
    assert_eq!(origin.count(), CLIENTS + 1);
    assert!(origin.requests()[1..].iter().all(|request| request.fields.has("if-none-match")));
}

#[test]
fn an_error_does_not_cost_what_stands_in_for_an_origin_that_is_gone() {
    let origin = Origin::new(|request| match request.serial {
        1 => reply(200).cache("max-age=0").with("ETag", "\"v\"").body("kept"),
        2 => reply(503).cache("no-store"),
        _ => Reply::none(),
    });
    let proxy = start(&origin);
    proxy.get("/page").expect(200);
    proxy.get("/page").expect(503);
    assert_eq!(proxy.get("/page").expect(200).text(), "kept");
}

#[test]
fn those_who_wait_for_an_answer_to_one_request_try_together() {
    for status in [400, 403, 429] {
        let (first, others) = (Gate::new(), Gate::new());
        let gates = (first.clone(), others.clone());
        let origin = Origin::new(move |request| {
            reply(status).hold(if request.serial == 1 { &gates.0 } else { &gates.1 })
        });
        let proxy = start(&origin);
        let mut clients: Vec<Conn> = (0..CLIENTS).map(|_| ask(&proxy)).collect();
        first.reached(1);
        proxy.counts("cache_waiters", CLIENTS as u64 - 1);
        first.open();
        // All of them are at the origin at once, not one after another.
        others.reached(CLIENTS - 1);
        others.open();
        clients.iter_mut().for_each(|client| _ = client.response().expect(status));
    }
}

#[test]
fn a_post_to_what_is_keyed_by_fields_does_not_split_those_who_wait_for_something_else() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |request| match request.method.as_str() {
        "GET" => reply(200).cache("max-age=60").hold(&held).body("shared"),
        _ => reply(204),
    });
    let proxy =
        sandarac().config(site(&origin.url(), "cache = { key_fields = [\"X-Country\"] }", "")).start();
    let mut clients = vec![ask(&proxy)];
    gate.reached(1);
    proxy.exchange(&post("/other", "x")).expect(204);
    clients.push(ask(&proxy));
    proxy.counts("cache_waiters", 1);
    // After a POST to the page itself, the response that is being fetched may be outdated.
    proxy.exchange(&post("/page", "x")).expect(204);
    clients.push(ask(&proxy));
    gate.reached(2);
    gate.open();
    assert!(clients.iter_mut().all(|client| client.response().expect(200).text() == "shared"));
}

#[test]
fn a_part_that_arrives_in_chunks_is_cut_for_those_who_want_less_of_it() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |_| {
        let part = reply(206).cache("max-age=60").with("Content-Range", "bytes 500-519/1024").chunked();
        part.body("0123456789").pause(&held).body("abcdefghij")
    });
    let proxy = start(&origin);
    let range = |range: &str| get("/page").with("Range", range).to_bytes();
    let mut first = proxy.connect();
    first.send(range("bytes=500-519"));
    first.response_head();
    let mut second = proxy.connect();
    second.send(range("bytes=505-514"));
    proxy.counts("hits", 1);
    gate.open();
    let response = second.response().expect(206);
    assert_eq!(response.text(), "56789abcde");
    assert_eq!(response.field("content-range"), Some("bytes 505-514/1024"));
}
