//! Cases in which the current source of the public cache tests expects more than the package that `conformance/` runs, or
//! something else.
//!
//! As there, a response counts as reused when a second request does not reach the origin, and the profile is `rfc`, in which
//! RFC 9111 alone decides.

use std::thread;
use std::time::Duration;

use sandarac_test_support::{Listener, Origin, Reply, Request, get, http_date_in, post, reply};

use crate::{before, cache, sandarac};

/// Whether a second GET gets the response that `first` gave to the first one.
fn is_reused(first: impl Fn() -> Reply + Send + Sync + 'static) -> bool {
    let (proxy, _origin) = cache(move |_| first());
    proxy.get("/");
    proxy.get("/").text() == "1"
}

fn is_reused_with_age(ages: &'static [&'static str]) -> bool {
    is_reused(move || ages.iter().fold(reply(200).cache("max-age=3600"), |reply, age| reply.with("Age", age)))
}

fn is_reused_with_expires(expires: &'static [&'static str]) -> bool {
    is_reused(move || expires.iter().fold(reply(200), |reply, date| reply.with("Expires", date)))
}

fn is_reused_with_cdn(value: &'static str, cache_control: &'static str) -> bool {
    is_reused(move || reply(200).with("CDN-Cache-Control", value).cache(cache_control))
}

#[test]
fn an_age_that_is_not_a_number_negative_or_a_float_is_ignored() {
    for age in [["abc"], ["-7200"], ["7200.0"], [""]] {
        let (proxy, _origin) = cache(move |_| reply(200).cache("max-age=3600").with("Age", age[0]));
        proxy.get("/");
        assert_eq!(proxy.get("/").text(), "1", "{age:?}");
    }
}

#[test]
fn of_several_ages_the_first_counts() {
    assert!(is_reused_with_age(&["0, 7200"]));
    assert!(is_reused_with_age(&["0", "7200"]));
    assert!(!is_reused_with_age(&["7200, 0"]));
    assert!(!is_reused_with_age(&["7200", "0"]));
    assert!(is_reused_with_age(&["0, 0"]));
    assert!(is_reused_with_age(&["0", "0"]));
}

#[test]
fn a_huge_age_is_stale_and_overflows_nothing() {
    for age in [
        "2147483647",
        "2147483648",
        "4294967296",
        "9223372036854775807",
        "18446744073709551616",
        "99999999999999999999999",
    ] {
        let (proxy, _origin) = cache(move |_| reply(200).cache("max-age=3600").with("Age", age));
        assert_eq!([proxy.get("/").text(), proxy.get("/").text()], ["1", "2"], "{age}");
    }
}

#[test]
fn expires_in_any_valid_form_counts() {
    for date in [
        "Thu, 18 Aug 2050 02:01:18 GMT",
        "Thursday, 18-Aug-50 02:01:18 GMT",
        "Thu Aug 18 02:01:18 2050",
        "Mon Aug  8 02:01:18 2050",
        "Tue, 19 Jan 2038 14:14:08 GMT",
        // The days of the week of these two are wrong; the parser ignores them.
        "Sun, 21 Nov 2286 04:46:39 GMT",
        "Thu Aug  8 02:01:18 2050",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "THU, 18 Aug 2050 02:01:18 GMT",
        "Thu, 18 AUG 2050 02:01:18 GMT",
        "Thu, 18 Aug 2050 02:01:18 gMT",
    ] {
        let (proxy, _origin) = cache(move |_| reply(200).with("Expires", date));
        assert_eq!([proxy.get("/").text(), proxy.get("/").text()], ["1", "1"], "{date}");
    }
}

#[test]
fn expires_that_is_no_date_is_stale() {
    for date in [
        "Thu, 18 Aug 2050 02:01:18 UTC",
        "Thu, 18 Aug 2050 02:01:18 AEST",
        "Thu, 18 Aug 2050 02:01:18 +0000",
        "Thu, 18 Aug 2050 02:01:18",
        "Thu, 18 Aug 50 02:01:18 GMT",
        "Thu 18 Aug 2050 02:01:18 GMT",
        "Thu, 18  Aug  2050 02:01:18 GMT",
        "Thu, 18-Aug-2050 02:01:18 GMT",
        "Thu, 18 Aug 2050 02.01.18 GMT",
        "Thu, 18 Aug 2050 2:01:18 GMT",
        "0",
    ] {
        let (proxy, _origin) = cache(move |_| reply(200).with("Expires", date));
        assert_eq!([proxy.get("/").text(), proxy.get("/").text()], ["1", "2"], "{date}");
    }
}

#[test]
fn several_lines_of_expires_are_stale() {
    assert!(!is_reused_with_expires(&["Thu, 18 Aug 2050 02:01:18 GMT", "Thu, 18 Aug 2050 02:01:19 GMT"]));
    assert!(!is_reused_with_expires(&["Thu, 18 Aug 2050 02:01:18 GMT", "Thu, 18 Aug 2050 02:01:18 GMT"]));
}

#[test]
fn a_newer_no_store_response_leaves_no_older_one_in_use() {
    for directives in ["no-store", "no-store, max-age=0"] {
        let (proxy, _origin) = cache(move |request| match request.serial {
            2 => reply(200).cache(directives),
            _ => reply(200).cache("max-age=10000"),
        });
        assert_eq!(proxy.get("/").text(), "1");
        assert_eq!(proxy.exchange(&get("/").with("Cache-Control", "no-cache")).text(), "2");
        assert_eq!(proxy.get("/").text(), "3", "{directives}");
    }
}

#[test]
fn the_date_of_a_stored_response_is_never_rewritten() {
    let date = http_date_in(-1000);
    let sent = date.clone();
    let (proxy, _origin) = cache(move |_| reply(200).cache("max-age=3600").with("Date", &sent));
    proxy.get("/");
    assert_eq!(proxy.get("/").fields.all("date"), [date.as_str()]);
}

#[test]
fn no_store_with_must_understand_is_stored_where_the_status_is_known() {
    assert!(is_reused(|| reply(200).cache("no-store, must-understand, max-age=60")));
    assert!(!is_reused(|| reply(599).cache("no-store, must-understand, max-age=60")));
    assert!(!is_reused(|| reply(599).cache("must-understand, max-age=60")));
}

/// A response that went stale 100 s before it arrived.
fn stale(directives: &str) -> Reply {
    reply(200).cache(&format!("max-age=3600{directives}")).with("Age", "3700")
}

#[test]
fn a_stale_response_is_served_when_the_origin_disconnects() {
    for directives in ["", ", stale-if-error=600"] {
        let (proxy, _origin) =
            cache(move |request| if request.serial == 1 { stale(directives) } else { Reply::none() });
        assert_eq!([proxy.get("/").text(), proxy.get("/").text()], ["1", "1"], "{directives}");
    }
}

#[test]
fn a_stale_response_that_must_not_be_served_gives_an_error() {
    for directives in [", must-revalidate", ", proxy-revalidate", ", no-cache", ", s-maxage=3600"] {
        let (proxy, _origin) =
            cache(move |request| if request.serial == 1 { stale(directives) } else { Reply::none() });
        proxy.get("/");
        let status = proxy.get("/").status;
        assert!(matches!(status, 502 | 504), "{directives}: {status}");
    }
}

#[test]
fn stale_while_revalidate_counts_inside_its_window_only() {
    let (proxy, origin) = cache(|_| stale(", stale-while-revalidate=600"));
    assert_eq!([proxy.get("/").text(), proxy.get("/").text()], ["1", "1"]);
    origin.reached(2);
    let (proxy, _origin) = cache(|_| stale(", stale-while-revalidate=99"));
    assert_eq!([proxy.get("/").text(), proxy.get("/").text()], ["1", "2"]);
}

#[test]
fn interim_responses_are_forwarded_not_cached_and_lend_no_fields() {
    let (proxy, origin) = cache(|request| {
        let status = if request.path() == "/102" { 102 } else { 103 };
        reply(200)
            .cache("max-age=60")
            .interim(status, "Link: </style.css>; rel=preload\r\nX-My-Field: test\r\n")
    });
    for (path, status) in [("/102", 102), ("/103", 103)] {
        let first = proxy.get(path).expect(200);
        assert_eq!(first.interim.len(), 1);
        assert_eq!(first.interim[0].status, status);
        assert_eq!(first.interim[0].field("link"), Some("</style.css>; rel=preload"));
        assert_eq!(first.interim[0].field("x-my-field"), Some("test"));
        let second = proxy.get(path).expect(200);
        assert!(second.interim.is_empty() && second.text() == first.text());
        for response in [first, second] {
            assert!(!response.fields.has("link") && !response.fields.has("x-my-field"));
        }
    }
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_304_updates_what_rfc_9111_says_and_nothing_that_describes_the_body() {
    const UPDATED: [(&str, &str, &str); 7] = [
        ("Test-Header", "a", "b"),
        ("X-Content-Foo", "a", "b"),
        ("Content-Location", "/foo", "/bar"),
        ("Content-Security-Policy", "default-src 'self'", "default-src 'none'"),
        ("X-Frame-Options", "deny", "sameorigin"),
        ("Expires", "Fri, 01 Jan 2038 01:01:01 GMT", "Mon, 11 Jan 2038 11:11:11 GMT"),
        ("Set-Cookie", "a=b", "a=c"),
    ];
    const KEPT: [(&str, &str, &str); 3] =
        [("Content-Encoding", "one", "two"), ("Content-Range", "one", "two"), ("ETag", "\"one\"", "\"two\"")];
    let all = || UPDATED.iter().chain(&KEPT);
    let (proxy, _origin) = cache(move |request| {
        if request.field("if-none-match") == Some("\"one\"") {
            all().fold(reply(304).cache("max-age=3600"), |reply, (name, _, new)| reply.with(name, new))
        } else {
            all().fold(reply(200).cache("max-age=3600").with("Age", "3600"), |reply, (name, old, _)| {
                reply.with(name, old)
            })
        }
    });
    assert_eq!(proxy.get("/").text(), "1");
    for _ in 0..2 {
        let response = proxy.get("/").expect(200);
        assert_eq!(response.text(), "1");
        UPDATED.iter().for_each(|(name, _, new)| assert_eq!(response.field(name), Some(*new), "{name}"));
        KEPT.iter().for_each(|(name, old, _)| assert_eq!(response.field(name), Some(*old), "{name}"));
    }
}

#[test]
fn a_valid_cdn_cache_control_replaces_cache_control_and_expires() {
    assert!(is_reused_with_cdn("max-age=3600", "max-age=0"));
    assert!(is_reused_with_cdn("max-age=3600", "no-store"));
    assert!(is_reused(|| reply(200).with("CDN-Cache-Control", "max-age=3600").with("Expires", "0")));
    for value in ["private", "no-cache", "no-store", "max-age=0", "max-age=0, foo"] {
        assert!(!is_reused_with_cdn(value, "max-age=10000"), "{value}");
    }
    assert!(!is_reused(|| reply(200)
        .with("CDN-Cache-Control", "max-age=0")
        .with("Expires", &http_date_in(10_000))));
}

#[test]
fn an_error_in_any_part_of_cdn_cache_control_voids_the_field() {
    for value in [
        "max-age=10000, &&&&&",
        "max-age=\"10000\"",
        "max-age =100",
        "max-age= 100",
        "max-age=1.5",
        "max-age=?1",
    ] {
        assert!(!is_reused_with_cdn(value, "no-store"), "{value}");
        assert!(is_reused_with_cdn(value, "max-age=60"), "{value}");
    }
}

#[test]
fn unknown_parts_of_cdn_cache_control_are_fine_and_its_keys_are_lower_case() {
    assert!(is_reused_with_cdn("foobar, max-age=3600", "no-store"));
    assert!(is_reused_with_cdn("max-age=3600;foo=bar", "no-store"));
    assert!(!is_reused_with_cdn("MaX-aGe=3600", "no-store"));
}

#[test]
fn the_integers_of_cdn_cache_control_are_capped() {
    assert!(is_reused_with_cdn("max-age=2147483648", "no-store"));
    assert!(is_reused_with_cdn("max-age=99999999999", "no-store"));
}

#[test]
fn age_counts_against_cdn_cache_control() {
    assert!(!is_reused(|| reply(200).with("CDN-Cache-Control", "max-age=3600").with("Age", "7200")));
}

#[test]
fn a_post_response_about_its_own_target_with_explicit_freshness_serves_later_gets() {
    let fresh = |request: &Request| {
        reply(200).with("Expires", &http_date_in(3600)).with("Content-Location", &request.target)
    };
    let (proxy, _origin) = cache(fresh);
    proxy.exchange(&post("/form", "12345").with("Content-Type", "text/plain")).expect(200);
    assert_eq!(proxy.get("/form").text(), "1");
    let (proxy, _origin) =
        cache(|_| reply(200).with("Expires", &http_date_in(3600)).with("Content-Location", "/other"));
    proxy.exchange(&post("/form", "12345")).expect(200);
    assert_eq!(proxy.get("/form").text(), "2");
}

#[test]
fn unknown_selecting_fields_are_compared_with_white_space_normalised() {
    let (proxy, _origin) = cache(|_| reply(200).cache("max-age=60").with("Vary", "Foo"));
    for value in ["1,2", " 1, 2 ", "1 , 2", "1,\t2"] {
        assert_eq!(proxy.exchange(&get("/").with("Foo", value)).text(), "1", "{value:?}");
    }
    assert_eq!(proxy.exchange(&get("/").with("Foo", "12")).text(), "2");
    assert_eq!(proxy.exchange(&get("/").with("Foo", "2, 1")).text(), "3");
}

#[test]
fn language_ranges_are_compared_in_any_case() {
    let (proxy, _origin) = cache(|_| reply(200).cache("max-age=60").with("Vary", "Accept-Language"));
    for value in ["en-GB, de", "EN-gb, DE", "en-gb,de"] {
        assert_eq!(proxy.exchange(&get("/").with("Accept-Language", value)).text(), "1", "{value}");
    }
    assert_eq!(proxy.exchange(&get("/").with("Accept-Language", "fr")).text(), "2");
}

#[test]
fn responses_to_authorization_are_reused_only_where_that_is_allowed() {
    for (directives, reused) in [
        ("max-age=3600", false),
        ("max-age=3600, public", true),
        ("max-age=3600, must-revalidate", true),
        ("s-maxage=3600", true),
        ("max-age=3600, proxy-revalidate", false),
    ] {
        let (proxy, origin) = cache(move |_| reply(200).cache(directives));
        proxy.exchange(&get("/").with("Authorization", "FOO"));
        assert_eq!(origin.last().field("authorization"), Some("FOO"));
        assert_eq!(proxy.get("/").text() == "1", reused, "{directives}");
    }
}

#[test]
fn set_cookie_is_stored_in_the_rfc_profile_and_not_by_default() {
    let (proxy, _origin) = cache(|_| reply(200).cache("max-age=3600").with("Set-Cookie", "a=b"));
    proxy.get("/");
    let second = proxy.get("/");
    assert_eq!(second.text(), "1");
    assert_eq!(second.field("set-cookie"), Some("a=b"));
    let (proxy, origin) = before(|_| reply(200).cache("max-age=3600").with("Set-Cookie", "a=b"));
    proxy.get("/");
    proxy.get("/");
    assert_eq!(origin.count(), 2);
}

#[test]
fn nothing_is_sent_again_that_may_have_been_acted_upon() {
    let (proxy, origin) = cache(|request| match request.path() {
        "/gone" => Reply::none(),
        _ => reply(200).cache("max-age=60").length(10).cut(),
    });
    proxy.exchange(&post("/gone", "x")).expect(502);
    assert_eq!(origin.count_of("/gone"), 1);
    proxy.connect().send(get("/begun").to_bytes()).read_to_end();
    assert_eq!(origin.count_of("/begun"), 1);
}

#[test]
fn an_unknown_transfer_coding_is_refused_rather_than_stored() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).rfc().start();
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    let mut origin = listener.accept();
    origin.request();
    origin.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: unheard-of\r\n\r\nbody");
    client.response().expect(502);
    origin.expect_end();
}

/// The client measures the response delay itself (RFC 9111 §4.2.3). If the proxy added it too, it would count twice.
#[test]
fn the_age_of_a_response_from_the_origin_is_told_as_it_came() {
    let origin = Origin::new(|_| {
        // Slow on purpose: the response has to take more than a second, which is what an Age can show.
        thread::sleep(Duration::from_millis(1100));
        reply(200).cache("max-age=3600").with("Age", "1200").body("aged")
    });
    let proxy = sandarac().before(&origin).rfc().start();
    let fetched = proxy.get("/").expect(200);
    assert_eq!(fetched.fields.all("age"), ["1200"]);
    assert_eq!(fetched.text(), "aged");
    let hit = proxy.get("/").expect(200);
    let age: u64 = hit.field("age").and_then(|age| age.parse().ok()).expect("an age");
    assert!((1201..1300).contains(&age), "{age}");
}
