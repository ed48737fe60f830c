//! The resident memory of the process, compared to the limit of the cache.

use std::thread;

use sandarac_test_support::{Conn, Origin, get, reply, within};

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
    within("the memory to be free again", || (held() <= LIMIT / 20).then_some(()));
    assert!(stat(&proxy, "clients_slow") > 0);
    // Clients that read are still served.
    assert_eq!(proxy.get(&format!("/0/{LARGE}")).expect(200).body.len(), LARGE);
    drop(slow);
}
