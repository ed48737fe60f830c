//! Clients that are slower than their backend: they do not hold it, in either direction.

use std::time::Duration;

use sandarac_test_support::fastcgi::{STDOUT, end, record};
use sandarac_test_support::http2::{Http2, usual};
use sandarac_test_support::{Conn, Http2Server, Listener, Sandarac, TempDir, get, post, request, within};

use crate::http2_origins::FIRST_WINDOW;
use crate::{sandarac, stat};

/// More than the system takes on behalf of a client, whatever its buffers grow to.
const LONG: usize = 16 << 20;

const SPOOL: &str = "responses_spooled";

/// A body of which every eight bytes tell their place.
fn body(len: usize) -> Vec<u8> {
    (0..len as u64).step_by(8).flat_map(u64::to_be_bytes).take(len).collect()
}

/// Sandarac before one worker, with its spool in a directory of the test.
struct Stage {
    proxy: Sandarac,
    worker: Listener,
    _directory: TempDir,
}

impl Stage {
    fn new(pool: &str) -> Stage {
        Stage::serving(1, pool)
    }

    fn serving(places: u32, pool: &str) -> Stage {
        let directory = TempDir::new();
        let spool = format!("directory = \"{}\"", directory.path().display());
        Stage::with_spool(&spool, &format!("max_in_flight = {places}\n{pool}"), "", directory)
    }

    fn with_spool(spool: &str, pool: &str, route: &str, directory: TempDir) -> Stage {
        let worker = Listener::new();
        let url = match pool {
            pool if pool.contains("fastcgi") => worker.fcgi_url(),
            pool if pool.contains("h2") => worker.url().replace("http://", "h2://"),
            _ => worker.url(),
        };
        let text = format!(
            "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\nhttp2 = true\n[pool.app]\nbackends = [\"{url}\"]\n\
             retries = 0\n{pool}\n[[route]]\npool = \"app\"\ncache = \"pass\"\n{route}\n[spool]\n{spool}\n"
        );
        Stage { proxy: sandarac().config(text).start(), worker, _directory: directory }
    }

    /// A client that asks for a long response and does not read it.
    fn idler(&self) -> Conn {
        let mut client = self.proxy.connect();
        client.shrink_receive_buffer();
        client.send(get("/long").to_bytes());
        client
    }

    fn waits_for(&self, name: &str, value: u64) {
        within(&format!("{name} to be {value}"), || (stat(&self.proxy, name) == value).then_some(()));
    }

    fn holds_nothing(&self) {
        self.waits_for("spool_memory_bytes", 0);
        self.waits_for("spool_disk_bytes", 0);
    }

    /// The worker is free: the next request reaches it.
    fn serves_another(&self, worker: &mut Conn) {
        let mut other = self.proxy.connect();
        other.send(get("/short").to_bytes());
        assert_eq!(worker.request().path(), "/short");
        worker.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        assert_eq!(other.response().expect(200).text(), "ok");
    }
}

#[test]
fn a_slow_client_gets_the_whole_response_while_its_worker_serves_others() {
    let stage = Stage::new("");
    let long = body(LONG);
    for chunked in [false, true] {
        let mut client = stage.idler();
        let mut worker = stage.worker.accept();
        worker.request();
        if chunked {
            worker.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            for piece in long.chunks(1_000_000) {
                worker.send([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
            }
            worker.send("0\r\n\r\n");
        } else {
            worker.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n\r\n")).send(&long);
        }
        stage.serves_another(&mut worker);
        assert!(stat(&stage.proxy, "spool_disk_bytes") > 0);
        assert!(client.response().expect(200).body == long, "chunked: {chunked}");
        stage.holds_nothing();
        drop(worker);
    }
    assert_eq!((stat(&stage.proxy, SPOOL), stat(&stage.proxy, "spool_failures")), (2, 0));
}

#[test]
fn a_slow_client_over_http2_does_not_hold_the_worker_either() {
    let stage = Stage::new("");
    let long = body(LONG);
    let mut client = Http2::to(stage.proxy.address());
    client.gives_windows = false;
    let stream = client.get("/long", &[]);
    let mut worker = stage.worker.accept();
    worker.request();
    worker.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n\r\n")).send(&long);
    stage.serves_another(&mut worker);
    client.gives_windows = true;
    client.window(0, LONG as u32).window(stream, LONG as u32);
    assert!(client.response(stream).expect(200).body == long);
    stage.holds_nothing();
    assert_eq!(stat(&stage.proxy, SPOOL), 1);
}

#[test]
fn a_backend_that_speaks_http2_is_done_when_its_response_was_read() {
    let stage = Stage::new("# h2");
    let long = body(LONG);
    let mut client = stage.idler();
    let mut worker = Http2Server::accept(&stage.worker);
    let head = worker.request();
    worker.head(head.stream, "200", &[], false);
    worker.data_within(FIRST_WINDOW, head.stream, &long);
    worker.data(head.stream, "", true);
    let mut other = stage.proxy.connect();
    other.send(get("/short").to_bytes());
    let head = worker.request();
    assert_eq!(head.path(), "/short");
    worker.answer(head.stream, "ok");
    assert_eq!(other.response().expect(200).text(), "ok");
    assert!(client.response().expect(200).body == long);
    stage.holds_nothing();
}

#[test]
fn a_process_of_php_is_free_when_its_response_was_read() {
    let stage = Stage::new("fastcgi = { root = \"/srv\", local = false, front_controller = \"/index.php\" }");
    let long = body(LONG);
    let mut client = stage.idler();
    let mut process = stage.worker.accept();
    process.cgi_request();
    process.send(record(STDOUT, "Content-Type: text/plain\r\n\r\n"));
    for piece in long.chunks(60_000) {
        process.send(record(STDOUT, piece));
    }
    process.send(end(0));
    process.expect_end();
    within("its place to be free", || (stage.proxy.metric("backend_in_flight") == 0).then_some(()));
    assert!(client.response().expect(200).body == long);
    stage.holds_nothing();
}

#[test]
fn conversations_go_at_the_pace_of_their_client() {
    for field in ["Content-Type: text/event-stream;charset=utf-8", "X-Accel-Buffering: no"] {
        let stage = Stage::serving(2, "");
        let mut slow = stage.idler();
        let mut first = stage.worker.accept();
        first.request();
        let long = body(LONG);
        let sent = long.clone();
        let head = format!("HTTP/1.1 200 OK\r\n{field}\r\nContent-Length: {LONG}\r\n\r\n");
        let sending = std::thread::spawn(move || {
            first.send(head).send(&sent);
        });
        // A response that is not of a conversation is read to its end meanwhile.
        let mut other = stage.idler();
        let mut second = stage.worker.accept();
        second.request();
        second.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n\r\n")).send(&long);
        within("one place to be free", || (stage.proxy.metric("backend_in_flight") == 1).then_some(()));
        assert!(!sending.is_finished(), "{field}");
        assert!(slow.response().expect(200).body == long && other.response().expect(200).body == long);
        assert_eq!(stat(&stage.proxy, SPOOL), 1, "{field}");
        sending.join().expect("all is sent");
    }
}

#[test]
fn read_ahead_can_be_limited_and_turned_off() {
    let long = body(LONG);
    for (limit, spooled) in [("0B", 0), ("1MiB", 1)] {
        let stage = Stage::new(&format!("read_ahead = \"{limit}\""));
        let mut client = stage.idler();
        let mut worker = stage.worker.accept();
        worker.request();
        let sent = long.clone();
        let sending = std::thread::spawn(move || {
            worker.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n\r\n")).send(&sent);
            worker
        });
        if spooled > 0 {
            within("it to be full", || (stat(&stage.proxy, "spool_disk_bytes") > 500_000).then_some(()));
        }
        assert!(stat(&stage.proxy, "spool_disk_bytes") <= 1 << 20);
        assert!(client.response().expect(200).body == long);
        sending.join().expect("all is sent");
        assert_eq!(stat(&stage.proxy, SPOOL), spooled);
        stage.holds_nothing();
    }
}

#[test]
fn a_directory_that_is_gone_or_full_costs_nothing_but_time() {
    let long = body(LONG);
    for (spool, failures) in [
        ("directory = \"/nowhere/at/all\"", 1),
        ("directory = \"/proc\"", 1),
        ("disk = \"300KiB\"", 1),
        ("disk = \"0B\"", 0),
    ] {
        let stage = Stage::with_spool(spool, "", "", TempDir::new());
        let mut client = stage.idler();
        let mut worker = stage.worker.accept();
        worker.request();
        let sent = long.clone();
        let sending = std::thread::spawn(move || {
            worker.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n\r\n")).send(&sent);
            worker
        });
        stage.waits_for(SPOOL, 1);
        stage.waits_for("spool_failures", failures);
        assert!(client.response().expect(200).body == long, "{spool}");
        sending.join().expect("all is sent");
        stage.holds_nothing();
    }
}

#[test]
fn a_disk_without_room_is_counted_and_the_rest_goes_at_the_pace_of_the_client() {
    let Some(directory) = TempDir::with_room_for(1 << 20) else { return };
    let long = body(LONG);
    let spool = format!("directory = \"{}\"", directory.path().display());
    let stage = Stage::with_spool(&spool, "", "", directory);
    let mut client = stage.idler();
    let mut worker = stage.worker.accept();
    worker.request();
    let sent = long.clone();
    let sending = std::thread::spawn(move || {
        worker.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n\r\n")).send(&sent);
    });
    stage.waits_for("spool_failures", 1);
    assert!(client.response().expect(200).body == long);
    sending.join().expect("all is sent");
    stage.holds_nothing();
    within("a line about the disk", || {
        let log = stage.proxy.stderr();
        log.contains("bodies for slow clients cannot wait in files").then_some(())
    });
    assert!(stage.proxy.stderr().contains("No space left on device"), "{}", stage.proxy.stderr());
}

#[test]
fn a_client_that_leaves_frees_all_that_waited_for_it() {
    let stage = Stage::new("");
    let client = stage.idler();
    let mut worker = stage.worker.accept();
    worker.request();
    worker.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n\r\n")).send(body(LONG));
    stage.serves_another(&mut worker);
    assert!(stat(&stage.proxy, "spool_memory_bytes") > 0);
    client.reset();
    stage.holds_nothing();
}

#[test]
fn a_response_that_breaks_off_is_sent_as_far_as_it_came_and_then_cut() {
    let stage = Stage::new("");
    let half = body(LONG / 2);
    let mut client = stage.idler();
    let mut worker = stage.worker.accept();
    worker.request();
    worker.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n\r\n")).send(&half);
    drop(worker);
    within("its place to be free", || (stage.proxy.metric("backend_in_flight") == 0).then_some(()));
    let mut response = client.response_head().expect(200);
    assert!(client.try_response_body("GET", &mut response).is_err());
    assert!(response.body == half, "{} bytes", response.body.len());
    stage.holds_nothing();
    assert_eq!(stat(&stage.proxy, "bodies_truncated"), 1);
}

#[test]
fn an_upload_is_gathered_before_a_worker_is_engaged() {
    let stage = Stage::with_spool("", "", "gather = true", TempDir::new());
    let sent = body(3_000_000);
    let (first, second) = sent.split_at(2_000_000);
    for framing in ["Content-Length: 3000000", "Transfer-Encoding: chunked"] {
        let mut client = stage.proxy.connect();
        client.send(format!("PUT /up HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n{framing}\r\n\r\n"));
        assert_eq!(client.response_head().status, 100);
        let is_chunked = framing.starts_with('T');
        let frame = |piece: &[u8]| match is_chunked {
            true => [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat(),
            false => piece.to_vec(),
        };
        client.send(frame(first));
        within("most of it to be in a file", || {
            (stat(&stage.proxy, "spool_disk_bytes") > 1_000_000).then_some(())
        });
        assert!(stage.worker.is_silent());
        client.send(frame(second));
        if is_chunked {
            client.send("0\r\n\r\n");
        }
        let mut worker = stage.worker.accept();
        let request = worker.request();
        assert_eq!((request.field("content-length"), request.field("expect")), (Some("3000000"), None));
        assert!(request.body == sent);
        worker.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
        assert_eq!(client.response().expect(200).text(), "ok");
        stage.holds_nothing();
    }
    assert_eq!(stat(&stage.proxy, "bodies_gathered"), 2);
}

#[test]
fn a_gathered_upload_is_sent_again_from_its_file() {
    let (dying, living) = (Listener::new(), Listener::new());
    let text = format!(
        "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[pool.app]\nbackends = [\"{}\", \"{}\"]\n\
         balance = \"fallback\"\n[[route]]\npool = \"app\"\ngather = true\n",
        dying.url(),
        living.url()
    );
    let proxy = sandarac().config(text).start();
    let sent = body(5_000_000);
    let mut client = proxy.connect();
    client.send(request("PUT", "/up").body(&sent).to_bytes());
    let mut worker = dying.accept();
    worker.request_head();
    worker.read(1_000_000);
    drop(worker);
    let mut worker = living.accept();
    assert!(worker.request().body == sent);
    worker.send("HTTP/1.1 204 No Content\r\n\r\n");
    client.response().expect(204);
}

#[test]
fn an_upload_above_the_limit_is_forwarded_as_it_comes() {
    let stage = Stage::with_spool("", "gather_limit = \"64KiB\"", "gather = true", TempDir::new());
    let sent = body(200_000);
    let mut client = stage.proxy.connect();
    client.send("PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n").send(&sent[..1000]);
    let mut worker = stage.worker.accept();
    worker.request_head();
    assert_eq!(worker.read(1000), &sent[..1000]);
    client.send(&sent[1000..]);
    assert!(worker.read(199_000) == sent[1000..]);
    worker.send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    client.response().expect(204);
    assert_eq!(stat(&stage.proxy, "bodies_gathered"), 0);

    // The length of this one is not known before the limit is reached.
    let mut client = stage.proxy.connect();
    let text = "x".repeat(100_000);
    client.send(request("PUT", "/up").chunked(&[&text, &text]).to_bytes());
    let mut worker = stage.worker.accept();
    let request = worker.request();
    assert_eq!(request.field("transfer-encoding"), Some("chunked"));
    assert!(request.body == text.repeat(2).as_bytes());
    worker.send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    client.response().expect(204);
    stage.holds_nothing();
}

#[test]
fn what_may_be_a_conversation_is_not_gathered() {
    let stage = Stage::with_spool("", "# h2", "gather = true", TempDir::new());
    let mut client = stage.proxy.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nbe");
    let mut worker = Http2Server::accept(&stage.worker);
    let head = worker.request();
    assert_eq!(worker.partial(head.stream, 2), b"be");

    // Without the setting, a backend that speaks HTTP gets an upload as it comes.
    let stage = Stage::new("");
    let mut client = stage.proxy.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nbe");
    let mut worker = stage.worker.accept();
    worker.request_head();
    assert_eq!(worker.read(2), b"be");
}

/// Regression: the client's own `Content-Type: application/grpc` was enough for its body to hold a process of
/// PHP.
#[test]
fn the_word_of_a_client_that_it_speaks_grpc_does_not_have_it_hold_a_worker_that_does_not() {
    const PHP: &str = "fastcgi = { root = \"/srv\", local = false, front_controller = \"/index.php\" }";
    let body = |worker: &mut Conn, pool| match pool {
        PHP => worker.cgi_request().body,
        _ => worker.request().body,
    };
    for pool in [PHP, ""] {
        let stage = Stage::with_spool("", pool, "gather = true", TempDir::new());
        let waits = || {
            within("it to be gathered", || (stat(&stage.proxy, "spool_memory_bytes") > 0).then_some(()));
            assert!(stage.worker.is_silent());
        };
        let mut client = Http2::to(stage.proxy.address());
        let fields = [("content-type", "application/grpc"), ("te", "trailers"), ("content-length", "5")];
        let stream = client.post("/", &fields);
        client.data(stream, "be", false);
        waits();
        client.data(stream, "gin", true);
        let mut worker = stage.worker.accept();
        assert_eq!(body(&mut worker, pool), b"begin");
        drop(worker);
        stage.holds_nothing();

        let mut client = stage.proxy.connect();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\n");
        client.send("Content-Length: 5\r\n\r\nbe");
        waits();
        client.send("gin");
        assert_eq!(body(&mut stage.worker.accept(), pool), b"begin");
    }
}

/// Regression: so was it for the response to a GET to go at the pace of its client.
#[test]
fn a_client_that_says_it_speaks_grpc_is_read_ahead_of_unless_the_worker_speaks_http2() {
    let stage = Stage::new("");
    let long = body(LONG);
    for method in ["GET", "POST"] {
        let mut client = Http2::to(stage.proxy.address());
        client.gives_windows = false;
        let fields = [&usual(method, "/long")[..], &[("content-type", "application/grpc")]].concat();
        client.head(&fields, true);
        let mut worker = stage.worker.accept();
        worker.request();
        worker.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n\r\n")).send(&long);
        stage.serves_another(&mut worker);
        // The next request must not be sent on its connection.
        worker.finish();
    }
    let mut client = stage.proxy.connect();
    client.shrink_receive_buffer();
    client.send(get("/long").with("Content-Type", "application/grpc").to_bytes());
    let mut worker = stage.worker.accept();
    worker.request();
    worker.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n\r\n")).send(&long);
    stage.serves_another(&mut worker);
    assert_eq!(stat(&stage.proxy, SPOOL), 3);
}

/// Regression: nor did such a body have to come at the minimum rate.
#[test]
fn only_a_body_of_grpc_for_a_worker_that_speaks_http2_may_come_at_any_rate() {
    let limits = "[limits]\nmin_rate_in = \"100KiB\"\nmin_rate_after = \"1s\"";
    let fields = [("content-type", "application/grpc"), ("te", "trailers")];
    let stage = Stage::with_spool(&format!("disk = \"1MiB\"\n{limits}"), "", "", TempDir::new());
    let mut client = Http2::to(stage.proxy.address());
    let stream = client.post("/", &fields);
    client.data(stream, "b", false);
    let mut worker = stage.worker.accept();
    worker.request_head();
    assert_eq!(client.response(stream).status, 408);

    let stage = Stage::with_spool(&format!("disk = \"1MiB\"\n{limits}"), "# h2", "", TempDir::new());
    let mut client = Http2::to(stage.proxy.address());
    let stream = client.post("/", &fields);
    client.data(stream, "b", false);
    let mut worker = Http2Server::accept(&stage.worker);
    let asked = worker.request();
    worker.partial(asked.stream, 1);
    let other = client.post("/", &[]);
    client.data(other, "b", false);
    // It is judged by then.
    assert_eq!(client.response(other).status, 408);
    client.data(stream, "c", true);
    assert_eq!(worker.body(asked.stream).0, b"bc");
}

#[test]
fn a_short_upload_that_has_arrived_needs_no_gathering() {
    let stage = Stage::with_spool("", "", "gather = true", TempDir::new());
    let mut client = stage.proxy.connect().patient_for(Duration::from_secs(30));
    client.send(post("/", "short").to_bytes());
    let mut worker = stage.worker.accept();
    assert_eq!(worker.request().body, b"short");
    worker.send("HTTP/1.1 204 No Content\r\n\r\n");
    client.response().expect(204);
    assert_eq!(stat(&stage.proxy, "bodies_gathered"), 0);
}

/// A response of unknown length that turns out to be too large for the cache goes to its readers as it
/// arrives.
#[test]
fn a_slow_reader_of_an_object_that_is_too_large_holds_up_neither_the_worker_nor_other_readers() {
    let directory = TempDir::new();
    let spool = format!("directory = \"{}\"\n[cache]\nmax_object = \"1MiB\"", directory.path().display());
    let worker = Listener::new();
    let text = format!(
        "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[pool.app]\nbackends = [\"{}\"]\nmax_in_flight = 1\n\
         [[route]]\npool = \"app\"\n[spool]\n{spool}\n",
        worker.url()
    );
    let stage = Stage { proxy: sandarac().config(text).start(), worker, _directory: directory };
    let long = body(LONG);
    let mut slow = stage.idler();
    let mut worker = stage.worker.accept();
    worker.request();
    worker.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n");
    let mut other = stage.proxy.connect();
    other.send(get("/long").to_bytes());
    let mut response = other.response_head().expect(200);
    let sent = long.clone();
    let sending = std::thread::spawn(move || {
        for piece in sent.chunks(1_000_000) {
            worker.send([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
        }
        worker.send("0\r\n\r\n");
    });
    other.try_response_body("GET", &mut response).expect("a whole body");
    assert!(response.body == long);
    sending.join().expect("all is sent");
    within("the place to be free", || (stage.proxy.metric("backend_in_flight") == 0).then_some(()));
    assert!(slow.response().expect(200).body == long);
    stage.holds_nothing();
    assert!(stat(&stage.proxy, SPOOL) > 0);
    assert_eq!(stat(&stage.proxy, "clients_slow"), 0);
}
