//! Floods, which are limited by their cost, and what they leave of others.

use sandarac_test_support::http2::{END_HEADERS, END_STREAM, Ended, Http2, block, frame, kind, usual};
use sandarac_test_support::{Gate, Sandarac, eventually, reply};

use super::{before, connect};
use crate::labelled;

/// ENHANCE_YOUR_CALM (RFC 9113 §7).
const ENHANCE_YOUR_CALM: u32 = 11;

/// Sends `attack` for each of `count` numbers, until the connection is closed, and checks how it is.
fn flood(proxy: &Sandarac, name: &str, count: u32, attack: impl FnMut(u32) -> Vec<u8>) {
    flood_of(proxy, &[name], count, attack);
}

/// The same, where it depends on the timing which of these names has the fault.
fn flood_of(proxy: &Sandarac, names: &[&str], count: u32, mut attack: impl FnMut(u32) -> Vec<u8>) {
    let mut victim = connect(proxy);
    let mut client = connect(proxy);
    client.settle();
    let counted = || names.iter().map(|name| labelled(proxy, "http2_faults", name)).sum::<u64>();
    let before = counted();
    for number in 0..count {
        if client.try_send(attack(number)).is_err() {
            break;
        }
    }
    match client.end() {
        Ended::GoAway(code, text) => {
            assert_eq!(code, ENHANCE_YOUR_CALM, "{text}");
            assert!(names.contains(&text.as_str()), "{text}");
        }
        other => panic!("{names:?}: {other:?}"),
    }
    eventually("the fault to be counted", || (counted() > before).then_some(()));
    let stream = victim.get("/victim", &[]);
    assert_eq!(victim.response(stream).status, 200, "{names:?}");
}

fn odd(number: u32) -> u32 {
    2 * number + 1
}

#[test]
fn floods_of_frames_end_their_connection_by_name() {
    let (proxy, _origin) = before(|_| reply(200).cache("max-age=60").body("page"));
    flood(&proxy, "settings-flood", 3000, |_| frame(kind::SETTINGS, 0, 0, []));
    flood(&proxy, "ping-flood", 3000, |_| frame(kind::PING, 1, 0, [0; 8]));
    flood(&proxy, "window-update-flood", 5000, |_| frame(kind::WINDOW_UPDATE, 0, 0, [0, 0, 0, 1]));
    flood(&proxy, "priority-flood", 3000, |_| frame(kind::PRIORITY, 0, 1, [0, 0, 0, 3, 1]));
    flood(&proxy, "priority-flood", 3000, |_| {
        frame(kind::PRIORITY_UPDATE, 0, 0, [0, 0, 0, 1, b'u', b'=', b'1'])
    });
    flood(&proxy, "useless-frame-flood", 3000, |_| frame(0xee, 0, 0, []));
    let open = block(&usual("POST", "/upload"));
    flood(&proxy, "empty-frame-flood", 3000, |number| match number {
        0 => frame(kind::HEADERS, END_HEADERS, 1, &open),
        _ => frame(kind::DATA, 0, 1, []),
    });
    flood(&proxy, "continuation-flood", 3000, |number| match number {
        0 => frame(kind::HEADERS, END_STREAM, 1, []),
        _ => frame(kind::CONTINUATION, 0, 1, [0x82]),
    });
}

#[test]
fn rapid_resets_end_the_connection_and_leave_no_request_behind() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, origin) = before(move |request| {
        let reply = reply(200).cache("no-store").body("page");
        if request.path() == "/held" { reply.hold(&held) } else { reply }
    });
    let head = block(&usual("GET", "/held"));
    // What is cancelled after it was refused is useless.
    flood_of(&proxy, &["rapid-reset", "useless-frame-flood"], 3000, |number| {
        let request = frame(kind::HEADERS, END_HEADERS | END_STREAM, odd(number), &head);
        [request, frame(kind::RST_STREAM, 0, odd(number), [0, 0, 0, 8])].concat()
    });
    assert!(origin.count() < 600, "{} requests reached the origin", origin.count());
    gate.open();
    eventually("no request in flight", || {
        proxy.admin(&["status"]).success().stdout.contains("0 in flight").then_some(())
    });
}

#[test]
fn a_request_that_is_reset_before_its_turn_reaches_no_backend() {
    let (proxy, origin) = before(|_| reply(200).cache("no-store").body("page"));
    let mut client = connect(&proxy);
    // A connection to the backend is there, so that a request can be written at once.
    let stream = client.get("/first", &[]);
    client.response(stream);
    let (stream, request) = client.request(&usual("GET", "/reset"), b"");
    let reset = frame(kind::RST_STREAM, 0, stream, [0, 0, 0, 8]);
    client.try_send([request, reset].concat()).unwrap();
    let stream = client.get("/next", &[]);
    assert_eq!(client.response(stream).text(), "page");
    assert_eq!((origin.count_of("/reset"), origin.count_of("/next")), (0, 1));
}

#[test]
fn frames_that_force_resets_end_the_connection() {
    let (proxy, _origin) = before(|_| reply(200).cache("no-store").body("page"));
    let head = block(&usual("GET", "/"));
    flood_of(&proxy, &["forced-reset", "window-update-flood"], 3000, |number| {
        let request = frame(kind::HEADERS, END_HEADERS | END_STREAM, odd(number), &head);
        [request, frame(kind::WINDOW_UPDATE, 0, odd(number), [0, 0, 0, 0])].concat()
    });
}

#[test]
fn a_block_that_decodes_to_far_too_much_ends_the_connection() {
    let (proxy, _origin) = before(|_| reply(200).body("page"));
    let mut client = connect(&proxy);
    // A field of 4000 bytes goes into the table; each further byte of the block repeats it.
    let mut bomb = block(&usual("GET", "/"));
    bomb.extend([0x40, 1, b'x', 127, 0xa1, 0x1e]);
    bomb.extend([b'y'; 4000]);
    bomb.extend([0x80 | 62; 10_000]);
    client.frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, bomb);
    match client.end() {
        Ended::GoAway(code, text) => assert_eq!((code, text.as_str()), (ENHANCE_YOUR_CALM, "header-bomb")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn replies_that_nobody_reads_do_not_pile_up() {
    let (proxy, _origin) = before(|_| reply(200).cache("max-age=60").body(vec![b'x'; 1_000_000]));
    let before = proxy.resident_bytes();
    let mut client = Http2::over(sandarac_test_support::Conn::to(proxy.address()), &[(4, 0x7fff_ffff)]);
    client.window(0, 0x7000_0000);
    client.get("/", &[]);
    client.get("/", &[]);
    let ping = frame(kind::PING, 0, 0, [7; 8]).repeat(100);
    let head = block(&usual("GET", "/"));
    for number in 2..20_000 {
        let request = frame(kind::HEADERS, END_HEADERS | END_STREAM, odd(number), &head);
        if client.try_send([request, ping.clone()].concat()).is_err() {
            break;
        }
    }
    let grown = proxy.resident_bytes().saturating_sub(before);
    assert!(grown < 40 << 20, "{grown} bytes more");
}

#[test]
fn more_streams_than_allowed_are_refused_and_may_be_tried_again() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, origin) = before(move |_| reply(200).cache("no-store").body("page").hold(&held));
    let mut client = connect(&proxy);
    let streams: Vec<u32> = (0..100).map(|n| client.get(&format!("/{n}"), &[])).collect();
    origin.reached(100);
    let more = client.get("/more", &[]);
    assert_eq!(client.outcome(more).unwrap_err(), Ended::Reset(7), "REFUSED_STREAM");
    gate.open();
    for stream in streams {
        assert_eq!(client.response(stream).status, 200);
    }
    let again = client.get("/more", &[]);
    assert_eq!(client.response(again).status, 200);
}

#[test]
fn uploads_that_are_reset_half_way_leave_nothing() {
    let (proxy, _origin) = before(|_| reply(200).cache("no-store").body("page"));
    let mut client = connect(&proxy);
    for _ in 0..100 {
        let stream = client.post("/upload", &[("content-length", "100000")]);
        client.data(stream, [b'x'; 5000], false).reset(stream);
    }
    let stream = client.get("/", &[]);
    assert_eq!(client.response(stream).status, 200);
    eventually("no request in flight", || {
        proxy.admin(&["status"]).success().stdout.contains("0 in flight").then_some(())
    });
}
