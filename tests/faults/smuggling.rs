//! Messages on whose end or meaning two parsers could disagree (RFC 9112 §11), over the network.
//!
//! The corpus is that of the codec. Here the whole binary must refuse, close, and let nothing through.

use sandarac_test_support::{Conn, Listener, Origin, Sandarac, Trouble, get, reply, request};

use crate::corpus::{self, Case};
use crate::{sandarac, site};

/// The limits for which the corpus is made.
const LIMITS: &str = "[limits]\nhead = \"32KiB\"\nfields = 100\ntarget = \"8KiB\"\nresponse_head = \"32KiB\"";

fn start(backend: &str) -> Sandarac {
    sandarac().config(site(backend, "", LIMITS)).start()
}

/// Fails with a list of all failed cases of a run.
fn report(faults: Vec<String>) {
    assert!(faults.is_empty(), "{} cases failed:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_request_of_the_corpus_is_refused_and_its_connection_closed() {
    let origin = Origin::new(|_| reply(200).body("reached"));
    let proxy = start(&origin.url());
    let mut faults = Vec::new();
    for case in corpus::load("requests.txt") {
        let mut client = proxy.connect();
        // The refusal and the close may come before all is sent.
        let _ = client.try_send(&case.bytes);
        client.finish();
        match client.try_response("GET") {
            Ok(response) if response.status == case.status => {
                let rest = client.read_to_end();
                if !rest.is_empty() {
                    faults.push(format!(
                        "{}: {} bytes after the refusal ({})",
                        case.name,
                        rest.len(),
                        case.naive
                    ));
                }
            }
            other => faults
                .push(format!("{}: expected {} {}, got {other:?}", case.name, case.refusal, case.status)),
        }
    }
    proxy.get("/sentinel").expect(200);
    // Not even the head of a request with a malformed body may reach the origin.
    let through = origin.requests().into_iter().filter(|request| request.target != "/sentinel");
    faults.extend(through.map(|request| format!("{} {} reached the origin", request.method, request.target)));
    report(faults);
}

#[test]
fn a_refusal_ends_the_connection_while_the_client_goes_on() {
    let origin = Origin::new(|_| reply(200));
    let proxy = start(&origin.url());
    let mut client = proxy.connect();
    client.send(get("/before").to_bytes());
    client.response().expect(200);
    client.send("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    let _ = client.try_send(get("/smuggled").to_bytes());
    client.response().expect(400);
    client.expect_end();
    proxy.get("/sentinel");
    assert_eq!(origin.count_of("/before"), 1);
    assert_eq!(origin.count_of("/smuggled"), 0);
    assert_eq!(origin.count(), 2);
}

/// Whether `outcome` is that of a refused response: a 502, or a truncated response if the head had already been forwarded.
fn is_refused(outcome: &Result<sandarac_test_support::Response, Trouble>) -> bool {
    match outcome {
        Ok(response) => response.status == 502,
        Err(Trouble::Closed(_) | Trouble::Reset(_)) => true,
        Err(_) => false,
    }
}

fn answer_with(case: &Case, listener: &Listener, client: &mut Conn, target: &str) -> Conn {
    client.send(request(&case.method, target).to_bytes());
    let mut origin = listener.accept();
    let _ = origin.try_request();
    let _ = origin.try_send(&case.bytes);
    origin.finish();
    origin
}

/// Whether the client got the response described in `repaired`; the head of the corpus explains the format.
fn is_as_repaired(repaired: &str, outcome: &Result<sandarac_test_support::Response, Trouble>) -> bool {
    let (_, message) = repaired.split_once(": ").expect("the repairs stand first");
    let (head, body) = message.rsplit_once(" | ").expect("the body stands last");
    let mut parts = head.split(" | ");
    let start = parts.next().unwrap_or_default();
    let Ok(response) = outcome else { return false };
    let is_as_sent = |field: &str| {
        let (name, value) = field.split_once(": ").unwrap_or((field, ""));
        name == "Transfer-Encoding" || response.field(name) == Some(value)
    };
    format!("{} {}", response.status, response.reason) == start
        && response.text() == body
        && parts.all(is_as_sent)
}

#[test]
fn every_response_of_the_corpus_is_refused_or_repaired_and_its_connection_closed() {
    let listener = Listener::new();
    let proxy = start(&listener.url());
    let mut faults = Vec::new();
    for (number, case) in corpus::load("responses.txt").into_iter().enumerate() {
        let target = format!("/{number}");
        let mut client = proxy.connect();
        let mut origin = answer_with(&case, &listener, &mut client, &target);
        let outcome = client.try_response(&case.method);
        match &case.repaired {
            None if !is_refused(&outcome) => {
                faults.push(format!(
                    "{}: expected {}, got {outcome:?} ({})",
                    case.name, case.refusal, case.naive
                ));
            }
            Some(repaired) if !is_as_repaired(repaired, &outcome) => {
                faults.push(format!("{}: expected {repaired}, got {outcome:?}", case.name));
            }
            _ => {}
        }
        origin.read_to_end();
        let mut second = proxy.connect();
        // A repaired response may be stored, so the second request uses another target.
        let target = if case.repaired.is_some() { format!("{target}/other") } else { target };
        second.send(get(&target).to_bytes());
        let mut origin = listener.accept();
        origin.request();
        origin.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: 5\r\n\r\nclean");
        match second.try_response("GET") {
            Ok(response) if response.text() == "clean" => {}
            other => faults.push(format!("{}: the next request got {other:?}", case.name)),
        }
    }
    report(faults);
    let stats = proxy.admin_json(&["stats", "--json"]);
    let metrics = stats["metrics"].as_array().expect("metrics").iter();
    let repaired: Vec<_> = metrics.filter(|metric| metric["name"] == "responses_repaired").collect();
    assert!(repaired.len() == 9 && repaired.iter().all(|metric| metric["value"] != 0), "{repaired:?}");
}

/// The origin keeps the connection open and sends more bytes, which belong to no response.
#[test]
fn nothing_that_follows_a_repaired_response_is_read() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).option("--threads", "1").start();
    let sloppy = [
        "HTTP/1.1 204 No Content\r\nContent-Length: 8\r\n\r\npoisoned",
        "HTTP/1.1 200 OK\nCache-Control: no-store\nContent-Length: 2\n\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2 \r\nok\r\n0\r\n\r\n",
    ];
    for (number, sloppy) in sloppy.into_iter().enumerate() {
        let mut client = proxy.connect();
        client.send(get(&format!("/{number}")).to_bytes());
        let mut origin = listener.accept();
        origin.request();
        origin.send(sloppy);
        assert!(matches!(client.response().text().as_str(), "" | "ok"), "{sloppy}");
        origin.expect_end();
    }
}

#[test]
fn a_response_is_never_taken_for_that_of_another_request() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).option("--threads", "1").start();
    let (mut first, mut second) = (proxy.connect(), proxy.connect());
    first.send(get("/1").to_bytes());
    let mut origin = listener.accept();
    origin.request();
    origin.send(
        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 3\r\n\r\noneHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
    );
    assert_eq!(first.response().text(), "one");
    second.send(get("/2").to_bytes());
    let mut other = listener.accept();
    other.request();
    other.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 3\r\n\r\ntwo");
    assert_eq!(second.response().text(), "two");
}

#[test]
fn a_forwarded_request_is_written_anew() {
    let origin = Origin::new(|_| reply(200));
    let proxy = start(&origin.url());
    let mut client = proxy.connect();
    client.send(
        "POST /a HTTP/1.1\r\nHost:   www.example  \r\nTransfer-Encoding: CHUNKED\r\nX-Y:\t z \r\n\r\n\
         0005;ext=\"quoted; \\\" string\"\r\nhello\r\n000\r\n\r\n",
    );
    client.response().expect(200);
    let request = origin.last();
    assert_eq!(request.text(), "hello");
    assert_eq!(request.fields.all("transfer-encoding"), ["chunked"]);
    assert_eq!(request.field("host"), Some("www.example"));
    assert_eq!(request.field("x-y"), Some("z"));
}
