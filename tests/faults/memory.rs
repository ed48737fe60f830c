//! The resident memory of the process, compared to the limit of the cache.

use std::thread;

use sandarac_coding::{Encoder, Level};
use sandarac_message::codings::Coding;
use sandarac_test_support::http2::{Http2, INITIAL_WINDOW};
use sandarac_test_support::{Conn, Origin, eventually, get, reply, within};

use crate::{sandarac, site, stat};

const MIB: u64 = 1 << 20;

/// A body of which the socket buffers take only a part for a client that does not read.
const LARGE: usize = 12 << 20;

/// The cache's limit: large enough that the process's own memory weighs little.
const LIMIT: u64 = 64 * MIB;

/// The manual's bound: the peak of the resident set is at most this many percent of the limit …
const PERCENT: u64 = 150;

/// … plus this for the process itself, its threads and connections …
const OWN: u64 = 24 * MIB;

/// … plus this for each response that arrives faster than its client reads it.
const FOR_A_SLOW_CLIENT: u64 = 2 * MIB;

/// An origin whose bodies have the length given after the last slash of the target.
fn origin() -> Origin {
    let bytes = vec![b'x'; LARGE];
    Origin::new(move |request| {
        let length = request.path().rsplit('/').next().and_then(|length| length.parse().ok()).unwrap_or(0);
        reply(200).cache("max-age=600").body(&bytes[..length])
    })
}

#[test]
fn the_resident_set_stays_within_what_the_manual_states() {
    let origin = origin();
    let proxy = sandarac().before(&origin).option("--memory", "64MiB").option("--threads", "2").start();
    // Four times the limit in objects of every size, each requested once, by several clients at a time.
    let clients = (0..4).map(|client| {
        let address = proxy.address().clone();
        thread::spawn(move || {
            let mut conn = Conn::to(&address);
            for number in 0..1200_usize {
                let length = [100, 1000, 5000, 20_000, 60_000, 600_000][(number * 7 + client) % 6];
                conn.get(&format!("/{client}/{number}/{length}")).expect(200);
            }
        })
    });
    clients
        .collect::<Vec<_>>()
        .into_iter()
        .for_each(|client| client.join().expect("a client does not panic"));
    let used = proxy.admin_json(&["status", "--json"])["cache"]["used_bytes"].as_u64().expect("a number");
    assert!((LIMIT * 3 / 4..=LIMIT).contains(&used), "the cache is not full: {used}");
    let bound = LIMIT * PERCENT / 100 + OWN;
    let peak = proxy.peak_resident_bytes();
    println!("full: peak {} KiB of {} KiB", peak / 1024, bound / 1024);
    assert!(peak <= bound, "{} MiB where {} MiB are stated", peak / MIB, bound / MIB);

    // Clients that request more than their sockets take, and read nothing.
    let slow: Vec<Conn> = (0..32)
        .map(|number| {
            let mut conn = Conn::to(proxy.address());
            conn.shrink_receive_buffer();
            conn.send(get(&format!("/slow/{number}/{}", 4 << 20)).to_bytes());
            conn
        })
        .collect();
    origin.reached(4 * 1200 + slow.len());
    // Objects fetched meanwhile go through the same memory.
    for number in 0..200 {
        proxy.get(&format!("/meanwhile/{number}/100000")).expect(200);
    }
    let bound = bound + slow.len() as u64 * FOR_A_SLOW_CLIENT;
    let peak = proxy.peak_resident_bytes();
    println!("with slow clients: peak {} KiB of {} KiB", peak / 1024, bound / 1024);
    assert!(peak <= bound, "{} MiB where {} MiB are stated", peak / MIB, bound / MIB);
}

/// Regression: memory that the allocator had kept stayed resident.
#[test]
fn the_resident_set_follows_a_limit_that_is_lowered() {
    const LOWERED: u64 = 32 * MIB;
    const AT_REST: u64 = 40 * MIB;
    let origin = origin();
    let limit = |memory: &str| site(&origin.url(), "", &format!("[cache]\nmemory = \"{memory}\""));
    let proxy = sandarac().config(limit("128MiB")).start();
    let clients = (0..4).map(|client| {
        let address = proxy.address().clone();
        thread::spawn(move || {
            let mut conn = Conn::to(&address);
            for number in 0..2000_usize {
                let length = [100, 1000, 1000, 5000, 20_000, 60_000, 240_000][(number * 5 + client) % 7];
                conn.get(&format!("/{client}/{number}/{length}")).expect(200);
            }
        })
    });
    clients
        .collect::<Vec<_>>()
        .into_iter()
        .for_each(|client| client.join().expect("a client does not panic"));
    proxy.reload(&limit("32MiB")).success();
    within("the memory to be given back", || (proxy.resident_bytes() <= LOWERED + AT_REST).then_some(()));
}

/// Regression: clients that do not read kept purged objects, and their memory, without a limit of time.
#[test]
fn clients_that_do_not_read_do_not_keep_what_has_left_the_cache() {
    let origin = origin();
    let patient = "[cache]\nmemory = \"64MiB\"\nmax_object = \"16MiB\"\n\n[timeouts]\nwrite = \"1h\"\n\n[limits]\nmin_rate_out = \"0B\"";
    let proxy = sandarac().config(site(&origin.url(), "", patient)).start();
    let held = || stat(&proxy, "cache_held_bytes");
    let slow: Vec<Conn> = (0..4)
        .map(|number| {
            let target = format!("/{number}/{LARGE}");
            // Hits and misses.
            if number % 2 == 0 {
                proxy.get(&target).expect(200);
            }
            let mut conn = Conn::to(proxy.address());
            conn.shrink_receive_buffer();
            conn.send(get(&target).to_bytes()).read_through("\r\n\r\n");
            conn
        })
        .collect();
    // Clients hold all of these objects, but an object that is still in the store does not count as held.
    within("all to be stored", || (stat(&proxy, "cache_flights") == 0).then_some(()));
    assert_eq!(held() / MIB, 0);
    assert_eq!(stat(&proxy, "clients_slow"), 0);
    proxy.admin(&["purge", "--all"]).success();
    eventually("the memory to be free again", || (held() <= LIMIT * 3 / 8).then_some(()));
    assert!(stat(&proxy, "clients_slow") > 0);
    // Clients that read are still served.
    assert_eq!(proxy.get(&format!("/0/{LARGE}")).expect(200).body.len(), LARGE);
    drop(slow);
}

/// Regression: what had been queued for a stream was counted by nobody once its object had left the store, up to 1 MiB of it.
#[test]
fn streams_without_a_window_hold_what_the_store_counts() {
    const STREAMS: u64 = 80;
    const CONNECTIONS: u64 = 5;
    let origin = origin();
    let config = site(&origin.url(), "", "[cache]\nmemory = \"64MiB\"");
    let proxy = sandarac().config(config.replace(":0\"", ":0\"\nhttp2 = true")).start();
    let clients: Vec<Http2> = (0..CONNECTIONS)
        .map(|number| {
            let mut client = Http2::over(Conn::to(proxy.address()), &[(INITIAL_WINDOW, 0)]);
            client.gives_windows = false;
            for stream in 0..STREAMS {
                client.get(&format!("/{number}/{stream}/1000000"), &[]);
            }
            client
        })
        .collect();
    origin.reached((CONNECTIONS * STREAMS) as usize);
    within("the fetches to end", || (stat(&proxy, "cache_flights") == 0).then_some(()));
    let bound = LIMIT * PERCENT / 100 + OWN + CONNECTIONS * STREAMS * 384 * 1024;
    let peak = proxy.peak_resident_bytes();
    println!("without windows: peak {} KiB of {} KiB", peak / 1024, bound / 1024);
    assert!(peak <= bound, "{} MiB where {} MiB are stated", peak / MIB, bound / MIB);
    drop(clients);
}

/// Regression: 64 KiB of a coded body were inflated at once, to 16 MiB of them, for a client that read nothing.
#[test]
fn a_body_is_inflated_as_its_client_takes_it() {
    let mut coded = Vec::new();
    let mut encoder = Encoder::new(Coding::Gzip, Level::Normal, None).expect("an encoder");
    // Some of it is random, so that a kilobyte yields 250 at the most.
    let mut block = vec![b'x'; 64 << 10];
    for number in 0..1024_u64 {
        for (at, byte) in block[..200].iter_mut().enumerate() {
            *byte = (number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(at as u32 % 64) >> 32) as u8;
        }
        encoder.push(&block, &mut coded).expect("it is encoded");
    }
    encoder.finish(&mut coded).expect("it is encoded");
    assert!(coded.len() > 128 << 10, "{} bytes", coded.len());
    let origin = Origin::new(move |_| {
        let page = reply(200).with("Content-Type", "text/html").with("Content-Encoding", "gzip");
        page.cache("no-store").body(coded.clone())
    });
    let route = site(&origin.url(), "", "[cache]\nmemory = \"64MiB\"");
    let proxy = sandarac().config(route.replace("pool = \"app\"", "pool = \"app\"\ncompress = true")).start();
    let slow: Vec<Conn> = (0..16)
        .map(|number| {
            let mut conn = Conn::to(proxy.address());
            conn.shrink_receive_buffer();
            conn.send(get(&format!("/{number}")).to_bytes()).read_through("\r\n\r\n");
            conn
        })
        .collect();
    within("all to be read ahead", || (stat(&proxy, "responses_spooled") == 16).then_some(()));
    let bound = LIMIT * PERCENT / 100 + OWN + LIMIT / 4 + slow.len() as u64 * FOR_A_SLOW_CLIENT;
    let peak = proxy.peak_resident_bytes();
    println!("inflated: peak {} KiB of {} KiB", peak / 1024, bound / 1024);
    assert!(peak <= bound, "{} MiB where {} MiB are stated", peak / MIB, bound / MIB);
}
