//! Responses that break off at the origin: the client sees it, and the bytes received are kept as a part that a request for the
//! rest completes (RFC 9111 §3.3, §3.4, RFC 9110 §15.3.7).

use sandarac_test_support::{
    Conn, Gate, Origin, Reply, Request, Sandarac, Trouble, get, head, http_date, reply,
};

use crate::{sandarac, site, stat};

const LENGTH: usize = 100_000;
/// The number of bytes received before the connection breaks.
const COME: usize = 40_000;

fn whole() -> Vec<u8> {
    (0..LENGTH).map(|at| b'a' + (at % 251 % 26) as u8).collect()
}

/// How an origin breaks off after [`COME`] bytes.
#[derive(Clone, Copy, Debug)]
enum Break {
    /// With an announced length.
    Announced,
    /// Between chunks.
    Chunked,
}

impl Break {
    fn of(self, reply: Reply) -> Reply {
        match self {
            Break::Announced => reply.length(LENGTH),
            Break::Chunked => reply.chunked(),
        }
        .body(&whole()[..COME])
        .cut()
    }
}

/// An origin whose first response, with these `fields`, breaks off. Later responses are complete.
fn start(breaks: Break, fields: &'static [(&'static str, &'static str)]) -> (Sandarac, Origin) {
    let origin = Origin::new(move |request| {
        let with = |reply: Reply| fields.iter().fold(reply, |reply, (name, value)| reply.with(name, value));
        match request.serial {
            1 => breaks.of(with(reply(200).cache("max-age=60"))),
            _ => with(sent(request)),
        }
    });
    (sandarac().before(&origin).rfc().start(), origin)
}

/// The whole, or the rest from the byte that the request asks for.
fn sent(request: &Request) -> Reply {
    match first(request) {
        Some(first) => reply(206)
            .cache("max-age=60")
            .with("Content-Range", &format!("bytes {first}-{}/{LENGTH}", LENGTH - 1))
            .body(&whole()[first..]),
        None => reply(200).cache("max-age=60").body(whole()),
    }
}

fn first(request: &Request) -> Option<usize> {
    request.field("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
}

fn ask(proxy: &Sandarac) -> Conn {
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    client
}

/// Requests the whole, and checks that the response breaks off.
#[track_caller]
fn see_it_break_off(proxy: &Sandarac) {
    let mut client = ask(proxy);
    let response = client.response_head().expect(200);
    let rest = client.read_to_end();
    match response.field("content-length") {
        Some(length) => assert!(length == LENGTH.to_string() && rest.len() < LENGTH, "{}", rest.len()),
        None => assert!(!rest.ends_with(b"0\r\n\r\n"), "the chunks came to an end"),
    }
}

const TAGGED: &[(&str, &str)] = &[("ETag", "\"v1\"")];

#[test]
fn what_had_come_is_completed_by_the_next_request() {
    for breaks in [Break::Announced, Break::Chunked] {
        let (proxy, origin) = start(breaks, TAGGED);
        see_it_break_off(&proxy);
        let response = proxy.get("/").expect(200);
        assert!(response.body == whole(), "{breaks:?}");
        assert_eq!(response.field("content-length"), Some("100000"));
        assert_eq!(response.cache_parameter("fwd").as_deref(), Some("partial"));
        let asked = origin.last();
        assert_eq!(first(&asked), Some(COME), "{breaks:?}");
        assert_eq!(asked.field("if-range"), Some("\"v1\""), "{breaks:?}");
        let hit = proxy.get("/").expect(200);
        assert!(hit.is_hit() && hit.body == whole());
        assert_eq!(origin.count(), 2, "{breaks:?}");
        assert_eq!(stat(&proxy, "cache_parts_kept"), 1, "{breaks:?}");
    }
}

#[test]
fn what_comes_before_a_reset_or_a_silence_is_kept_too() {
    let breaks: [fn(Reply) -> Reply; 2] = [Reply::reset, Reply::hang];
    for breaks in breaks {
        let gate = Gate::new();
        let held = gate.clone();
        let origin = Origin::new(move |request| match request.serial {
            1 => {
                let answer = reply(200).cache("max-age=60").with("ETag", "\"v1\"").length(LENGTH);
                breaks(answer.body(&whole()[..COME]).pause(&held))
            }
            _ => sent(request).with("ETag", "\"v1\""),
        });
        let text = site(&origin.url(), "", "[cache]\nprofile = \"rfc\"")
            .replace("[pool.app]", "[pool.app]\nbetween_bytes_timeout = \"2s\"");
        let proxy = sandarac().config(text).start();
        let mut client = ask(&proxy);
        client.response_head().expect(200);
        assert!(client.read(COME) == whole()[..COME]);
        gate.open();
        client.expect_end();
        assert!(proxy.get("/").expect(200).body == whole());
        assert_eq!(first(&origin.last()), Some(COME));
    }
}

#[test]
fn what_had_come_serves_the_ranges_within_it_as_the_part_it_is() {
    for (breaks, content_range) in
        [(Break::Announced, "bytes 9-39999/100000"), (Break::Chunked, "bytes 9-39999/*")]
    {
        let (proxy, origin) = start(breaks, &[("ETag", "\"v1\""), ("Content-Digest", "sha-256=:AA==:")]);
        see_it_break_off(&proxy);
        let part = proxy.exchange(&get("/").with("Range", "bytes=9-39999")).expect(206);
        assert!(part.is_hit() && part.body == whole()[9..COME]);
        assert_eq!(part.field("content-range"), Some(content_range));
        // The digest covers the content of one message, not of a part (RFC 9530 §2).
        assert_eq!(part.field("content-digest"), None);
        assert_eq!(origin.count(), 1);
        proxy.exchange(&head("/")).expect(200);
        assert_eq!(origin.last().method, "HEAD");
    }
}

#[test]
fn a_longer_range_makes_what_had_come_grow() {
    let (proxy, origin) = start(Break::Announced, TAGGED);
    see_it_break_off(&proxy);
    let part = proxy.exchange(&get("/").with("Range", "bytes=39990-")).expect(206);
    assert!(part.body == whole()[39_990..]);
    assert_eq!(origin.last().field("range"), Some("bytes=40000-"));
    assert!(proxy.get("/").expect(200).is_hit());
}

#[test]
fn last_modified_will_do_where_it_is_strong() {
    let modified = "Sun, 01 Nov 2020 00:00:00 GMT";
    let (proxy, origin) = start(Break::Announced, &[("Last-Modified", "Sun, 01 Nov 2020 00:00:00 GMT")]);
    see_it_break_off(&proxy);
    assert!(proxy.get("/").expect(200).body == whole());
    assert_eq!(origin.last().field("if-range"), Some(modified));
    assert_eq!(first(&origin.last()), Some(COME));
}

#[test]
fn without_a_strong_validator_nothing_is_kept() {
    let fields: [&[(&str, &str)]; 4] = [
        &[],
        &[("ETag", "W/\"v1\"")],
        &[("ETag", "W/\"v1\""), ("Last-Modified", "Sun, 01 Nov 2020 00:00:00 GMT")],
        &[("ETag", "\"v1\""), ("Accept-Ranges", "none")],
    ];
    for fields in fields {
        let (proxy, origin) = start(Break::Announced, fields);
        see_it_break_off(&proxy);
        assert!(proxy.get("/").expect(200).body == whole());
        assert_eq!(origin.last().field("range"), None, "{fields:?}");
        assert_eq!(origin.last().field("if-range"), None, "{fields:?}");
        assert_eq!(stat(&proxy, "cache_parts_kept"), 0);
    }
}

#[test]
fn what_was_modified_in_the_second_it_was_sent_in_is_not_kept() {
    // RFC 9110 §8.8.2.2
    let origin = Origin::new(|request| {
        let now = http_date();
        let answer = reply(200).cache("max-age=60").undated().with("Last-Modified", &now).with("Date", &now);
        if request.serial == 1 { Break::Announced.of(answer) } else { answer.body(whole()) }
    });
    let proxy = sandarac().before(&origin).rfc().start();
    see_it_break_off(&proxy);
    assert!(proxy.get("/").expect(200).body == whole());
    assert_eq!(origin.last().field("range"), None);
}

#[test]
fn what_may_not_be_stored_is_not_kept() {
    for directive in ["no-store", "private"] {
        let origin = Origin::new(move |request| {
            let answer = reply(200).cache(directive).with("ETag", "\"v1\"");
            if request.serial == 1 { Break::Announced.of(answer) } else { answer.body(whole()) }
        });
        let proxy = sandarac().before(&origin).rfc().start();
        see_it_break_off(&proxy);
        assert!(proxy.get("/").expect(200).body == whole());
        assert_eq!(origin.last().field("range"), None, "{directive}");
    }
}

#[test]
fn little_is_not_kept() {
    let origin = Origin::new(|request| match request.serial {
        1 => reply(200).cache("max-age=60").with("ETag", "\"v1\"").length(LENGTH).body("a few bytes").cut(),
        _ => sent(request).with("ETag", "\"v1\""),
    });
    let proxy = sandarac().before(&origin).rfc().start();
    see_it_break_off(&proxy);
    assert!(proxy.get("/").expect(200).body == whole());
    assert_eq!(origin.last().field("range"), None);
}

#[test]
fn what_is_malformed_is_not_kept() {
    let body = String::from_utf8(whole()[..COME].to_vec()).expect("letters");
    let origin = Origin::new(move |request| match request.serial {
        1 => Reply::verbatim(format!(
            "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n\
             {COME:x}\r\n{body}\r\nno size\r\n"
        )),
        _ => sent(request).with("ETag", "\"v1\""),
    });
    let proxy = sandarac().before(&origin).rfc().start();
    see_it_break_off(&proxy);
    assert!(proxy.get("/").expect(200).body == whole());
    assert_eq!(origin.last().field("range"), None);
    assert_eq!(stat(&proxy, "cache_parts_kept"), 0);
}

#[test]
fn the_rest_of_another_version_is_never_joined_to_what_had_come() {
    type Lines = &'static [(&'static str, &'static str)];
    let cases: [(&str, u16, Lines); 4] = [
        ("another entity tag", 206, &[("ETag", "\"v2\""), ("Content-Range", "bytes 40000-99999/100000")]),
        ("a weak one", 206, &[("ETag", "W/\"v1\""), ("Content-Range", "bytes 40000-99999/100000")]),
        ("another length", 206, &[("ETag", "\"v1\""), ("Content-Range", "bytes 40000-99999/100001")]),
        ("the whole", 200, &[("ETag", "\"v2\"")]),
    ];
    for (case, status, fields) in cases {
        let origin = Origin::new(move |request| match request.serial {
            1 => Break::Announced.of(reply(200).cache("max-age=60").with("ETag", "\"v1\"")),
            2 if status == 206 => {
                let answer = reply(206).cache("max-age=60").body(vec![b'!'; LENGTH - COME]);
                fields.iter().fold(answer, |answer, (name, value)| answer.with(name, value))
            }
            _ => reply(200).cache("max-age=60").with("ETag", "\"v2\"").body(vec![b'2'; LENGTH]),
        });
        let proxy = sandarac().before(&origin).rfc().start();
        see_it_break_off(&proxy);
        for _ in 0..2 {
            let response = proxy.get("/").expect(200);
            assert!(response.body == vec![b'2'; LENGTH], "{case}");
            assert_eq!(response.field("etag"), Some("\"v2\""), "{case}");
        }
        assert_eq!(origin.count(), if status == 206 { 3 } else { 2 }, "{case}");
    }
}

#[test]
fn an_origin_that_breaks_off_again_and_again_gets_there_in_the_end() {
    let origin = Origin::new(|request| {
        let from = first(request).unwrap_or(0);
        let to = (from + 30_000).min(LENGTH);
        let answer = match first(request) {
            Some(_) => reply(206).with("Content-Range", &format!("bytes {from}-{}/{LENGTH}", LENGTH - 1)),
            None => reply(200),
        };
        let answer = answer.cache("max-age=60").with("ETag", "\"v1\"");
        let answer = answer.length(LENGTH - from).body(&whole()[from..to]);
        if to < LENGTH { answer.cut() } else { answer }
    });
    let proxy = sandarac().before(&origin).rfc().start();
    for _ in 0..3 {
        see_it_break_off(&proxy);
    }
    assert!(proxy.get("/").expect(200).body == whole());
    let asked: Vec<_> = origin.requests().iter().map(first).collect();
    assert_eq!(asked, [None, Some(30_000), Some(60_000), Some(90_000)]);
    assert!(proxy.get("/").is_hit());
}

#[test]
fn a_purge_removes_what_had_come() {
    let (proxy, origin) = start(Break::Announced, TAGGED);
    see_it_break_off(&proxy);
    proxy.admin(&["purge", "http://www.example/"]).success();
    assert!(proxy.get("/").expect(200).body == whole());
    assert_eq!(origin.last().field("range"), None);
}

#[test]
fn what_had_come_never_stands_in_for_the_whole() {
    let origin = Origin::new(|request| match request.serial {
        1 => {
            let answer = reply(200).cache("max-age=60, stale-if-error=60").with("ETag", "\"v1\"");
            Break::Announced.of(answer)
        }
        _ => reply(503).body("busy"),
    });
    let proxy = sandarac().before(&origin).rfc().start();
    see_it_break_off(&proxy);
    assert_eq!(proxy.get("/").expect(503).text(), "busy");
}

/// Regression: the connection ended in order, which an HTTP/1.0 client takes for the end of the body; it may store such a
/// response.
#[test]
fn an_http_1_0_client_can_tell_by_a_reset() {
    for cache in ["no-store", "max-age=60"] {
        let origin = Origin::new(move |_| reply(200).cache(cache).chunked().body("begun").cut());
        let proxy = sandarac().before(&origin).start();
        let mut client = proxy.connect();
        client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
        let trouble = client.try_response("GET").expect_err("the response is not whole");
        assert!(matches!(trouble, Trouble::Reset(_)), "{cache}: {trouble:?}");
    }
}
