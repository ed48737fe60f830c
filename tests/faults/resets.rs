//! Clients that reset their connection: bytes on their way to them reach no other client.
//!
//! One core serves all clients here, so that each uses the memory of the one before. The process is paused while a client sends
//! and resets, so that it reads the request and fails to write the response every time.

use std::thread;

use sandarac_test_support::{Conn, Gate, Origin, Req, Request, Sandarac, get, head, post, reply, within};

use crate::{begin_another, end_another, sandarac, stat};

/// A body that no socket takes at once.
const LARGE: usize = 8 << 20;

/// The page at `target`: it names the target, and is large if the target begins with `/large`.
fn page(target: &str) -> Vec<u8> {
    let length = if target.starts_with("/large") { LARGE } else { 100 + target.len() };
    let mut page = format!("page {target} ").into_bytes();
    page.resize(length.max(page.len()), b'.');
    page
}

/// Pages that are stored, except those below `/private`.
fn site() -> (Sandarac, Origin) {
    site_with(|_| {})
}

/// The same; `first` is called with each request that reaches the origin.
fn site_with(first: impl Fn(&Request) + Send + Sync + 'static) -> (Sandarac, Origin) {
    let origin = Origin::new(move |request| {
        first(request);
        let control = if request.target.starts_with("/private") { "private" } else { "max-age=600" };
        reply(200).cache(control).with("ETag", "\"one\"").body(page(&request.target))
    });
    let proxy = sandarac().before(&origin).option("--threads", "1").start();
    ["/alice", "/bob", "/large/alice"].iter().for_each(|target| expect_page(&mut proxy.connect(), target));
    (proxy, origin)
}

#[track_caller]
fn expect_page(client: &mut Conn, target: &str) {
    let response = client.get(target).expect(200);
    assert!(response.body == page(target), "{target}: {:?}", String::from_utf8_lossy(&response.body[..60]));
}

/// Asserts that other clients, and one that was connected before, get exactly the pages they request.
#[track_caller]
fn others_get_their_own(proxy: &Sandarac, before: &mut Conn) {
    let mut new = proxy.connect();
    for client in [before, &mut new] {
        for target in ["/bob", "/private/bob", "/alice", "/bob"] {
            expect_page(client, target);
        }
        client.exchange(&head("/bob")).expect(200);
        client.exchange(&get("/bob").with("If-None-Match", "\"one\"")).expect(304);
        let part = client.exchange(&get("/bob").with("Range", "bytes=5-8")).expect(206);
        assert_eq!(part.body, b"/bob");
        assert!(client.is_silent());
    }
}

/// Sends `requests` on a new connection and resets it before the process reads any of them.
fn send_and_reset(proxy: &Sandarac, requests: &[u8]) {
    proxy.paused(|| {
        let mut client = proxy.connect();
        client.send(requests);
        client.reset();
    });
}

fn bytes(requests: &[Req]) -> Vec<u8> {
    requests.iter().flat_map(Req::to_bytes).collect()
}

/// Regression: bytes that could not be written to one client stayed in the buffer from which the core's next client was
/// answered.
#[test]
fn a_hit_that_cannot_be_written_is_written_to_nobody() {
    let (proxy, _origin) = site();
    let mut before = proxy.connect();
    for _ in 0..5 {
        send_and_reset(&proxy, &get("/alice").to_bytes());
        others_get_their_own(&proxy, &mut before);
    }
}

#[test]
fn a_reset_of_a_connection_in_use_reaches_nobody_else() {
    let (proxy, _origin) = site();
    let mut before = proxy.connect();
    let mut client = proxy.connect();
    expect_page(&mut client, "/alice");
    proxy.paused(|| {
        client.send(get("/alice").to_bytes());
        client.reset();
    });
    others_get_their_own(&proxy, &mut before);
}

#[test]
fn pipelined_hits_before_and_after_other_requests_reach_nobody_else() {
    let (proxy, _origin) = site();
    let mut before = proxy.connect();
    let (hit, pass) = (get("/alice"), get("/private/alice"));
    let (missed, upload) = (get("/missed"), post("/private/alice", "body"));
    let kinds = [&hit, &pass, &missed, &upload];
    for first in kinds {
        for second in kinds {
            send_and_reset(&proxy, &bytes(&[hit.clone(), first.clone(), second.clone(), hit.clone()]));
            others_get_their_own(&proxy, &mut before);
        }
    }
}

#[test]
fn refusals_and_answers_made_here_reach_nobody_else() {
    let (proxy, _origin) = site();
    let mut before = proxy.connect();
    let long = get("/").with("X", &"x".repeat(80_000)).to_bytes();
    let refused: [&[u8]; 6] = [
        b"GET /alice HTTP/1.1\r\n\r\n",
        b"GET /alice HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET /%2f.. HTTP/1.1\r\nHost: www.example\r\n\r\n",
        b"PURGE /alice HTTP/1.1\r\nHost: www.example\r\n\r\n",
        &long,
    ];
    for refused in refused {
        send_and_reset(&proxy, refused);
        send_and_reset(&proxy, &[&get("/alice").to_bytes(), refused].concat());
        others_get_their_own(&proxy, &mut before);
    }
}

#[test]
fn large_hits_that_are_cut_in_the_middle_reach_nobody_else() {
    let (proxy, _origin) = site();
    let mut before = proxy.connect();
    for wanted in [1, 1000, LARGE / 2] {
        let mut client = proxy.connect();
        client.shrink_receive_buffer();
        client.send(bytes(&[get("/large/alice"), get("/alice"), get("/large/alice")]));
        client.read(wanted);
        client.reset();
        others_get_their_own(&proxy, &mut before);
    }
}

#[test]
fn responses_that_come_for_a_client_that_has_gone_reach_nobody_else() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, _origin) = site_with(move |request| {
        if request.target.ends_with("/held") {
            held.wait();
        }
    });
    let mut before = proxy.connect();
    // Two requests wait at the origin when their clients reset: one fills the store, one is private.
    for target in ["/held", "/private/held"] {
        let mut client = proxy.connect();
        client.send(bytes(&[get("/alice"), get(target), get("/alice")]));
        assert!(client.response().body == page("/alice"));
        client.reset();
    }
    gate.reached(2);
    others_get_their_own(&proxy, &mut before);
    gate.open();
    others_get_their_own(&proxy, &mut before);
    expect_page(&mut before, "/held");
}

#[test]
fn clients_that_are_turned_away_and_reset_leave_nothing_behind() {
    let origin = Origin::new(|request| reply(200).cache("max-age=600").body(page(&request.target)));
    let toml = crate::site(&origin.url(), "", "[limits]\nconnections = 2");
    let proxy = sandarac().config(format!("threads = 1\n{toml}")).start();
    let mut before = [proxy.connect(), proxy.connect()];
    let mut serve = |is_first: bool| {
        for client in &mut before {
            if !is_first {
                end_another(client);
            }
            expect_page(client, "/bob");
            begin_another(client);
        }
    };
    serve(true);
    for refused in 1..=10 {
        send_and_reset(&proxy, &get("/alice").to_bytes());
        within("it to be turned away", || (stat(&proxy, "connections_refused") == refused).then_some(()));
        serve(false);
    }
}

/// The same without pauses, so that resets fall between any two steps of the process.
#[test]
fn resets_at_any_point_reach_nobody_else() {
    let (proxy, _origin) = site();
    let address = proxy.address().clone();
    let resets = thread::spawn(move || {
        for number in 0..400 {
            let Ok(mut client) = Conn::try_to(&address) else { continue };
            let requests = bytes(&[get("/alice"), get("/large/alice"), get(&format!("/private/{number}"))]);
            let _ = client.try_send(&requests[..requests.len() - number % 7]);
            if number % 3 == 0 {
                let _ = client.try_read(number * 11);
            }
            client.reset();
        }
    });
    let mut before = proxy.connect();
    while !resets.is_finished() {
        others_get_their_own(&proxy, &mut before);
    }
    resets.join().expect("the clients do not panic");
}
