//! Fields for this cache alone: CDN-Cache-Control and Sandarac-Cache-Control (RFC 9213), Surrogate-Control.

use sandarac_test_support::{Reply, http_date_in, reply};

use crate::cache;

/// Whether a second GET gets the response that `first` gave to the first one.
fn is_reused(first: impl Fn() -> Reply + Send + Sync + 'static) -> bool {
    let (proxy, _origin) = cache(move |_| first());
    proxy.get("/");
    proxy.get("/").text() == "1"
}

fn cdn(value: &'static str, cache_control: &'static str) -> bool {
    is_reused(move || {
        let answer = reply(200).with("CDN-Cache-Control", value);
        if cache_control.is_empty() { answer } else { answer.cache(cache_control) }
    })
}

#[test]
fn cdn_cache_control_gives_a_lifetime() {
    assert!(cdn("max-age=60", ""));
    assert!(cdn("max-age=60", "max-age=0"));
    assert!(cdn("s-maxage=60, max-age=0", "max-age=0"));
    assert!(!cdn("max-age=0", "max-age=60"));
}

#[test]
fn cdn_cache_control_replaces_cache_control_and_expires() {
    assert!(cdn("max-age=60", "no-store"));
    assert!(cdn("max-age=60", "private, no-cache"));
    for forbidding in [
        "no-store",
        "private",
        "no-cache",
        "no-store, max-age=60",
        "private, max-age=60",
        "no-cache, max-age=60",
    ] {
        assert!(!cdn(forbidding, "max-age=60"), "{forbidding}");
    }
    assert!(is_reused(|| reply(200)
        .with("CDN-Cache-Control", "max-age=60")
        .with("Expires", &http_date_in(-60))));
    assert!(!is_reused(|| reply(200)
        .with("CDN-Cache-Control", "max-age=0")
        .with("Expires", &http_date_in(60))));
}

#[test]
fn an_invalid_cdn_cache_control_is_overlooked_as_a_whole() {
    for invalid in [
        "max-age=60, &&&",
        "max-age=\"60\"",
        "max-age=60.0",
        "max-age =60",
        "max-age= 60",
        "max-age=60;",
        "max-age=60,",
        "MAX-AGE=60",
        "max-age=60, no-store=\"x",
    ] {
        assert!(!cdn(invalid, "no-store"), "{invalid} was obeyed");
        assert!(cdn(invalid, "max-age=60"), "{invalid} hid Cache-Control");
    }
}

#[test]
fn what_is_not_known_in_cdn_cache_control_does_no_harm() {
    assert!(cdn("foo, max-age=60", "no-store"));
    assert!(cdn("max-age=60;a=b, bar=(1 2)", "no-store"));
    assert!(cdn("max-age=0, max-age=60", "no-store"), "of the same key the last counts");
    assert!(!cdn("foo", "no-store"));
}

#[test]
fn integers_in_cdn_cache_control_are_capped() {
    assert!(cdn("max-age=2147483648", "no-store"));
    assert!(cdn("max-age=999999999999999", "no-store"));
    assert!(!cdn("max-age=9999999999999999", "no-store"), "a structured integer has 15 digits at most");
}

#[test]
fn several_lines_of_cdn_cache_control_are_one_field() {
    assert!(is_reused(|| {
        reply(200).with("CDN-Cache-Control", "foo").with("CDN-Cache-Control", "max-age=60").cache("no-store")
    }));
    assert!(!is_reused(|| {
        reply(200)
            .with("CDN-Cache-Control", "max-age=60")
            .with("CDN-Cache-Control", "no-store")
            .cache("max-age=60")
    }));
}

#[test]
fn age_counts_against_a_targeted_lifetime() {
    assert!(!is_reused(|| reply(200).with("CDN-Cache-Control", "max-age=3600").with("Age", "7200")));
}

#[test]
fn sandaracs_own_field_counts_most() {
    assert!(is_reused(|| {
        reply(200)
            .with("Sandarac-Cache-Control", "max-age=60")
            .with("CDN-Cache-Control", "no-store")
            .cache("no-store")
    }));
    assert!(!is_reused(|| {
        reply(200)
            .with("CDN-Cache-Control", "max-age=60")
            .with("Sandarac-Cache-Control", "no-store")
            .cache("max-age=60")
    }));
    assert!(is_reused(|| {
        reply(200)
            .with("Sandarac-Cache-Control", "%%%")
            .with("CDN-Cache-Control", "max-age=60")
            .cache("no-store")
    }));
}

#[test]
fn surrogate_control_counts_before_cache_control() {
    assert!(is_reused(|| reply(200).with("Surrogate-Control", "max-age=60").cache("no-store")));
    assert!(!is_reused(|| reply(200).with("Surrogate-Control", "no-store").cache("max-age=60")));
    assert!(!is_reused(|| {
        reply(200)
            .with("Surrogate-Control", "max-age=60")
            .with("CDN-Cache-Control", "no-store")
            .cache("max-age=60")
    }));
}
