//! FastCGI applications that are slow, full, broken or something else, and what each of them is sent.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use sandarac_test_support::fastcgi::{STDERR, STDOUT, end, record, record_of};
use sandarac_test_support::{Listener, PATIENCE, Response, Sandarac, TempDir, get, head, post, request};

use crate::{sandarac, stat};

const HEAD: &str = "Content-Type: text/plain\r\n\r\n";

/// A document root with the script `index.php`, and Sandarac before `backends`.
struct Site {
    proxy: Sandarac,
    _root: TempDir,
}

impl Site {
    fn new(backends: &[&Listener], pool: &str, fastcgi: &str) -> Site {
        let root = TempDir::new();
        std::fs::File::create(root.join("index.php"))
            .and_then(|mut file| file.write_all(b"<?php"))
            .expect("a file");
        let urls: Vec<String> = backends.iter().map(|listener| listener.fcgi_url()).collect();
        let config = format!(
            "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[pool.app]\nbackends = {urls:?}\n{pool}\n\
             [pool.app.fastcgi]\nroot = {:?}\nreal_path = false\n{fastcgi}\n[[route]]\npool = \"app\"\n\
             cache.default_ttl = \"1m\"\n",
            root.path().display().to_string()
        );
        Site { proxy: sandarac().config(config).start(), _root: root }
    }

    fn before(listener: &Listener) -> Site {
        Site::new(&[listener], "", "")
    }
}

/// The response to a GET that the application answers with these bytes, and then closes.
#[track_caller]
fn answered(bytes: &[u8]) -> Response {
    let listener = Listener::new();
    let site = Site::new(&[&listener], "retries = 0", "");
    let mut client = site.proxy.connect();
    client.send(get("/index.php").to_bytes());
    let mut application = listener.accept();
    application.cgi_request();
    let _ = application.try_send(bytes);
    drop(application);
    client.response()
}

#[test]
fn a_get_is_a_request_to_a_responder_and_its_output_is_the_response() {
    let listener = Listener::new();
    let site = Site::before(&listener);
    let mut client = site.proxy.connect();
    client.send(
        get("/index.php/a%2Fb?q=1").with("X-One", "1").with("X_One", "2").with("Proxy", "evil").to_bytes(),
    );
    let mut application = listener.accept();
    let sent = application.cgi_request();
    assert!(!sent.keep && sent.body.is_empty());
    for (name, value) in [
        ("SCRIPT_NAME", "/index.php"),
        ("PATH_INFO", "/a/b"),
        ("QUERY_STRING", "q=1"),
        ("REQUEST_URI", "/index.php/a%2Fb?q=1"),
        ("REQUEST_METHOD", "GET"),
        ("CONTENT_LENGTH", ""),
        ("REMOTE_ADDR", "127.0.0.1"),
        ("HTTP_X_ONE", "1"),
        ("REDIRECT_STATUS", "200"),
    ] {
        assert_eq!(sent.param(name), Some(value), "{name}");
    }
    assert!(sent.param("SCRIPT_FILENAME").is_some_and(|path| path.ends_with("/index.php")));
    assert_eq!(sent.param("HTTP_PROXY"), None);
    application
        .cgi_response("Status: 404 Not Found\nX-Powered-By: test\nContent-Type: text/plain\n\nnothing here");
    let response = client.response().expect(404);
    assert_eq!((response.text().as_str(), response.field("x-powered-by")), ("nothing here", Some("test")));
    assert!(!response.fields.has("status"));
    // It arrived whole, so its length is known without having been announced.
    assert_eq!(response.field("content-length"), Some("12"));
    application.expect_end();
}

/// Regression: the second of these pages was stored by the default lifetime of a 404.
#[test]
fn what_php_fpm_says_of_a_missing_script_is_not_stored() {
    for page in ["File not found.\n", "No input file specified.\n"] {
        let listener = Listener::new();
        let site = Site::before(&listener);
        for status in [404, 404, 200] {
            let mut client = site.proxy.connect();
            client.send(get("/index.php").to_bytes());
            let mut application = listener.accept();
            application.cgi_request();
            let text = if status == 404 { page } else { "here now" };
            application.cgi_response(&format!("Status: {status} Status\nContent-Type: text/html\n\n{text}"));
            assert_eq!(client.response().expect(status).text(), text);
        }
    }
}

#[test]
fn a_response_is_the_same_in_records_of_one_byte_with_padding() {
    let mut bytes = Vec::new();
    for byte in format!("{HEAD}hello").bytes() {
        bytes.extend(record_of(1, STDOUT, &[byte], 7));
        bytes.extend(record_of(1, STDERR, b"", 3));
    }
    bytes.truncate(bytes.len() - 11);
    // Answers about the connection that nobody asked for.
    bytes.extend(record_of(0, 10, b"\x0f\x01FCGI_MPXS_CONNS0", 0));
    bytes.extend(end(0));
    let response = answered(&bytes).expect(200);
    assert_eq!(response.text(), "hello");
}

#[test]
fn what_is_not_a_response_is_a_fault_of_the_backend() {
    let whole = [record(STDOUT, format!("{HEAD}x")), end(0)].concat();
    for (bytes, what) in [
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_vec(), "the bytes are not FastCGI"),
        (record_of(2, STDOUT, HEAD.as_bytes(), 0), "a record of another request"),
        ([record(5, "x"), whole.clone()].concat(), "a record of an unexpected type"),
        (end(0), "the response ended within its head"),
        ([record(STDOUT, "Content-Type: text"), end(0)].concat(), "the response ended within its head"),
        ([record(STDOUT, ""), record(STDOUT, HEAD)].concat(), "output after its end"),
        (record(3, "short"), "a malformed end record"),
        (end(1), "the application refused the request"),
        (record_of(1, STDERR, b"", 0).repeat(65), "too many records without content"),
        (record(STDOUT, "Status: 99\r\n\r\n"), "an invalid Status field"),
        (record(STDOUT, "Transfer-Encoding: chunked\r\n\r\n"), "a transfer coding in a CGI response"),
        (record(STDOUT, "<b>Fatal error</b>\r\n\r\n"), "invalid field name"),
        (record(STDOUT, "X: a\r\nY: b\n\r\n"), "LF without CR"),
        (
            [record(STDOUT, "X: ".to_owned() + &"a".repeat(60_000)), record(STDOUT, "a".repeat(10_000))]
                .concat(),
            "head too large",
        ),
        (record(STDOUT, "Content-Type"), "the backend closed the connection without a response"),
        (Vec::new(), "the backend closed the connection without a response"),
    ] {
        let response = answered(&bytes).expect(502);
        let told = response.field("proxy-status").unwrap_or_default();
        assert!(
            told.contains("sandarac") && response.text().contains(what) || told.contains(what),
            "{what}: {response:?}"
        );
    }
}

#[test]
fn a_response_without_its_end_is_broken_off_and_not_stored() {
    let listener = Listener::new();
    let site = Site::before(&listener);
    for head in [HEAD, "Content-Type: text/plain\r\nCache-Control: max-age=60\r\n\r\n"] {
        let mut client = site.proxy.connect();
        client.send(get("/index.php").to_bytes());
        let mut application = listener.accept();
        application.cgi_request();
        application.send(record(STDOUT, format!("{head}half")));
        let mut response = client.response_head();
        assert_eq!(response.status, 200);
        drop(application);
        assert!(client.try_response_body("GET", &mut response).is_err(), "{response:?}");
    }
    let mut client = site.proxy.connect();
    client.send(get("/index.php").to_bytes());
    let mut application = listener.accept();
    application.cgi_request();
    application.cgi_response("Cache-Control: max-age=60\r\n\r\nwhole");
    assert_eq!(client.response().expect(200).text(), "whole");
    assert!(site.proxy.get("/index.php").is_hit());
}

#[test]
fn content_length_bounds_the_body_and_what_it_lacks_is_missed() {
    let long = answered(&[record(STDOUT, "Content-Length: 4\r\n\r\nbody and more"), end(0)].concat());
    assert_eq!(long.expect(200).text(), "body");
    let listener = Listener::new();
    let site = Site::before(&listener);
    let mut client = site.proxy.connect();
    client.send(get("/index.php").to_bytes());
    let mut application = listener.accept();
    application.cgi_request();
    application.cgi_response("Content-Length: 9\r\n\r\nbody");
    assert_eq!(client.response_head().field("content-length"), Some("9"));
    assert_eq!(client.read_to_end(), b"body");
}

#[test]
fn the_body_of_a_response_to_head_is_dropped_but_read_to_its_end() {
    let listener = Listener::new();
    let site = Site::new(&[&listener], "", "");
    let mut client = site.proxy.connect();
    client.send(head("/index.php").with("Cache-Control", "no-cache").with("Authorization", "x").to_bytes());
    let mut application = listener.accept();
    assert_eq!(application.cgi_request().param("REQUEST_METHOD"), Some("HEAD"));
    application.cgi_response(&format!("{HEAD}{}", "a body ".repeat(5000)));
    client.response_to("HEAD").expect(200);
    application.expect_end();
}

#[test]
fn an_application_without_room_is_left_for_another_with_any_method() {
    let (full, free) = (Listener::new(), Listener::new());
    let site = Site::new(&[&full, &free], "balance = \"fallback\"", "");
    let mut client = site.proxy.connect();
    client.send(post("/index.php", "body").to_bytes());
    let mut refused = full.accept();
    assert_eq!(refused.cgi_request().body, b"body");
    refused.send(end(2));
    let mut application = free.accept();
    assert_eq!(application.cgi_request().body, b"body");
    application.cgi_response(&format!("{HEAD}done"));
    assert_eq!(client.response().expect(200).text(), "done");
}

#[test]
fn an_application_without_room_and_no_other_is_503() {
    assert!(answered(&end(2)).expect(503).text().contains("no room"));
}

#[test]
fn error_messages_go_to_the_log_with_their_request_bounded_and_counted() {
    let listener = Listener::new();
    let site = Site::before(&listener);
    let mut client = site.proxy.connect();
    client.send(get("/index.php").to_bytes());
    let mut application = listener.accept();
    application.cgi_request();
    application.send(record(STDERR, "PHP message: PHP Warning:  first\n"));
    let flood = record(STDERR, "x".repeat(60_000));
    for _ in 0..100 {
        application.send(&flood);
    }
    application.cgi_response(&format!("{HEAD}ok"));
    assert_eq!(client.response().expect(200).text(), "ok");
    site.proxy.says("pool app: request ");
    site.proxy.says("PHP message: PHP Warning:  first");
    site.proxy.says("bytes more");
    assert!(site.proxy.stderr().len() < 20_000);
    assert_eq!(stat(&site.proxy, "fastcgi_stderr_bytes"), 6_000_033);
}

#[test]
fn endless_error_messages_are_no_response() {
    let listener = Listener::new();
    let site = Site::new(&[&listener], "first_byte_timeout = \"500ms\"\nretries = 0", "");
    let mut client = site.proxy.connect();
    client.send(get("/index.php").to_bytes());
    let mut application = listener.accept();
    application.cgi_request();
    let flood = record(STDERR, "x".repeat(60_000));
    while application.try_send(&flood).is_ok() {}
    client.response().expect(504);
}

/// An echo that reads nothing more while it cannot write, and a client that sends and reads side by side.
#[test]
fn a_body_streams_up_while_the_output_streams_down() {
    const SIZE: usize = 20 << 20;
    let listener = Listener::new();
    let site = Site::before(&listener);
    let sandarac_test_support::Address::Tcp(address) = *site.proxy.address() else {
        panic!("it listens on TCP")
    };
    let mut client = TcpStream::connect(address).expect("a connection");
    let mut reader = client.try_clone().expect("a connection can be shared");
    let body: Vec<u8> = (0..SIZE).map(|at| (at / 7) as u8).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut application = listener.accept();
            application.cgi_head();
            application.send(record(STDOUT, HEAD));
            loop {
                let (kind, content) = application.record();
                assert_eq!(kind, 5);
                if content.is_empty() {
                    break;
                }
                application.send([record(STDOUT, &content), record(STDERR, ".")].concat());
            }
            application.send(end(0));
        });
        scope.spawn(|| {
            let head =
                format!("POST /index.php HTTP/1.0\r\nHost: www.example\r\nContent-Length: {SIZE}\r\n\r\n");
            client
                .write_all(head.as_bytes())
                .and_then(|()| client.write_all(&body))
                .expect("all of it is taken");
        });
        let mut received = Vec::new();
        reader.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        reader.read_to_end(&mut received).expect("a whole response");
        assert!(received.starts_with(b"HTTP/1.1 200 OK\r\n") && received.ends_with(&body));
    });
}

#[test]
fn a_body_of_unknown_length_is_gathered_and_then_has_one() {
    let listener = Listener::new();
    let site = Site::new(&[&listener], "gather_limit = \"100KiB\"", "");
    let mut client = site.proxy.connect();
    client.send("POST /index.php HTTP/1.1\r\nHost: www.example\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send("5\r\nfirst\r\n");
    let piece = "x".repeat(40_000);
    client.send(format!("{:x}\r\n{piece}\r\n", piece.len()));
    client.send(format!("{:x}\r\n{piece}\r\n0\r\n\r\n", piece.len()));
    let mut application = listener.accept();
    let sent = application.cgi_request();
    assert_eq!(sent.param("CONTENT_LENGTH"), Some("80005"));
    assert!(sent.body == format!("first{piece}{piece}").as_bytes());
    assert_eq!(sent.param("HTTP_TRANSFER_ENCODING"), None);
    application.cgi_response(&format!("{HEAD}ok"));
    client.response().expect(200);
    assert_eq!(stat(&site.proxy, "bodies_gathered"), 1);
}

#[test]
fn a_gathered_body_is_sent_again_to_another_backend() {
    let (full, free) = (Listener::new(), Listener::new());
    let site = Site::new(&[&full, &free], "balance = \"fallback\"", "");
    let body = "x".repeat(200_000);
    let mut client = site.proxy.connect();
    client.send(request("PUT", "/index.php").chunked(&[&body, "end"]).to_bytes());
    full.accept().cgi_request();
    let mut application = free.accept();
    assert!(application.cgi_request().body == (body + "end").as_bytes());
    application.cgi_response(HEAD);
    client.response().expect(200);
}

#[test]
fn a_body_that_cannot_be_gathered_is_413_and_one_of_known_length_streams() {
    let listener = Listener::new();
    let site = Site::new(&[&listener], "gather_limit = \"1KiB\"", "");
    let body = "x".repeat(1025);
    site.proxy.exchange(&request("POST", "/index.php").chunked(&[&body])).expect(413);
    assert!(listener.is_silent());
    let mut client = site.proxy.connect();
    client.send(post("/index.php", &body).to_bytes());
    let mut application = listener.accept();
    assert_eq!(application.cgi_request().body, body.as_bytes());
    application.cgi_response(HEAD);
    client.response().expect(200);
}

/// Regression: 100 was queued for a socket that had just been registered with the runtime, and stayed in the queue.
#[test]
fn a_client_that_waits_for_100_is_told_to_go_on() {
    let listener = Listener::new();
    let site = Site::before(&listener);
    let head = "POST /index.php HTTP/1.1\r\nHost: www.example\r\nExpect: 100-continue\r\n";
    for (framing, body) in [
        ("Content-Length: 4\r\n\r\n", "body"),
        ("Transfer-Encoding: chunked\r\n\r\n", "4\r\nbody\r\n0\r\n\r\n"),
    ] {
        let mut client = site.proxy.connect();
        client.send([head, framing].concat());
        assert_eq!(client.response_head().status, 100, "{framing}");
        client.send(body);
        let mut application = listener.accept();
        let sent = application.cgi_request();
        assert_eq!((sent.body.as_slice(), sent.param("HTTP_EXPECT")), (&b"body"[..], None));
        application.cgi_response(&format!("{HEAD}ok"));
        assert_eq!(client.response().expect(200).text(), "ok");
    }
}

#[test]
fn a_request_whose_client_leaves_is_aborted_by_the_end_of_its_connection() {
    let listener = Listener::new();
    let site = Site::before(&listener);
    let mut client = site.proxy.connect();
    client.send(post("/index.php", "body").to_bytes());
    let mut application = listener.accept();
    application.cgi_request();
    drop(client);
    application.expect_end();
}

#[test]
fn an_early_end_is_a_whole_response_and_the_connection_is_not_used_again() {
    let listener = Listener::new();
    let site = Site::new(&[&listener], "gather_limit = \"100KiB\"", "keep_alive = true");
    let mut client = site.proxy.connect();
    client.send("POST /index.php HTTP/1.1\r\nHost: www.example\r\nContent-Length: 1000000\r\n\r\nbegun");
    let mut application = listener.accept();
    application.cgi_head();
    application.cgi_response("Status: 403\r\nContent-Length: 2\r\n\r\nno");
    assert_eq!(client.response().expect(403).text(), "no");
    application.read_to_end();
}

#[test]
fn a_kept_connection_serves_the_next_request() {
    let listener = Listener::new();
    let site = Site::new(&[&listener], "", "keep_alive = true");
    let mut client = site.proxy.connect();
    client.send(post("/index.php", "one").to_bytes());
    let mut application = listener.accept();
    assert!(application.cgi_request().keep);
    application.cgi_response(&format!("{HEAD}1"));
    client.response().expect(200);
    client.send(post("/index.php", "two").to_bytes());
    let second = application.cgi_request();
    assert_eq!((second.id, second.body.as_slice()), (2, &b"two"[..]));
    application.send(second.response(&format!("{HEAD}2")));
    assert_eq!(client.response().expect(200).text(), "2");
    assert!(listener.is_silent());
}

/// Regression: every request had the id 1, so a late response of one user was the page of the next.
#[test]
fn a_late_response_on_a_kept_connection_answers_nobody() {
    let listener = Listener::new();
    let site = Site::new(&[&listener], "", "keep_alive = true");
    let page = |text: &str| format!("Content-Type: text/plain\r\nCache-Control: no-store\r\n\r\n{text}");
    let mut client = site.proxy.connect();
    for (may_be_repeated, second) in [(true, get("/index.php?two")), (false, post("/index.php?two", "two"))] {
        client.send(get("/index.php?one").to_bytes());
        let mut application = listener.accept();
        let first = application.cgi_request();
        application.send(first.response(&page("one")));
        assert_eq!(client.response().expect(200).text(), "one");
        client.send(second.to_bytes());
        let sent = application.cgi_request();
        assert_ne!(sent.id, first.id);
        application.send([first.response(&page("one again")), sent.response(&page("two"))].concat());
        if may_be_repeated {
            let mut another = listener.accept();
            let again = another.cgi_request();
            assert_eq!(again.id, 1);
            another.send(again.response(&page("two")));
            assert_eq!(client.response().expect(200).text(), "two");
        } else {
            let refused = client.response().expect(502);
            assert!(refused.text().contains("a record of another request"), "{refused:?}");
        }
        application.expect_end();
    }
    assert_eq!(stat(&site.proxy, "origin_connections_stray"), 2);
}

#[test]
fn a_late_response_within_the_next_one_breaks_it_off() {
    let listener = Listener::new();
    let site = Site::new(&[&listener], "", "keep_alive = true");
    let mut client = site.proxy.connect();
    client.send(post("/index.php", "one").to_bytes());
    let mut application = listener.accept();
    let first = application.cgi_request();
    application.send(first.response(&format!("{HEAD}one")));
    client.response().expect(200);
    client.send(post("/index.php", "two").to_bytes());
    let second = application.cgi_request();
    application.send(record_of(second.id, STDOUT, format!("{HEAD}tw").as_bytes(), 0));
    let mut response = client.response_head();
    application.send(first.response("one again"));
    assert!(client.try_response_body("POST", &mut response).is_err());
    assert!(!String::from_utf8_lossy(&response.body).contains("again"), "{response:?}");
    application.expect_end();
    assert_eq!(stat(&site.proxy, "origin_connections_stray"), 1);
}

#[test]
fn a_connection_with_unread_bytes_serves_no_other_request() {
    for at_once in [true, false] {
        let listener = Listener::new();
        let site = Site::new(&[&listener], "", "keep_alive = true");
        let mut client = site.proxy.connect();
        client.send(post("/index.php", "one").to_bytes());
        let mut application = listener.accept();
        let first = application.cgi_request();
        let (whole, stray) = (first.response(&format!("{HEAD}one")), first.response(&format!("{HEAD}stray")));
        if at_once {
            application.send([whole, stray].concat());
            client.response().expect(200);
        } else {
            application.send(whole);
            client.response().expect(200);
            // It waits in the socket before the next request is sent.
            site.proxy.paused(|| application.send(stray));
        }
        client.send(post("/index.php", "two").to_bytes());
        let mut another = listener.accept();
        let second = another.cgi_request();
        another.send(second.response(&format!("{HEAD}two")));
        assert_eq!(client.response().expect(200).text(), "two");
        application.expect_end();
        assert_eq!(stat(&site.proxy, "origin_connections_stray"), 1, "at once: {at_once}");
    }
}

/// A process of php-fpm that has a connection accepts no other.
#[test]
fn an_idle_connection_gives_way_to_a_request_that_waits() {
    let listener = Listener::new();
    let site = Site::new(&[&listener], "idle_timeout = \"1m\"", "keep_alive = true");
    let (mut first, mut second) = (site.proxy.connect(), site.proxy.connect());
    first.send(post("/index.php", "one").to_bytes());
    let mut process = listener.accept();
    process.cgi_request();
    second.send(post("/index.php", "two").to_bytes());
    // The only process is busy; the second connection waits in the queue of the socket.
    site.proxy.counts("origin_connections", 2);
    process.cgi_response(&format!("{HEAD}1"));
    first.response().expect(200);
    process.expect_end();
    let mut process = listener.accept();
    assert_eq!(process.cgi_request().body, b"two");
    process.cgi_response(&format!("{HEAD}2"));
    second.response().expect(200);
}

#[test]
fn a_path_that_leads_to_no_script_reaches_no_application() {
    let listener = Listener::new();
    let site = Site::before(&listener);
    for path in ["/image.png/x.php", "/other.php", "/index.php5", "/blog/", "/a/../b.php"] {
        assert!(site.proxy.get(path).expect(404).text().contains("no script"), "{path}");
    }
    assert!(listener.is_silent());
}

#[test]
fn an_active_check_asks_for_the_ping_of_php_fpm() {
    let listener = Listener::new();
    let site = Site::new(&[&listener], "check = { path = \"/ping\", interval = \"50ms\", fall = 1 }", "");
    let mut process = listener.accept();
    let sent = process.cgi_request();
    assert_eq!((sent.param("SCRIPT_NAME"), sent.param("REQUEST_URI")), (Some("/ping"), Some("/ping")));
    process.cgi_response("Content-type: text/plain\r\n\r\npong");
    let mut process = listener.accept();
    process.cgi_request();
    process.cgi_response("Status: 500\r\n\r\n");
    site.proxy.says("it answered 500");
}
