//! Ranges: served from the store, and requested from the origin (RFC 9110 §14, RFC 9111 §3.3, §3.4).

use sandarac_test_support::{Origin, Reply, Request, Sandarac, get, head, reply};

use crate::sandarac;

const WHOLE: &str = "0123456789abcdef";

/// An origin that serves [`WHOLE`] and single ranges of it.
fn ranged(request: &Request) -> Reply {
    let fresh =
        |status| reply(status).cache("max-age=60").with("ETag", "\"v1\"").with("Accept-Ranges", "bytes");
    let if_range = request.field("if-range").is_none_or(|etag| etag == "\"v1\"");
    match request.field("range").and_then(|range| range.strip_prefix("bytes=")).filter(|_| if_range) {
        None => fresh(200).body(WHOLE),
        Some(range) => {
            let (first, last) = match range.split_once('-').expect("a range") {
                ("", length) => (WHOLE.len() - length.parse::<usize>().unwrap(), WHOLE.len() - 1),
                (first, "") => (first.parse().unwrap(), WHOLE.len() - 1),
                (first, last) => {
                    (first.parse().unwrap(), last.parse::<usize>().unwrap().min(WHOLE.len() - 1))
                }
            };
            fresh(206).with("Content-Range", &format!("bytes {first}-{last}/16")).body(&WHOLE[first..=last])
        }
    }
}

fn start() -> (Sandarac, Origin) {
    let origin = Origin::new(ranged);
    (sandarac().before(&origin).rfc().start(), origin)
}

#[test]
fn a_range_is_cut_from_the_stored_whole() {
    let (proxy, origin) = start();
    proxy.get("/");
    let mut client = proxy.connect();
    for (range, content_range, body) in [
        ("bytes=0-1", "bytes 0-1/16", "01"),
        ("bytes=3-", "bytes 3-15/16", "3456789abcdef"),
        ("bytes=-2", "bytes 14-15/16", "ef"),
        ("bytes=10-999", "bytes 10-15/16", "abcdef"),
        ("bytes=-999", "bytes 0-15/16", WHOLE),
        ("bytes=15-15", "bytes 15-15/16", "f"),
    ] {
        let response = client.exchange(&get("/").with("Range", range)).expect(206);
        assert_eq!(response.field("content-range"), Some(content_range), "{range}");
        assert_eq!(response.text(), body, "{range}");
        assert_eq!(response.field("content-length"), Some(body.len().to_string().as_str()));
        assert_eq!(response.field("etag"), Some("\"v1\""));
    }
    assert_eq!(origin.count(), 1);
}

#[test]
fn several_ranges_come_as_parts() {
    let whole: String = (0..2000).map(|number| format!("{number:05}")).collect();
    let page = whole.clone();
    let origin =
        Origin::new(move |_| reply(200).cache("max-age=60").with("Content-Type", "text/x").body(&page));
    let proxy = sandarac().before(&origin).rfc().start();
    proxy.get("/");
    let response = proxy.exchange(&get("/").with("Range", "bytes=0-4, 5000-5009,-5")).expect(206);
    let content_type = response.field("content-type").unwrap_or_default().to_owned();
    let boundary = content_type.strip_prefix("multipart/byteranges; boundary=").expect("a multipart type");
    assert!(!response.fields.has("content-range"));
    let text = response.text();
    let parts: Vec<&str> = text.split(&format!("--{}", boundary.trim_matches('"'))).collect();
    assert_eq!(parts.len(), 5, "{text}");
    assert_eq!(parts[4].trim(), "--", "{text}");
    for (part, range, body) in [
        (parts[1], "bytes 0-4/10000", &whole[..5]),
        (parts[2], "bytes 5000-5009/10000", &whole[5000..5010]),
        (parts[3], "bytes 9995-9999/10000", &whole[9995..]),
    ] {
        let (head, content) = part.split_once("\r\n\r\n").expect("a part has a head");
        let head = head.to_ascii_lowercase();
        assert!(
            head.contains(&format!("content-range: {range}")) && head.contains("content-type: text/x"),
            "{head}"
        );
        assert_eq!(content.strip_suffix("\r\n"), Some(body));
    }
    assert_eq!(response.field("content-length"), Some(text.len().to_string().as_str()));
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_range_beyond_the_end_is_416() {
    let (proxy, origin) = start();
    proxy.get("/");
    let response = proxy.exchange(&get("/").with("Range", "bytes=16-20")).expect(416);
    assert!(response.fields.has("date"), "{response:?}");
    assert_eq!(response.field("content-range"), Some("bytes */16"));
    assert_eq!(origin.count(), 1);
}

#[test]
fn what_is_not_a_range_is_overlooked() {
    let (proxy, _origin) = start();
    proxy.get("/");
    for range in ["bytes=5-2", "bytes=a-b", "lines=1-2", "bytes", "bytes=", "bytes=-"] {
        assert_eq!(proxy.exchange(&get("/").with("Range", range)).expect(200).text(), WHOLE, "{range}");
    }
    proxy.exchange(&head("/").with("Range", "bytes=0-1")).expect(200);
}

#[test]
fn hundreds_of_ranges_cannot_multiply_the_response() {
    let (proxy, _origin) = start();
    proxy.get("/");
    let ranges: Vec<String> = (0..500).map(|_| "0-15".to_owned()).collect();
    let response = proxy.exchange(&get("/").with("Range", &format!("bytes={}", ranges.join(","))));
    assert!(matches!(response.status, 200 | 206 | 416), "{response:?}");
    assert!(response.body.len() < 10 * WHOLE.len(), "{} bytes", response.body.len());
}

#[test]
fn if_range_gives_the_whole_when_it_has_changed() {
    let (proxy, _origin) = start();
    proxy.get("/");
    let ask =
        |validator: &str| proxy.exchange(&get("/").with("Range", "bytes=0-1").with("If-Range", validator));
    assert_eq!(ask("\"v1\"").expect(206).text(), "01");
    assert_eq!(ask("\"v2\"").expect(200).text(), WHOLE);
    assert_eq!(ask("W/\"v1\"").expect(200).text(), WHOLE, "If-Range compares strongly");
}

#[test]
fn a_range_of_what_is_not_stored_is_answered_and_leads_to_a_hit() {
    let (proxy, origin) = start();
    for _ in 0..3 {
        let response = proxy.exchange(&get("/").with("Range", "bytes=2-5")).expect(206);
        assert_eq!(response.text(), "2345");
        assert_eq!(response.field("content-range"), Some("bytes 2-5/16"));
    }
    assert_eq!(origin.count(), 1);
}

#[test]
fn the_whole_is_right_after_a_part() {
    let (proxy, origin) = start();
    assert_eq!(proxy.exchange(&get("/").with("Range", "bytes=0-4")).expect(206).text(), "01234");
    assert_eq!(proxy.get("/").expect(200).text(), WHOLE);
    assert_eq!(proxy.get("/").expect(200).text(), WHOLE);
    assert!(origin.count() <= 2);
}

#[test]
fn a_stored_part_is_completed_only_with_what_belongs_to_it() {
    let origin = Origin::new(|request| match request.serial {
        1 => reply(206)
            .cache("max-age=60")
            .with("ETag", "\"v1\"")
            .with("Content-Range", "bytes 0-4/10")
            .body("AAAAA"),
        _ => match (request.field("range"), request.field("if-range")) {
            (Some(_), None) => reply(206)
                .cache("max-age=60")
                .with("ETag", "\"v2\"")
                .with("Content-Range", "bytes 5-9/10")
                .body("BBBBB"),
            _ => reply(200).cache("max-age=60").with("ETag", "\"v2\"").body("BBBBBBBBBB"),
        },
    });
    let proxy = sandarac().before(&origin).rfc().start();
    assert_eq!(proxy.exchange(&get("/").with("Range", "bytes=0-4")).expect(206).text(), "AAAAA");
    assert_eq!(proxy.get("/").expect(200).text(), "BBBBBBBBBB");
}

#[test]
fn a_part_never_answers_for_the_whole() {
    let origin = Origin::new(|request| match request.field("range") {
        Some(_) => reply(206).cache("max-age=60").with("Content-Range", "bytes 0-4/10").body("01234"),
        None => reply(200).cache("max-age=60").body("0123456789"),
    });
    let proxy = sandarac().before(&origin).rfc().start();
    proxy.exchange(&get("/").with("Range", "bytes=0-4")).expect(206);
    assert_eq!(proxy.get("/").expect(200).text(), "0123456789");
    assert_eq!(proxy.exchange(&get("/").with("Range", "bytes=8-9")).expect(206).text(), "89");
}

/// Regression: such a part was stored, and served as the range it claims to be.
#[test]
fn a_part_that_is_not_as_long_as_it_says_goes_on_as_it_came_and_is_not_stored() {
    let origin =
        Origin::new(|_| reply(206).cache("max-age=60").with("Content-Range", "bytes 4-9/10").body("01234"));
    let proxy = sandarac().before(&origin).rfc().start();
    for _ in 0..2 {
        let response = proxy.exchange(&get("/").with("Range", "bytes=-5")).expect(206);
        assert_eq!(response.field("content-range"), Some("bytes 4-9/10"));
        assert_eq!(response.text(), "01234");
    }
    assert_eq!(origin.count(), 2);
    assert_eq!(origin.last().field("range"), Some("bytes=-5"));
    // The same for a chunked part, whose length shows only at its end.
    let origin = Origin::new(|_| {
        reply(206).cache("max-age=60").with("Content-Range", "bytes 4-9/10").chunked().body("01234")
    });
    let proxy = sandarac().before(&origin).rfc().start();
    let mut client = proxy.connect();
    client.send(get("/").with("Range", "bytes=-5").to_bytes()).read_to_end();
    proxy.connect().send(get("/").with("Range", "bytes=-5").to_bytes()).read_to_end();
    assert_eq!(origin.count(), 2);
}
