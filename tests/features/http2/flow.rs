//! Windows, priorities, and streams that end early.

use sandarac_test_support::http2::{Ended, Http2, INITIAL_WINDOW, kind};
use sandarac_test_support::{Conn, Gate, Origin, Sandarac, eventually, reply, within};

use super::{before, before_with, config, connect};
use crate::sandarac;

fn page(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

#[test]
fn large_bodies_arrive_whole_both_ways() {
    let (proxy, origin) = before(|request| match request.method.as_str() {
        "POST" => reply(200).cache("no-store").body(&request.body),
        _ => reply(200).cache("max-age=60").body(page(3_000_000)),
    });
    let mut client = connect(&proxy);
    for _ in 0..2 {
        let stream = client.get("/", &[]);
        assert!(client.response(stream).body == page(3_000_000));
    }
    let stream = client.post("/up", &[("content-length", "2000000")]);
    // As our settings say.
    let mut room = 131_072i64;
    client.settle();
    for part in page(2_000_000).chunks(16_000) {
        while room < part.len() as i64 {
            let update = client.await_frame(kind::WINDOW_UPDATE);
            room += if update.stream == stream { i64::from(update.number(0)) } else { 0 };
        }
        room -= part.len() as i64;
        client.data(stream, part, false);
    }
    client.data(stream, "", true);
    assert!(client.response(stream).body == page(2_000_000));
    assert_eq!(origin.last().body.len(), 2_000_000);
}

#[test]
fn no_more_is_sent_than_windows_allow() {
    let (proxy, _origin) = before(|_| reply(200).cache("max-age=60").body(page(300_000)));
    for _ in 0..2 {
        let mut client = Http2::over(Conn::to(proxy.address()), &[(INITIAL_WINDOW, 10_000)]);
        client.gives_windows = false;
        let stream = client.get("/", &[]);
        while client.begun(stream).body.len() < 10_000 {
            client.settle();
        }
        client.settle();
        assert_eq!(client.begun(stream).body.len(), 10_000);
        client.window(stream, 300_000);
        within("all that the connection allows", || {
            client.settle();
            (client.begun(stream).body.len() == 65_535).then_some(())
        });
        client.window(0, 300_000);
        assert!(client.response(stream).body == page(300_000));
    }
}

#[test]
fn a_setting_that_opens_windows_counts_for_open_streams() {
    let (proxy, _origin) = before(|_| reply(200).cache("max-age=60").body(page(50_000)));
    let mut client = Http2::over(Conn::to(proxy.address()), &[(INITIAL_WINDOW, 0)]);
    client.gives_windows = false;
    let stream = client.get("/", &[]);
    assert_eq!(client.begun(stream).body.len(), 0);
    client.frame(kind::SETTINGS, 0, 0, [0, 4, 0, 0, 0xff, 0xff]);
    assert_eq!(client.response(stream).body.len(), 50_000);
}

#[test]
fn urgent_responses_come_first_and_incremental_ones_in_turns() {
    let (proxy, _origin) = before(|_| reply(200).cache("max-age=60").body(page(200_000)));
    let mut warm = connect(&proxy);
    let stream = warm.get("/", &[]);
    warm.response(stream);

    let mut client = Http2::over(Conn::to(proxy.address()), &[(INITIAL_WINDOW, 1_000_000)]);
    client.gives_windows = false;
    let late = client.get("/", &[("priority", "u=6")]);
    let turns = [client.get("/", &[("priority", "u=3, i")]), client.get("/", &[("priority", "u=3, i")])];
    let early = client.get("/", &[("priority", "u=1")]);
    // The window of the connection is used up before anything but the first response is begun.
    client.settle();
    client.order.clear();
    client.window(0, 2_000_000);
    for stream in [early, turns[0], turns[1], late] {
        client.response(stream);
    }
    let order: Vec<u32> = client.order.iter().map(|(stream, _)| *stream).collect();
    let last = |stream: u32| order.iter().rposition(|other| *other == stream).unwrap();
    let first = |stream: u32| order.iter().position(|other| *other == stream).unwrap();
    assert!(last(early) < first(turns[0]).min(first(turns[1])), "{order:?}");
    assert!(last(turns[0]).max(last(turns[1])) < last(late), "{order:?}");
    let both = &order[first(turns[0])..last(turns[0])];
    let changes = both.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(changes > 10, "they take turns: {order:?}");
}

#[test]
fn priority_update_and_the_origins_priority_count() {
    let (proxy, _origin) = before(|request| {
        let reply = reply(200).cache("max-age=60").body(page(200_000));
        if request.path() == "/hasty" { reply.with("Priority", "u=0") } else { reply }
    });
    let mut warm = connect(&proxy);
    for path in ["/", "/hasty"] {
        let stream = warm.get(path, &[]);
        warm.response(stream);
    }
    let mut client = Http2::over(Conn::to(proxy.address()), &[(INITIAL_WINDOW, 1_000_000)]);
    client.gives_windows = false;
    let (usual, raised, hasty) =
        (client.get("/", &[]), client.get("/", &[("priority", "u=6")]), client.get("/hasty", &[]));
    client.frame(kind::PRIORITY_UPDATE, 0, 0, [&raised.to_be_bytes()[..], b"u=1"].concat());
    client.settle();
    client.order.clear();
    client.window(0, 2_000_000);
    for stream in [usual, raised, hasty] {
        client.response(stream);
    }
    let order: Vec<u32> = client.order.iter().map(|(stream, _)| *stream).collect();
    let last = |stream: u32| order.iter().rposition(|other| *other == stream).unwrap();
    assert!(last(hasty) < last(raised) && last(raised) < last(usual), "{order:?}");
}

#[test]
fn a_stream_that_is_reset_leaves_the_others_alone() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, origin) = before(move |request| match request.path() {
        "/held" => reply(200).cache("no-store").body("begin").pause(&held).body("end").chunked(),
        _ => reply(200).cache("no-store").body(page(100_000)),
    });
    let mut client = connect(&proxy);
    let (held, upload, other) = (client.get("/held", &[]), client.post("/up", &[]), client.get("/", &[]));
    client.begun(held);
    client.data(upload, page(10_000), false);
    client.reset(held).reset(upload);
    assert!(client.response(other).body == page(100_000));
    gate.open();
    let after = client.get("/", &[]);
    assert!(client.response(after).body == page(100_000));
    // The exchanges of the streams are over: nothing is in flight at the pool.
    eventually("the exchanges to end", || (origin.open_connections() <= 2).then_some(()));
    eventually("no request in flight", || {
        proxy.admin(&["status"]).success().stdout.contains("0 in flight").then_some(())
    });
}

#[test]
fn a_response_whose_window_stays_closed_is_given_up_alone() {
    let tables = "[timeouts]\nwrite = \"1s\"\n";
    let (proxy, _origin) = before_with(tables, |request| {
        let reply = reply(200).body(page(200_000));
        if request.path() == "/stored" { reply.cache("max-age=60") } else { reply.cache("no-store") }
    });
    let mut client = Http2::over(Conn::to(proxy.address()), &[(INITIAL_WINDOW, 0)]);
    let stuck = [client.get("/stored", &[]), client.get("/stored", &[]), client.get("/passed", &[])];
    let active = client.get("/passed", &[]);
    client.gives_windows = false;
    client.window(0, 10_000_000);
    let mut opened = 0;
    while opened < 200_000 {
        // The rest of the connection is never still for long.
        client.window(active, 2_000).settle();
        opened += 2_000;
        if stuck.iter().all(|stream| client.has_ended(*stream)) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    client.window(active, 200_000);
    for stream in stuck {
        assert!(matches!(client.outcome(stream), Err(Ended::Reset(_))), "stream {stream}");
    }
    assert!(client.response(active).body == page(200_000));
    proxy.counts("clients_slow", 3);
}

/// Time counted while the window was closed, and the bytes that followed each opening did not.
#[test]
fn a_client_that_opens_its_window_bit_by_bit_is_as_fast_as_the_sum() {
    let limits = "[limits]\nmin_rate_out = \"1000B\"\nmin_rate_after = \"1s\"\n";
    let (proxy, _origin) = before_with(limits, |_| reply(200).cache("no-store").body(page(600_000)));
    let mut client = Http2::over(Conn::to(proxy.address()), &[(INITIAL_WINDOW, 0)]);
    client.gives_windows = false;
    client.window(0, 1_000_000);
    let stream = client.get("/", &[]);
    for opened in 1..=12 {
        std::thread::sleep(std::time::Duration::from_millis(200));
        client.window(stream, 50_000);
        while !client.has_ended(stream) && client.begun(stream).body.len() < opened * 50_000 {
            client.settle();
        }
    }
    assert!(client.response(stream).body == page(600_000));
}

#[test]
fn a_client_that_takes_nothing_is_cut_off() {
    let (proxy, _origin) =
        before_with("[timeouts]\nwrite = \"1s\"\n", |_| reply(200).cache("max-age=60").body(page(500_000)));
    let mut client = Http2::over(Conn::to(proxy.address()), &[(INITIAL_WINDOW, 1_000_000)]);
    client.gives_windows = false;
    client.get("/", &[]);
    assert_eq!(client.end(), Ended::Closed);
    proxy.counts("clients_slow", 1);
}

#[test]
fn an_upload_that_stops_is_answered_408_and_the_others_go_on() {
    let (proxy, _origin) = before_with("[timeouts]\nbody = \"1s\"\n", |_| reply(200).cache("no-store"));
    let mut client = connect(&proxy);
    let stuck = client.post("/", &[("content-length", "10")]);
    client.data(stuck, "01234", false);
    assert_eq!(client.response(stuck).status, 408);
    let stream = client.get("/", &[]);
    assert_eq!(client.response(stream).status, 200);
}

#[test]
fn interim_responses_are_dropped_for_a_client_that_does_not_read() {
    const STREAMS: usize = 25;
    let gate = Gate::new();
    let held = gate.clone();
    let hint = format!("Link: </{}>\r\n", "x".repeat(30_000));
    let (proxy, origin) = before(move |_| {
        let reply = reply(200).cache("no-store").body("page").hold(&held);
        (0..40).fold(reply, |reply, _| reply.interim(103, &hint))
    });
    let conn = Conn::to(proxy.address());
    conn.shrink_receive_buffer();
    let mut client = Http2::over(conn, &[]);
    let streams: Vec<u32> = (0..STREAMS).map(|n| client.get(&format!("/{n}"), &[])).collect();
    origin.reached(STREAMS);
    let before = proxy.resident_bytes();
    gate.open();
    within("the responses", || (proxy.metric("responses") == STREAMS as u64).then_some(()));
    // 30 MB of interim responses came.
    let grown = proxy.peak_resident_bytes().saturating_sub(before);
    assert!(grown < 10 << 20, "{} KiB", grown / 1024);
    for stream in streams {
        assert_eq!(client.response(stream).text(), "page");
    }
}

/// A client that opens no window, with 100 requests for 1 MB each.
fn stuck(proxy: &Sandarac, path: &str) -> (Http2, Vec<u32>) {
    let mut client = Http2::over(Conn::to(proxy.address()), &[(INITIAL_WINDOW, 0)]);
    client.gives_windows = false;
    let streams = (0..100).map(|_| client.get(path, &[])).collect();
    (client, streams)
}

fn all_begin((client, streams): &mut (Http2, Vec<u32>)) {
    streams.iter().for_each(|stream| assert_eq!(client.begun(*stream).status, 200));
}

#[test]
fn streams_whose_windows_stay_closed_hold_little_and_arrive_whole_once_they_open() {
    let large = page(1_000_000);
    let body = large.clone();
    // So much that no client has to hurry.
    let (proxy, origin) = before_with("[cache]\nmemory = \"1GiB\"\n", move |request| {
        // Nothing is read ahead: what the spool holds is not the stream's.
        let reply = reply(200).cache("no-store").with("X-Accel-Buffering", "no").body(&body);
        if request.path() == "/chunked" { reply.chunked() } else { reply }
    });
    let before = proxy.resident_bytes();
    let mut all = ["/large", "/chunked", "/chunked"].map(|path| stuck(&proxy, path));
    origin.reached(300);
    all.iter_mut().for_each(all_begin);
    let grown = proxy.resident_bytes().saturating_sub(before);
    assert!(grown < 18 << 20, "{} KiB", grown / 1024);
    let held = proxy.metric_of("held_bytes", "responses");
    assert!((1 << 20..9 << 20).contains(&held), "{held} are counted");

    let [(mut client, streams), mut other, last] = all;
    client.gives_windows = true;
    client.window(0, 200_000_000);
    streams.iter().for_each(|stream| _ = client.window(*stream, 1_000_000));
    streams.iter().for_each(|stream| assert!(client.response(*stream).body == large));
    // One response comes whole although all others of its connection stay stuck.
    let (client, streams) = &mut other;
    client.window(0, 2_000_000).window(streams[99], 1_000_000);
    assert!(client.response(streams[99]).body == large);
    drop((other, last));
    eventually("nothing to be held", || (proxy.metric("held_bytes") == 0).then_some(()));
}

#[test]
fn small_responses_and_hits_need_no_room_beside_streams_that_are_stuck() {
    let (proxy, _origin) = before(|request| match request.path() {
        "/large" => reply(200).cache("no-store").body(page(1_000_000)),
        "/stored" => reply(200).cache("max-age=60").body(page(100_000)),
        "/empty" => reply(200).cache("no-store"),
        _ => reply(200).cache("no-store").body("small"),
    });
    let mut warm = connect(&proxy);
    let stream = warm.get("/stored", &[]);
    warm.response(stream);
    let mut all = stuck(&proxy, "/large");
    all_begin(&mut all);
    let (mut client, streams) = all;
    streams[..10].iter().for_each(|stream| _ = client.reset(*stream));
    let empty = client.get("/empty", &[]);
    let small = client.get("/small", &[]);
    let stored = client.get("/stored", &[]);
    client.window(small, 5).window(stored, 100_000).window(0, 100_000);
    assert_eq!(client.response(small).text(), "small");
    assert!(client.response(stored).body == page(100_000));
    assert_eq!(client.response(empty).body, b"");
}

/// Regression: where both windows were closed nearly all the time, what the client took between its waits did not
/// count, and it was cut off as too slow after `min_rate_after`.
#[test]
fn a_client_that_opens_small_windows_steadily_is_not_slow() {
    let body = page(400_000);
    let whole = body.clone();
    let origin = Origin::new(move |_| reply(200).cache("no-store").body(&body));
    let limits = "[limits]\nmin_rate_out = \"20KB\"\nmin_rate_after = \"1s\"\n";
    let proxy = sandarac().config(config(&origin, limits)).start();
    let mut client = Http2::to(proxy.address());
    client.gives_windows = false;
    let stream = client.get("/", &[]);
    client.begun(stream);
    for _ in 0..40 {
        std::thread::sleep(std::time::Duration::from_millis(100));
        client.window(0, 10_000).window(stream, 10_000);
        client.settle();
    }
    assert!(client.response(stream).body == whole);
}

/// Regression: a client that held little was cut off with those that held most.
#[test]
fn under_memory_pressure_the_streams_of_those_who_hold_most_are_given_up_early() {
    let large = page(1_000_000);
    let body = large.clone();
    let origin =
        Origin::new(move |_| reply(200).cache("no-store").with("X-Accel-Buffering", "no").body(&body));
    let proxy = sandarac().config(config(&origin, "[cache]\nmemory = \"64MiB\"\n")).start();
    let mut modest = Http2::over(Conn::to(proxy.address()), &[(INITIAL_WINDOW, 0)]);
    let stream = modest.get("/", &[]);
    origin.reached(1);
    let _clients: Vec<_> = (0..8).map(|_| stuck(&proxy, "/")).collect();
    origin.reached(401);
    // So much may wait for clients that take nothing.
    within("the memory to be free", || {
        let (slow, held) = (proxy.metric("clients_slow"), proxy.metric_of("held_bytes", "responses"));
        (slow > 0 && held <= 8 << 20).then_some(())
    });
    modest.window(0, 1_000_000).window(stream, 1_000_000);
    assert!(modest.response(stream).body == large);
}
