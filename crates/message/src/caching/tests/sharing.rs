//! Requests with fields that may identify somebody, and lifetimes that nobody stated.

use super::*;

#[test]
fn a_field_that_may_identify_somebody_keeps_its_request_apart() {
    let mut policy = Policy::safe();
    assert_eq!(uses("GET", "X-API-Key: a", &policy), StoreUse::Apart(BypassReason::UnknownField));
    assert_eq!(uses("GET", "HX-Request: true", &policy), StoreUse::Apart(BypassReason::FormField));
    assert_eq!(uses("GET", "X-API-Key: a\nCookie: a=b", &policy), StoreUse::Bypass(BypassReason::Cookie));
    assert_eq!(uses("GET", "Accept: a/b\nSec-Fetch-Mode: cors\nCF-IPCountry: DE", &policy), StoreUse::Shared);
    assert_eq!(uses("GET", "X-API-Key: a\nHX-Request: true", &Policy::rfc()), StoreUse::Shared);
    policy.harmless_fields = vec![crate::glob::Glob::new("x-api-*")];
    policy.bypass_fields = vec![crate::glob::Glob::new("origin")];
    assert_eq!(uses("GET", "X-API-KEY: a", &policy), StoreUse::Shared);
    assert_eq!(uses("GET", "Origin: a", &policy), StoreUse::Bypass(BypassReason::BypassField));
}

#[test]
fn a_response_to_such_a_request_is_stored_only_if_it_is_for_all() {
    let key = || Exchange { request: "Host: a\nX-API-Key: a", ..safe() };
    for response in [
        "Cache-Control: max-age=60",
        "Cache-Control: max-age=60, must-revalidate",
        "Content-Type: text/html",
        "Content-Type: text/css",
        "Content-Type: text/html\nExpires: Sun, 28 Nov 2027 00:00:00 GMT",
        // A user's own picture looks like any other.
        "Content-Type: image/png\nCache-Control: max-age=60",
        "Cache-Control: public, max-age=0\nETag: \"a\"",
        "Cache-Control: s-maxage=0\nETag: \"a\"",
    ] {
        assert_eq!(key().reason(response), Reason::UnknownField, "{response}");
    }
    for response in [
        "Cache-Control: public, max-age=60",
        "Cache-Control: s-maxage=60",
        "CDN-Cache-Control: max-age=60",
        "Cache-Control: max-age=60\nVary: X-Api-Key",
    ] {
        assert!(key().reused(response), "{response}");
    }
    assert!(key().lifetimes("Cache-Control: public, max-age=60").is_for_all());
    assert!(!key().lifetimes("Cache-Control: max-age=60\nVary: x-api-key").is_for_all());
    assert!(!safe().lifetimes("Cache-Control: max-age=60").is_for_all());
    assert!(safe().lifetimes("Content-Type: image/png\nCache-Control: max-age=60").is_for_all());
    assert!(!safe().lifetimes("Content-Type: image/png\nCache-Control: max-age=0\nETag: \"a\"").is_for_all());
    let error = Exchange { status: 404, ..key() };
    assert_eq!(error.reason("Cache-Control: public, max-age=60"), Reason::UnknownField);
    let mut ruled = key();
    ruled.policy.forced_ttl = Some(Duration::from_secs(60));
    assert!(ruled.lifetimes("").is_for_all());
    let form = Exchange { request: "Host: a\nRSC: 1", ..safe() };
    assert_eq!(form.reason("Cache-Control: public, max-age=60"), Reason::FormField);
    assert!(form.reused("Cache-Control: max-age=60\nVary: RSC"));
    let rfc = Exchange { request: "Host: a\nX-API-Key: a", ..rfc() };
    assert!(rfc.reused("Cache-Control: max-age=60"));
}

/// Regression: a browser that fetched a page ahead put an empty one in front of everybody.
#[test]
fn a_refusal_to_fetch_ahead_is_not_the_page() {
    let ahead = |status| Exchange { request: "Host: a\nSec-Purpose: prefetch;prerender", status, ..safe() };
    assert_eq!(ahead(204).reason("Server: x"), Reason::FormField);
    assert!(ahead(200).reused("Content-Type: text/html"));
    assert!(Exchange { status: 204, ..safe() }.reused("Server: x"));
}

#[test]
fn what_nobody_gave_a_lifetime_is_known_as_such() {
    assert!(safe().lifetimes("Content-Type: text/html").is_guessed());
    assert!(!safe().lifetimes("Content-Type: text/html\nCache-Control: max-age=60").is_guessed());
    let mut ruled = safe();
    ruled.policy.ttl_by_status = vec![(200, Duration::from_secs(60))];
    assert!(!ruled.lifetimes("Content-Type: application/json").is_guessed());
}

#[test]
fn validators_alone_store_pages_and_no_data() {
    let mut page = safe();
    page.policy.default_ttl = Duration::ZERO;
    assert!(!page.reused("Content-Type: text/html\nETag: \"a\""));
    assert!(matches!(page.judge("Content-Type: text/html\nETag: \"a\""), Storability::Store(_)));
    assert_eq!(safe().reason("Content-Type: application/json\nETag: \"a\""), Reason::NoFreshness);
    for directive in ["must-revalidate", "no-cache"] {
        let response = format!("Content-Type: application/json\nETag: \"a\"\nCache-Control: {directive}");
        assert_eq!(safe().lifetimes(&response).reuse(&RequestDirectives::default(), NOW), Reuse::Revalidate);
    }
    // Without a validator, a page that only must not be stale has the lifetime of other pages.
    assert!(safe().reused("Content-Type: text/html\nCache-Control: must-revalidate"));
}

#[test]
fn a_stream_is_no_response_to_keep() {
    for content_type in ["text/event-stream", "multipart/x-mixed-replace;boundary=x", "application/grpc"] {
        let response = format!("Content-Type: {content_type}\nCache-Control: public, max-age=60");
        assert_eq!(safe().reason(&response), Reason::Stream);
        assert_eq!(rfc().reason(&response), Reason::Stream);
    }
}
