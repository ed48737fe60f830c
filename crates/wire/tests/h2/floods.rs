//! Attacks that the budget of a connection limits, and honest peers that it must not.

use crate::connections::{SETTINGS, Side, get, reset, window_update};
use crate::frames::raw;
use sandarac_wire::h2::Fault;
use sandarac_wire::h2::connection::{BUDGET, MAX_UNSENT_REPLIES};

/// How many of these frames a connection takes before it ends, by the fault expected.
fn flood(server: &mut Side, fault: Fault, mut frames: impl FnMut(u32) -> Vec<u8>) -> u32 {
    for count in 0..BUDGET * 2 {
        if let Err(found) = server.feed(&frames(count)) {
            assert_eq!(found, fault);
            return count;
        }
        server.connection.replies_sent();
    }
    panic!("{} is not limited", fault.name());
}

#[test]
fn floods_end_the_connection_by_name() {
    let id = |count: u32| count * 2 + 1;
    let taken = flood(&mut Side::server(), Fault::RapidReset, |count| {
        [get(id(count), true), reset(id(count))].concat()
    });
    // The first SETTINGS of the connection cost 8.
    assert_eq!(taken, (BUDGET - 8) / 4);
    // MadeYouReset: faults of the client force the server to reset.
    flood(&mut Side::server(), Fault::ForcedReset, |count| {
        [get(id(count), true), window_update(id(count), 0)].concat()
    });
    let ping = |_| raw(6, 0, 0, b"12345678");
    assert_eq!(flood(&mut Side::server(), Fault::PingFlood, ping), (BUDGET - 8) / 2);
    flood(&mut Side::server(), Fault::SettingsFlood, |_| raw(SETTINGS, 0, 0, b""));
    flood(&mut Side::server(), Fault::WindowUpdateFlood, |_| window_update(0, 1));
    flood(&mut Side::server(), Fault::PriorityFlood, |_| raw(2, 0, 1, b"\0\0\0\x05\x01"));
    flood(&mut Side::server(), Fault::PriorityFlood, |_| raw(16, 0, 0, b"\0\0\0\x05u=1"));
    flood(&mut Side::server(), Fault::UselessFrameFlood, |_| raw(77, 0, 0, b""));
    let mut server = Side::server();
    server.feed(&get(1, false)).unwrap();
    flood(&mut server, Fault::EmptyFrameFlood, |_| raw(0, 0, 1, b""));
    let mut server = Side::server();
    server.feed(&raw(1, 0, 1, b"")).unwrap();
    flood(&mut server, Fault::ContinuationFlood, |_| raw(9, 0, 1, b""));
}

#[test]
fn a_priority_update_costs_by_its_length() {
    let taken = |length: usize| {
        let value = [&b"u=1"[..], &vec![b' '; length - 3]].concat();
        let update = raw(16, 0, 0, &[&5u32.to_be_bytes()[..], &value].concat());
        flood(&mut Side::server(), Fault::PriorityFlood, |_| update.clone())
    };
    assert_eq!(taken(3), (BUDGET - 8) / 2);
    assert_eq!(taken(63), taken(3));
    assert_eq!(taken(64), (BUDGET - 8) / 4);
    // Three frames of the greatest length.
    assert_eq!(taken(16_000), (BUDGET - 8) / (2 * 251));
}

#[test]
fn replies_that_are_not_read_end_the_connection() {
    let mut server = Side::server();
    let ping = raw(6, 0, 0, b"12345678");
    let limit = MAX_UNSENT_REPLIES / ping.len();
    server.feed(&ping.repeat(limit)).unwrap();
    server.out.clear();
    assert_eq!(server.ends(&ping), Fault::UnreadReplies);
}

#[test]
fn answers_pay_for_a_small_window_update_each() {
    let mut server = Side::server();
    for count in 0..20_000 {
        let id = count * 2 + 1;
        server.feed(&get(id, true)).unwrap();
        server.connection.send_head(id, b"\x88", true, &mut server.out).unwrap();
        server.feed(&window_update(0, 100)).unwrap();
        server.connection.replies_sent();
        server.out.clear();
    }
}

#[test]
fn a_ping_for_each_frame_that_is_sent_is_free() {
    let mut server = Side::server();
    server.feed(&get(1, true)).unwrap();
    server.connection.send_head(1, b"\x88", false, &mut server.out).unwrap();
    for _ in 0..20_000 {
        server.connection.send_data(1, 1, false, &mut server.out).unwrap();
        server.feed(&raw(6, 0, 0, b"bandwidt")).unwrap();
        server.feed(&window_update(0, 1024)).unwrap();
        server.feed(&window_update(1, 1024)).unwrap();
        server.connection.replies_sent();
        server.out.clear();
    }
}

#[test]
fn cancelled_uploads_are_not_forgiven_for_their_data() {
    let upload = |count: u32| {
        let id = count * 2 + 1;
        [get(id, false), raw(0, 0, id, &[0; 16_000]), reset(id)].concat()
    };
    assert_eq!(flood(&mut Side::server(), Fault::RapidReset, upload), (BUDGET - 8) / 4);
}
