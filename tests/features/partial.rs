//! Parts: stored, joined with others, and completed (RFC 9110 §15.3.7.3, RFC 9111 §3.3, §3.4).

use sandarac_test_support::{
    Conn, Gate, Origin, Reply, Request, Sandarac, get, head, http_date, reply, within,
};

use crate::{sandarac, site};

const WHOLE: &str = "0123456789abcdef";

/// The range of [`WHOLE`] that a request asks for: its first byte, and one past its last.
fn asked(request: &Request) -> Option<(usize, usize)> {
    let (first, last) = request.field("range")?.strip_prefix("bytes=")?.split_once('-')?;
    Some(match (first, last) {
        ("", length) => (WHOLE.len() - length.parse::<usize>().ok()?, WHOLE.len()),
        (first, "") => (first.parse().ok()?, WHOLE.len()),
        (first, last) => (first.parse().ok()?, (last.parse::<usize>().ok()? + 1).min(WHOLE.len())),
    })
}

/// [`WHOLE`], or the range that is asked for, with the validators in `fields`.
fn version(request: &Request, fields: &[(&str, &str)]) -> Reply {
    let with = |reply: Reply| {
        let reply = reply.cache("max-age=60").with("X-Serial", &request.serial.to_string());
        fields.iter().fold(reply, |reply, (name, value)| reply.with(name, value))
    };
    let same = request.field("if-range").is_none_or(|sent| fields.iter().any(|(_, value)| sent == *value));
    match asked(request).filter(|_| same) {
        Some((first, end)) => with(reply(206))
            .with("Content-Range", &format!("bytes {first}-{}/{}", end - 1, WHOLE.len()))
            .body(&WHOLE[first..end]),
        None => with(reply(200)).body(WHOLE),
    }
}

fn start(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Sandarac, Origin) {
    let origin = Origin::new(rule);
    (sandarac().before(&origin).rfc().start(), origin)
}

/// An origin with one version, which has a strong entity tag.
fn tagged() -> (Sandarac, Origin) {
    start(|request| version(request, &[("ETag", "\"v1\"")]))
}

fn range(proxy: &Sandarac, range: &str) -> String {
    proxy.exchange(&get("/").with("Range", range)).expect(206).text()
}

/// Range and If-Range of the requests that reached the origin.
fn ranges(origin: &Origin) -> Vec<(Option<String>, Option<String>)> {
    let field = |request: &Request, name| request.field(name).map(str::to_owned);
    origin.requests().iter().map(|request| (field(request, "range"), field(request, "if-range"))).collect()
}

fn asks(range: &str, if_range: Option<&str>) -> (Option<String>, Option<String>) {
    (Some(range.to_owned()), if_range.map(str::to_owned))
}

const ANEW: (Option<String>, Option<String>) = (None, None);

#[test]
fn the_whole_is_completed_with_what_a_part_lacks() {
    for (first, lacks) in [("bytes=0-4", "bytes=5-"), ("bytes=-6", "bytes=0-9")] {
        let (proxy, origin) = tagged();
        range(&proxy, first);
        let whole = proxy.get("/").expect(200);
        assert_eq!(whole.text(), WHOLE);
        assert_eq!(whole.field("content-length"), Some("16"));
        assert_eq!(whole.field("content-range"), None);
        assert_eq!(whole.field("x-serial"), Some("2"));
        assert_eq!(whole.cache_parameter("fwd").as_deref(), Some("partial"));
        assert_eq!(ranges(&origin), [asks(first, None), asks(lacks, Some("\"v1\""))]);
        let hit = proxy.get("/").expect(200);
        assert!(hit.is_hit() && hit.text() == WHOLE);
        assert_eq!(range(&proxy, "bytes=2-12"), &WHOLE[2..=12]);
        assert_eq!(proxy.exchange(&head("/")).expect(200).field("content-length"), Some("16"));
        assert_eq!(origin.count(), 2);
    }
}

#[test]
fn a_part_grows_by_what_a_longer_range_lacks() {
    let (proxy, origin) = tagged();
    for (wanted, body) in [
        ("bytes=4-6", "456"),
        ("bytes=5-9", "56789"),
        ("bytes=2-5", "2345"),
        ("bytes=2-9", "23456789"),
        ("bytes=10-", "abcdef"),
    ] {
        let response = proxy.exchange(&get("/").with("Range", wanted)).expect(206);
        assert_eq!(response.text(), body, "{wanted}");
        let length = body.len().to_string();
        assert_eq!(response.field("content-length"), Some(length.as_str()), "{wanted}");
    }
    let v1 = Some("\"v1\"");
    let lacked = ["bytes=7-9", "bytes=2-3", "bytes=10-"].map(|lacks| asks(lacks, v1));
    assert_eq!(ranges(&origin)[1..], lacked);
    let all = proxy.exchange(&get("/").with("Range", "bytes=2-")).expect(206);
    assert_eq!(all.text(), &WHOLE[2..]);
    assert_eq!(all.field("content-range"), Some("bytes 2-15/16"));
    assert_eq!(origin.count(), 4);
}

#[test]
fn parts_that_overlap_are_joined() {
    // An origin may send more than it is asked for.
    let (proxy, origin) = start(|request| match request.serial {
        1 => version(request, &[("ETag", "\"v1\"")]),
        _ => reply(206)
            .cache("max-age=60")
            .with("ETag", "\"v1\"")
            .with("Content-Range", "bytes 2-15/16")
            .body(&WHOLE[2..]),
    });
    range(&proxy, "bytes=0-4");
    assert_eq!(proxy.get("/").expect(200).text(), WHOLE);
    assert!(proxy.get("/").is_hit());
    assert_eq!(origin.count(), 2);
}

#[test]
fn parts_with_a_gap_are_not_joined() {
    let (proxy, origin) = tagged();
    range(&proxy, "bytes=0-3");
    assert_eq!(range(&proxy, "bytes=8-11"), "89ab");
    assert_eq!(proxy.get("/").expect(200).text(), WHOLE);
    assert_eq!(ranges(&origin), [asks("bytes=0-3", None), asks("bytes=8-11", None), ANEW]);
}

#[test]
fn a_whole_of_another_version_replaces_the_part() {
    let (proxy, origin) = start(|request| {
        let tag = if request.serial == 1 { "\"v1\"" } else { "\"v2\"" };
        version(request, &[("ETag", tag)])
    });
    range(&proxy, "bytes=0-4");
    let whole = proxy.get("/").expect(200);
    assert_eq!(whole.text(), WHOLE);
    assert_eq!(whole.field("etag"), Some("\"v2\""));
    assert_eq!(range(&proxy, "bytes=0-4"), "01234");
    assert_eq!(ranges(&origin), [asks("bytes=0-4", None), asks("bytes=5-", Some("\"v1\""))]);
}

#[test]
fn a_rest_that_does_not_belong_to_the_part_is_fetched_anew_with_it() {
    const REST: &str = "56789abcdef";
    type Lines = &'static [(&'static str, &'static str)];
    let cases: [(&str, Lines, &str); 7] = [
        ("another entity tag", &[("ETag", "\"v2\""), ("Content-Range", "bytes 5-15/16")], REST),
        ("no entity tag", &[("Content-Range", "bytes 5-15/16")], REST),
        ("another length", &[("ETag", "\"v1\""), ("Content-Range", "bytes 5-15/17")], REST),
        ("a gap", &[("ETag", "\"v1\""), ("Content-Range", "bytes 6-15/16")], &REST[1..]),
        ("too little", &[("ETag", "\"v1\""), ("Content-Range", "bytes 5-9/16")], &REST[..5]),
        ("not what it says", &[("ETag", "\"v1\""), ("Content-Range", "bytes 5-15/16")], &REST[..5]),
        (
            "not to be stored",
            &[("ETag", "\"v1\""), ("Content-Range", "bytes 5-15/16"), ("Cache-Control", "no-store")],
            REST,
        ),
    ];
    for (case, fields, body) in cases {
        let stray = move || {
            let reply = reply(206).cache("max-age=60").body(body);
            fields.iter().fold(reply, |reply, (name, value)| reply.with(name, value))
        };
        let (proxy, origin) = start(move |request| match request.serial {
            1 => version(request, &[("ETag", "\"v1\"")]),
            2 => stray(),
            _ => version(request, &[("ETag", "\"v2\"")]),
        });
        range(&proxy, "bytes=0-4");
        let whole = proxy.get("/").expect(200);
        assert_eq!(whole.text(), WHOLE, "{case}");
        assert_eq!(whole.field("etag"), Some("\"v2\""), "{case}");
        assert_eq!(ranges(&origin)[1..], [asks("bytes=5-", Some("\"v1\"")), ANEW], "{case}");
        assert!(proxy.get("/").is_hit(), "{case}");
    }
}

#[test]
fn a_rest_that_is_not_there_any_more_is_fetched_anew_with_the_part() {
    for status in [416, 304] {
        let (proxy, origin) = start(move |request| match request.serial {
            2 => reply(status).with("Content-Range", "bytes */3"),
            _ => version(request, &[("ETag", "\"v1\"")]),
        });
        range(&proxy, "bytes=0-4");
        assert_eq!(proxy.get("/").expect(200).text(), WHOLE);
        assert_eq!(origin.count(), 3);
    }
}

#[test]
fn an_origin_that_refuses_is_heard() {
    let (proxy, origin) = start(|request| match request.serial {
        1 => version(request, &[("ETag", "\"v1\"")]).with("Cache-Control", "stale-if-error=60"),
        2 => reply(503).body("busy"),
        _ => version(request, &[("ETag", "\"v1\"")]),
    });
    range(&proxy, "bytes=0-4");
    assert_eq!(proxy.get("/").expect(503).text(), "busy");
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_part_without_a_strong_validator_is_not_completed() {
    let now = http_date();
    let weak = [("ETag", "W/\"v1\"".to_owned())];
    let none: [(&str, String); 0] = [];
    // Last-Modified and Date are in the same second, which makes a weak validator (RFC 9110 §8.8.2.2).
    let just_modified = [("Last-Modified", now.clone()), ("Date", now)];
    for validators in [weak.to_vec(), none.to_vec(), just_modified.to_vec()] {
        let sent = validators.clone();
        let (proxy, origin) = start(move |request| {
            let fields: Vec<_> = sent.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let reply = version(request, &fields);
            if fields.iter().any(|(name, _)| *name == "Date") { reply.undated() } else { reply }
        });
        range(&proxy, "bytes=0-4");
        assert_eq!(range(&proxy, "bytes=2-8"), "2345678", "{validators:?}");
        assert_eq!(proxy.get("/").expect(200).text(), WHOLE);
        assert_eq!(ranges(&origin)[1..], [asks("bytes=2-8", None), ANEW], "{validators:?}");
    }
}

#[test]
fn last_modified_will_do_where_it_is_strong() {
    let modified = "Sun, 01 Nov 2020 00:00:00 GMT";
    let (proxy, origin) = start(move |request| version(request, &[("Last-Modified", modified)]));
    range(&proxy, "bytes=0-4");
    assert_eq!(proxy.get("/").expect(200).text(), WHOLE);
    assert_eq!(ranges(&origin)[1..], [asks("bytes=5-", Some(modified))]);
}

#[test]
fn a_stale_part_is_completed_and_fresh_again() {
    let (proxy, origin) = start(|request| {
        let reply = version(request, &[("ETag", "\"v1\"")]);
        if request.serial == 1 { reply.with("Age", "3600") } else { reply }
    });
    range(&proxy, "bytes=0-4");
    assert_eq!(proxy.get("/").expect(200).text(), WHOLE);
    assert!(proxy.get("/").is_hit());
    assert_eq!(ranges(&origin)[1..], [asks("bytes=5-", Some("\"v1\""))]);
}

/// Regression: only the range that was served was revalidated, and it replaced the whole part.
#[test]
fn a_stale_part_is_revalidated_behind_as_a_whole() {
    let (proxy, origin) = start(|request| match request.field("if-none-match") {
        Some(_) => reply(304).cache("max-age=60").with("ETag", "\"v1\""),
        None => {
            let part = reply(206).with("Content-Range", "bytes 2-9/16").body(&WHOLE[2..10]);
            let stale = "max-age=3600, stale-while-revalidate=600";
            part.cache(stale).with("Age", "3700").with("ETag", "\"v1\"")
        }
    });
    assert_eq!(range(&proxy, "bytes=2-9"), "23456789");
    assert_eq!(range(&proxy, "bytes=4-5"), "45");
    origin.reached(2);
    assert_eq!(ranges(&origin)[1], ANEW);
    let fresh = || {
        let response = proxy.exchange(&get("/").with("Range", "bytes=2-9")).expect(206);
        (response.text() == "23456789"
            && response.field("cache-status")?.contains("hit; ttl=")
            && origin.count() == 2)
            .then_some(response)
    };
    within("the part to be fresh again", || {
        fresh().filter(|response| !response.cache_status().contains("ttl=-"))
    });
}

#[test]
fn a_purge_lets_nothing_of_the_part_return() {
    let (proxy, origin) = tagged();
    range(&proxy, "bytes=0-4");
    proxy.admin(&["purge", "http://www.example/"]).success();
    assert_eq!(proxy.get("/").expect(200).text(), WHOLE);
    assert_eq!(ranges(&origin)[1..], [ANEW]);
}

/// A proxy with the first half stored, and an origin that holds the rest at a gate.
fn with_a_part_and_its_rest_held() -> (Sandarac, Origin, Gate) {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, origin) = start(move |request| {
        let reply = version(request, &[("ETag", "\"v1\"")]);
        if request.serial == 2 { reply.hold(&held) } else { reply }
    });
    range(&proxy, "bytes=0-4");
    (proxy, origin, gate)
}

#[test]
fn a_purge_while_the_rest_arrives_counts_against_the_whole() {
    let (proxy, origin, gate) = with_a_part_and_its_rest_held();
    let mut client = ask(&proxy);
    gate.reached(1);
    proxy.admin(&["purge", "http://www.example/"]).success();
    gate.open();
    assert_eq!(client.response().expect(200).text(), WHOLE);
    assert_eq!(proxy.get("/").expect(200).text(), WHOLE);
    assert_eq!(ranges(&origin)[2..], [ANEW]);
}

#[test]
fn a_clients_own_if_range_is_answered_from_the_completed_whole() {
    let (proxy, origin) = tagged();
    range(&proxy, "bytes=0-4");
    let ask = |tag: &str| proxy.exchange(&get("/").with("Range", "bytes=3-6").with("If-Range", tag));
    assert_eq!(ask("\"v1\"").expect(206).text(), "3456");
    assert_eq!(ask("\"v0\"").expect(200).text(), WHOLE);
    assert_eq!(ranges(&origin)[1..], [asks("bytes=5-", Some("\"v1\""))]);
}

#[test]
fn a_condition_is_answered_from_the_completed_whole() {
    let (proxy, origin) = tagged();
    range(&proxy, "bytes=0-4");
    proxy.exchange(&get("/").with("If-None-Match", "\"v1\"")).expect(304);
    assert!(proxy.get("/").is_hit());
    assert_eq!(ranges(&origin)[1..], [asks("bytes=5-", Some("\"v1\""))]);
}

#[test]
fn head_neither_uses_nor_harms_the_part() {
    let (proxy, origin) = tagged();
    range(&proxy, "bytes=0-4");
    proxy.exchange(&head("/")).expect(200);
    assert_eq!(origin.last().method, "HEAD");
    assert_eq!(range(&proxy, "bytes=1-3"), "123");
    assert_eq!(origin.count(), 2);
}

#[test]
fn variants_are_not_joined_with_one_another() {
    let (proxy, origin) =
        start(|request| version(request, &[("ETag", "\"v1\""), ("Vary", "Accept-Language")]));
    let ask = |language: &str| get("/").with("Accept-Language", language);
    proxy.exchange(&ask("de").with("Range", "bytes=0-4")).expect(206);
    assert_eq!(proxy.exchange(&ask("fr")).expect(200).text(), WHOLE);
    assert_eq!(proxy.exchange(&ask("de")).expect(200).text(), WHOLE);
    assert_eq!(ranges(&origin)[1..], [ANEW, asks("bytes=5-", Some("\"v1\""))]);
}

fn ask(proxy: &Sandarac) -> Conn {
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    client
}

#[test]
fn all_who_wait_get_the_whole_from_one_rest() {
    let (proxy, origin, gate) = with_a_part_and_its_rest_held();
    let mut clients: Vec<Conn> = (0..10).map(|_| ask(&proxy)).collect();
    gate.reached(1);
    let mut late = proxy.connect();
    late.send(get("/").with("Range", "bytes=3-7").to_bytes());
    // Ranges within the stored part are served meanwhile.
    assert_eq!(range(&proxy, "bytes=1-2"), "12");
    gate.open();
    for client in &mut clients {
        assert_eq!(client.response().expect(200).text(), WHOLE);
    }
    assert_eq!(late.response().expect(206).text(), "34567");
    assert_eq!(origin.count(), 2);
}

#[test]
fn the_part_goes_out_before_the_rest_has_come() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, _origin) = start(move |request| match request.serial {
        1 => version(request, &[("ETag", "\"v1\"")]),
        _ => reply(206)
            .cache("max-age=60")
            .with("ETag", "\"v1\"")
            .with("Content-Range", "bytes 5-15/16")
            .length(11)
            .pause(&held)
            .body(&WHOLE[5..]),
    });
    range(&proxy, "bytes=0-4");
    let mut client = ask(&proxy);
    client.read_through("\r\n\r\n01234");
    gate.open();
    client.expect(&WHOLE[5..]);
}

#[test]
fn a_part_outlives_a_rest_that_breaks_off() {
    let breaks: [fn(Reply) -> Reply; 2] = [|reply| reply.length(11).cut(), |reply| reply.chunked().reset()];
    for breaks in breaks {
        let (proxy, origin) = start(move |request| match request.serial {
            1 => version(request, &[("ETag", "\"v1\"")]),
            _ => breaks(reply(206).with("ETag", "\"v1\"").with("Content-Range", "bytes 5-15/16")),
        });
        range(&proxy, "bytes=0-4");
        let mut client = ask(&proxy);
        client.read_through("\r\n\r\n01234");
        client.expect_end();
        assert_eq!(range(&proxy, "bytes=1-3"), "123");
        assert_eq!(ranges(&origin)[1..], [asks("bytes=5-", Some("\"v1\""))]);
    }
}

#[test]
fn a_rest_that_breaks_off_twice_is_not_asked_for_again() {
    let (proxy, origin) = start(|request| match request.field("range") {
        // The origin can serve the first range, and no other.
        Some("bytes=0-4") | None => version(request, &[("ETag", "\"v1\"")]),
        Some(_) => reply(206).with("ETag", "\"v1\"").with("Content-Range", "bytes 5-15/16").length(11).cut(),
    });
    range(&proxy, "bytes=0-4");
    for _ in 0..2 {
        assert!(ask(&proxy).try_response("GET").is_err());
    }
    assert_eq!(proxy.get("/").expect(200).text(), WHOLE);
    let rest = asks("bytes=5-", Some("\"v1\""));
    assert_eq!(ranges(&origin)[1..], [rest.clone(), rest, ANEW]);
}

#[test]
fn a_rest_that_is_malformed_takes_the_part_with_it() {
    let (proxy, origin) = start(|request| match request.serial {
        1 | 3 => version(request, &[("ETag", "\"v1\"")]),
        _ => Reply::verbatim(
            "HTTP/1.1 206 Partial Content\r\nETag: \"v1\"\r\nContent-Range: bytes 5-15/16\r\n\
             Cache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n567\r\nno size\r\n",
        ),
    });
    range(&proxy, "bytes=0-4");
    assert!(ask(&proxy).try_response("GET").is_err());
    assert_eq!(proxy.get("/").expect(200).text(), WHOLE);
    assert_eq!(ranges(&origin)[2..], [ANEW]);
}

#[test]
fn large_parts_are_joined() {
    let whole: String = (0..400_000).map(|number| format!("{number:06}\n")).collect();
    let middle = 1_500_000;
    let body = whole.clone();
    let origin = Origin::new(move |request| {
        let fresh = |status| reply(status).cache("max-age=60").with("ETag", "\"v1\"");
        let part = |first: usize, end: usize| {
            fresh(206)
                .with("Content-Range", &format!("bytes {first}-{}/{}", end - 1, body.len()))
                .body(&body[first..end])
        };
        match request.field("range") {
            Some("bytes=0-1499999") => part(0, middle),
            Some(rest) if rest == format!("bytes={middle}-") => part(middle, body.len()),
            _ => fresh(200).body(&body),
        }
    });
    let proxy = sandarac().before(&origin).rfc().option("--memory", "24MiB").start();
    assert_eq!(range(&proxy, "bytes=0-1499999").len(), middle);
    assert!(proxy.get("/").expect(200).text() == whole);
    let hit = proxy.get("/").expect(200);
    assert!(hit.is_hit() && hit.text() == whole);
    assert!(range(&proxy, "bytes=1499990-1500009") == whole[1_499_990..1_500_010]);
    assert_eq!(origin.count(), 2);
}

#[test]
fn what_is_too_large_to_be_stored_whole_is_not_completed() {
    let origin = Origin::new(|request| version(request, &[("ETag", "\"v1\"")]));
    let config = site(&origin.url(), "cache = { max_object = \"10B\" }", "[cache]\nprofile = \"rfc\"");
    let proxy = sandarac().config(config).start();
    range(&proxy, "bytes=0-4");
    assert_eq!(range(&proxy, "bytes=3-8"), "345678");
    assert_eq!(proxy.get("/").expect(200).text(), WHOLE);
    assert_eq!(ranges(&origin)[1..], [asks("bytes=5-8", Some("\"v1\"")), ANEW]);
}

/// Regression: a part that covered the whole was stored as a 206, and was the response to requests without Range.
#[test]
fn a_part_that_is_all_of_it_is_no_part_to_those_who_want_the_whole() {
    let (proxy, _origin) = tagged();
    assert_eq!(range(&proxy, "bytes=0-15"), WHOLE);
    let whole = proxy.get("/").expect(200);
    assert_eq!(whole.text(), WHOLE);
    assert_eq!(whole.field("content-range"), None);
    assert_eq!(range(&proxy, "bytes=0-15"), WHOLE);
    let short = |request: &Request| match request.serial {
        1 => reply(206).cache("max-age=60").with("Content-Range", "bytes 0-15/16").body(&WHOLE[..9]),
        _ => version(request, &[]),
    };
    let (proxy, _origin) = start(short);
    assert_eq!(range(&proxy, "bytes=0-15"), &WHOLE[..9]);
    assert_eq!(proxy.get("/").expect(200).text(), WHOLE);
}
