//! Conditional requests: from clients, answered from the cache, and from the cache to the origin (RFC 9110 §13, RFC 9111 §4.3).

use sandarac_test_support::{Gate, Origin, Reply, Req, Request, get, head, http_date_in, reply};

use crate::{before, cache, sandarac, site};

/// A 304 with `fields` if the request has the validator `etag`, `otherwise` if not.
fn validating(request: &Request, etag: &str, otherwise: Reply, fields: &[(&str, &str)]) -> Reply {
    if request.field("if-none-match") == Some(etag) {
        fields.iter().fold(reply(304).with("ETag", etag), |reply, (name, value)| reply.with(name, value))
    } else {
        otherwise
    }
}

#[test]
fn if_none_match_is_answered_from_the_cache() {
    let (proxy, origin) = cache(|_| {
        reply(200).cache("max-age=60").with("ETag", "\"v1\"").with("Vary", "Foo").with("X-Other", "1")
    });
    proxy.get("/");
    let mut client = proxy.connect();
    for matching in ["\"v1\"", "W/\"v1\"", "\"v0\", \"v1\"", "\"v0\",W/\"v1\" , \"v2\"", "*"] {
        let response = client.exchange(&get("/").with("If-None-Match", matching)).expect(304);
        assert_eq!(response.field("etag"), Some("\"v1\""), "{matching}");
        assert!(
            response.fields.has("cache-control")
                && response.fields.has("date")
                && response.fields.has("vary")
        );
    }
    for other in ["\"v0\"", "\"v\"", "v1", "\"v1", "\"V1\""] {
        assert_eq!(
            client.exchange(&get("/").with("If-None-Match", other)).expect(200).text(),
            "1",
            "{other}"
        );
    }
    client.exchange(&head("/").with("If-None-Match", "\"v1\"")).expect(304);
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_weak_validator_matches_by_weak_comparison() {
    let (proxy, _origin) = cache(|_| reply(200).cache("max-age=60").with("ETag", "W/\"v1\""));
    proxy.get("/");
    for matching in ["\"v1\"", "W/\"v1\""] {
        proxy.exchange(&get("/").with("If-None-Match", matching)).expect(304);
    }
}

#[test]
fn if_modified_since_is_answered_from_the_cache() {
    let modified = http_date_in(-3600);
    let sent = modified.clone();
    let (proxy, origin) = cache(move |_| reply(200).cache("max-age=60").with("Last-Modified", &sent));
    proxy.get("/");
    let ask = |since: &str| proxy.exchange(&get("/").with("If-Modified-Since", since)).status;
    assert_eq!(ask(&modified), 304);
    assert_eq!(ask(&http_date_in(-1800)), 304);
    assert_eq!(ask(&http_date_in(-7200)), 200);
    assert_eq!(ask("yesterday"), 200);
    assert_eq!(origin.count(), 1);
}

#[test]
fn if_none_match_has_precedence_over_if_modified_since() {
    let modified = http_date_in(-3600);
    let sent = modified.clone();
    let (proxy, _origin) =
        cache(move |_| reply(200).cache("max-age=60").with("ETag", "\"v1\"").with("Last-Modified", &sent));
    proxy.get("/");
    let ask = |etag: &str| {
        proxy.exchange(&get("/").with("If-None-Match", etag).with("If-Modified-Since", &modified))
    };
    ask("\"v1\"").expect(304);
    ask("\"v2\"").expect(200);
}

#[test]
fn a_stale_response_is_validated_by_its_etag_and_fresh_again() {
    let (proxy, origin) = cache(|request| {
        let first = reply(200)
            .cache("max-age=3600")
            .with("Age", "3600")
            .with("ETag", "\"v1\"")
            .with("X-Version", "old");
        validating(request, "\"v1\"", first, &[("Cache-Control", "max-age=60"), ("X-Version", "new")])
    });
    assert_eq!(proxy.get("/").text(), "1");
    let validated = proxy.get("/").expect(200);
    assert_eq!(validated.text(), "1");
    assert_eq!(validated.field("x-version"), Some("new"));
    assert_eq!(origin.last().field("if-none-match"), Some("\"v1\""));
    let stored = proxy.get("/").expect(200);
    assert_eq!(stored.text(), "1");
    assert_eq!(stored.field("x-version"), Some("new"));
    assert_eq!(stored.field("cache-control"), Some("max-age=60"));
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_stale_response_is_validated_by_its_last_modification() {
    let modified = http_date_in(-7200);
    let sent = modified.clone();
    let (proxy, origin) = cache(move |request| {
        if request.field("if-modified-since") == Some(&sent) {
            reply(304).cache("max-age=60")
        } else {
            reply(200).cache("max-age=3600").with("Age", "3600").with("Last-Modified", &sent)
        }
    });
    assert_eq!([proxy.get("/").text(), proxy.get("/").text(), proxy.get("/").text()], ["1", "1", "1"]);
    assert_eq!(origin.last().field("if-modified-since"), Some(modified.as_str()));
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_weak_etag_is_sent_back_as_it_came() {
    let (proxy, origin) = cache(|request| {
        let first = reply(200).cache("no-cache").with("ETag", "W/\"v1\"");
        validating(request, "W/\"v1\"", first, &[("Cache-Control", "no-cache")])
    });
    assert_eq!([proxy.get("/").text(), proxy.get("/").text()], ["1", "1"]);
    assert_eq!(origin.last().field("if-none-match"), Some("W/\"v1\""));
}

#[test]
fn no_cache_means_validation_before_every_use() {
    let (proxy, origin) = cache(|request| {
        validating(request, "\"v1\"", reply(200).cache("no-cache, max-age=60").with("ETag", "\"v1\""), &[])
    });
    for _ in 0..4 {
        assert_eq!(proxy.get("/").expect(200).text(), "1");
    }
    assert_eq!(origin.count(), 4);
}

#[test]
fn a_changed_representation_replaces_the_stored_one() {
    let (proxy, origin) = cache(|request| match request.serial {
        1 => reply(200).cache("max-age=3600").with("Age", "3600").with("ETag", "\"v1\""),
        _ => reply(200).cache("max-age=60").with("ETag", "\"v2\""),
    });
    assert_eq!([proxy.get("/").text(), proxy.get("/").text(), proxy.get("/").text()], ["1", "2", "2"]);
    assert_eq!(origin.requests()[1].field("if-none-match"), Some("\"v1\""));
}

#[test]
fn a_client_that_has_it_gets_304_after_validation() {
    let (proxy, _origin) = cache(|request| {
        let first = reply(200).cache("max-age=3600").with("Age", "3600").with("ETag", "\"v1\"");
        validating(request, "\"v1\"", first, &[("Cache-Control", "max-age=60")])
    });
    proxy.get("/");
    proxy.exchange(&get("/").with("If-None-Match", "\"v1\"")).expect(304);
    assert_eq!(proxy.get("/").expect(200).text(), "1");
}

#[test]
fn a_client_with_another_version_gets_the_whole_after_validation() {
    let (proxy, origin) = cache(|request| {
        let ours = request.fields.list("if-none-match").contains("\"v1\"");
        let first = reply(200).cache("max-age=3600").with("Age", "3600").with("ETag", "\"v1\"");
        if ours { reply(304).with("ETag", "\"v1\"").cache("max-age=60") } else { first }
    });
    proxy.get("/");
    let response = proxy.exchange(&get("/").with("If-None-Match", "\"v0\"")).expect(200);
    assert_eq!(response.text(), "1");
    assert_eq!(origin.count(), 2);
}

#[test]
fn conditions_of_a_client_that_has_nothing_to_match_do_not_spoil_the_fill() {
    let (proxy, _origin) = cache(|request| {
        validating(
            request,
            "\"v1\"",
            reply(200).cache("max-age=60").with("ETag", "\"v1\""),
            &[("Cache-Control", "max-age=60")],
        )
    });
    let first = proxy.exchange(&get("/").with("If-None-Match", "\"v1\""));
    assert_eq!(first.status, 304, "{first:?}");
    assert!(!proxy.get("/").expect(200).body.is_empty());
}

#[test]
fn a_304_updates_fields_but_not_what_describes_the_stored_body() {
    let kept = ["Content-Encoding", "Content-Type", "Content-Range"];
    let (proxy, _origin) = cache(move |request| {
        let stamp = |reply: Reply, value: &str| {
            ["Content-Encoding", "Content-Type", "X-Any", "Expires-Test"]
                .iter()
                .fold(reply, |reply, name| reply.with(name, value))
        };
        let first = stamp(reply(200).cache("max-age=3600").with("Age", "3600").with("ETag", "\"v1\""), "old");
        if request.field("if-none-match") == Some("\"v1\"") {
            stamp(reply(304).cache("max-age=60").with("ETag", "\"v1\""), "new")
        } else {
            first
        }
    });
    proxy.get("/");
    for _ in 0..2 {
        let response = proxy.get("/").expect(200);
        assert_eq!(response.field("x-any"), Some("new"));
        assert_eq!(response.field("expires-test"), Some("new"));
        for name in kept {
            assert_ne!(response.field(name), Some("new"), "{name}");
        }
        assert_eq!(response.field("content-length"), Some("1"));
    }
}

#[test]
fn the_age_of_a_304_is_counted_and_not_repeated() {
    let (proxy, _origin) = cache(|request| {
        let update = [("Cache-Control", "max-age=60"), ("Age", "7")];
        validating(
            request,
            "\"v1\"",
            reply(200).cache("max-age=1").with("Age", "5").with("ETag", "\"v1\""),
            &update,
        )
    });
    proxy.get("/");
    proxy.get("/");
    let hit = proxy.get("/");
    assert!(hit.is_hit(), "{hit:?}");
    assert_eq!(hit.fields.all("age"), ["7"]);
}

#[test]
fn an_answer_to_head_without_validators_tells_nothing_of_the_page() {
    let (proxy, origin) = cache(|request| match request.method.as_str() {
        "HEAD" => reply(200).cache("max-age=60").length(1),
        _ => reply(200).cache("max-age=0").with("ETag", "\"v\""),
    });
    proxy.get("/");
    proxy.exchange(&head("/")).expect(200);
    assert_eq!(proxy.get("/").text(), "3");
    assert!(origin.last().fields.has("if-none-match"));
}

#[test]
fn a_page_freshened_by_head_has_one_age_and_the_edits_of_its_route() {
    let origin = Origin::new(|request| match request.method.as_str() {
        "HEAD" => {
            reply(200).cache("max-age=60").with("ETag", "\"v\"").with("Age", "10").with("X-Secret", "1")
        }
        _ => reply(200).cache("max-age=0").with("ETag", "\"v\""),
    });
    let keys = "response = { remove = [\"X-Secret\"] }";
    // The profile `safe` would fetch the page.
    let proxy = sandarac().config(site(&origin.url(), keys, "")).rfc().start();
    proxy.get("/");
    proxy.exchange(&head("/")).expect(200);
    let response = proxy.get("/");
    assert!(response.is_hit());
    assert_eq!(response.fields.lines().iter().filter(|(name, _)| *name == "Age").count(), 1);
    assert!(!response.fields.has("x-secret"));
}

#[test]
fn an_answer_to_head_that_began_before_a_purge_freshens_nothing() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, origin) = cache(move |request| {
        let page = reply(200).with("ETag", "\"v\"");
        if request.method == "HEAD" { page.cache("max-age=60").hold(&held) } else { page.cache("max-age=0") }
    });
    proxy.get("/");
    let mut client = proxy.connect();
    client.send(head("/").to_bytes());
    gate.reached(1);
    proxy.admin(&["purge", "--soft", "http://www.example/"]);
    gate.open();
    client.response_to("HEAD").expect(200);
    proxy.get("/");
    assert_eq!(origin.count(), 3);
}

#[test]
fn an_error_does_not_cost_what_can_be_validated_later() {
    // RFC 9111 §4.3.3
    for (status, directives) in [(503, "max-age=0"), (500, "no-store")] {
        let (proxy, origin) = cache(move |request| match (request.serial, request.field("if-none-match")) {
            (1, _) => reply(200).cache("max-age=0").with("ETag", "\"v\""),
            (2, _) => reply(status).cache(directives),
            (_, Some(_)) => reply(304).cache("max-age=60"),
            _ => reply(200),
        });
        assert_eq!(proxy.get("/").text(), "1");
        assert!(proxy.get("/").status >= 500);
        assert_eq!(proxy.get("/").expect(200).text(), "1");
        assert_eq!(origin.count(), 3);
    }
}

#[test]
fn what_is_withheld_from_the_store_does_not_come_in_by_a_304() {
    // RFC 9111 §5.2.2.4, §5.2.2.7
    let (proxy, _origin) = cache(|request| match request.serial {
        1 => reply(200).cache("max-age=0, no-cache=\"Set-Cookie\", private=\"X-P\"").with("ETag", "\"a\""),
        _ => reply(304)
            .with("ETag", "\"a\"")
            .with("Expires", &http_date_in(60))
            .with("Cache-Control", "max-age=60")
            .with("Set-Cookie", "session=2")
            .with("X-P", "2"),
    });
    proxy.get("/");
    let asked = proxy.get("/").expect(200);
    assert_eq!(asked.field("set-cookie"), Some("session=2"));
    assert_eq!(asked.field("x-p"), Some("2"));
    let other = proxy.get("/").expect(200);
    assert!(other.is_hit());
    assert_eq!(other.field("set-cookie"), None);
    assert_eq!(other.field("x-p"), None);
}

#[test]
fn a_cookie_on_a_304_reaches_the_one_who_asked() {
    let origin = Origin::new(|request| match request.serial {
        1 => reply(200).cache("max-age=0").with("ETag", "\"a\""),
        _ => reply(304).cache("max-age=60").with("ETag", "\"a\"").with("Set-Cookie", "session=2"),
    });
    let proxy = sandarac().before(&origin).start();
    proxy.get("/");
    assert_eq!(proxy.get("/").expect(200).field("set-cookie"), Some("session=2"));
    proxy.get("/");
    assert_eq!(origin.count(), 3, "nothing with a cookie is stored");
}

#[test]
fn what_one_request_may_not_have_stored_does_not_cost_what_is() {
    let (proxy, origin) = cache(|request| match request.field("if-none-match") {
        Some(_) => reply(304).cache("max-age=60").with("ETag", "\"a\""),
        None => reply(200).cache("max-age=60").with("ETag", "\"a\""),
    });
    proxy.get("/");
    let authorized =
        |request: Req| request.with("Cache-Control", "no-cache").with("Authorization", "Basic eA==");
    proxy.exchange(&authorized(get("/"))).expect(200);
    proxy.exchange(&authorized(head("/"))).expect(200);
    assert_eq!(proxy.get("/").text(), "1");
    assert_eq!(origin.count(), 3);
}

#[test]
fn an_answer_to_one_requests_fields_does_not_cost_what_is_stored() {
    for status in [400, 401, 403, 406, 429, 431] {
        let (proxy, origin) =
            cache(move |request| match (request.field("accept"), request.field("if-none-match")) {
                (Some("x/y"), _) => reply(status),
                (_, Some(_)) => reply(304).cache("max-age=60"),
                _ => reply(200).cache("max-age=0").with("ETag", "\"v\""),
            });
        proxy.get("/");
        proxy.exchange(&get("/").with("Accept", "x/y")).expect(status);
        assert_eq!(proxy.get("/").expect(200).text(), "1", "{status}");
        assert_eq!(origin.count(), 3);
    }
    let (proxy, origin) = cache(|request| match request.serial {
        1 => reply(200).cache("max-age=0").with("ETag", "\"v\""),
        _ => reply(404),
    });
    proxy.get("/");
    proxy.get("/").expect(404);
    proxy.get("/");
    assert!(!origin.last().fields.has("if-none-match"), "what is gone is gone");
}

#[test]
fn what_a_304_begins_to_withhold_is_taken_out_of_the_store() {
    // RFC 9111 §5.2.2.4
    let (proxy, _origin) = cache(|request| match request.serial {
        1 => reply(200).cache("max-age=0").with("ETag", "\"a\"").with("X-P", "1"),
        _ => reply(304).cache("max-age=60, no-cache=\"X-P\"").with("ETag", "\"a\"").with("X-P", "2"),
    });
    proxy.get("/");
    assert_eq!(proxy.get("/").fields.list("x-p"), "2");
    let other = proxy.get("/").expect(200);
    assert!(other.is_hit());
    assert_eq!(other.field("x-p"), None);
}

/// Regression: the client got the stored Cache-Control, and could store for others a response meant for itself.
#[test]
fn a_304_that_forbids_to_store_reaches_the_one_who_asked() {
    for directives in ["private, max-age=60", "no-store"] {
        let origin = Origin::new(move |request| match request.serial {
            1 => reply(200)
                .body("1")
                .cache("max-age=0")
                .with("ETag", "\"a\"")
                .with("X-Old", "1")
                .with("X-Passed", "1"),
            2 => reply(304).cache(directives).with("ETag", "\"a\"").with("X-New", "2").with("Age", "7"),
            _ => reply(200).body("3").cache("max-age=60"),
        });
        let keys = "passed_response = { remove = [\"X-Passed\"] }";
        let proxy = sandarac().config(site(&origin.url(), keys, "")).start();
        assert!(proxy.get("/").fields.has("x-passed"));
        let asked = proxy.get("/").expect(200);
        assert_eq!(asked.text(), "1");
        assert_eq!(asked.field("x-old"), Some("1"));
        assert_eq!(asked.field("x-new"), Some("2"));
        assert_eq!(asked.fields.all("cache-control"), [directives]);
        assert_eq!(asked.fields.all("age"), ["7"]);
        assert_eq!(asked.fields.all("etag"), ["\"a\""]);
        assert!(!asked.fields.has("x-passed"), "it is not stored");
        assert_eq!(proxy.get("/").expect(200).text(), "3");
    }
}

/// Regression: a client that had asked for the page got 304, and nothing to show.
#[test]
fn a_304_that_nobody_asked_for_is_the_backends_fault() {
    for cache in ["no-store", "max-age=60"] {
        let (proxy, _origin) = before(move |_| reply(304).cache(cache).with("ETag", "\"v1\""));
        let refused = proxy.get("/").expect(502);
        assert!(refused.field("proxy-status").is_some_and(|status| status.contains("304")), "{refused:?}");
        assert_eq!(proxy.exchange(&get("/").with("Cookie", "a=b")).expect(502).field("etag"), None);
    }
    let (proxy, _origin) = before(|_| reply(304).cache("no-store").with("ETag", "\"v1\""));
    let asked = get("/").with("Cookie", "a=b").with("If-None-Match", "\"v1\"");
    assert_eq!(proxy.exchange(&asked).expect(304).field("etag"), Some("\"v1\""));
}
