//! Origins that refuse, hang, truncate, reset, flood or send nonsense.

use sandarac_test_support::{
    Gate, Listener, Origin, Port, Reply, Response, Sandarac, Trouble, get, post, reply, within,
};

use crate::{before, sandarac, site};

fn error_of(response: &Response) -> String {
    let status = response.field("proxy-status").unwrap_or_else(|| panic!("no Proxy-Status in {response:?}"));
    status.split(';').find_map(|part| part.trim().strip_prefix("error=")).unwrap_or_default().to_owned()
}

/// Sandarac with `timeout` set to one second and the default for all others, so that an origin that is merely slow at another
/// step has not failed.
fn with_a_second_for(
    timeout: &str,
    rule: impl Fn(&sandarac_test_support::Request) -> Reply + Send + Sync + 'static,
) -> (Sandarac, Origin) {
    let origin = Origin::new(rule);
    (sandarac().config(site(&origin.url(), &format!("{timeout} = \"1s\""), "")).start(), origin)
}

#[test]
fn an_origin_that_never_answers_is_504() {
    let (proxy, origin) = with_a_second_for("first_byte_timeout", |_| Reply::verbatim("").hang());
    let response = proxy.exchange(&post("/", "x")).expect(504);
    assert_eq!(error_of(&response), "http_response_timeout");
    origin.reached(1);
    assert_eq!(origin.count(), 1, "it may have been acted upon");
}

#[test]
fn an_origin_that_stops_within_its_head_is_504() {
    let (proxy, _origin) =
        with_a_second_for("first_byte_timeout", |_| Reply::verbatim("HTTP/1.1 200 OK\r\nContent-Le").hang());
    proxy.exchange(&post("/", "x")).expect(504);
}

#[test]
fn an_origin_that_stops_within_its_body_cuts_the_response_short() {
    let (proxy, origin) = with_a_second_for("between_bytes_timeout", |request| match request.path() {
        "/length" => reply(200).cache("max-age=60").length(100).body("half").hang(),
        _ => reply(200).cache("max-age=60").chunked().body("half").hang(),
    });
    for path in ["/length", "/chunked"] {
        for _ in 0..2 {
            let mut client = proxy.connect();
            client.send(get(path).to_bytes());
            assert!(
                matches!(client.try_response("GET"), Err(Trouble::Closed(_) | Trouble::Reset(_))),
                "{path}"
            );
        }
        assert!(origin.count_of(path) >= 2, "half a response was stored");
    }
}

#[test]
fn a_truncated_response_is_seen_as_truncated() {
    let (proxy, origin) = before(|request| match request.path() {
        "/length" => reply(200).cache("max-age=60").length(100).body("half").cut(),
        "/chunked" => reply(200).cache("max-age=60").chunked().body("half").cut(),
        "/reset" => reply(200).cache("max-age=60").length(100).body("half").reset(),
        _ => reply(200).cache("max-age=60").chunked().body("half").reset(),
    });
    for path in ["/length", "/chunked", "/reset", "/reset-chunked"] {
        for _ in 0..2 {
            let mut client = proxy.connect();
            client.send(get(path).to_bytes());
            let outcome = client.try_response("GET");
            let seen = matches!(&outcome, Err(Trouble::Closed(_) | Trouble::Reset(_)))
                || outcome.is_ok_and(|response| response.status == 502);
            assert!(seen, "{path}");
        }
        assert!(origin.count_of(path) >= 2, "{path}: half a response was stored");
    }
}

#[test]
fn an_origin_that_closes_or_resets_without_an_answer_is_502() {
    let (proxy, origin) = before(|request| match request.path() {
        "/closes" => Reply::none(),
        "/resets" => Reply::verbatim("").reset(),
        _ => Reply::verbatim("HTTP/1.1 200 O").cut(),
    });
    for path in ["/closes", "/resets", "/within-head"] {
        let response = proxy.exchange(&post(path, "x")).expect(502);
        assert!(!error_of(&response).is_empty());
        assert_eq!(origin.count_of(path), 1, "{path}");
    }
}

#[test]
fn an_idempotent_request_is_tried_a_few_times_and_no_more() {
    let (proxy, origin) = before(|_| Reply::none());
    proxy.get("/deadly").expect(502);
    assert!((1..=3).contains(&origin.count_of("/deadly")), "{} times", origin.count_of("/deadly"));
}

#[test]
fn nonsense_is_502() {
    let nonsense =
        ["SSH-2.0-OpenSSH_9.2\r\n", "\0\0\0\0\0\0\0\0\r\n\r\n", "HTTP/1.1\r\n\r\n", "<html>\r\n\r\n"];
    for text in nonsense {
        let (proxy, _origin) = before(move |_| Reply::verbatim(text).cut());
        let response = proxy.exchange(&post("/", "x")).expect(502);
        assert_eq!(error_of(&response), "http_protocol_error", "{text:?}");
    }
}

#[test]
fn a_head_without_end_is_502_and_not_waited_for() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let mut client = proxy.connect();
    client.send(post("/", "x").to_bytes());
    let mut origin = listener.accept();
    origin.request();
    origin.send("HTTP/1.1 200 OK\r\n");
    within("the flood to be cut off", || {
        origin.try_send("X-Filler: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n".repeat(100)).is_err().then_some(())
    });
    let response = client.response().expect(502);
    assert!(error_of(&response).contains("header"), "{response:?}");
}

#[test]
fn a_flood_of_interim_responses_is_not_gathered() {
    const FLOOD: usize = 500_000;
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let resting = proxy.resident_bytes();
    let mut client = proxy.connect();
    client.send(post("/", "x").to_bytes());
    let mut origin = listener.accept();
    origin.request();
    let reader = std::thread::spawn(move || client.response());
    for _ in 0..FLOOD / 100 {
        if origin.try_send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(100)).is_err() {
            break;
        }
    }
    let _ = origin.try_send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let response = reader.join().expect("a response comes");
    assert!(response.status == 502 || (response.status, response.interim.len()) == (200, FLOOD));
    let grown = proxy.peak_resident_bytes().saturating_sub(resting);
    assert!(grown < 8 << 20, "the resident set grew by {grown} bytes");
}

#[test]
fn a_body_without_end_is_not_held_in_memory_for_a_reader_that_stalls() {
    let (gate, finish) = (Gate::new(), Gate::new());
    let (held, finishing) = (gate.clone(), finish.clone());
    let origin = Origin::new(move |_| {
        let piece = "x".repeat(1 << 20);
        let begun = reply(200).cache("max-age=60").chunked().body("begun").pause(&held);
        (0..60).fold(begun, |reply, _| reply.body(&piece)).pause(&finishing)
    });
    let tables = "[cache]\nmemory = \"16MiB\"\n[timeouts]\nwrite = \"1h\"";
    let proxy = sandarac().config(site(&origin.url(), "", tables)).start();
    let resting = proxy.resident_bytes();
    let begin = || {
        let mut client = proxy.connect();
        client.shrink_receive_buffer();
        client.send(get("/endless").to_bytes()).read_through("begun");
        client
    };
    let (_stalled, mut reader) = (begin(), begin());
    gate.open();
    for _ in 0..50 {
        reader.read(1 << 20);
    }
    assert_eq!(origin.count(), 1, "both read the same");
    let grown = proxy.peak_resident_bytes().saturating_sub(resting);
    assert!(grown < 64 << 20, "the resident set grew by {grown} bytes");
    finish.open();
}

#[test]
fn an_answer_nobody_asked_for_more_of_ends_the_connection() {
    let (proxy, _origin) = before(|request| match request.path() {
        "/more" => Reply::verbatim(
            "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nokGARBAGE",
        ),
        _ => reply(200).cache("no-store").body("clean"),
    });
    let mut client = proxy.connect();
    assert_eq!(client.get("/more").expect(200).text(), "ok");
    assert_eq!(client.get("/next").expect(200).text(), "clean");
}

#[test]
fn a_backend_that_is_not_there_is_told_from_one_that_fails() {
    let port = Port::new();
    let proxy = sandarac().option("--backend", port.url()).start();
    for _ in 0..3 {
        let response = proxy.get("/");
        assert!(matches!(response.status, 502 | 503), "{response:?}");
        assert!(
            ["connection_refused", "destination_unavailable"].contains(&error_of(&response).as_str()),
            "{response:?}"
        );
    }
    let origin = Origin::on(port.listen(), |_| reply(200));
    within("the backend to be found again", || (proxy.get("/").status == 200).then_some(()));
    assert!(origin.count() >= 1);
}

#[test]
fn what_is_stored_stands_in_for_a_dead_origin() {
    let port = Port::new();
    let origin = Origin::on(port.listen(), |request| match request.path() {
        "/kept" => reply(200).cache("max-age=3600").with("Age", "3599").with("ETag", "\"v\"").body("kept"),
        "/strict" => reply(200)
            .cache("max-age=3600, must-revalidate")
            .with("Age", "3599")
            .with("ETag", "\"v\"")
            .body("strict"),
        _ => reply(200).cache("max-age=3600, stale-if-error=600").with("Age", "3650").body("tolerant"),
    });
    let proxy = sandarac().before(&origin).rfc().start();
    for path in ["/kept", "/strict", "/tolerant"] {
        proxy.get(path).expect(200);
    }
    drop(origin);
    within("freshness to run out", || matches!(proxy.get("/strict").status, 502..=504).then_some(()));
    assert_eq!(proxy.get("/kept").expect(200).text(), "kept");
    assert_eq!(proxy.get("/tolerant").expect(200).text(), "tolerant");
}
