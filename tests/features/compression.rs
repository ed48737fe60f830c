//! Compression: one stored response, each client in its coding (RFC 9110 §8.4, §12.5.3).

use sandarac_coding::{Decoder, Encoder, Level};
use sandarac_message::codings::Coding;
use sandarac_test_support::http2::Http2;
use sandarac_test_support::{
    Conn, Gate, Origin, Reply, Req, Request, Response, Sandarac, get, head, post, reply,
};

use crate::{labelled, sandarac, site, stat};

/// A page of some 10 KB.
pub(crate) fn page() -> String {
    (0..400).map(|number| format!("<p>Paragraph {number} of many.</p>\n")).collect()
}

pub(crate) fn html(body: impl AsRef<[u8]>) -> Reply {
    reply(200).cache("max-age=60").with("Content-Type", "text/html").with("ETag", "\"v1\"").body(body)
}

pub(crate) fn coded(coding: Coding, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(coding, Level::Normal, None).expect("an encoder");
    encoder.push(body, &mut out).expect("it is encoded");
    encoder.finish(&mut out).expect("it is encoded");
    out
}

/// The body without its coding.
#[track_caller]
pub(crate) fn plain(response: &Response) -> String {
    let Some(name) = response.field("content-encoding") else { return response.text() };
    let mut decoder = Decoder::new(Coding::of(name.as_bytes()).expect("a known coding"));
    let mut out = Vec::new();
    decoder.push(&response.body, &mut out).expect("the body is in its coding");
    decoder.finish().expect("the body is whole");
    String::from_utf8(out).expect("text")
}

pub(crate) fn before_with(
    keys: &str,
    rule: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> (Sandarac, Origin) {
    let origin = Origin::new(rule);
    let text = site(&origin.url(), keys, "").replace("\"127.0.0.1:0\"", "\"127.0.0.1:0\"\nhttp2 = true");
    (sandarac().config(text).start(), origin)
}

pub(crate) fn before(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Sandarac, Origin) {
    before_with("compress = true", rule)
}

pub(crate) fn accepting(codings: &str) -> Req {
    get("/").with("Accept-Encoding", codings)
}

#[test]
fn each_client_gets_the_coding_it_prefers_of_one_stored_response() {
    let (proxy, origin) = before(|_| html(page()));
    for round in 0..2 {
        for (accepts, coding) in [
            ("gzip, deflate, br, zstd", Some("zstd")),
            ("gzip, deflate, br", Some("br")),
            ("gzip, deflate", Some("gzip")),
            ("zstd;q=0.5, gzip", Some("gzip")),
            ("*", Some("zstd")),
            ("deflate", None),
            ("identity, gzip;q=0.5", None),
            ("gzip;q=0", None),
            ("gzip;;", None),
        ] {
            let response = proxy.exchange(&accepting(accepts)).expect(200);
            assert_eq!(response.field("content-encoding"), coding, "{accepts}, round {round}");
            assert_eq!(response.fields.list("vary"), "Accept-Encoding", "{accepts}");
            assert!(plain(&response) == page(), "{accepts}");
            let (tag, shrunk) = match coding {
                Some(_) => ("W/\"v1\"", response.body.len() * 4 < page().len()),
                None => ("\"v1\"", response.body.len() == page().len()),
            };
            assert_eq!(response.field("etag"), Some(tag), "{accepts}");
            assert!(shrunk, "{accepts}");
            if round == 1 {
                assert_eq!(response.field("content-length"), Some(&*response.body.len().to_string()));
                assert!(response.is_hit());
            }
        }
    }
    assert!(proxy.get("/").expect(200).field("content-encoding").is_none());
    assert_eq!(origin.count(), 1);
    assert_eq!(origin.last().field("accept-encoding"), Some("identity"));
}

#[test]
fn each_coding_is_made_once() {
    let (proxy, _origin) = before(|_| html(page()));
    proxy.get("/");
    for _ in 0..3 {
        proxy.exchange(&accepting("gzip")).expect(200);
    }
    assert_eq!(labelled(&proxy, "recoded_bytes_in", "gzip"), page().len() as u64);
    let made = labelled(&proxy, "recoded_bytes_out", "gzip");
    assert_eq!(proxy.exchange(&accepting("gzip")).body.len() as u64, made);
    assert_eq!(labelled(&proxy, "recoded_bytes_in", "br"), 0);
}

#[test]
fn requests_at_once_share_the_making() {
    let (proxy, _origin) = before(|_| html(page().repeat(50)));
    proxy.get("/");
    let mut clients: Vec<Conn> = (0..20).map(|_| proxy.connect()).collect();
    for client in &mut clients {
        client.send(accepting("br").to_bytes());
    }
    for client in &mut clients {
        assert!(plain(&client.response().expect(200)) == page().repeat(50));
    }
    assert_eq!(labelled(&proxy, "recoded_bytes_in", "br"), (page().len() * 50) as u64);
}

#[test]
fn clients_of_http2_get_the_same() {
    let (proxy, origin) = before(|_| html(page()));
    let mut client = Http2::to(proxy.address());
    for _ in 0..3 {
        let stream = client.get("/", &[("accept-encoding", "gzip, br")]);
        let response = client.response(stream).expect(200);
        assert_eq!(response.field("content-encoding"), Some("br"));
        assert_eq!(response.field("etag"), Some("W/\"v1\""));
        assert!(plain(&response) == page());
    }
    let stream = client.get("/", &[]);
    assert_eq!(client.response(stream).expect(200).field("etag"), Some("\"v1\""));
    assert_eq!(origin.count(), 1);
}

#[test]
fn head_and_304_agree_with_get() {
    let (proxy, _origin) = before(|_| html(page()));
    let whole = proxy.exchange(&accepting("gzip")).expect(200);
    let hit = proxy.exchange(&accepting("gzip")).expect(200);
    assert!(plain(&whole) == page() && plain(&hit) == page());
    let only_head = proxy.exchange(&head("/").with("Accept-Encoding", "gzip")).expect(200);
    for field in ["content-encoding", "content-length", "etag", "vary", "content-type"] {
        assert_eq!(only_head.field(field), hit.field(field), "{field}");
    }
    for tag in ["W/\"v1\"", "\"v1\""] {
        let unchanged = proxy.exchange(&accepting("gzip").with("If-None-Match", tag)).expect(304);
        assert_eq!(unchanged.field("etag"), Some("W/\"v1\""), "{tag}");
        assert_eq!(unchanged.field("vary"), Some("Accept-Encoding"));
        let plain = proxy.exchange(&get("/").with("If-None-Match", tag)).expect(304);
        assert_eq!(plain.field("etag"), Some("\"v1\""), "{tag}");
    }
    proxy.exchange(&accepting("gzip").with("If-None-Match", "\"v2\"")).expect(200);
}

#[test]
fn a_request_for_a_part_gets_the_stored_bytes_and_their_strong_tag() {
    let (proxy, origin) = before(|_| html(page()));
    proxy.exchange(&accepting("gzip")).expect(200);
    let part = proxy.exchange(&accepting("gzip").with("Range", "bytes=3-6")).expect(206);
    assert_eq!(part.text(), "Para");
    assert_eq!(part.field("etag"), Some("\"v1\""));
    assert_eq!(part.field("content-encoding"), None);
    let strong = accepting("gzip").with("Range", "bytes=0-2").with("If-Range", "\"v1\"");
    assert_eq!(proxy.exchange(&strong).expect(206).text(), "<p>");
    // Nothing that was compressed here can be continued.
    let weak = accepting("gzip").with("Range", "bytes=0-2").with("If-Range", "W/\"v1\"");
    let whole = proxy.exchange(&weak).expect(200);
    assert_eq!(whole.field("etag"), Some("\"v1\""));
    assert!(whole.text() == page());
    assert_eq!(origin.count(), 1);
}

#[test]
fn what_is_not_to_be_compressed_stays_as_it_came() {
    let (proxy, _origin) = before(|request| match request.path() {
        "/image" => reply(200).cache("max-age=60").with("Content-Type", "image/png").body(page()),
        "/short" => html("short"),
        "/noise" => {
            let mut state = 1_u64;
            let noise = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            };
            html(std::iter::repeat_with(noise).take(5000).collect::<Vec<u8>>())
        }
        "/no-transform" => {
            reply(200).cache("max-age=60, no-transform").with("Content-Type", "text/html").body(page())
        }
        "/cookie" => html(page()).with("Set-Cookie", "a=1"),
        "/private" => reply(200).cache("private").with("Content-Type", "text/html").body(page()),
        _ => reply(404),
    });
    for (path, reason, told) in [
        ("/image", "type", false),
        ("/short", "short", false),
        ("/noise", "not-smaller", true),
        ("/no-transform", "no-transform", true),
        ("/cookie", "set-cookie", true),
        ("/private", "private", true),
    ] {
        // What is saved is known of a body that has arrived.
        proxy.get(path).expect(200);
        for round in 1..=2 {
            let response = proxy.exchange(&get(path).with("Accept-Encoding", "gzip, br")).expect(200);
            assert_eq!(response.field("content-encoding"), None, "{path}");
            let told = told.then(|| reason.to_owned());
            assert_eq!(response.cache_parameter("sandarac_uncompressed"), told, "{path}");
            assert_eq!(labelled(&proxy, "uncompressed", reason), round, "{path}");
        }
    }
}

#[test]
fn a_route_may_compress_what_is_private() {
    let keys = "compress = { private = true, codings = [\"gzip\"], min_size = \"1B\" }";
    let (proxy, _origin) = before_with(keys, |_| {
        reply(200).cache("private").with("Set-Cookie", "a=1").with("Content-Type", "text/html").body(page())
    });
    let response = proxy.exchange(&accepting("br, gzip")).expect(200);
    assert_eq!(response.field("content-encoding"), Some("gzip"));
    assert_eq!(response.field("set-cookie"), Some("a=1"));
    assert!(plain(&response) == page());
}

#[test]
fn without_the_setting_nothing_changes() {
    let (proxy, origin) = before_with("", |_| html(page()));
    let response = proxy.exchange(&accepting("gzip, br")).expect(200);
    assert_eq!(response.field("etag"), Some("\"v1\""));
    assert_eq!(response.field("vary"), None);
    assert!(response.text() == page());
    assert_eq!(origin.last().field("accept-encoding"), Some("gzip, br"));
}

#[test]
fn what_the_origin_compressed_is_stored_as_it_came_and_inflated_for_the_others() {
    for coding in Coding::ALL {
        let (proxy, origin) = before_with("compress = { backend = \"gzip\" }", move |_| {
            html(coded(coding, page().as_bytes()))
                .with("Content-Encoding", coding.name())
                .with("Vary", "Accept-Encoding")
        });
        let other = if coding == Coding::Brotli { "gzip" } else { "br" };
        for accepts in [coding.name(), other, "identity", coding.name()] {
            let response = proxy.exchange(&accepting(accepts)).expect(200);
            let as_it_came = accepts == coding.name();
            assert_eq!(response.field("content-encoding"), as_it_came.then(|| coding.name()), "{accepts}");
            assert_eq!(response.field("etag"), Some(if as_it_came { "\"v1\"" } else { "W/\"v1\"" }));
            assert_eq!(response.fields.list("vary"), "Accept-Encoding");
            assert!(plain(&response) == page(), "{accepts}");
        }
        assert_eq!(origin.count(), 1, "{coding:?}");
        assert_eq!(origin.last().field("accept-encoding"), Some("gzip"));
    }
}

#[test]
fn recodings_are_charged_and_go_with_their_original() {
    let (proxy, origin) = before(|request| html(format!("{} {}", request.serial, page())));
    let used = |proxy: &Sandarac| stat(proxy, "cache_used_bytes");
    proxy.get("/");
    let alone = used(&proxy);
    let made: usize =
        ["gzip", "br", "zstd"].map(|coding| proxy.exchange(&accepting(coding)).body.len()).iter().sum();
    assert!(used(&proxy) > alone + made as u64, "{} {alone} {made}", used(&proxy));
    proxy.admin(&["purge", "http://www.example/"]).success();
    for coding in ["gzip", "zstd"] {
        assert!(plain(&proxy.exchange(&accepting(coding))).starts_with("2 "), "{coding}");
    }
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_validation_keeps_the_recodings() {
    let (proxy, origin) = before(|request| match request.field("if-none-match") {
        Some(_) => reply(304).cache("max-age=60").with("ETag", "\"v1\"").with("X-Seen", "again"),
        None => html(page()).with("Age", "100"),
    });
    proxy.get("/").expect(200);
    proxy.exchange(&accepting("gzip")).expect(200);
    let made = labelled(&proxy, "recoded_bytes_out", "gzip");
    let response = proxy.exchange(&accepting("gzip")).expect(200);
    assert_eq!(response.field("x-seen"), Some("again"));
    assert_eq!(response.field("etag"), Some("W/\"v1\""));
    assert!(plain(&response) == page());
    assert_eq!(origin.last().field("if-none-match"), Some("\"v1\""), "as it was received");
    assert_eq!(labelled(&proxy, "recoded_bytes_out", "gzip"), made);
}

/// Reads a chunk.
fn chunk(client: &mut Conn) -> Vec<u8> {
    let line = String::from_utf8(client.read_through("\r\n")).expect("a size");
    let size = usize::from_str_radix(line.trim(), 16).expect("a size");
    let chunk = client.read(size);
    client.expect("\r\n");
    chunk
}

#[test]
fn events_are_sent_as_they_come() {
    for (cache, coding) in [("no-store", "gzip"), ("max-age=60", "br"), ("private", "zstd")] {
        let gates: Vec<Gate> = (0..3).map(|_| Gate::new()).collect();
        let held = gates.clone();
        let (proxy, _origin) = before_with("compress = { private = true }", move |_| {
            let events = reply(200).cache(cache).with("Content-Type", "text/event-stream").chunked();
            let events = held.iter().enumerate().fold(events, |events, (number, gate)| {
                events.body(format!("data: {number}\n\n")).pause(gate)
            });
            events.body("data: end\n\n")
        });
        let mut client = proxy.connect();
        client.send(accepting(coding).to_bytes());
        let begun = client.response_head().expect(200);
        assert_eq!(begun.field("content-encoding"), Some(coding), "{cache}");
        assert_eq!(begun.field("vary"), Some("Accept-Encoding"));
        let mut decoder = Decoder::new(Coding::of(coding.as_bytes()).expect("known"));
        let mut seen = Vec::new();
        for (number, gate) in gates.iter().enumerate() {
            // The event is readable before the origin goes on.
            while !seen.ends_with(format!("data: {number}\n\n").as_bytes()) {
                decoder.push(&chunk(&mut client), &mut seen).expect("in its coding");
            }
            gate.open();
        }
        while let next = chunk(&mut client)
            && !next.is_empty()
        {
            decoder.push(&next, &mut seen).expect("in its coding");
        }
        decoder.finish().expect("whole");
        assert!(seen.ends_with(b"data: 2\n\ndata: end\n\n"), "{cache}");
    }
}

#[test]
fn what_passes_is_compressed_as_it_streams() {
    let (proxy, origin) = before(|_| {
        reply(200)
            .cache("no-store")
            .with("Content-Type", "application/json")
            .with("ETag", "\"v1\"")
            .with("Content-MD5", "x")
            .body(page().repeat(30))
    });
    for request in [accepting("gzip"), post("/", "a=1").with("Accept-Encoding", "gzip")] {
        let response = proxy.exchange(&request).expect(200);
        assert_eq!(response.field("content-encoding"), Some("gzip"));
        assert_eq!(response.field("content-length"), None);
        assert_eq!(response.field("content-md5"), None);
        assert_eq!(response.field("etag"), Some("W/\"v1\""));
        assert!(plain(&response) == page().repeat(30));
    }
    let mut client = Http2::to(proxy.address());
    let stream = client.get("/", &[("accept-encoding", "br")]);
    assert!(plain(&client.response(stream).expect(200)) == page().repeat(30));
    let only_head = proxy.exchange(&head("/").with("Accept-Encoding", "gzip")).expect(200);
    assert_eq!(only_head.field("content-encoding"), Some("gzip"));
    assert_eq!(only_head.field("etag"), Some("W/\"v1\""));
    // A request past the cache keeps its own Accept-Encoding.
    assert_eq!(origin.requests()[1].field("accept-encoding"), Some("gzip"));
}

#[test]
fn a_passed_304_has_the_tag_that_the_client_knows() {
    let (proxy, origin) = before(|request| match request.field("if-none-match") {
        Some(_) => reply(304).cache("no-store").with("ETag", "\"v1\""),
        None => {
            reply(200).cache("no-store").with("Content-Type", "text/css").with("ETag", "\"v1\"").body(page())
        }
    });
    let passing = |tag: &str| {
        post("/", "").with("Accept-Encoding", "gzip").with("If-None-Match", tag).with("If-Match", "W/\"v1\"")
    };
    assert_eq!(proxy.exchange(&passing("W/\"v1\"")).expect(304).field("etag"), Some("W/\"v1\""));
    assert_eq!(origin.last().field("if-match"), Some("W/\"v1\""), "unchanged");
    assert_eq!(proxy.exchange(&passing("\"v1\"")).expect(304).field("etag"), Some("\"v1\""));
}

#[test]
fn a_coded_response_that_is_not_stored_is_inflated_for_those_who_cannot_take_it() {
    let (proxy, _origin) = before_with("compress = { backend = \"gzip\" }", |_| {
        reply(200)
            .cache("no-store")
            .with("Content-Type", "text/html")
            .with("Content-Encoding", "gzip")
            .body(coded(Coding::Gzip, page().as_bytes()))
    });
    let response = proxy.get("/").expect(200);
    assert_eq!(response.field("content-encoding"), None);
    assert!(response.text() == page());
    assert_eq!(proxy.exchange(&accepting("gzip")).expect(200).field("content-encoding"), Some("gzip"));
}

#[test]
fn a_body_that_breaks_off_is_not_ended() {
    let (proxy, _origin) = before(|_| {
        reply(200).cache("no-store").with("Content-Type", "text/html").chunked().body(page()).cut()
    });
    let mut client = proxy.connect();
    client.send(accepting("gzip").to_bytes());
    client.response_head().expect(200);
    assert!(!client.read_to_end().ends_with(b"0\r\n\r\n"), "the chunks came to an end");
}

#[test]
fn under_rfc_the_clients_own_codings_select() {
    let origin = Origin::new(|request| {
        let accepts = request.field("accept-encoding").unwrap_or("none").to_owned();
        html(format!("{accepts} {}", page())).with("Vary", "Accept-Encoding")
    });
    let text = site(&origin.url(), "compress = true", "[cache]\nprofile = \"rfc\"");
    let proxy = sandarac().config(text).start();
    assert!(plain(&proxy.exchange(&accepting("gzip")).expect(200)).starts_with("gzip <p>"));
    assert!(plain(&proxy.exchange(&accepting("br")).expect(200)).starts_with("br <p>"));
    assert_eq!(origin.count(), 2);
}
