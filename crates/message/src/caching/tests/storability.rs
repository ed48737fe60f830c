use super::*;

/// Each response, under the RFC profile, and whether a second request three seconds later is served from it.
fn table(responses: &[(&str, bool)]) {
    for (response, expected) in responses {
        assert_eq!(rfc().reused(response), *expected, "{response}");
    }
}

#[test]
fn cache_control_decides_freshness() {
    // RFC 9111 §4.2.1, §5.2.2.1, §5.2.2.10; names of the public tests' freshness group.
    table(&[
        ("", false),
        ("Cache-Control: max-age=3600", true),
        ("Cache-Control: max-age=0", false),
        ("Cache-Control: max-age=2", false),
        ("Cache-Control: max-age=2147483647", true),
        ("Cache-Control: max-age=2147483648", true),
        ("Cache-Control: max-age=99999999999", true),
        ("Cache-Control: max-age=99999999999999999999999999999999", true),
        ("Cache-Control: max-age=-3600", false),
        ("Cache-Control: foobar, max-age=3600", true),
        ("Cache-Control: MaX-aGe=3600", true),
        ("Cache-Control: s-maxage=3600", true),
        ("Cache-Control: max-age=3600, s-maxage=1", false),
        ("Cache-Control: s-maxage=1, max-age=3600", false),
        ("Cache-Control: max-age=3600\nCache-Control: s-maxage=1", false),
        ("Cache-Control: max-age=1, s-maxage=3600", true),
        ("Expires: Thu, 01 Jan 1970 00:00:00 GMT\nCache-Control: max-age=0, s-maxage=3600", true),
    ]);
}

#[test]
fn cache_control_is_parsed_without_surprises() {
    table(&[
        ("Cache-Control: max-age=\"3600\"", true),
        ("Cache-Control: max-age='3600'", false),
        ("Cache-Control: extension=\"max-age=3600\", max-age=1", false),
        ("Cache-Control: max-age=1, extension=\"max-age=3600\"", false),
        ("Cache-Control: extension=\"max-age=3600\", max-age=\"1\"", false),
        ("Cache-Control: extension=\"a, max-age=3600, b\", max-age=1", false),
        ("Cache-Control: max-age=003600", true),
        ("Cache-Control: max-age=3600.0", false),
        ("Cache-Control: max-age=3600.5", false),
        ("Cache-Control: max-age =3600", false),
        ("Cache-Control: max-age= 3600", false),
        ("Cache-Control: max-age=a3600", false),
        ("Cache-Control: max-age=3600a", false),
        ("Cache-Control: max-age", false),
        ("Cache-Control: max-age=", false),
        ("Cache-Control: max-age=\"3600", false),
        // RFC 9111 §4.2.1: the first of repeated directives counts.
        ("Cache-Control: max-age=3600\nCache-Control: max-age=1", true),
        ("Cache-Control: max-age=1\nCache-Control: max-age=3600", false),
        ("Cache-Control: max-age=3600, max-age=1", true),
        ("Cache-Control: max-age=1, max-age=3600", false),
        ("Cache-Control: ,, max-age=3600 ,", true),
    ]);
}

#[test]
fn malformed_lifetimes_are_stale_even_where_a_default_would_apply() {
    for value in ["max-age =3600", "max-age= 3600", "max-age=x", "max-age", "s-maxage=-1"] {
        assert!(!safe().reused(&format!("Cache-Control: {value}")), "{value}");
    }
    assert!(!safe().reused("Expires: 0"));
}

#[test]
fn only_valid_dates_count_as_expires() {
    let date = at(0);
    for (value, expected) in [
        // Valid: the three forms, far years, any letter case.
        ("Thu, 18 Aug 2050 02:01:18 GMT", true),
        ("Tue, 19 Jan 2038 14:14:08 GMT", true),
        ("Sun, 21 Nov 2286 04:46:39 GMT", true),
        ("Thursday, 18-Aug-50 02:01:18 GMT", true),
        ("Thu Aug  8 02:01:18 2050", true),
        ("THU, 18 Aug 2050 02:01:18 GMT", true),
        ("Thu, 18 AUG 2050 02:01:18 GMT", true),
        ("Thu, 18 Aug 2050 02:01:18 gMT", true),
        // Invalid, so stale (RFC 9111 §5.3).
        ("0", false),
        ("", false),
        ("Thu, 18 Aug 2050 02:01:18 UTC", false),
        ("Thu, 18 Aug 2050 02:01:18 AEST", false),
        ("Thu, 18 Aug 50 02:01:18 GMT", false),
        ("Thu 18 Aug 2050 02:01:18 GMT", false),
        ("Thu, 18  Aug  2050 02:01:18 GMT", false),
        ("Thu, 18-Aug-2050 02:01:18 GMT", false),
        ("Thu, 18 Aug 2050 02.01.18 GMT", false),
        ("Thu, 18 Aug 2050 2:01:18 GMT", false),
        ("Thu, 18 Aug 2050 02:01:18 GMT\nExpires: Thu, 18 Aug 2050 02:01:19 GMT", false),
        ("Thu, 18 Aug 1994 02:01:18 GMT", false),
    ] {
        assert_eq!(rfc().reused(&format!("Expires: {value}\nDate: {date}")), expected, "{value}");
    }
}

#[test]
fn expires_counts_from_date_and_yields_to_max_age() {
    let (past, date, soon, future) = (at(-7200), at(0), at(2), at(7200));
    table(&[
        (&format!("Expires: {future}\nDate: {date}"), true),
        (&format!("Expires: {future}"), true),
        (&format!("Expires: {soon}\nDate: {date}"), false),
        (&format!("Expires: {past}\nDate: {date}"), false),
        (&format!("Expires: {date}\nDate: {date}"), false),
        // A clock that is ahead: Expires is relative to the same clock.
        (&format!("Expires: {future}\nDate: {future}"), false),
        (&format!("Cache-Control: max-age=3600\nExpires: {past}\nDate: {date}"), true),
        (&format!("Cache-Control: max-age=3600\nExpires: 0\nDate: {date}"), true),
        (&format!("Cache-Control: max-age=0\nExpires: {future}\nDate: {date}"), false),
        (&format!("Cache-Control: public\nExpires: {future}\nDate: {date}"), true),
    ]);
}

#[test]
fn age_counts_by_its_first_valid_number() {
    // The newest form of the public tests' age group.
    let date = at(0);
    for (age, max_age, expected) in [
        ("7200", "3600", false),
        ("0", "3600", true),
        ("abc", "3600", true),
        ("-7200", "3600", true),
        ("7200.0", "3600", true),
        ("", "3600", true),
        ("0, 7200", "3600", true),
        ("0,7200", "3600", true),
        ("7200, 0", "3600", false),
        ("7200,0", "3600", false),
        ("0\nAge: 7200", "3600", true),
        ("7200\nAge: 0", "3600", false),
        ("0, 0", "3600", true),
        ("3600, 3600", "10000", true),
        ("7200;foo=bar", "3600", false),
        ("7200;foo=111", "3600", false),
        ("2147483647", "3600", false),
        ("2147483648", "3600", false),
        ("2147483649", "3600", false),
        ("99999999999999999999999", "3600", false),
        ("99999999999999999999999", "99999999999999999999", false),
    ] {
        let response = format!("Date: {date}\nCache-Control: max-age={max_age}\nAge: {age}");
        assert_eq!(rfc().reused(&response), expected, "Age: {age}");
    }
    assert!(!rfc().reused(&format!("Date: {}\nCache-Control: max-age=3600", at(-7200))), "apparent age");
    assert!(rfc().reused(&format!("Date: {}\nCache-Control: max-age=3600", at(7200))), "a clock ahead");
}

#[test]
fn initial_age_is_the_greater_of_apparent_and_corrected_age() {
    // RFC 9111 §4.2.3, with a response that took two seconds to arrive.
    let request = RequestHead {
        method: Method::Get,
        method_text: b"GET",
        target: b"/",
        version: Version::Http11,
        fields: crate::Fields::default(),
    };
    for (response, expected_ms) in [
        ("Cache-Control: max-age=60".to_owned(), 2000),
        (format!("Cache-Control: max-age=60\nAge: 10\nDate: {}", at(0)), 12_000),
        // Date has whole seconds; the response may have been made at the end of that second.
        (format!("Cache-Control: max-age=60\nAge: 10\nDate: {}", at(-30)), 29_501),
        (format!("Cache-Control: max-age=60\nDate: {}", at(0)), 2000),
    ] {
        let fields = fields(&response);
        let head = ResponseHead { status: 200, reason: b"", version: Version::Http11, fields: fields.view() };
        let requested = NOW.minus(Duration::from_secs(2));
        let Storability::Store(lifetimes) =
            super::super::storability(&request, &head, None, &Policy::rfc(), requested, NOW)
        else {
            panic!("{response}");
        };
        assert_eq!(lifetimes.age(NOW), Duration::from_millis(expected_ms), "{response}");
    }
}

#[test]
fn directives_forbid_storing() {
    for (response, reason) in [
        ("Cache-Control: no-store", Reason::NoStore),
        ("Cache-Control: No-StOrE", Reason::NoStore),
        ("Cache-Control: no-store=x, max-age=60", Reason::NoStore),
        ("Cache-Control: max-age=10000, no-store\nExpires: Thu, 18 Aug 2050 02:01:18 GMT", Reason::NoStore),
        ("Cache-Control: private, max-age=3600", Reason::Private),
        ("Cache-Control: private=\"\", max-age=3600", Reason::Private),
        ("Cache-Control: private=\"not a name\", max-age=3600", Reason::Private),
        ("Cache-Control: max-age=3600\nVary: *", Reason::VaryStar),
        ("Cache-Control: max-age=3600\nVary: Foo, *", Reason::VaryStar),
        ("Cache-Control: no-cache, max-age=3600", Reason::NoValidator),
        ("Cache-Control: max-age=0", Reason::Stale),
        ("Server: x", Reason::NoFreshness),
    ] {
        assert_eq!(rfc().reason(response), reason, "{response}");
    }
}

#[test]
fn a_status_that_has_no_meaning_is_not_stored() {
    for status in [600, 999] {
        assert_eq!(Exchange { status, ..rfc() }.reason("Cache-Control: max-age=3600"), Reason::Status);
    }
}

#[test]
fn must_understand_replaces_no_store_for_known_statuses() {
    // RFC 9111 §5.2.2.3
    let with_status = |status| Exchange { status, ..rfc() };
    assert!(with_status(200).reused("Cache-Control: max-age=3600, no-store, must-understand"));
    assert!(with_status(404).reused("Cache-Control: max-age=3600, must-understand"));
    for response in
        ["Cache-Control: max-age=3600, must-understand", "Cache-Control: no-store, must-understand"]
    {
        assert_eq!(with_status(599).reason(response), Reason::NotUnderstood);
    }
}

#[test]
fn what_permits_counts_without_an_argument_only() {
    // RFC 9111 §5.2.2 defines no argument for these.
    for response in
        ["no-store, must-understand=1", "no-store, must-understand==10", "no-store, must-understand="]
    {
        let response = format!("Cache-Control: max-age=3600, {response}");
        assert_eq!(rfc().reason(&response), Reason::NoStore, "{response}");
    }
    let authorized = Exchange { request: "Authorization: Basic x", ..rfc() };
    assert!(authorized.reused("Cache-Control: max-age=3600, public"));
    assert_eq!(authorized.reason("Cache-Control: max-age=3600, public=x"), Reason::Authorization);
}

#[test]
fn no_cache_is_stored_with_a_validator_and_always_validated() {
    // RFC 9111 §5.2.2.4
    for response in [
        "Cache-Control: no-cache\nETag: \"abcd\"",
        "Cache-Control: max-age=10000, No-CaChE\nETag: \"abcd\"",
        "Cache-Control: no-cache, stale-while-revalidate=60\nLast-Modified: Thu, 18 Aug 1994 02:01:18 GMT",
    ] {
        let lifetimes = rfc().lifetimes(response);
        assert_eq!(lifetimes.reuse(&RequestDirectives::default(), NOW), Reuse::Revalidate, "{response}");
        assert!(!lifetimes.usable_on_error(&RequestDirectives::default(), NOW), "{response}");
    }
}

/// Regression: such members counted as absent, and a default lifetime shared private pages with everyone.
#[test]
fn words_that_forbid_count_in_malformed_members_too() {
    for (member, reason) in [
        ("private;max-age=60", Reason::Private),
        ("no-store;max-age=60", Reason::NoStore),
        ("no-cache;max-age=60", Reason::NoValidator),
        ("max-age=60;private", Reason::Private),
        ("max-age=60; Private", Reason::Private),
        ("\"private\"", Reason::Private),
        ("private=x", Reason::Private),
        ("private: x", Reason::Private),
        ("private:", Reason::Private),
        ("private private", Reason::Private),
        ("public private", Reason::Private),
        ("x=\"private", Reason::Private),
        ("no-cache=x", Reason::NoValidator),
    ] {
        for exchange in [rfc(), safe()] {
            let alone = format!("Cache-Control: {member}");
            let beside = format!("Cache-Control: max-age=60, {member}");
            assert_eq!(exchange.reason(&alone), reason, "{member}");
            assert_eq!(exchange.reason(&beside), reason, "{member}");
        }
    }
    for harmless in ["x=\"private\"", "x=\"a \\\" no-store\"", "no-store-x", "x-private", "x=private"] {
        assert!(rfc().reused(&format!("Cache-Control: max-age=60, {harmless}")), "{harmless}");
    }
}

/// Regression: with Apache's `Header always set Cache-Control "max-age=60"`, one client's 400 was shared with
/// everyone.
#[test]
fn under_safe_a_client_error_is_stored_where_a_rule_names_it() {
    const FRESH: &str = "Cache-Control: max-age=60";
    for status in [404, 410, 451] {
        assert!(Exchange { status, ..safe() }.reused(FRESH), "{status}");
    }
    for status in [400, 401, 403, 405, 406, 408, 413, 414, 421, 429, 431, 499] {
        assert_eq!(Exchange { status, ..safe() }.reason(FRESH), Reason::ClientError, "{status}");
        let mut named = Exchange { status, ..safe() };
        named.policy.ttl_by_status = vec![(status, Duration::from_secs(5))];
        assert!(named.reused(FRESH) && named.reused("Server: x"), "{status}");
        assert!(Exchange { status, ..rfc() }.reused(FRESH), "{status}");
    }
}

/// Regression: one request with a bad `Accept-Language` put an error page in front of everyone.
#[test]
fn under_safe_a_server_error_is_stored_where_a_rule_names_it() {
    for status in [500, 501, 502, 503, 504, 505, 507, 511, 520, 599] {
        for stated in [
            "Cache-Control: max-age=60",
            "Cache-Control: public",
            "CDN-Cache-Control: max-age=60",
            "Server: x",
        ] {
            assert_eq!(
                Exchange { status, ..safe() }.reason(stated),
                Reason::ServerError,
                "{status} {stated}"
            );
        }
        let mut named = Exchange { status, ..safe() };
        named.policy.ttl_by_status = vec![(status, Duration::from_secs(5))];
        assert!(named.reused("Cache-Control: max-age=60") && named.reused("Server: x"), "{status}");
        assert!(Exchange { status, ..rfc() }.reused("Cache-Control: max-age=60"), "{status}");
    }
}

#[test]
fn named_fields_are_withheld_and_the_rest_is_stored() {
    // RFC 9111 §5.2.2.4, §5.2.2.7
    for directive in ["no-cache=\"a, B\"", "private=\"a, b\""] {
        let response = format!("Cache-Control: {directive}\na: 1\nb: 2\nc: 3\nCache-Control: max-age=3600");
        assert!(rfc().reused(&response), "{response}");
        let stored = stored_fields(fields(&response).view());
        let names: Vec<_> = stored.view().iter().map(|field| field.name.to_vec()).collect();
        assert_eq!(names, [&b"Cache-Control"[..], b"c", b"Cache-Control"], "{directive}");
    }
}

#[test]
fn explicit_freshness_makes_any_final_status_storable() {
    for status in [200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 410, 499, 500, 502, 503, 504, 599] {
        let fresh = format!("Expires: {}\nDate: {}", at(100_000), at(0));
        let stale = format!("Expires: {}\nDate: {}", at(-5000), at(0));
        assert!(Exchange { status, ..rfc() }.reused(&fresh), "{status}");
        assert!(!Exchange { status, ..rfc() }.reused(&stale), "{status}");
    }
    for status in [101, 103, 304, 412, 416, 417] {
        assert_eq!(Exchange { status, ..rfc() }.reason("Cache-Control: max-age=60"), Reason::Status);
    }
}

#[test]
fn a_206_is_stored_where_it_is_known_which_part_it_carries() {
    let unnamed = Exchange { status: 206, ..rfc() };
    assert_eq!(unnamed.reason("Cache-Control: max-age=60"), Reason::Partial);
    let part = ContentRange::parse(b"bytes 0-4/10");
    let named = Exchange { status: 206, part, ..rfc() };
    assert!(named.reused("Cache-Control: max-age=60"));
    assert_eq!(named.reason("Cache-Control: no-store"), Reason::NoStore);
}

#[test]
fn heuristics_apply_to_the_statuses_that_allow_them() {
    // RFC 9110 §15.1, RFC 9111 §4.2.2
    let response = format!("Last-Modified: {}\nDate: {}", at(-86_400), at(0));
    let public = format!("{response}\nCache-Control: public");
    for status in [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
        let exchange = Exchange { status, ..rfc() };
        assert!(exchange.reused(&response), "{status}");
        let lifetimes = exchange.lifetimes(&response);
        assert_eq!(lifetimes.ttl(NOW), 8640, "a tenth of a day");
    }
    for status in [201, 202, 302, 307, 403, 500, 502, 503, 504, 599] {
        let exchange = Exchange { status, ..rfc() };
        assert!(!exchange.reused(&response), "{status}");
        assert!(exchange.reused(&public), "{status} public");
    }
    let old = format!("Last-Modified: {}\nDate: {}", at(-86_400 * 1000), at(0));
    assert_eq!(rfc().lifetimes(&old).ttl(NOW), 86_400, "the cap");
    assert!(!rfc().reused(&format!("{response}\nCache-Control: no-cache")));
    assert!(!rfc().reused(&format!("{response}\nPragma: no-cache")));
    assert!(rfc().reused("Cache-Control: max-age=60\nPragma: no-cache"), "RFC 9111 §5.4");
}

#[test]
fn responses_to_authorized_requests_need_leave_to_be_shared() {
    // RFC 9111 §3.5
    let authorized = || Exchange { request: "Authorization: FOO", ..rfc() };
    assert_eq!(authorized().reason("Cache-Control: max-age=3600"), Reason::Authorization);
    assert_eq!(
        authorized().reason("Expires: Thu, 18 Aug 2050 02:01:18 GMT\nCache-Control: proxy-revalidate"),
        Reason::Authorization
    );
    for response in [
        "Cache-Control: max-age=3600, public",
        "Cache-Control: max-age=3600, must-revalidate",
        "Cache-Control: s-maxage=3600",
    ] {
        assert!(authorized().reused(response), "{response}");
    }
}

#[test]
fn cookies_are_stored_only_where_the_policy_says_so() {
    let explicit = "Cache-Control: max-age=3600\nSet-Cookie: a=b";
    assert!(rfc().reused(explicit));
    let heuristic = format!("Last-Modified: {}\nSet-Cookie: a=b", at(-86_400));
    assert_eq!(rfc().reason(&heuristic), Reason::SetCookie);
    assert_eq!(safe().reason(explicit), Reason::SetCookie);
    assert!(safe().reused("Cache-Control: max-age=3600, no-cache=\"set-cookie\"\nSet-Cookie: a=b"));
    let mut exchange = safe();
    exchange.policy.store_set_cookie = true;
    exchange.policy.forced_ttl = Some(Duration::from_secs(60));
    assert!(exchange.reused("Set-Cookie: a=b"));
}

#[test]
fn a_post_response_that_stands_for_its_target_serves_later_gets() {
    // RFC 9110 §9.3.3
    let post = |request| Exchange { method: "POST", request, ..rfc() };
    let fresh = format!("Expires: {}\nDate: {}\nContent-Location: ", at(86_400), at(0));
    for location in
        ["/page?x=1", "http://A/page?x=1", "https://a:443/page?x=1", "//a/page?x=1", "page?x=1", ""]
    {
        assert!(post("Host: a").reused(&format!("{fresh}{location}")), "{location}");
    }
    for location in ["/page", "/other", "http://b/page?x=1", "http://a:81/page?x=1", "mailto:a"] {
        assert_eq!(post("Host: a").reason(&format!("{fresh}{location}")), Reason::Method, "{location}");
    }
    let heuristic = format!("Last-Modified: {}\nContent-Location: /page?x=1", at(-86_400));
    assert_eq!(post("Host: a").reason(&heuristic), Reason::Method, "no explicit freshness");
    for method in ["PUT", "DELETE", "HEAD", "OPTIONS", "M-SEARCH"] {
        assert_eq!(
            Exchange { method, ..rfc() }.reason(&format!("{fresh}/page?x=1")),
            Reason::Method,
            "{method}"
        );
    }
}

#[test]
fn request_no_store_is_obeyed_where_request_directives_are() {
    // RFC 9111 §5.2.1.5
    let no_store = |policy| Exchange { request: "Cache-Control: No-Store", ..Exchange::new(policy) };
    assert_eq!(no_store(Policy::rfc()).reason("Cache-Control: max-age=60"), Reason::RequestNoStore);
    assert!(no_store(Policy::safe()).reused("Cache-Control: max-age=60"));
}

#[test]
fn the_safe_profile_has_a_default_lifetime_and_negative_caching_by_status() {
    let lifetimes = safe().lifetimes("Content-Type: text/html");
    assert_eq!(lifetimes.ttl(NOW), 120);
    assert_eq!(Exchange { status: 503, ..safe() }.reason("Server: x"), Reason::ServerError);
    assert!(Reason::ServerError.marked_for() < Reason::NoFreshness.marked_for());
    assert!(Reason::ServerError.marked_for().is_some() && Reason::RequestNoStore.marked_for().is_none());
    let mut exchange = Exchange { status: 503, ..safe() };
    exchange.policy.ttl_by_status = vec![(404, Duration::from_secs(10)), (503, Duration::from_secs(5))];
    assert_eq!(exchange.lifetimes("Server: x").ttl(NOW), 5);
    exchange.status = 404;
    assert_eq!(exchange.lifetimes("Server: x").ttl(NOW), 10);
    assert_eq!(exchange.lifetimes("Cache-Control: max-age=60").ttl(NOW), 60, "the origin's word counts more");
    assert_eq!(exchange.reason("Cache-Control: no-store"), Reason::NoStore);
}

#[test]
fn a_lifetime_by_status_overrides_the_origin_but_not_its_prohibitions() {
    let mut exchange = Exchange { status: 404, ..safe() };
    exchange.policy.forced_by_status = vec![(404, Duration::from_secs(60)), (403, Duration::from_secs(5))];
    // WordPress sends its pages for what is not there so.
    let lifetimes = exchange.lifetimes("Cache-Control: no-cache, must-revalidate, max-age=0");
    assert_eq!((lifetimes.ttl(NOW), lifetimes.no_cache()), (60, false));
    assert_eq!(exchange.reason("Cache-Control: no-store"), Reason::NoStore);
    assert_eq!(exchange.reason("Cache-Control: private"), Reason::Private);
    exchange.status = 403;
    assert_eq!(exchange.lifetimes("A: 1").ttl(NOW), 5);
    exchange.status = 200;
    assert!(!exchange.reused("Cache-Control: max-age=0"));
    exchange.policy.forced_ttl = Some(Duration::from_secs(600));
    assert_eq!(exchange.lifetimes("Cache-Control: max-age=0").ttl(NOW), 600);
}

#[test]
fn a_lifetime_by_status_overrides_prohibitions_too_where_that_is_said() {
    let mut exchange = Exchange { status: 404, ..safe() };
    exchange.policy.forced_by_status = vec![(404, Duration::from_secs(60))];
    exchange.policy.forced_overrides = true;
    exchange.policy.forced_ttl = Some(Duration::from_secs(600));
    for prohibition in ["no-store", "private", "private, no-store, max-age=0"] {
        assert_eq!(
            exchange.lifetimes(&format!("Cache-Control: {prohibition}")).ttl(NOW),
            60,
            "{prohibition}"
        );
    }
    assert_eq!(exchange.reason("Set-Cookie: a=b"), Reason::SetCookie);
    exchange.status = 200;
    assert_eq!(
        exchange.reason("Cache-Control: private"),
        Reason::Private,
        "of other statuses nothing is said"
    );
}

#[test]
fn lifetimes_are_bounded_and_forced() {
    let mut exchange = rfc();
    exchange.policy.min_ttl = Duration::from_secs(10);
    exchange.policy.max_ttl = Duration::from_secs(100);
    assert_eq!(exchange.lifetimes("Cache-Control: max-age=1").ttl(NOW), 10);
    assert_eq!(exchange.lifetimes("Cache-Control: max-age=1000").ttl(NOW), 100);
    assert_eq!(exchange.reason("Cache-Control: no-cache"), Reason::NoValidator);
    assert_eq!(exchange.reason("Server: x"), Reason::NoFreshness);

    exchange.policy.forced_ttl = Some(Duration::from_secs(7));
    exchange.policy.grace = Duration::from_secs(3);
    for response in [
        "Server: x",
        "Cache-Control: no-cache",
        "Cache-Control: max-age=1, must-revalidate",
        "Expires: 0",
        "Age: 100",
    ] {
        let lifetimes = exchange.lifetimes(response);
        assert_eq!(lifetimes.ttl(NOW), 7, "{response}");
        assert_eq!(lifetimes.reuse(&RequestDirectives::default(), later(8)), Reuse::StaleWhileRevalidate);
    }
    assert_eq!(exchange.reason("Cache-Control: private"), Reason::Private);
    assert_eq!(exchange.reason("Cache-Control: no-store"), Reason::NoStore);
}

#[test]
fn uncacheable_requests_bypass_as_in_the_built_in_vcl() {
    let bypass = |method: &str, request: &str, policy: &Policy| match uses(method, request, policy) {
        StoreUse::Bypass(why) => Some(why),
        StoreUse::Shared => None,
        StoreUse::Apart(why) => panic!("{request}: apart, {why:?}"),
    };
    let (safe, rfc) = (Policy::safe(), Policy::rfc());
    for (method, request, in_safe, in_rfc) in [
        ("GET", "Host: a", None, None),
        ("HEAD", "Host: a", None, None),
        ("POST", "Host: a", Some(BypassReason::Method), Some(BypassReason::Method)),
        ("get", "Host: a", Some(BypassReason::Method), Some(BypassReason::Method)),
        ("GET", "Content-Length: 0", None, None),
        ("GET", "Content-Length: 3", Some(BypassReason::Body), Some(BypassReason::Body)),
        ("GET", "Transfer-Encoding: chunked", Some(BypassReason::Body), Some(BypassReason::Body)),
        ("GET", "Authorization: FOO", Some(BypassReason::Authorization), None),
        ("GET", "Cookie: a=b", Some(BypassReason::Cookie), None),
        ("GET", "Cookie:", None, None),
        ("GET", "Cache-Control: a, NO-store", None, Some(BypassReason::NoStore)),
        ("GET", "Cache-Control: no-cache", None, None),
    ] {
        assert_eq!(bypass(method, request, &safe), in_safe, "{method} {request}");
        assert_eq!(bypass(method, request, &rfc), in_rfc, "{method} {request}");
    }
    let mut policy = Policy::safe();
    policy.ignored_cookies = vec![crate::glob::Glob::new("_ga*"), crate::glob::Glob::new("consent")];
    assert_eq!(bypass("GET", "Cookie: _ga_X=1; consent=yes", &policy), None);
    assert_eq!(bypass("GET", "Cookie: _ga=1\nCookie: sid=2", &policy), Some(BypassReason::Cookie));
    policy.bypass_cookies = CookieRule::Named(vec![crate::glob::Glob::new("wordpress_logged_in_*")]);
    assert_eq!(bypass("GET", "Cookie: theme=dark", &policy), None);
    assert_eq!(
        bypass("GET", "Cookie: theme=dark; wordpress_logged_in_1=x", &policy),
        Some(BypassReason::Cookie)
    );
}
