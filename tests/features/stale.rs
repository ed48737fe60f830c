//! Serving stale responses where a directive or setting allows it (RFC 9111 §4.2.4, RFC 5861).
//!
//! Responses arrive stale, with an Age beyond their lifetime, so that no test has to wait for time to pass.

use sandarac_test_support::{Gate, Origin, Reply, get, reply, within};

use crate::{cache, numbered, sandarac};

/// A response that went stale 100 s before it arrived.
fn stale(directives: &str) -> Reply {
    reply(200).cache(&format!("max-age=3600{directives}")).with("Age", "3700")
}

#[test]
fn stale_while_revalidate_serves_at_once_and_fetches_behind() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, origin) = cache(move |request| match request.serial {
        1 => stale(", stale-while-revalidate=600"),
        _ => reply(200).cache("max-age=60").hold(&held),
    });
    assert_eq!(proxy.get("/").text(), "1");
    assert_eq!(proxy.get("/").text(), "1");
    origin.reached(2);
    assert_eq!(proxy.get("/").text(), "1", "one revalidation is enough");
    assert_eq!(origin.count(), 2);
    gate.open();
    within("the new response", || (proxy.get("/").text() == "2").then_some(()));
    assert_eq!(origin.count(), 2);
}

#[test]
fn stale_while_revalidate_ends_with_its_window() {
    let (proxy, _origin) = cache(|_| stale(", stale-while-revalidate=50"));
    assert_eq!([proxy.get("/").text(), proxy.get("/").text()], ["1", "2"]);
}

#[test]
fn stale_if_error_stands_in_for_errors() {
    for status in [500, 502, 503, 504] {
        let (proxy, origin) = cache(move |request| match request.serial {
            1 => stale(", stale-if-error=600"),
            _ => reply(status),
        });
        proxy.get("/");
        let response = proxy.get("/").expect(200);
        assert_eq!(response.text(), "1", "{status}");
        let ttl = response.cache_parameter("ttl").and_then(|ttl| ttl.parse::<i64>().ok());
        assert!(ttl.is_some_and(|ttl| ttl <= 0), "{}", response.cache_status());
        assert_eq!(response.cache_parameter("fwd-status"), Some(status.to_string()));
        assert_eq!(origin.count(), 2);
    }
}

/// Regression: what had come of the new response took the place of the old one, and the next visitor got an error.
#[test]
fn a_response_that_breaks_off_leaves_the_stale_one_for_the_next() {
    for (coming, len) in [("little", 10), ("enough for a part", 40_000)] {
        let (proxy, origin) = cache(move |request| match request.serial {
            1 => stale(", stale-if-error=600").with("ETag", "\"1\"").body("old"),
            2 => reply(200)
                .cache("max-age=60")
                .with("ETag", "\"2\"")
                .length(len + 1)
                .body(vec![b'n'; len])
                .cut(),
            _ => reply(503),
        });
        proxy.get("/");
        proxy.connect().send(get("/").to_bytes()).read_to_end();
        let next = proxy.get("/").expect(200);
        assert_eq!(
            (next.text().as_str(), next.cache_parameter("fwd-status").as_deref()),
            ("old1", Some("503")),
            "{coming}"
        );
        assert_eq!(origin.count(), 3);
    }
}

#[test]
fn stale_if_error_does_not_hide_other_answers() {
    let (proxy, _origin) = cache(|request| match request.serial {
        1 => stale(", stale-if-error=600"),
        _ => reply(404),
    });
    proxy.get("/");
    proxy.get("/").expect(404);
}

#[test]
fn without_stale_if_error_an_error_is_passed_on() {
    let (proxy, _origin) = cache(|request| if request.serial == 1 { stale("") } else { reply(503) });
    proxy.get("/");
    proxy.get("/").expect(503);
}

#[test]
fn an_origin_that_is_gone_is_stood_in_for() {
    let (proxy, _origin) = cache(|request| if request.serial == 1 { stale("") } else { Reply::none() });
    proxy.get("/");
    let response = proxy.get("/").expect(200);
    assert_eq!(response.text(), "1");
    assert!(response.age() >= 3700);
}

#[test]
fn what_must_be_validated_is_never_served_stale() {
    for directives in [", must-revalidate", ", proxy-revalidate", ", no-cache", ", s-maxage=3600"] {
        let text = format!("{directives}, stale-if-error=600");
        let (proxy, _origin) = cache(move |request| match request.serial {
            1 => stale(&text).with("ETag", "\"v\""),
            _ => Reply::none(),
        });
        proxy.get("/");
        let status = proxy.get("/").status;
        assert!(matches!(status, 502 | 504), "{directives}: {status}");
    }
}

#[test]
fn grace_is_none_unless_set() {
    let (proxy, _origin) = cache(|_| stale(""));
    assert_eq!([proxy.get("/").text(), proxy.get("/").text()], ["1", "2"]);
}

#[test]
fn grace_serves_stale_and_fetches_behind() {
    let origin = Origin::new(numbered(|request| match request.path() {
        "/strict" => stale(", must-revalidate").with("ETag", "\"v\""),
        _ if request.serial == 1 => stale(""),
        _ => reply(200).cache("max-age=60"),
    }));
    let proxy = sandarac().before(&origin).rfc().option("--grace", "10m").start();
    assert_eq!([proxy.get("/").text(), proxy.get("/").text()], ["1", "1"]);
    within("the new response", || (proxy.get("/").text() == "2").then_some(()));
    assert_eq!(
        [proxy.get("/strict").text(), proxy.get("/strict").text()],
        ["3", "4"],
        "must-revalidate wins over grace"
    );
}

#[test]
fn grace_shorter_than_the_staleness_does_not_count() {
    let origin = Origin::new(numbered(|_| stale("")));
    let proxy = sandarac().before(&origin).rfc().option("--grace", "50s").start();
    assert_eq!([proxy.get("/").text(), proxy.get("/").text()], ["1", "2"]);
}

#[test]
fn a_background_fetch_that_fails_leaves_the_stale_response() {
    let (proxy, origin) = cache(|request| match request.serial {
        1 => stale(", stale-while-revalidate=600, stale-if-error=600"),
        _ => reply(500),
    });
    proxy.get("/");
    for _ in 0..3 {
        assert_eq!(proxy.get("/").expect(200).text(), "1");
    }
    origin.reached(2);
    assert_eq!(proxy.exchange(&get("/")).expect(200).text(), "1");
}
