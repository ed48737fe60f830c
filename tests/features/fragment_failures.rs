//! Fragments that fail, hang, or are more than a page can hold.

use std::time::Duration;

use sandarac_coding::Decoder;
use sandarac_message::codings::Coding;
use sandarac_test_support::http2::{Ended, Http2};
use sandarac_test_support::{Gate, Origin, Reply, get, reply, within};

use crate::fragments::{before, before_with, include, own, page};
use crate::{labelled, sandarac, site, stat};

const CONTINUE: &str = "a<esi:include src=\"/x\" onerror=\"continue\"/>b";

#[test]
fn fragments_are_requested_side_by_side_and_sent_in_order() {
    let gates: Vec<Gate> = (0..2).map(|_| Gate::new()).collect();
    let held = gates.clone();
    let (proxy, origin) = before(move |request| match request.path() {
        "/" => page(format!("a{}b{}c", include("/first"), include("/second"))),
        "/first" => own("<1>").hold(&held[0]),
        _ => own("<2>").hold(&held[1]),
    });
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    origin.reached(3);
    client.response_head().expect(200);
    client.expect("1\r\na\r\n");
    gates[1].open();
    assert!(!client.is_ready(Duration::from_millis(50)), "the second waits for its turn");
    gates[0].open();
    // In one chunk or several.
    let rest = String::from_utf8(client.read_through("\r\n0\r\n\r\n")).expect("text");
    assert_eq!(rest.split("\r\n").skip(1).step_by(2).collect::<String>(), "<1>b<2>c");
}

#[test]
fn an_empty_fragment_with_a_coding_is_empty() {
    let (proxy, _origin) = before_with("fragments = true\ncompress = true", |request| match request.path() {
        "/" => page(format!("a{}b", include("/empty"))),
        _ => own("").with("Content-Encoding", "gzip"),
    });
    assert_eq!(proxy.get("/").expect(200).text(), "ab");
}

#[test]
fn a_fragment_that_hangs_is_left_out_after_the_time_of_its_pool() {
    let never = Gate::new();
    let origin = Origin::new(move |request| match request.path() {
        "/" => page(CONTINUE),
        _ => own("x").hold(&never),
    });
    let text = site(&origin.url(), "fragments = true", "")
        .replace("[pool.app]", "[pool.app]\nfirst_byte_timeout = \"200ms\"");
    let proxy = sandarac().config(text).start();
    for _ in 0..2 {
        assert_eq!(proxy.get("/").expect(200).text(), "ab");
    }
}

/// A page that is not stored occupies its backend until it was read, and its fragments need the same one.
#[test]
fn a_page_and_its_fragments_share_the_only_place_at_their_backend() {
    let text = "x".repeat(400_000);
    let body = format!("{}{text}", include("/x").repeat(20));
    let origin = Origin::new(move |request| match request.path() {
        "/" => own(&body),
        _ => own("<x>"),
    });
    let keys = "fragments = true\ncache = \"pass\"";
    let config = site(&origin.url(), keys, "").replace("[pool.app]", "[pool.app]\nmax_in_flight = 1");
    let proxy = sandarac().config(config).start();
    assert!(proxy.get("/").expect(200).text() == format!("{}{text}", "<x>".repeat(20)));
    assert_eq!(labelled(&proxy, "fragments_failed", "fragment-status"), 0);
}

#[test]
fn a_fragment_that_breaks_off_ends_the_page_unless_that_goes_on() {
    let (proxy, _origin) = before(|request| match request.path() {
        "/" => page(CONTINUE),
        "/needs" => page(format!("a{}b", include("/x"))),
        _ => reply(200).cache("no-store").chunked().body("half").cut(),
    });
    for _ in 0..2 {
        assert_eq!(proxy.get("/").expect(200).text(), "ahalfb");
        let mut client = proxy.connect();
        client.send(get("/needs").to_bytes());
        client.response_head().expect(200);
        client.expect("1\r\na\r\n4\r\nhalf\r\n").expect_end();
    }
    assert_eq!(labelled(&proxy, "fragments_failed", "fragment-broke-off"), 4);
    let mut client = Http2::to(proxy.address());
    let stream = client.get("/needs", &[]);
    assert!(matches!(client.outcome(stream), Err(Ended::Reset(_))), "the stream is reset");
    // The connection goes on.
    let stream = client.get("/", &[]);
    assert_eq!(client.response(stream).expect(200).text(), "ahalfb");
}

#[test]
fn an_event_stream_is_no_fragment() {
    let (proxy, _origin) = before(|request| match request.path() {
        "/" => page(CONTINUE),
        _ => reply(200)
            .cache("no-store")
            .with("Content-Type", "text/event-stream")
            .chunked()
            .body("data: 1\n\n")
            .hang(),
    });
    for _ in 0..2 {
        assert_eq!(proxy.get("/").expect(200).text(), "ab");
    }
    assert_eq!(labelled(&proxy, "fragments_failed", "fragment-endless"), 2);
}

#[test]
fn a_fragment_may_be_larger_than_the_memory() {
    const LEN: usize = 48 << 20;
    let origin = Origin::new(|request| match request.path() {
        "/" => page(format!("a{}b{}c", include("/1"), include("/2"))),
        _ => own(vec![b'x'; LEN]),
    });
    let text = site(&origin.url(), "fragments = true", "[cache]\nmemory = \"16MiB\"");
    let proxy = sandarac().config(text).start();
    for _ in 0..2 {
        let response = proxy.get("/").expect(200);
        assert_eq!(response.body.len(), 2 * LEN + 3);
    }
    assert!(proxy.peak_resident_bytes() < 120 << 20, "{}", proxy.peak_resident_bytes());
}

#[test]
fn fragments_are_given_up_when_the_client_leaves() {
    // A fetch for the store would go on.
    let (proxy, origin) = before_with("fragments = true\ncache = \"pass\"", |request| match request.path() {
        "/" => page(format!("a{}", include("/x"))),
        "/waits" => page(include("/x")),
        _ => Reply::verbatim("").hang(),
    });
    let given_up = |open: usize| {
        within("the end of the fragment's connection", || (origin.open_connections() < open).then_some(()));
    };
    let mut client = Http2::to(proxy.address());
    let stream = client.get("/", &[]);
    client.begun(stream);
    origin.reached(2);
    let open = origin.open_connections();
    client.reset(stream);
    given_up(open);
    for (path, requests) in [("/", 4), ("/waits", 6)] {
        let mut client = proxy.connect();
        client.send(get(path).to_bytes());
        origin.reached(requests);
        let open = origin.open_connections();
        client.reset();
        given_up(open);
    }
}

#[test]
fn files_are_fragments_too() {
    let text = "<footer>".repeat(1000);
    let setup = sandarac();
    std::fs::create_dir(setup.dir().join("www")).expect("a directory");
    std::fs::write(setup.dir().join("www/footer.html"), &text).expect("a file");
    let origin = Origin::new(|_| page(format!("a{}b", include("/footer.html"))));
    let files = format!(
        "match = \"/footer.html\"\nfiles = {:?}\n\n[[route]]\npool = \"app\"",
        setup.dir().join("www")
    );
    let config = site(&origin.url(), &format!("{files}\nfragments = true\ncompress = true"), "").replacen(
        "pool = \"app\"\n",
        "",
        1,
    );
    let proxy = setup.config(config).start();
    for _ in 0..2 {
        assert!(proxy.get("/").expect(200).text() == format!("a{text}b"));
        let response = proxy.exchange(&get("/").with("Accept-Encoding", "gzip")).expect(200);
        assert_eq!(response.field("content-encoding"), Some("gzip"));
        let mut out = Vec::new();
        let mut decoder = Decoder::new(Coding::Gzip);
        decoder.push(&response.body, &mut out).expect("gzip");
        decoder.finish().expect("whole");
        assert!(out == format!("a{text}b").into_bytes());
    }
}

#[test]
fn the_log_tells_fragments_from_pages() {
    let origin = Origin::new(|request| match request.path() {
        "/" => page(CONTINUE),
        _ => reply(404),
    });
    let log = "[log]\naccess = \"./access.log\"";
    let proxy = sandarac()
        .config(site(&origin.url(), "fragments = true", &format!("{log}\nformat = \"json\"")))
        .start();
    let path = proxy.dir().join("access.log");
    proxy.get("/").expect(200);
    let lines: Vec<serde_json::Value> = within("two lines", || {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let lines: Vec<_> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        (lines.len() == 2).then_some(lines)
    });
    let of = |target: &str| lines.iter().find(|line| line["target"] == target).expect("a line");
    assert_eq!(of("/x")["page"], of("/")["request"]);
    assert_eq!((&of("/x")["status"], &of("/x")["session"]), (&404.into(), &of("/")["session"]));
    assert_eq!((of("/").get("page"), of("/")["reason"].as_str()), (None, Some("fragment-status")));

    let proxy = sandarac().config(site(&origin.url(), "fragments = true", log)).start();
    let path = proxy.dir().join("access.log");
    for _ in 0..2 {
        proxy.get("/").expect(200);
    }
    let text = within("two lines", || {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        (text.lines().count() == 2).then_some(text)
    });
    assert!(text.lines().all(|line| line.contains("\"GET / HTTP/1.1\" 200 2 ")), "{text}");
}

#[test]
fn markup_is_charged_and_goes_with_the_page() {
    let body = format!("{}{}", "x".repeat(100), include("/y").repeat(50));
    let (proxy, origin) = before(move |request| match request.path() {
        "/" => page(&body),
        "/y" => reply(200).cache("no-store"),
        _ => reply(404),
    });
    let used = || stat(&proxy, "cache_used_bytes");
    let empty = used();
    proxy.get("/").expect(200);
    proxy.get("/").expect(200);
    let with_markup = used();
    assert!(with_markup > empty + 1300 + 50 * 100, "{with_markup} {empty}");
    proxy.admin(&["purge", "http://www.example/"]).success();
    within("the memory of the page", || (used() + 1300 + 50 * 100 < with_markup).then_some(()));
    proxy.get("/").expect(200);
    assert_eq!(origin.count_of("/"), 2);
}

#[test]
fn a_page_that_the_origin_confirms_is_parsed_again() {
    let (proxy, _origin) = before(|request| match (request.path(), request.field("if-none-match")) {
        ("/", Some(_)) => reply(304).cache("max-age=60").with("ETag", "\"v1\"").with("X-Seen", "again"),
        ("/", None) => page(CONTINUE).with("Age", "100"),
        _ => own("<x>"),
    });
    for seen in [None, Some("again"), Some("again")] {
        let response = proxy.get("/").expect(200);
        assert_eq!(response.text(), "a<x>b");
        assert_eq!(response.field("x-seen"), seen);
    }
}

#[test]
fn a_hostile_origin_of_fragments_breaks_nothing_but_its_page() {
    let (proxy, _origin) = before(|request| match request.path() {
        "/" => page(CONTINUE),
        _ => Reply::verbatim("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
    });
    for _ in 0..2 {
        assert_eq!(proxy.get("/").expect(200).text(), "ab");
    }
}
