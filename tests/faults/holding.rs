//! The memory that clients may hold: each profile makes the process hold as much as it can, and holds it
//! within the limit of memory and a stated constant, while others are served.

use std::time::{Duration, Instant};

use sandarac_test_support::http2::{END_HEADERS, END_STREAM, Http2, INITIAL_WINDOW, frame, kind};
use sandarac_test_support::{Conn, Gate, Origin, Sandarac, Setup, eventually, get, hpack, reply, within};

use super::{sandarac, site};

const MIB: u64 = 1 << 20;

/// The limit of the cache, in MiB.
const LIMIT: u64 = 64;

/// The most resident memory, with `connections` open: the limit, and what the process needs beside it.
fn bound(connections: u64) -> u64 {
    ((LIMIT + 48) * MIB + connections * 2048) * 115 / 100
}

/// Sandarac as set up, before an origin whose `/slow` pages wait for the gate; requests of `/one` wait for
/// each other. `/stored` is stored, and `/passed` is not.
fn held_up(setup: Setup) -> (Sandarac, Origin, Gate) {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |request| match request.path() {
        "/stored" => reply(200).cache("max-age=600").body("stored"),
        "/passed" => reply(200).cache("no-store").body("passed"),
        // Text on both sides of a fragment that does not come.
        "/page" => reply(200).cache("no-store").with("Content-Type", "text/html").body(page()),
        _ => reply(200).cache("no-store").hold(&held),
    });
    let url = origin.url();
    let config = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nhttp2 = true\n\n[cache]\nmemory = \"{LIMIT}MiB\"\n\n\
         [pool.app]\nbackends = [\"{url}\"]\nfirst_byte_timeout = \"120s\"\n\n\
         [pool.one]\nbackends = [\"{url}\"]\nmax_in_flight = 1\nqueue = 10000\nqueue_timeout = \"60s\"\n\n\
         [[route]]\nmatch = \"/one\"\npool = \"one\"\n\n[[route]]\npool = \"app\"\nfragments = true\n"
    );
    let proxy = setup.config(config).start();
    assert_eq!(Conn::to(proxy.address()).get("/stored").text(), "stored");
    (proxy, origin, gate)
}

/// Others are served: a stored page and one that is not, and the operator.
fn others_are_served(proxy: &Sandarac) {
    assert_eq!(Conn::to(proxy.address()).get("/stored").text(), "stored");
    assert_eq!(Conn::to(proxy.address()).get("/passed").text(), "passed");
    assert!(proxy.admin(&["status"]).status.success());
}

/// A client with 100 requests whose heads the dynamic table makes large.
fn amplified(proxy: &Sandarac, path: &str) -> Http2 {
    let mut client = Http2::to(proxy.address());
    let fields = [(":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "a")];
    let heads = (0..100).map(|at| {
        frame(kind::HEADERS, END_HEADERS | END_STREAM, 2 * at + 1, hpack::amplified(&fields, at == 0))
    });
    let _ = client.try_send(heads.collect::<Vec<_>>().concat());
    client
}

/// Waits until what is leased is what the allocator has given out since `before`, within a tenth, and more
/// than `least`.
#[track_caller]
fn leases_are_allocated(proxy: &Sandarac, before: (u64, u64), least: u64) {
    within("leases to be what is allocated", || {
        let (held, allocated) = holds(proxy);
        let (held, grown) = (held - before.0.min(held), allocated.saturating_sub(before.1));
        (held > least && held * 10 > grown * 9 && held * 10 < grown * 11).then_some(())
    });
}

/// Bytes that are leased, and bytes that are allocated.
fn holds(proxy: &Sandarac) -> (u64, u64) {
    (proxy.metric("held_bytes"), proxy.metric("process_allocated_memory_bytes"))
}

#[test]
fn leases_are_what_the_process_holds() {
    let (proxy, _origin, _gate) = held_up(sandarac());
    let before = holds(&proxy);
    let _clients = [amplified(&proxy, "/slow/1"), amplified(&proxy, "/slow/2")];
    let refused = || proxy.metric_of("refused", "memory");
    within("the rest to be refused", || (refused() + proxy.metric("requests") == 201).then_some(()));
    leases_are_allocated(&proxy, before, 5_000_000);
    // Heads that are short cost as much as is said, too.
    let mut small: Vec<Http2> = (0..3).map(|_| Http2::to(proxy.address())).collect();
    let before = holds(&proxy);
    for (number, client) in small.iter_mut().enumerate() {
        (0..60).for_each(|at| _ = client.get(&format!("/slow/{number}/{at}"), &[]));
    }
    leases_are_allocated(&proxy, before, 2_000_000);
}

/// A page with twenty fragments that do not come, and a megabyte of text behind the first.
fn page() -> String {
    let include = "<esi:include src=\"/slow\"/>";
    format!("{include}{}{}", "text ".repeat(200_000), include.repeat(19))
}

/// A client that opens no window for responses.
pub(crate) fn closed(proxy: &Sandarac) -> Http2 {
    let mut client = Http2::over(Conn::to(proxy.address()), &[(INITIAL_WINDOW, 0)]);
    client.gives_windows = false;
    client
}

fn stays_within(proxy: &Sandarac, connections: u64) {
    let peak = proxy.peak_resident_bytes();
    assert!(peak <= bound(connections), "{} MiB of at most {}", peak / MIB, bound(connections) / MIB);
}

/// Before, 5.75 MB of requests held 1.7 GB.
#[test]
fn heads_that_a_dynamic_table_makes_large_are_held_within_the_limit() {
    let (proxy, _origin, _gate) = held_up(sandarac());
    let _clients: Vec<Http2> = (0..60).map(|_| amplified(&proxy, "/slow")).collect();
    within("requests to be refused", || (proxy.metric_of("refused", "memory") > 0).then_some(()));
    let (heads, held) = (proxy.metric_of("held_bytes", "heads"), proxy.metric("held_bytes"));
    assert!(heads > 2 * MIB && held <= proxy.metric("held_limit_bytes"), "{heads} of {held}");
    others_are_served(&proxy);
    stays_within(&proxy, 60);
    assert_eq!(proxy.metric("clients_slow"), 0, "they wait for a backend");
}

/// Before, 5 connections held 580 MB and 6500 descriptors.
#[test]
fn pages_whose_fragments_do_not_come_are_held_within_the_limit() {
    let (proxy, _origin, _gate) = held_up(sandarac());
    let mut clients: Vec<Http2> = (0..5).map(|_| closed(&proxy)).collect();
    for client in &mut clients {
        (0..100).for_each(|_| _ = client.get("/page", &[]));
    }
    within("pages to wait", || (proxy.metric("fragments") >= 100).then_some(()));
    assert!(proxy.open_descriptors() < 1500, "{}", proxy.open_descriptors());
    others_are_served(&proxy);
    stays_within(&proxy, 5);
}

/// Before, what waited for backends was counted, and nobody gave way.
#[test]
fn data_ahead_of_its_backend_is_held_within_the_limit() {
    // One request at a time is in flight: the others wait, with what has come of their bodies.
    let (proxy, _origin, _gate) = held_up(sandarac());
    let mut clients: Vec<Http2> = (0..60).map(|_| Http2::to(proxy.address())).collect();
    for client in &mut clients {
        // The windows are those of the settings that came.
        client.settle();
        for _ in 0..4 {
            let stream = client.post("/one", &[("content-length", "1000000")]);
            (0..7).for_each(|_| _ = client.data(stream, [b'd'; 16_000], false));
        }
    }
    within("data to be held", || (proxy.metric_of("held_bytes", "uploads") > 9 * MIB).then_some(()));
    others_are_served(&proxy);
    within("the memory to be free", || (proxy.metric("held_bytes") < 9 * MIB).then_some(()));
    stays_within(&proxy, 60);
}

/// Input that is read while a response is waited for is memory, too.
#[test]
fn requests_behind_one_that_waits_are_held_within_the_limit() {
    let (proxy, _origin, _gate) = held_up(sandarac());
    let behind = get("/stored").with("X-Long", &"x".repeat(20_000)).to_bytes().repeat(3);
    let mut clients: Vec<Conn> = (0..1200).map(|_| Conn::to(proxy.address())).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let _ = client.try_send([get(&format!("/slow/{number}")).to_bytes(), behind.clone()].concat());
    }
    within("some to be refused", || (proxy.metric_of("refused", "memory") > 0).then_some(()));
    others_are_served(&proxy);
    stays_within(&proxy, 1200);
}

/// Before, one connection filled a gigabyte of files in three seconds.
#[test]
fn one_connection_has_an_eighth_of_the_disk_for_spools() {
    let large = vec![b'l'; 4 << 20];
    let origin = Origin::new(move |_| reply(200).cache("no-store").body(&large));
    let config = site(&origin.url(), "", "[spool]\ndisk = \"64MiB\"\n");
    let proxy = sandarac().config(config.replacen("\n", "\nhttp2 = true\n", 1)).start();
    let mut greedy = closed(&proxy);
    (0..50).for_each(|_| _ = greedy.get("/", &[]));
    within("the disk to be used", || (proxy.metric("spool_failures") > 5).then_some(()));
    let of_one = proxy.metric("spool_disk_bytes");
    assert!((6 * MIB..=8 * MIB).contains(&of_one), "{of_one}");
    let mut other = closed(&proxy);
    (0..5).for_each(|_| _ = other.get("/", &[]));
    within("another to find room", || (proxy.metric("spool_disk_bytes") > of_one + MIB).then_some(()));
}

/// Before, visitors of a stored page were not accepted, and the operator was not heard.
#[test]
fn slow_requests_take_no_descriptors_of_visitors_and_operators() {
    let (proxy, _origin, _gate) = held_up(sandarac().descriptors(500));
    let mut clients: Vec<Http2> = (0..20).map(|_| Http2::to(proxy.address())).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        (0..50).for_each(|at| _ = client.get(&format!("/slow/{number}/{at}"), &[]));
    }
    let of = |name: &str| proxy.metric_of(name, "backends");
    within("all places to be taken", || (of("descriptors") == of("descriptors_limit")).then_some(()));
    let visitors: Vec<Conn> = (0..60).map(|_| Conn::to(proxy.address())).collect();
    for mut visitor in visitors {
        assert_eq!(visitor.get("/stored").text(), "stored");
    }
    let status = proxy.admin(&["status"]);
    assert!(status.status.success(), "{status:?}");
    assert!(of("descriptors") <= of("descriptors_limit"));
}

#[test]
fn a_client_has_so_many_connections_unless_it_is_exempt() {
    let origin = Origin::new(|_| reply(200).cache("no-store").body("page"));
    let limits =
        |exempt: &str| site(&origin.url(), "", &format!("[limits]\nconnections_per_client = 3\n{exempt}"));
    let proxy = sandarac().config(limits("")).start();
    let mut first: Vec<Conn> = (0..3).map(|_| Conn::to(proxy.address())).collect();
    first.iter_mut().for_each(|client| _ = client.get("/").expect(200));
    let refused = Conn::to(proxy.address()).get("/");
    assert_eq!(
        (refused.status, &*refused.text()),
        (503, "503 Service Unavailable: too many connections are open from this address\n")
    );
    assert_eq!(proxy.metric_of("refused", "client-connections"), 1);
    first.pop();
    within("a place to be free", || (Conn::to(proxy.address()).get("/").status == 200).then_some(()));
    proxy.write_config(&limits("connections_per_client_exempt = [\"127.0.0.0/8\"]\n"));
    assert!(proxy.admin(&["reload"]).status.success());
    let served = || -> Vec<u16> {
        let mut clients: Vec<Conn> = (0..9).map(|_| Conn::to(proxy.address())).collect();
        clients.iter_mut().map(|client| client.get("/").status).collect()
    };
    assert_eq!(served(), [200; 9]);
    // A proxy that is trusted speaks for many.
    let trusted = limits("").replacen("\n", "\ntrusted_proxies = [\"127.0.0.1\"]\n", 1);
    proxy.write_config(&trusted);
    assert!(proxy.admin(&["reload"]).status.success());
    assert_eq!(served(), [200; 9]);
}

/// Regression: long polls with long cookies were reset after two seconds, and logged as if their clients had
/// left.
#[test]
fn requests_that_wait_for_their_backend_are_not_cut_off() {
    let (proxy, _origin, gate) = held_up(sandarac());
    let cookie = "c".repeat(16_000);
    let mut clients: Vec<Conn> = (0..600).map(|_| Conn::to(proxy.address())).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(get(&format!("/slow/{number}")).with("Cookie", &cookie).to_bytes());
    }
    eventually("much to be held", || (proxy.metric_of("held_bytes", "heads") > 27 * MIB).then_some(()));
    // Longer than a client may take to move something that has to give way.
    std::thread::sleep(Duration::from_secs(3));
    gate.open();
    clients.iter_mut().for_each(|client| _ = client.response().expect(200));
    assert_eq!(proxy.metric("clients_slow"), 0);
}

#[test]
fn a_proxy_header_that_is_too_long_ends_its_connection_at_once() {
    let origin = Origin::new(|_| reply(200).body("page"));
    let config = site(&origin.url(), "", "").replacen("\n", "\nproxy_protocol = true\n", 1);
    let proxy = sandarac().config(config).start();
    let mut client = Conn::to(proxy.address());
    let _ = client.try_send([&b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff"[..], &[0; 65_535]].concat());
    let began = Instant::now();
    assert!(client.try_read(1).is_err());
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

/// Regression: it kept its place for ten seconds, and 300 of them kept a listener full.
#[test]
fn a_proxy_header_that_is_not_finished_gives_way_after_a_second() {
    let origin = Origin::new(|_| reply(200).cache("no-store").body("page"));
    let text = site(&origin.url(), "", "[limits]\nconnections = 20\n");
    let proxied = "[[listen]]\naddress = \"127.0.0.1:0\"\nproxy_protocol = true\n\n";
    let proxy = sandarac().config(format!("{text}{proxied}")).start();
    let mut clients: Vec<Conn> = (0..20).map(|_| Conn::to(&proxy.addresses()[1])).collect();
    clients.iter_mut().for_each(|client| _ = client.send("PROXY TCP4 192.0"));
    let began = Instant::now();
    within("one to give way", || {
        let mut visitor = proxy.connect();
        visitor.try_send(get("/").to_bytes()).ok()?;
        visitor.try_response("GET").is_ok_and(|response| response.status == 200).then_some(())
    });
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// An origin whose heads have 49 KB; those below `/stored` are stored.
fn long_heads() -> (Sandarac, Origin) {
    let long = "x".repeat(49_000);
    let origin = Origin::new(move |request| match request.path() {
        "/stored" => reply(200).cache("max-age=600").body("stored"),
        "/passed" => reply(200).cache("no-store").body("passed"),
        path => {
            let cache = if path.starts_with("/stored") { "max-age=600" } else { "no-store" };
            reply(200).cache(cache).with("X-Long", &long)
        }
    });
    let url = origin.url();
    let config = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nhttp2 = true\n\n[cache]\nmemory = \"{LIMIT}MiB\"\n\n\
         [pool.app]\nbackends = [\"{url}\"]\n\n[[route]]\npool = \"app\"\n"
    );
    let proxy = sandarac().config(config).start();
    (proxy, origin)
}

/// Regression: the heads of 32 responses were written for a client that reads nothing.
#[test]
fn long_heads_for_clients_that_read_nothing_are_held_within_the_limit() {
    let (proxy, _origin) = long_heads();
    Conn::to(proxy.address()).get("/stored/long");
    let asks = get("/stored/long").to_bytes().repeat(200);
    let _clients: Vec<Conn> = (0..200)
        .map(|_| {
            let mut client = Conn::to(proxy.address());
            client.send(&asks);
            client
        })
        .collect();
    others_are_served(&proxy);
    stays_within(&proxy, 200);
}

/// Regression: over HTTP/2 the heads of a hundred responses were.
#[test]
fn long_heads_for_streams_that_nobody_reads_are_held_within_the_limit() {
    let (proxy, _origin) = long_heads();
    for _ in 0..3 {
        assert_eq!(Conn::to(proxy.address()).get("/stored").text(), "stored");
    }
    let mut clients: Vec<Http2> = (0..40).map(|_| Http2::to(proxy.address())).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        (0..100).for_each(|at| _ = client.get(&format!("/{number}/{at}"), &[]));
    }
    let began = || proxy.metric("requests") + proxy.metric_of("refused", "memory");
    eventually("all to have begun", || (began() >= 4000).then_some(()));
    // Requests in progress may have all memory that there is for those which need a backend.
    assert_eq!(Conn::to(proxy.address()).get("/stored").text(), "stored");
    assert!(proxy.admin(&["status"]).status.success());
    stays_within(&proxy, 40);
}
