//! Flow control.

use std::thread;
use std::time::{Duration, Instant};

use sandarac_test_support::http2::Http2;
use sandarac_test_support::{Http2Server, Listener, get, post, within};

use super::{FIRST_WINDOW, LEAST_WINDOW, WIDE, accept, before, client, proxy_with};

fn fill(origin: &mut Http2Server, stream: u32, bytes: usize) {
    let part = vec![b'x'; 4 << 10];
    (0..bytes / part.len()).for_each(|_| _ = origin.data(stream, &part, false));
}

#[test]
fn a_client_that_reads_nothing_holds_up_no_other() {
    let (proxy, listener) = before("");
    let mut slow = Http2::to(proxy.address());
    slow.gives_windows = false;
    let held: Vec<u32> = (0..8).map(|at| slow.get(&format!("/held/{at}"), &[])).collect();
    let mut origin = accept(&listener);
    let asked: Vec<_> = held.iter().map(|_| origin.request()).collect();
    for head in &asked {
        origin.head(head.stream, "200", &[], false);
        fill(&mut origin, head.stream, FIRST_WINDOW);
    }
    let mut other = client(&proxy);
    for turn in 0..3 {
        let stream = other.get(&format!("/other/{turn}"), &[]);
        let head = origin.request();
        origin.head(head.stream, "200", &[], false);
        fill(&mut origin, head.stream, FIRST_WINDOW);
        origin.data(head.stream, "", true);
        assert_eq!(other.response(stream).body.len(), FIRST_WINDOW);
    }
}

#[test]
fn a_window_is_opened_only_as_the_client_reads_if_nothing_is_read_ahead() {
    let (proxy, listener) = before("read_ahead = \"0B\"");
    let mut conn = proxy.connect();
    conn.shrink_receive_buffer();
    conn.send(get("/").to_bytes());
    let mut origin = accept(&listener);
    let asked = origin.request();
    origin.head(asked.stream, "200", &[], false);
    let mut sent = 0;
    let mut window = LEAST_WINDOW as i64;
    let mut closed = None;
    // More than every buffer on the way holds.
    while sent < 16 << 20 {
        if window >= 4 << 10 {
            fill(&mut origin, asked.stream, 4 << 10);
            sent += 4 << 10;
            window -= 4 << 10;
            closed = None;
        } else if closed.get_or_insert_with(Instant::now).elapsed() > Duration::from_millis(300) {
            break;
        } else {
            thread::sleep(Duration::from_millis(10));
        }
        origin.settle();
        window += opened(&mut origin, asked.stream);
    }
    assert!(sent < 16 << 20, "nothing held the origin back");
    // Once the client reads, the rest follows.
    let response = conn.response_head();
    assert_eq!(response.status, 200);
    origin.data(asked.stream, "", true);
    let mut whole = response;
    conn.try_response_body("GET", &mut whole).expect("a whole body");
    assert_eq!(whole.body.len(), sent);
}

/// The sum of the updates of a stream's window that came.
fn opened(origin: &mut Http2Server, stream: u32) -> i64 {
    let updates = origin.others.iter().filter(|frame| frame.kind == 8 && frame.stream == stream);
    let sum = updates.map(|frame| i64::from(frame.number(0))).sum();
    origin.others.retain(|frame| frame.kind != 8 || frame.stream != stream);
    sum
}

#[test]
fn an_upload_waits_for_the_window_of_its_stream_only() {
    let (proxy, listener) = before("");
    let (mut big, mut small) = (proxy.connect(), proxy.connect());
    let body = "b".repeat(300_000);
    let upload = post("/big", &body).to_bytes();
    let sender = thread::spawn(move || {
        big.send(upload);
        big
    });
    let mut origin = accept(&listener);
    origin.gives_windows = false;
    let asked = origin.request();
    origin.partial(asked.stream, 65_535);
    origin.window(0, 1 << 20);
    small.send(post("/small", "quick").to_bytes());
    let quick = origin.request();
    assert_eq!(origin.body(quick.stream).0, b"quick");
    origin.answer(quick.stream, "quick");
    assert_eq!(small.response().text(), "quick");
    origin.window(asked.stream, 1 << 20);
    assert_eq!(origin.body(asked.stream).0.len(), body.len());
    origin.answer(asked.stream, "done");
    let mut big = sender.join().unwrap();
    assert_eq!(big.response().text(), "done");
}

#[test]
fn the_window_of_a_stream_grows_once_its_response_is_read() {
    let (proxy, listener) = before("");
    let mut conn = proxy.connect();
    conn.send(get("/").to_bytes());
    let mut origin = accept(&listener);
    let asked = origin.request();
    origin.head(asked.stream, "200", &[], false);
    fill(&mut origin, asked.stream, FIRST_WINDOW);
    // The wide window, but for what was used and is not worth an update yet.
    let mut window = (LEAST_WINDOW as i64) - FIRST_WINDOW as i64;
    while window < WIDE - FIRST_WINDOW as i64 {
        origin.settle();
        window += opened(&mut origin, asked.stream);
    }
    fill(&mut origin, asked.stream, 96 << 10);
    origin.data(asked.stream, "", true);
    assert_eq!(conn.response().body.len(), FIRST_WINDOW + (96 << 10));
}

#[test]
fn the_window_of_a_stream_grows_with_a_head_that_announces_more_than_it() {
    let (proxy, listener) = before("");
    let mut conn = proxy.connect();
    conn.send(get("/").to_bytes());
    let mut origin = accept(&listener);
    let asked = origin.request();
    let length = (96 << 10).to_string();
    origin.head(asked.stream, "200", &[("content-length", &length)], false);
    let mut window = LEAST_WINDOW as i64;
    while window < WIDE {
        origin.settle();
        window += opened(&mut origin, asked.stream);
    }
    assert_eq!(window, WIDE);
    fill(&mut origin, asked.stream, 96 << 10);
    origin.data(asked.stream, "", true);
    assert_eq!(conn.response().body.len(), 96 << 10);
}

#[test]
fn clients_that_open_no_window_hold_little_of_responses_over_http_2() {
    let (proxy, listener) = before("read_ahead = \"0B\"");
    let mut stuck = Http2::over(proxy.connect(), &[(4, 0)]);
    stuck.gives_windows = false;
    let streams: Vec<u32> = (0..100).map(|at| stuck.get(&format!("/{at}"), &[])).collect();
    let mut origin = accept(&listener);
    let asked: Vec<_> = streams.iter().map(|_| origin.request()).collect();
    let before = proxy.resident_bytes();
    for head in &asked {
        origin.head(head.stream, "200", &[], false);
        fill(&mut origin, head.stream, FIRST_WINDOW);
    }
    streams.iter().for_each(|stream| assert_eq!(stuck.begun(*stream).status, 200));
    origin.settle();
    let grown = proxy.resident_bytes().saturating_sub(before);
    assert!(grown < 16 << 20, "{} KiB", grown / 1024);
    assert_eq!(opened(&mut origin, asked[99].stream), (FIRST_WINDOW - LEAST_WINDOW) as i64);
    // Once the client opens them, the windows of the backend open too.
    stuck.window(0, 10_000_000).window(streams[99], 1_000_000);
    while opened(&mut origin, asked[99].stream) == 0 {
        origin.settle();
    }
    origin.data(asked[99].stream, "", true);
    assert_eq!(stuck.response(streams[99]).body.len(), FIRST_WINDOW);
}

/// Before, each of 4000 requests that waited for their answers was promised 64 KiB, and nobody counted it.
#[test]
fn requests_for_whose_windows_there_is_no_room_get_little_ones() {
    let listener = Listener::new();
    let proxy = proxy_with(&[&listener], "", "pass", "[cache]\nmemory = \"8MiB\"\n");
    let mut client = client(&proxy);
    (0..100).for_each(|at| _ = client.get(&format!("/{at}"), &[]));
    let mut origin = accept(&listener);
    let asked: Vec<_> = (0..100).map(|_| origin.request()).collect();
    origin.settle();
    let opened: Vec<i64> = asked.iter().map(|head| opened(&mut origin, head.stream)).collect();
    let more = (FIRST_WINDOW - LEAST_WINDOW) as i64;
    let leased = opened.iter().filter(|window| **window == more).count();
    assert!(
        (10..90).contains(&leased) && opened[..leased].iter().all(|window| *window == more),
        "{opened:?}"
    );
    assert_eq!(proxy.metric_of("held_bytes", "windows"), (leased * FIRST_WINDOW) as u64);
    asked.iter().for_each(|head| _ = origin.answer(head.stream, "done"));
    within("the windows to be free", || (proxy.metric_of("held_bytes", "windows") == 0).then_some(()));
}
