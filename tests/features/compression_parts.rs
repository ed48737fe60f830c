//! Compression: requests for parts, and the `Vary` of responses that are not whole.

use sandarac_message::codings::Coding;
use sandarac_test_support::http2::Http2;
use sandarac_test_support::{Reply, Req, Request, get, head, post, reply};

use crate::compression::{accepting, before, before_with, coded, html, page};

fn gzip() -> Vec<u8> {
    coded(Coding::Gzip, page().as_bytes())
}

/// Responds with the gzip form of the page, whatever the request accepts.
fn in_gzip(_: &Request) -> Reply {
    html(gzip()).with("Content-Encoding", "gzip")
}

fn part(request: Req) -> Req {
    request.with("Range", "bytes=100-199")
}

#[test]
fn a_part_of_a_coded_body_is_for_clients_that_take_the_coding() {
    let (proxy, origin) = before_with("compress = { backend = \"gzip\" }", in_gzip);
    proxy.exchange(&accepting("gzip")).expect(200);
    for request in [
        part(accepting("gzip")),
        part(accepting("br, gzip;q=0.1")),
        part(accepting("gzip")).with("If-Range", "\"v1\""),
    ] {
        let coded_part = proxy.exchange(&request).expect(206);
        assert!(coded_part.body == gzip()[100..200]);
        assert_eq!(coded_part.field("content-encoding"), Some("gzip"));
        assert_eq!(coded_part.field("etag"), Some("\"v1\""));
    }
    for request in [
        part(get("/")),
        part(accepting("br")),
        part(accepting("identity;q=1, *;q=0")),
        part(accepting("identity")).with("If-Range", "\"v1\""),
        part(accepting("identity")).with("If-Range", "W/\"v1\""),
        get("/").with("If-Range", "\"v1\""),
        get("/").with("Range", "bytes=0-1,5-6"),
        get("/").with("Range", "bytes=99999999-"),
    ] {
        let whole = proxy.exchange(&request).expect(200);
        assert!(whole.text() == page(), "{whole:?}");
        for field in ["content-encoding", "content-range", "accept-ranges"] {
            assert_eq!(whole.field(field), None);
        }
        assert_eq!(whole.field("etag"), Some("W/\"v1\""));
        assert_eq!(whole.field("vary"), Some("Accept-Encoding"));
    }
    let known = proxy.exchange(&part(get("/")).with("If-None-Match", "W/\"v1\"")).expect(304);
    assert_eq!(known.field("etag"), Some("W/\"v1\""));
    let about = proxy.exchange(&part(head("/"))).expect(200);
    assert_eq!(about.field("content-length"), Some(&*page().len().to_string()));
    assert_eq!(origin.count(), 1);
    let mut client = Http2::to(proxy.address());
    for _ in 0..2 {
        let stream = client.get("/", &[("range", "bytes=100-199")]);
        assert!(client.response(stream).expect(200).text() == page());
    }
}

#[test]
fn the_first_request_and_one_that_passes_get_the_whole_body_too() {
    for cache in ["max-age=60", "no-store"] {
        let (proxy, _origin) = before_with("compress = { backend = \"gzip\" }", move |_| {
            reply(200)
                .cache(cache)
                .with("Content-Type", "text/html")
                .with("ETag", "\"v1\"")
                .with("Content-Encoding", "gzip")
                .body(gzip())
        });
        for request in [part(get("/")), part(get("/")).with("Cookie", "a=1"), part(accepting("br"))] {
            let whole = proxy.exchange(&request).expect(200);
            assert!(whole.text() == page(), "{cache}: {whole:?}");
            assert_eq!(whole.field("content-encoding"), None, "{cache}");
        }
    }
}

/// An origin that obeys `Range` and `Accept-Encoding`, as nginx before files does.
fn obeying(request: &Request) -> Reply {
    let takes_gzip = request.field("accept-encoding").is_some_and(|value| value.contains("gzip"));
    let (body, tag) = if takes_gzip { (gzip(), "\"gz\"") } else { (page().into_bytes(), "\"v1\"") };
    let range = request.field("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let whole = body.len();
    let numbers =
        range.and_then(|(first, last)| Some((first.parse().ok()?, last.parse::<usize>().ok()? + 1)));
    let answer = match numbers {
        Some((from, to)) if request.field("if-range").is_none_or(|known| known == tag) => reply(206)
            .with("Content-Range", &format!("bytes {from}-{}/{whole}", to - 1))
            .body(&body[from..to]),
        _ => reply(200).body(body),
    };
    let answer = answer.cache("max-age=60").with("Content-Type", "text/html").with("ETag", tag);
    if takes_gzip { answer.with("Content-Encoding", "gzip") } else { answer }
}

/// Regression: the rest of a stored part was asked for in gzip, although the part had no coding.
#[test]
fn parts_that_are_fetched_alone_have_no_coding() {
    let (proxy, origin) = before_with("compress = { backend = \"gzip\" }", obeying);
    for (range, body) in
        [("bytes=100-199", 100..200), ("bytes=150-299", 150..300), ("bytes=100-299", 100..300)]
    {
        let part = proxy.exchange(&accepting("gzip").with("Range", range)).expect(206);
        assert!(part.body == page().as_bytes()[body], "{range}");
        assert_eq!(part.field("content-encoding"), None);
    }
    assert_eq!(origin.count(), 2);
    assert_eq!(origin.last().field("range"), Some("bytes=200-299"));
    assert_eq!(origin.last().field("accept-encoding"), Some("identity"));
}

/// Regression: a part in a coding that nobody had asked for was stored, and sent to clients that do not accept it.
#[test]
fn a_part_that_comes_in_a_coding_nevertheless_is_fetched_whole() {
    let (proxy, origin) = before_with("compress = { backend = \"gzip\" }", |request| {
        let body = gzip();
        let answer = match request.field("range") {
            Some("bytes=100-199") => {
                let range = format!("bytes 100-199/{}", body.len());
                reply(206).with("Content-Range", &range).body(&body[100..200])
            }
            _ => reply(200).body(&body),
        };
        let answer = answer.cache("max-age=60").with("Content-Type", "text/html").with("ETag", "\"v1\"");
        answer.with("Content-Encoding", "gzip")
    });
    for _ in 0..2 {
        let whole = proxy.exchange(&part(get("/"))).expect(200);
        assert!(whole.text() == page() && whole.field("content-encoding").is_none(), "{whole:?}");
        assert!(proxy.exchange(&part(accepting("gzip"))).expect(206).body == gzip()[100..200]);
    }
    let asked: Vec<_> =
        origin.requests().iter().map(|request| request.field("range").map(str::to_owned)).collect();
    assert_eq!(asked, [Some("bytes=100-199".to_owned()), None]);
}

/// An origin that sends gzip to everybody: in parts where it is asked for some, or always the whole.
fn gzip_unasked(request: &Request, has_parts: bool, has_tag: bool) -> Reply {
    let body = gzip();
    let answer = match request.field("range") {
        Some(range) if has_parts => {
            let (first, last) = range["bytes=".len()..].split_once('-').expect("a range");
            let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
            let range = format!("bytes {first}-{last}/{}", body.len());
            reply(206).with("Content-Range", &range).body(&body[first..=last])
        }
        _ => reply(200).body(&body),
    };
    let answer = answer.with("Content-Type", "text/html").with("Content-Encoding", "gzip");
    if has_tag { answer.with("ETag", "\"v1\"") } else { answer }
}

#[test]
fn nobody_gets_a_part_in_a_coding_that_he_does_not_accept() {
    for case in 0..16u8 {
        let [has_parts, has_tag, is_stored, has_backend] = [0, 1, 2, 3].map(|bit| case & 1 << bit != 0);
        let rule = if has_backend { "compress = { backend = \"gzip\" }" } else { "compress = true" };
        let (proxy, _origin) = before_with(rule, move |request| {
            let answer = gzip_unasked(request, has_parts, has_tag);
            answer.cache(if is_stored { "max-age=60" } else { "no-store" })
        });
        for round in 0..2 {
            // A request that bypasses the cache is forwarded as it is, with its range.
            let passed = (!has_parts).then(|| part(get("/")).with("Cookie", "a=b"));
            for request in [part(get("/")), part(accepting("identity"))].into_iter().chain(passed) {
                let whole = proxy.exchange(&request);
                let told = (whole.status, whole.field("content-encoding").map(str::to_owned));
                let case = format!(
                    "parts {has_parts}, tag {has_tag}, stored {is_stored}, backend {has_backend}, {round}"
                );
                assert_eq!(told, (200, None), "{case}: {whole:?}");
                assert!(whole.text() == page(), "{case}");
            }
        }
    }
}

#[test]
fn vary_is_in_304_and_206_where_the_whole_has_it() {
    let (proxy, _origin) = before(|request| {
        if request.field("if-none-match").is_some() {
            return reply(304).cache("no-store").with("ETag", "\"v1\"");
        }
        match request.path() {
            "/image" => obeying(request).with("Content-Type", "image/png"),
            _ => obeying(request),
        }
    });
    let unchanged = proxy.exchange(&post("/", "").with("If-None-Match", "\"v1\"")).expect(304);
    assert_eq!(unchanged.field("vary"), Some("Accept-Encoding"));
    let passed = proxy.exchange(&part(get("/")).with("Cookie", "session=1")).expect(206);
    assert_eq!(passed.field("vary"), Some("Accept-Encoding"));
    for round in 0..2 {
        let stored = proxy.exchange(&part(get("/"))).expect(206);
        assert_eq!(stored.is_hit(), round == 1);
        assert_eq!(stored.field("vary"), Some("Accept-Encoding"), "round {round}");
    }
    proxy.get("/").expect(200);
    assert_eq!(proxy.exchange(&part(get("/"))).expect(206).field("vary"), Some("Accept-Encoding"));
}

#[test]
fn vary_is_not_in_a_part_of_what_is_never_compressed() {
    let (proxy, _origin) = before(|_| {
        let image = reply(206).with("Content-Type", "image/png").with("Content-Range", "bytes 100-199/9999");
        image.cache("max-age=60").body([b'x'; 100])
    });
    for request in [part(get("/")), part(get("/")).with("Cookie", "session=1")] {
        assert_eq!(proxy.exchange(&request).expect(206).field("vary"), None);
    }
}

#[test]
fn trailers_have_no_digest_of_other_bytes() {
    let (proxy, _origin) = before(|request| {
        let control = if request.path() == "/passed" { "no-store" } else { "max-age=60" };
        reply(200)
            .cache(control)
            .with("Content-Type", "text/html")
            .with("Trailer", "Content-Digest, Sum")
            .with("Trailer", "repr-digest")
            .chunked()
            .body(page())
            .trailer("Content-Digest", "sha-256=:x:")
            .trailer("Repr-Digest", "sha-256=:x:")
            .trailer("Content-MD5", "x")
            .trailer("Sum", "4")
    });
    for path in ["/passed", "/stored"] {
        let request = get(path).with("TE", "trailers").with("Connection", "TE");
        let response = proxy.exchange(&request.clone().with("Accept-Encoding", "gzip")).expect(200);
        assert_eq!(response.field("content-encoding"), Some("gzip"), "{path}");
        let mut client = Http2::to(proxy.address());
        let stream = client.get(path, &[("te", "trailers"), ("accept-encoding", "gzip")]);
        for response in [response, client.response(stream).expect(200)] {
            for name in ["content-digest", "repr-digest", "content-md5"] {
                assert!(!response.trailers.has(name), "{path} {name}");
            }
            if path == "/passed" {
                assert_eq!(response.trailers.get("sum"), Some("4"));
                assert_eq!(response.fields.list("trailer"), "Sum");
            }
        }
    }
    let request = get("/passed").with("TE", "trailers").with("Connection", "TE");
    let response = proxy.exchange(&request).expect(200);
    assert_eq!(response.trailers.get("content-digest"), Some("sha-256=:x:"));
    assert_eq!(response.fields.list("trailer"), "Content-Digest, Sum, repr-digest");
}
