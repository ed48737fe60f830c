//! Unsolicited bytes from an origin: they are never taken for the response to another request.

use std::sync::{Arc, Mutex};

use sandarac_test_support::{
    Conn, Gate, Listener, Origin, Port, Reply, Request, Sandarac, Worker, get, head, post, reply,
};

use crate::{sandarac, site, stat};

/// A response to no request, which would be stored if it were taken for the response to one.
const STRAY: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 5\r\n\r\nstray";

/// The number of attempts at a race.
const TRIES: usize = 60;

/// One core before an origin that answers by `rule`.
fn before(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Sandarac, Origin) {
    let origin = Origin::new(rule);
    (sandarac().before(&origin).option("--threads", "1").start(), origin)
}

/// A response whose body is the target.
fn own(request: &Request) -> Reply {
    reply(200).cache("no-store").body(&request.target)
}

fn encoded(target: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: {}\r\n\r\n{target}", target.len())
}

/// Regression: a body that followed the response to HEAD in a second write was taken for the response to the next request.
#[test]
fn a_body_behind_the_response_to_head_answers_nobody() {
    let (proxy, _origin) = before(|request| match &*request.method {
        "HEAD" => Reply::verbatim("HTTP/1.1 200 OK\r\nContent-Length: 83\r\n\r\n").body(STRAY),
        _ => own(request),
    });
    for number in 0..TRIES {
        let mut client = proxy.connect();
        let target = |which| format!("/{which}/{number}");
        let requests = [head(&target("head")), get(&target("one")), get(&target("two"))];
        client.send(requests.iter().flat_map(|request| request.to_bytes()).collect::<Vec<_>>());
        client.response_to("HEAD").expect(200);
        for which in ["one", "two"] {
            assert_eq!(client.response().expect(200).body, target(which).as_bytes());
        }
    }
}

#[test]
fn a_connection_is_kept_after_head_where_the_response_says_that_nothing_follows() {
    let (proxy, origin) = before(|request| match &*request.target {
        "/none" => reply(204).cache("no-store"),
        "/empty" => reply(200).cache("no-store"),
        "/unchanged" => reply(304),
        _ => reply(200).cache("no-store").body("body"),
    });
    let mut client = proxy.connect();
    for target in ["/none", "/empty", "/unchanged", "/none"] {
        client.exchange(&head(target).with("Cookie", "a=b").with("If-None-Match", "\"v1\""));
    }
    assert_eq!(origin.connections(), 1);
    client.exchange(&head("/body")).expect(200);
    client.exchange(&get("/body")).expect(200);
    assert_eq!(origin.connections(), 2);
}

#[test]
fn a_second_response_in_one_write_with_the_first_answers_nobody() {
    let (proxy, _origin) = before(|request| Reply::verbatim(encoded(&request.target) + STRAY));
    let mut client = proxy.connect();
    let requests = ["/one", "/two", "/three"].map(|target| get(target).to_bytes()).concat();
    client.send(requests);
    for target in ["/one", "/two", "/three"] {
        assert_eq!(client.response().expect(200).body, target.as_bytes());
    }
    assert_eq!(stat(&proxy, "origin_connections_stray"), 3);
}

#[test]
fn a_second_response_that_comes_while_the_connection_waits_answers_nobody() {
    let sent = Arc::new(Mutex::new(Gate::new()));
    let gates = sent.clone();
    let (proxy, _origin) = before(move |request| {
        let gate = gates.lock().expect("nobody panics with it").clone();
        Reply::verbatim(encoded(&request.target)).body(STRAY).pause(&gate)
    });
    let mut client = proxy.connect();
    for number in 0..20 {
        let target = format!("/{number}");
        assert_eq!(client.get(&target).expect(200).body, target.as_bytes());
        // Wait until all of the stray response has been sent, because bytes that arrive after the next request look like its
        // response.
        let gate = std::mem::take(&mut *sent.lock().expect("nobody panics with it"));
        gate.reached(1);
        gate.open();
    }
}

#[test]
fn a_response_that_is_there_before_the_request_answers_nobody() {
    let port = Port::new();
    let listener = port.listen_for(0);
    let _waiting = Conn::to(listener.address());
    let proxy = sandarac().before_listener(&listener).option("--threads", "1").start();
    let mut client = proxy.connect();
    client.send(post("/", "body").to_bytes());
    // The listener's backlog is full, so the proxy's connect is pending. The proxy is paused until the connection is accepted
    // and has received a response.
    proxy.counts("origin_connections", 1);
    let mut origin = proxy.paused(|| {
        listener.accept();
        let mut origin = listener.accept();
        origin.send(STRAY);
        origin
    });
    let response = client.response().expect(502);
    let why =
        "sandarac; error=http_protocol_error; details=\"the backend sent a response before the request\"";
    assert_eq!(response.field("proxy-status"), Some(why));
    origin.expect_end();
    assert_eq!(stat(&proxy, "origin_connections_stray"), 1);
}

/// Regression: a worker's body in the response to the request for its version was taken for the next response.
#[test]
fn a_worker_that_answers_the_question_for_its_version_with_a_body_serves() {
    for body in [STRAY, "{\"id\":\"w0\",\"rev\":1,\"by\":\"6f1c0a92d3b4e587\",\"skills\":{}}"] {
        let worker = Worker::new("w0", &[]);
        worker.runs("1").answers(|request| reply(200).cache("no-store").body(&request.target));
        worker.tells(move |request| match &*request.method {
            "HEAD" => Reply::verbatim(format!(
                "HTTP/1.1 200 OK\r\nWorker-State: id=\"w0\", rev=1, inflight=0, version=\"1\"\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )),
            _ => reply(404),
        });
        let keys = "balance = \"resume\"\nsingle_version = true";
        let proxy = sandarac().config(site(&worker.url(), keys, "")).start();
        for number in 0..20 {
            let mut client = proxy.connect();
            for which in 0..3 {
                let target = format!("/{number}/{which}");
                assert_eq!(client.get(&target).expect(200).body, target.as_bytes());
            }
        }
    }
}

/// The end of the connection arrives in one segment with the response, so that it is there before the next request.
#[test]
fn a_connection_that_has_ended_is_not_given_a_request_that_is_sent_once() {
    let (proxy, origin) = before(|request| own(request).corked().cut());
    for number in 0..TRIES {
        let mut client = proxy.connect();
        let target = format!("/{number}");
        client.send([get(&target).to_bytes(), post(&target, "body").to_bytes()].concat());
        client.response().expect(200);
        client.response().expect(200);
    }
    assert_eq!(origin.connections(), 2 * TRIES);
}

/// cheroot does not drain chunks that its application left unread, and takes their first size line for a request. aiohttp does
/// not read requests that follow an upgrade request. Either way, its answer would be taken for the response to the next
/// request.
#[test]
fn a_connection_is_not_kept_where_the_backend_may_have_left_a_part_of_the_request() {
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let proxy = sandarac().before(&origin).option("--threads", "1").start();
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let upgrade = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    let length = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    // The first chunked request uses the connection kept from before.
    for (request, connections) in [(length, 1), (chunked, 2), (upgrade, 3)] {
        let before = origin.connections();
        for _ in 0..3 {
            let mut client = proxy.connect();
            client.send(request).response().expect(200);
        }
        assert_eq!(origin.connections() - before, connections, "{request}");
    }
}

#[test]
fn a_length_with_leading_zeros_goes_on_without_them() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    let mut origin = listener.accept();
    origin.request();
    origin.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 0005\r\n\r\nhello");
    assert_eq!(client.response().expect(200).field("content-length"), Some("5"));
    assert_eq!(proxy.get("/").expect(200).field("content-length"), Some("5"));
}

#[test]
fn a_part_that_says_two_places_is_not_stored() {
    let origin = Origin::new(|_| {
        let part = reply(206).cache("max-age=60").with("ETag", "\"e\"").body("hello");
        part.with("Content-Range", "bytes 5-9/100").with("Content-Range", "bytes 6-10/100")
    });
    let proxy = sandarac().before(&origin).start();
    for asked in 1..=2 {
        proxy.exchange(&get("/").with("Range", "bytes=5-9")).expect(206);
        assert_eq!(origin.count(), asked);
    }
}
