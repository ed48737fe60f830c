//! The résumé protocol is between balancers and workers: clients can neither use it nor see it.

use sandarac_test_support::{Listener, Origin, Reply, Req, Sandarac, Worker, get, reply, request};

use crate::{pool, sandarac};

/// The fields of the protocol.
const FIELDS: [&str; 3] = ["request-class", "worker-state", "worker-skills"];

/// `request` with all fields of the protocol, some of them twice and in unusual case.
fn meddling(request: Req) -> Req {
    request
        .with("Request-Class", "\"forged\";by=\"0123456789abcdef\"")
        .with("REQUEST-CLASS", "\"forged\";by=\"0123456789abcdef\"")
        .with("worker-state", "id=\"forged\", rev=1, inflight=0")
        .with("Worker-Skills", "\"a.example\";score=1000000")
}

/// Pools that go by résumés and pools that do not, before a worker.
fn pools(worker: &Worker) -> Vec<Sandarac> {
    [
        "balance = \"resume\"",
        "balance = \"resume\"\nresume = { skills = \"inferred\" }",
        "balance = \"round_robin\"",
        "",
    ]
    .map(|keys| sandarac().config(pool(&[worker.url()], keys)).start())
    .into()
}

/// A response with all fields of the protocol, wherever a field can be.
fn talkative() -> Reply {
    reply(200)
        .interim(103, "Link: </a>\r\nWorker-State: id=\"w1\", rev=1, inflight=0\r\nRequest-Class: \"a\"\r\n")
        .with("Request-Class", "\"a.example\"")
        .with("WORKER-STATE", "id=\"w1\", rev=1, inflight=0")
        .with("Worker-Skills", "\"a.example\";score=1.5")
        .with("Worker-Skills", "\"b.example\";score=1.5")
        .chunked()
        .body("page")
        .trailer("Worker-Skills", "\"a.example\";score=2.5")
        .trailer("worker-state", "id=\"w1\", rev=2, inflight=0")
        .trailer("X-Sum", "1")
}

#[test]
fn what_a_client_says_is_not_passed_on() {
    let worker = Worker::new("w1", &[]);
    for proxy in pools(&worker) {
        proxy.exchange(&meddling(get("/").host("a.example"))).expect(200);
        let served = worker.served().pop().expect("a request at the worker");
        assert!(!format!("{served:?}").contains("forged"), "{served:?}");
        assert!(served.fields.all("request-class").len() <= 1, "{served:?}");
    }
}

#[test]
fn what_a_client_says_in_trailers_is_not_passed_on() {
    let worker = Worker::new("w1", &[]);
    for proxy in pools(&worker) {
        let mut client = proxy.connect();
        client.send(
            "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 1\r\n\
             Request-Class: \"forged\"\r\nworker-state: id=\"forged\"\r\nWorker-Skills: \"forged\"\r\n\r\n",
        );
        client.response().expect(200);
        let served = worker.served().pop().expect("a request at the worker");
        assert_eq!(served.text(), "body");
        assert!(!format!("{served:?}").contains("forged"), "{served:?}");
    }
}

#[test]
fn a_pool_without_resumes_tells_no_classes() {
    let worker = Worker::new("w1", &[]);
    for keys in [
        "balance = \"round_robin\"",
        "balance = \"maglev\"",
        "balance = \"resume\"\nresume = { skills = \"inferred\" }",
    ] {
        let proxy = sandarac().config(pool(&[worker.url()], keys)).start();
        proxy.get("/").expect(200);
        let served = worker.served().pop().expect("a request at the worker");
        assert!(!served.fields.has("request-class"), "{keys}: {served:?}");
    }
    assert_eq!(worker.asked().len(), 0, "and asks for none");
}

#[test]
fn what_a_worker_says_does_not_reach_clients() {
    let worker = Worker::new("w1", &[]);
    worker.answers(|_| talkative());
    for proxy in pools(&worker) {
        let response = proxy.exchange(&get("/").host("a.example").with("TE", "trailers")).expect(200);
        assert_eq!(response.text(), "page");
        for part in response
            .interim
            .iter()
            .map(|interim| &interim.fields)
            .chain([&response.fields, &response.trailers])
        {
            assert!(FIELDS.iter().all(|field| !part.has(field)), "{response:?}");
        }
        let links: Vec<u16> = response.interim.iter().map(|interim| interim.status).collect();
        assert_eq!(links, [103], "the rest goes on");
        assert_eq!(response.trailers.get("x-sum"), Some("1"), "the rest goes on");
    }
}

#[test]
fn errors_of_a_worker_do_not_tell_of_it_either() {
    let worker = Worker::new("w1", &[]);
    for status in [304, 404, 500, 503] {
        worker.answers(move |_| reply(status).with("Request-Class", "x"));
        for proxy in pools(&worker) {
            let response = proxy.exchange(&get("/").with("If-None-Match", "\"v1\"")).expect(status);
            assert!(FIELDS.iter().all(|field| !response.fields.has(field)), "{response:?}");
        }
    }
}

#[test]
fn what_is_stored_tells_nothing_of_workers() {
    let worker = Worker::new("w1", &[]);
    worker.answers(|request| {
        if request.fields.has("if-none-match") {
            let state = "id=\"w1\", rev=1, inflight=0";
            return reply(304).with("ETag", "\"1\"").cache("max-age=60").with("Worker-State", state);
        }
        let answer = talkative().with("ETag", "\"1\"");
        if request.path() == "/stale" { answer.cache("max-age=0") } else { answer.cache("max-age=60") }
    });
    for keys in ["balance = \"resume\"", "balance = \"round_robin\""] {
        let text = pool(&[worker.url()], keys).replace("cache = \"pass\"", "cache = \"lookup\"");
        let proxy = sandarac().config(text).rfc().start();
        for path in ["/fresh", "/fresh", "/stale", "/stale", "/stale"] {
            let response = proxy.exchange(&get(path).host("a.example").with("TE", "trailers")).expect(200);
            assert!(!format!("{response:?}").to_ascii_lowercase().contains("worker-s"), "{response:?}");
            assert!(!response.fields.has("request-class"), "{response:?}");
        }
        assert!(proxy.exchange(&get("/fresh").host("a.example")).expect(200).is_hit());
    }
}

#[test]
fn an_upgrade_tells_nothing_of_the_worker() {
    let listener = Listener::new();
    let proxy = sandarac().config(pool(&[listener.url()], "balance = \"resume\"")).start();
    let mut asked = listener.accept();
    asked.request();
    asked.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let mut client = proxy.connect();
    client.send(meddling(get("/").with("Connection", "Upgrade").with("Upgrade", "websocket")).to_bytes());
    let mut worker = listener.accept();
    let request = worker.request();
    assert!(
        request.field("request-class").is_some_and(|class| class.starts_with("\"example\"")),
        "{request:?}"
    );
    worker.send(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Worker-State: id=\"w1\", rev=1, inflight=0\r\nWorker-Skills: \"a\";score=1.0\r\n\r\nhello",
    );
    let response = client.response_head().expect(101);
    assert!(FIELDS.iter().all(|field| !response.fields.has(field)), "{response:?}");
    client.expect("hello");
}

#[test]
fn clients_do_not_reach_a_workers_resume() {
    let worker = Worker::new("w1", &[("a.example", 1.0)]);
    let proxy = sandarac().config(pool(&[worker.url()], "balance = \"resume\"")).start();
    worker.is_asked(1);
    for target in [
        "/.well-known/worker-resume",
        "/.well-known/worker-resume?by=0123456789abcdef",
        "/.well-known/worker-resume?",
        "/%2ewell-known/worker-resume?by=0123456789abcdef",
        "/.well-known/worker%2Dresume?by=0123456789abcdef",
        "/%2E%77ell-known/%77orker-resume",
        "/./.well-known/./worker-resume?by=0123456789abcdef",
        "/x/../.well-known/worker-resume?by=0123456789abcdef",
        "/x/%2e%2E/.well-known/worker-resume?by=0123456789abcdef",
        "/.well-known/x/../worker-resume?by=0123456789abcdef",
        "http://a.example/.well-known/worker-resume?by=0123456789abcdef",
        "http://a.example/x/../%2ewell-known/worker-resume?by=0123456789abcdef",
    ] {
        for method in ["GET", "HEAD", "POST", "PUT", "OPTIONS"] {
            proxy.connect().exchange(&request(method, target).host("a.example")).expect(404);
        }
    }
    assert_eq!(worker.served().len(), 0);
    assert_eq!(worker.asked().len(), 1);
}

/// A target that a worker's server might take for the résumé is either refused, or forwarded as plainly another path.
#[test]
fn clients_do_not_reach_a_workers_resume_by_slashes_either() {
    let worker = Worker::new("w1", &[]);
    let proxy = sandarac().config(pool(&[worker.url()], "balance = \"resume\"")).start();
    worker.is_asked(1);
    for target in [
        "/.well-known%2Fworker-resume?by=0123456789abcdef",
        "/.well-known%2fworker-resume",
        "//.well-known/worker-resume?by=0123456789abcdef",
        "/.well-known//worker-resume?by=0123456789abcdef",
        "/.well-known/worker-resume/",
        "/.well-known/worker-resume/.",
        "/.well-known/worker-resume/x/..",
        "/../.well-known/worker-resume",
    ] {
        let response = proxy.get(target);
        assert!(matches!(response.status, 400 | 404), "{target}: {response:?}");
    }
    assert_eq!(worker.served().len(), 0);
    assert_eq!(worker.asked().len(), 1);
}

#[test]
fn the_resume_is_closed_whatever_a_pool_goes_by() {
    let origin = Origin::new(|_| reply(200).body("open"));
    let proxy = sandarac().before(&origin).start();
    proxy.get("/.well-known/worker-resume?by=0123456789abcdef").expect(404);
    assert_eq!(proxy.get("/.well-known/other").expect(200).text(), "open");
    assert_eq!(proxy.get("/worker-resume").expect(200).text(), "open");
    assert_eq!(origin.count(), 2);
}
