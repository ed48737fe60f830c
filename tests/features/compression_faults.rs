//! Compression: bodies that cannot be inflated, and memory that is used up.

use std::sync::atomic::{AtomicBool, Ordering};

use sandarac_message::codings::Coding;
use sandarac_test_support::http2::{Ended, Http2};
use sandarac_test_support::{Conn, Gate, Origin, PATIENCE, Reply, Sandarac, get, head, reply, within};

use crate::compression::{accepting, before, coded, html, page, plain};
use crate::{labelled, sandarac, site};

/// A response in a coding, under this `Cache-Control`.
fn in_coding(cache: &str, coding: &str, body: &[u8]) -> Reply {
    reply(200).cache(cache).with("Content-Type", "text/html").with("Content-Encoding", coding).body(body)
}

/// A body that begins well, and is damaged after several hundred KB.
fn damaged_later() -> Vec<u8> {
    let mut state = 1_u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        b"0123456789abcdef"[(state >> 60) as usize]
    });
    let mut body = coded(Coding::Gzip, &noise.take(1 << 20).collect::<Vec<u8>>());
    let at = body.len() - 10_000;
    body[at..at + 200].fill(0xff);
    body
}

/// A frame of zstd whose window is 16 MiB (RFC 8878 §3.1.1.1.2): a raw block with one byte.
const LARGE_WINDOW: [u8; 10] = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 14 << 3, 0x09, 0x00, 0x00, b'x'];

/// Bodies that cannot be inflated from their first block on, each with its coding, and the reason.
fn damaged() -> [(&'static str, &'static str, Vec<u8>); 6] {
    let start = |coding| coded(coding, page().as_bytes())[..8].to_vec();
    [
        ("coding-corrupt", "gzip", page().into_bytes()),
        ("coding-corrupt", "br", vec![0xff; 5000]),
        ("coding-truncated", "gzip", start(Coding::Gzip)),
        ("coding-truncated", "zstd", start(Coding::Zstd)),
        ("coding-bomb", "zstd", coded(Coding::Zstd, &vec![b' '; 40 << 20])),
        ("coding-window", "zstd", LARGE_WINDOW.to_vec()),
    ]
}

/// Regression: a coding of nothing was taken for a truncated one, and a redirect became 502.
#[test]
fn an_empty_body_is_empty_whatever_its_coding() {
    let (proxy, _origin) = before(|request| {
        let mut words = request.path().split('/').skip(1);
        let mut next = || words.next().expect("a status, a coding, a framing and a lifetime");
        let empty = reply(next().parse().expect("a status")).with("Content-Encoding", next());
        let empty = if next() == "chunked" { empty.chunked() } else { empty };
        empty.cache(next()).with("Content-Type", "text/html").with("Location", "/new")
    });
    for status in [200, 201, 302, 404] {
        for coding in ["gzip", "br", "zstd"] {
            for framing in ["length", "chunked"] {
                for cache in ["no-store", "max-age=60"] {
                    let path = format!("/{status}/{coding}/{framing}/{cache}");
                    for _ in 0..2 {
                        let response = proxy.get(&path).expect(status);
                        assert_eq!(
                            (response.text(), response.field("content-encoding")),
                            (String::new(), None),
                            "{path}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_body_that_cannot_be_inflated_is_answered_with_502_and_the_reason() {
    for cache in ["no-store", "max-age=60"] {
        for (reason, coding, body) in damaged() {
            let sent = body.clone();
            let (proxy, _origin) = before(move |_| in_coding(cache, coding, &sent));
            for _ in 0..3 {
                let refused = proxy.get("/").expect(502);
                assert_eq!(refused.cache_parameter("detail").as_deref(), Some(reason), "{cache} {coding}");
                assert_eq!(refused.field("content-encoding"), None);
                assert!(refused.field("proxy-status").is_some(), "{refused:?}");
            }
            let mut client = Http2::to(proxy.address());
            let stream = client.get("/", &[]);
            client.response(stream).expect(502);
            // A client that takes the coding gets what the origin sent.
            let as_it_came = proxy.exchange(&accepting(coding)).expect(200);
            assert!(as_it_came.body == body, "{cache} {coding}");
            let then = proxy.get("/").expect(502);
            assert_eq!(then.cache_parameter("detail").as_deref(), Some(reason), "{cache} {coding}");
            assert!(labelled(&proxy, "uncompressed", reason) >= 5, "{reason}");
            assert!(labelled(&proxy, "failed", reason) >= 5, "{reason}");
            assert!(proxy.peak_resident_bytes() < 200 << 20, "{reason}: {}", proxy.peak_resident_bytes());
        }
    }
}

/// The head of the origin and the first block of its body need not arrive together.
#[test]
fn the_head_waits_for_the_first_block() {
    for cache in ["no-store", "max-age=60"] {
        let gate = Gate::new();
        let held = gate.clone();
        let (proxy, _origin) = before(move |_| {
            let begun =
                reply(200).cache(cache).with("Content-Type", "text/html").with("Content-Encoding", "gzip");
            begun.chunked().body([0x1f, 0x8b]).pause(&held).body(page())
        });
        let mut client = proxy.connect();
        client.send(get("/").to_bytes());
        assert!(client.is_silent(), "{cache}");
        gate.open();
        assert_eq!(
            client.response().expect(502).cache_parameter("detail").as_deref(),
            Some("coding-corrupt")
        );
        // The connection is kept.
        client.send(accepting("gzip").to_bytes());
        client.response().expect(200);
    }
}

/// Nothing in a conversation may be old, not even its head.
#[test]
fn the_head_of_an_event_stream_does_not_wait() {
    for cache in ["no-store", "max-age=60"] {
        let gate = Gate::new();
        let held = gate.clone();
        let (proxy, _origin) = before(move |_| {
            let begun = reply(200).cache(cache).with("Content-Type", "text/event-stream").chunked();
            let event = coded(Coding::Gzip, b"data: 1\n\n");
            begun.with("Content-Encoding", "gzip").body(&event[..2]).pause(&held).body(&event[2..])
        });
        // The gate opens by itself later.
        let mut client = proxy.connect().patient_for(PATIENCE / 2);
        client.send(get("/").to_bytes());
        let begun = client.response_head().expect(200);
        assert_eq!(begun.field("content-encoding"), None, "{cache}");
        gate.open();
        client.read_through("data: 1\n\n\r\n0\r\n\r\n");
    }
}

#[test]
fn a_backend_that_breaks_off_before_the_first_block_is_answered_with_502() {
    let (proxy, _origin) = before(|_| {
        let begun =
            reply(200).cache("no-store").with("Content-Type", "text/html").with("Content-Encoding", "gzip");
        begun.length(5000).body([0x1f, 0x8b]).cut()
    });
    let refused = proxy.get("/").expect(502);
    assert_eq!(refused.cache_parameter("detail").as_deref(), Some("response-broken"));
}

#[test]
fn later_damage_breaks_the_response_off() {
    for cache in ["no-store", "max-age=60"] {
        let gate = Gate::new();
        let held = gate.clone();
        let (proxy, _origin) = before(move |_| {
            let body = damaged_later();
            let (first, rest) = body.split_at(300_000);
            let begun =
                reply(200).cache(cache).with("Content-Type", "text/html").with("Content-Encoding", "gzip");
            begun.chunked().body(first).pause(&held).body(rest)
        });
        let mut multiplexed = Http2::to(proxy.address());
        let stream = multiplexed.get("/", &[]);
        assert_eq!(multiplexed.begun(stream).status, 200, "{cache}");
        let mut client = proxy.connect();
        client.send(get("/").to_bytes());
        client.response_head().expect(200);
        gate.open();
        assert!(!client.read_to_end().ends_with(b"0\r\n\r\n"), "{cache}: the chunks came to an end");
        assert!(matches!(multiplexed.outcome(stream), Err(Ended::Reset(_))), "{cache}");
    }
}

/// A body that inflates to more than its first block, and ends early.
#[test]
fn a_truncated_body_has_a_status_line_and_no_end() {
    let (proxy, _origin) = before(|_| {
        let mut body = coded(Coding::Gzip, page().as_bytes());
        body.truncate(body.len() - 3);
        in_coding("no-store", "gzip", &body).corked()
    });
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    client.response_head().expect(200);
    assert!(!client.read_to_end().ends_with(b"0\r\n\r\n"), "the chunks came to an end");
}

#[test]
fn a_damaged_body_does_not_stay_in_the_store() {
    let is_mended = std::sync::Arc::new(AtomicBool::new(false));
    let mended = is_mended.clone();
    let (proxy, origin) = before(move |_| {
        let mut body = coded(Coding::Gzip, page().as_bytes());
        if !mended.load(Ordering::SeqCst) {
            body.truncate(body.len() - 3);
        }
        html(body).with("Content-Encoding", "gzip").corked()
    });
    proxy.exchange(&accepting("gzip")).expect(200);
    let refused = proxy.get("/").expect(502);
    assert_eq!(refused.cache_parameter("detail").as_deref(), Some("coding-truncated"));
    is_mended.store(true, Ordering::SeqCst);
    assert!(proxy.get("/").expect(200).text() == page());
    assert!(plain(&proxy.exchange(&accepting("gzip")).expect(200)) == page());
    assert_eq!(origin.count(), 2);
    assert_eq!(labelled(&proxy, "cache_removed", "broken"), 1);
}

#[test]
fn trailing_bytes_are_damage_and_an_unknown_coding_is_not() {
    let trailing = [coded(Coding::Brotli, page().as_bytes()), b"x".to_vec()].concat();
    let (proxy, _origin) = before(move |_| html(&trailing).with("Content-Encoding", "br").corked());
    for request in [accepting("identity"), head("/"), get("/").with("If-None-Match", "\"v1\"")] {
        proxy.exchange(&accepting("br")).expect(200);
        let refused = proxy.exchange(&request).expect(502);
        assert_eq!(refused.cache_parameter("detail").as_deref(), Some("coding-trailing-bytes"));
    }
    let (proxy, _origin) = before(|_| html(page()).with("Content-Encoding", "gzip, br"));
    for _ in 0..2 {
        let response = proxy.exchange(&accepting("identity")).expect(200);
        assert_eq!(response.field("content-encoding"), Some("gzip, br"));
        assert_eq!(response.cache_parameter("sandarac_uncompressed").as_deref(), Some("coding-unknown"));
    }
}

/// A body that inflates to more than is kept is not damaged: it is inflated as it is sent.
#[test]
fn a_body_that_inflates_to_more_than_is_kept_is_inflated_for_each_client() {
    let long = page().repeat(2000);
    assert!(long.len() > 20 << 20);
    let body = coded(Coding::Gzip, long.as_bytes());
    let (proxy, origin) = before(move |_| html(&body).with("Content-Encoding", "gzip"));
    proxy.exchange(&accepting("gzip")).expect(200);
    for _ in 0..2 {
        let response = proxy.get("/").expect(200);
        assert!(response.is_hit() && response.field("content-encoding").is_none());
        assert!(response.text() == long);
    }
    assert_eq!(origin.count(), 1);
}

#[test]
fn decoders_have_memory_of_their_own_while_that_of_encoders_is_used_up() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |request| {
        let gzip = coded(Coding::Gzip, page().repeat(20).as_bytes());
        match request.path() {
            "/held" => {
                let text = reply(200).cache("no-store").with("Content-Type", "text/plain").chunked();
                text.body("begun").pause(&held).body("ended")
            }
            "/plain" => html(page()),
            "/gzip" => html(gzip).with("Content-Encoding", "gzip"),
            _ => in_coding("no-store", "gzip", &gzip),
        }
    });
    // A quarter of this is for encoders: one of brotli takes that up, but for less than a decoder needs.
    let text = site(&origin.url(), "compress = { backend = \"gzip\" }", "[cache]\nmemory = \"4400KiB\"");
    let proxy: Sandarac = sandarac().config(text).start();
    let mut long: Conn = proxy.connect();
    long.send(get("/held").with("Accept-Encoding", "br").to_bytes());
    assert_eq!(long.response_head().expect(200).field("content-encoding"), Some("br"));
    for _ in 0..2 {
        let busy = proxy.exchange(&get("/plain").with("Accept-Encoding", "br, gzip")).expect(200);
        assert_eq!(busy.field("content-encoding"), None);
        assert_eq!(busy.cache_parameter("sandarac_uncompressed").as_deref(), Some("busy"));
        assert!(busy.text() == page());
        for path in ["/gzip", "/passed"] {
            let taken = proxy.exchange(&get(path).with("Accept-Encoding", "br, gzip")).expect(200);
            assert_eq!(taken.field("content-encoding"), Some("gzip"), "{path}");
            assert!(plain(&taken) == page().repeat(20), "{path}");
            let inflated = proxy.exchange(&get(path).with("Accept-Encoding", "br")).expect(200);
            assert_eq!(inflated.field("content-encoding"), None, "{path}");
            assert!(inflated.text() == page().repeat(20), "{path}");
        }
    }
    gate.open();
    long.read_through("\r\n0\r\n\r\n");
    // The memory is given back once the response is done with.
    within("a response in brotli", || {
        let made = proxy.exchange(&get("/plain").with("Accept-Encoding", "br")).expect(200);
        (made.field("content-encoding") == Some("br")).then_some(())
    });
}
