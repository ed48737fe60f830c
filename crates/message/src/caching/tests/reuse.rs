use proptest::prelude::*;

use super::*;

fn request(cache_control: &str) -> RequestDirectives {
    RequestDirectives::of(fields(&format!("Cache-Control: {cache_control}")).view())
}

#[test]
fn lifetimes_stay_small() {
    assert!(size_of::<Lifetimes>() <= 40);
    assert!(size_of::<RequestDirectives>() <= 32);
}

#[test]
fn request_directives_are_read() {
    // RFC 9111 §5.2.1, §5.4
    let none = RequestDirectives::default();
    for (text, expected) in [
        ("Host: a", none),
        ("Cache-Control: foo, bar=1", none),
        ("Cache-Control: NO-cache", RequestDirectives { no_cache: true, ..none }),
        (
            "Cache-Control: no-store, only-if-cached",
            RequestDirectives { no_store: true, only_if_cached: true, ..none },
        ),
        ("Cache-Control: max-age=0", RequestDirectives { max_age: Some(0), ..none }),
        ("Cache-Control: max-age=\"5\", max-age=7", RequestDirectives { max_age: Some(5), ..none }),
        ("Cache-Control: max-age=x", RequestDirectives { max_age: Some(0), ..none }),
        ("Cache-Control: min-fresh=9", RequestDirectives { min_fresh: Some(9), ..none }),
        ("Cache-Control: min-fresh", RequestDirectives { min_fresh: Some(u32::MAX), ..none }),
        ("Cache-Control: max-stale", RequestDirectives { max_stale: MaxStale::Any, ..none }),
        ("Cache-Control: max-stale=60", RequestDirectives { max_stale: MaxStale::Within(60), ..none }),
        ("Cache-Control: max-stale=x", none),
        ("Pragma: foo", none),
        ("Pragma: x, No-Cache", RequestDirectives { no_cache: true, ..none }),
        (
            "Pragma: no-cache\nCache-Control: max-stale",
            RequestDirectives { max_stale: MaxStale::Any, ..none },
        ),
    ] {
        assert_eq!(RequestDirectives::of(fields(text).view()), expected, "{text}");
    }
    assert_eq!(Policy::safe().directives(fields("Cache-Control: no-cache").view()), none);
}

#[test]
fn requests_choose_among_fresh_and_stale() {
    // RFC 9111 §5.2.1: each stored response, seconds passed, request directives, and the verdict.
    for (response, passed, directives, expected) in [
        ("max-age=3600", 3, "", Reuse::Fresh),
        ("max-age=3600", 3, "max-age=0", Reuse::Revalidate),
        ("max-age=3600", 0, "max-age=0", Reuse::Revalidate),
        ("max-age=3600", 3, "max-age=1", Reuse::Revalidate),
        ("max-age=3600", 3, "max-age=3", Reuse::Fresh),
        ("max-age=3600\nAge: 1800", 0, "max-age=600", Reuse::Revalidate),
        ("max-age=3600", 3, "no-cache", Reuse::Revalidate),
        ("max-age=1500", 0, "min-fresh=2000", Reuse::Revalidate),
        ("max-age=1500\nAge: 1000", 0, "min-fresh=1000", Reuse::Revalidate),
        ("max-age=1500\nAge: 1000", 0, "min-fresh=500", Reuse::Fresh),
        ("max-age=1", 1, "", Reuse::Revalidate),
        ("max-age=1", 3, "max-stale=1000", Reuse::MaxStale),
        ("max-age=1", 3, "max-stale=1", Reuse::Revalidate),
        ("max-age=1", 3, "max-stale", Reuse::MaxStale),
        ("max-age=1500\nAge: 2000", 0, "max-stale=1000", Reuse::MaxStale),
        ("max-age=1", 3, "max-stale, max-age=2", Reuse::Revalidate),
        ("max-age=1", 3, "max-stale, max-age=3", Reuse::MaxStale),
        ("max-age=1", 3, "max-stale, min-fresh=1", Reuse::Revalidate),
        ("max-age=1, must-revalidate\nETag: \"a\"", 3, "max-stale", Reuse::Revalidate),
        ("max-age=1, proxy-revalidate\nETag: \"a\"", 3, "max-stale", Reuse::Revalidate),
        ("s-maxage=1\nETag: \"a\"", 3, "max-stale", Reuse::Revalidate),
        // RFC 8246 §2
        ("max-age=3600, immutable", 3, "max-age=0", Reuse::Fresh),
        ("max-age=3600, immutable", 3, "no-cache", Reuse::Revalidate),
        ("max-age=1, immutable", 3, "max-age=0", Reuse::Revalidate),
        // RFC 5861 §3
        ("max-age=1, stale-while-revalidate=60", 3, "", Reuse::StaleWhileRevalidate),
        ("max-age=1, stale-while-revalidate=60", 60, "", Reuse::StaleWhileRevalidate),
        ("max-age=1, stale-while-revalidate=60", 61, "", Reuse::Revalidate),
        ("max-age=1, stale-while-revalidate=60", 3, "max-age=10", Reuse::Revalidate),
        ("max-age=1, stale-while-revalidate=60", 3, "min-fresh=1", Reuse::Revalidate),
        ("max-age=1, stale-while-revalidate=60, must-revalidate\nETag: \"a\"", 3, "", Reuse::Revalidate),
        ("max-age=1, stale-while-revalidate=x", 3, "", Reuse::Revalidate),
        ("s-maxage=1, stale-while-revalidate=60\nETag: \"a\"", 3, "", Reuse::Revalidate),
        ("max-age=1", 3600, "", Reuse::Revalidate),
        ("max-age=1", 3601, "", Reuse::Gone),
        ("max-age=1, must-revalidate", 1, "", Reuse::Gone),
    ] {
        let lifetimes = rfc().lifetimes(&format!("Cache-Control: {response}"));
        assert_eq!(
            lifetimes.reuse(&request(directives), later(passed)),
            expected,
            "{response} after {passed} s, {directives}"
        );
    }
}

#[test]
fn the_safe_profile_takes_the_origin_at_its_word_about_stale_while_revalidate() {
    // With s-maxage, by which RFC 9111 §4.2.4 forbids it; must-revalidate always does.
    let none = RequestDirectives::default();
    let both = "Cache-Control: s-maxage=1, stale-while-revalidate=60, stale-if-error=60";
    assert_eq!(safe().lifetimes(both).reuse(&none, later(3)), Reuse::StaleWhileRevalidate);
    assert!(safe().lifetimes(both).usable_on_error(&none, later(3)));
    assert!(!rfc().lifetimes(&format!("{both}\nETag: \"a\"")).usable_on_error(&none, later(3)));
    let strict = format!("{both}, must-revalidate\nETag: \"a\"");
    assert_eq!(safe().lifetimes(&strict).reuse(&none, later(3)), Reuse::Revalidate);
}

#[test]
fn configured_grace_yields_to_the_origin() {
    let mut exchange = safe();
    exchange.policy.grace = Duration::from_secs(60);
    let none = RequestDirectives::default();
    let reuse = |response: &str| exchange.lifetimes(response).reuse(&none, later(3));
    assert_eq!(reuse("Cache-Control: max-age=1"), Reuse::StaleWhileRevalidate);
    assert_eq!(reuse("Cache-Control: max-age=0"), Reuse::StaleWhileRevalidate);
    assert_eq!(reuse("Cache-Control: max-age=1, stale-while-revalidate=1"), Reuse::Revalidate);
    for forbidding in ["must-revalidate", "proxy-revalidate", "s-maxage=1", "no-cache"] {
        let response = format!("Cache-Control: max-age=1, {forbidding}\nETag: \"a\"");
        assert_eq!(reuse(&response), Reuse::Revalidate, "{forbidding}");
    }
}

#[test]
fn a_disconnected_cache_serves_stale_unless_the_origin_forbids_it() {
    // RFC 9111 §4.2.4; the public tests' stale group.
    let none = RequestDirectives::default();
    let lifetimes = rfc().lifetimes("Cache-Control: max-age=2");
    assert!(lifetimes.usable_on_error(&none, later(3)));
    assert!(!lifetimes.usable_on_error_status(&none, later(3)), "a 503 that did arrive is an answer");
    assert!(!lifetimes.usable_on_error(&none, later(2 + 3600)));
    assert!(!lifetimes.usable_on_error(&request("no-cache"), later(3)));
    for forbidding in ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=2"] {
        let lifetimes = rfc().lifetimes(&format!("Cache-Control: max-age=2, {forbidding}\nETag: \"a\""));
        assert!(!lifetimes.usable_on_error(&none, later(3)), "{forbidding}");
    }
    let lifetimes = rfc().lifetimes("Cache-Control: max-age=2, stale-if-error=60");
    assert!(lifetimes.usable_on_error_status(&none, later(61)));
    assert!(!lifetimes.usable_on_error_status(&none, later(62)));
    assert!(lifetimes.usable_on_error(&none, later(62)), "still disconnected");
    let mut exchange = rfc();
    exchange.policy.stale_when_disconnected = false;
    let connected = exchange.lifetimes("Cache-Control: max-age=2, stale-if-error=60");
    assert!(!connected.usable_on_error(&none, later(62)));
}

#[test]
fn ttl_counts_down_below_zero() {
    let lifetimes = rfc().lifetimes("Cache-Control: max-age=10\nAge: 4");
    assert_eq!(lifetimes.ttl(NOW), 6);
    assert_eq!(lifetimes.ttl(later(6)), 0);
    assert_eq!(lifetimes.ttl(NOW.plus(Duration::from_millis(6001))), -1);
    assert_eq!(lifetimes.stale_at(), later(6));
    assert_eq!(
        rfc().lifetimes("Cache-Control: max-age=10\nAge: 40").stale_at(),
        NOW.minus(Duration::from_secs(30))
    );
}

#[test]
fn a_soft_purge_makes_stale_and_keeps_the_rest() {
    let none = RequestDirectives::default();
    let mut exchange = safe();
    exchange.policy.grace = Duration::from_secs(60);
    let lifetimes = exchange.lifetimes("Cache-Control: max-age=3600");
    let purged = lifetimes.soft_purged(later(10));
    assert_eq!(purged.reuse(&none, later(10)), Reuse::StaleWhileRevalidate);
    assert_eq!(purged.reuse(&none, later(69)), Reuse::StaleWhileRevalidate);
    assert_eq!(purged.reuse(&none, later(70)), Reuse::Revalidate);
    assert!(purged.usable_on_error(&none, later(100)));
    assert_eq!(purged.age(later(10)), lifetimes.age(later(10)));
    assert_eq!(purged.soft_purged(later(50)), purged, "purging again changes nothing");
}

#[test]
fn what_arrives_stale_is_kept_from_then_on() {
    let lifetimes = rfc().lifetimes("Cache-Control: max-age=10\nAge: 100000\nETag: \"a\"");
    assert!(!lifetimes.dead(later(3599)));
    assert!(lifetimes.dead(later(3600)));
}

#[test]
fn fixed_lifetimes_last_as_told() {
    let lifetimes = Lifetimes::fixed(NOW, Duration::from_secs(5), Duration::from_secs(2), Duration::ZERO);
    let none = RequestDirectives::default();
    assert_eq!(lifetimes.reuse(&none, later(4)), Reuse::Fresh);
    assert_eq!(lifetimes.reuse(&none, later(6)), Reuse::StaleWhileRevalidate);
    assert_eq!(lifetimes.reuse(&none, later(7)), Reuse::Gone);
    assert!(
        !Lifetimes::fixed(NOW, Duration::MAX, Duration::MAX, Duration::MAX)
            .dead(Timestamp::from_millis(u64::MAX - 1))
    );
}

proptest! {
    #[test]
    fn no_head_panics_and_no_verdict_contradicts_another(
        cache_control in "((no-cache|no-store|private|public|must-revalidate|immutable|s-maxage=[0-9]{1,12}|max-age=[0-9]{1,12}|stale-if-error=[0-9]{1,12}|stale-while-revalidate=[0-9]{1,12}|[ -~]{0,6})(, |,)){0,5}",
        request_control in "((no-cache|max-age=[0-9]{1,9}|min-fresh=[0-9]{1,9}|max-stale(=[0-9]{1,9})?|[ -~]{0,6})(, |,)){0,4}",
        age in "[0-9]{0,22}",
        passed: u32,
        validator: bool,
        safe_profile: bool,
    ) {
        let exchange = if safe_profile { safe() } else { rfc() };
        let etag = if validator { "\nETag: \"a\"" } else { "" };
        let response = format!("Cache-Control: {cache_control}\nAge: {age}{etag}");
        if let Storability::Store(lifetimes) = exchange.judge(&response) {
            let (now, request) = (later(passed.into()), request(&request_control));
            let reuse = lifetimes.reuse(&request, now);
            prop_assert_eq!(reuse == Reuse::Gone, lifetimes.dead(now));
            prop_assert!(reuse != Reuse::Fresh || lifetimes.is_fresh(now));
            if lifetimes.no_cache() || request.no_cache {
                prop_assert!(matches!(reuse, Reuse::Revalidate | Reuse::Gone));
                prop_assert!(!lifetimes.usable_on_error(&request, now));
            }
            prop_assert!(lifetimes.is_fresh(now) || lifetimes.ttl(now) <= 0);
            let purged = lifetimes.soft_purged(now);
            prop_assert!(!purged.is_fresh(now));
        }
    }

    #[test]
    fn request_directives_never_panic(value in "[\\x20-\\x7e\\x80-\\xff]{0,60}") {
        let fields: FieldsBuf = [("Cache-Control", value.as_bytes())].into_iter().collect();
        RequestDirectives::of(fields.view());
    }
}
