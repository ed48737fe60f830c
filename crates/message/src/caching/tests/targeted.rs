use super::*;

fn cdn(value: &str, rest: &str) -> String {
    format!("CDN-Cache-Control: {value}\n{rest}")
}

#[test]
fn a_valid_targeted_field_replaces_cache_control_and_expires() {
    // RFC 9213 §2.2
    let date = at(0);
    for (response, expected) in [
        (cdn("max-age=3600", ""), true),
        (cdn("max-age=0", &format!("Expires: {}\nDate: {date}", at(10_000))), false),
        (cdn("max-age=3600", &format!("Expires: {}\nDate: {date}", at(-10_000))), true),
        (cdn("max-age=3600", "Expires: 0"), true),
        (cdn("max-age=3600", "Cache-Control: max-age=1"), true),
        (cdn("max-age=1", "Cache-Control: max-age=3600"), false),
        (cdn("max-age=3600", "Cache-Control: no-store"), true),
        (cdn("max-age=3600", "Cache-Control: private"), true),
        (cdn("private", "Cache-Control: max-age=3600"), false),
        (cdn("no-cache", "Cache-Control: max-age=3600"), false),
        (cdn("no-store", "Cache-Control: max-age=3600"), false),
        (cdn("no-store", &format!("Cache-Control: max-age=3600\nExpires: {}", at(10_000))), false),
        (cdn("max-age=0", "Cache-Control: max-age=3600"), false),
        (cdn("max-age=3600", "Age: 7200"), false),
        (cdn("max-age=10000", "Age: 7200"), true),
        (cdn("foobar, max-age=3600", ""), true),
        (cdn("max-age=3600;a=1;b, foo=(1 2);x", ""), true),
        (cdn("max-age=99999999999", ""), true),
        (cdn("max-age=999999999999999", ""), true),
        (cdn("max-age=-1", "Cache-Control: max-age=3600"), false),
        // RFC 9651 §4.2.2: the last of repeated keys counts.
        (cdn("max-age=1, max-age=3600", ""), true),
        (cdn("max-age=x, max-age=3600", ""), true),
        (cdn("max-age=1", "CDN-Cache-Control: max-age=3600"), true),
        (cdn("no-store=?0, max-age=3600", ""), true),
        (cdn("public", "Cache-Control: max-age=3600"), false),
    ] {
        assert_eq!(rfc().reused(&response), expected, "{response}");
    }
}

#[test]
fn an_invalid_targeted_field_is_ignored_whole() {
    for value in [
        "max-age =3600",
        "max-age= 3600",
        "MaX-aGe=3600",
        "max-age=3600,",
        "max-age=3600, !",
        "max-age=3600 no-store",
        "max-age=3600, private=12",
        "max-age=\"3600\"",
        "max-age=3600.0",
        "max-age=abc",
        "max-age=?1",
        "max-age",
        "max-age=(3600)",
        "max-age=9999999999999999",
        "max-age=3600, no-store=1",
        "max-age=3600, stale-if-error=never",
        "max-age=3600, foo=\"unterminated",
        "",
        "   ",
    ] {
        assert!(!rfc().reused(&cdn(value, "Cache-Control: max-age=1")), "{value}");
        assert!(rfc().reused(&cdn(value, "Cache-Control: max-age=3600")), "{value}");
        assert_eq!(rfc().reason(&cdn(value, "Cache-Control: no-store")), Reason::NoStore, "{value}");
    }
}

#[test]
fn the_nearest_target_wins() {
    let all = |own: &str, cdn: &str, surrogate: &str| {
        format!(
            "Cache-Control: max-age=4\nSurrogate-Control: {surrogate}\nCDN-Cache-Control: {cdn}\n\
             Sandarac-Cache-Control: {own}"
        )
    };
    for (own, cdn, surrogate, expected) in [
        ("max-age=1", "max-age=2", "max-age=3", 1),
        ("=", "max-age=2", "max-age=3", 2),
        ("=", "=", "max-age=3", 3),
        ("=", "=", "=", 4),
    ] {
        assert_eq!(rfc().lifetimes(&all(own, cdn, surrogate)).ttl(NOW), expected);
    }
}

#[test]
fn targeted_directives_have_the_meaning_of_cache_control() {
    let lifetimes = rfc().lifetimes(&cdn("max-age=1, stale-while-revalidate=60, stale-if-error=90", ""));
    let none = RequestDirectives::default();
    assert_eq!(lifetimes.reuse(&none, later(60)), Reuse::StaleWhileRevalidate);
    assert_eq!(lifetimes.reuse(&none, later(62)), Reuse::Revalidate);
    assert!(lifetimes.usable_on_error_status(&none, later(80)));
    let strict = rfc().lifetimes(&cdn("max-age=1, must-revalidate, stale-if-error=90", "ETag: \"a\""));
    assert!(!strict.usable_on_error(&none, later(80)));
    let authorized = Exchange { request: "Authorization: FOO", ..rfc() };
    assert_eq!(authorized.reason(&cdn("max-age=60", "Cache-Control: public")), Reason::Authorization);
    assert!(authorized.reused(&cdn("max-age=60, public", "")));
}

#[test]
fn surrogate_control_is_read_as_surrogates_do() {
    for (value, rest, expected) in [
        ("max-age=3600", "", true),
        ("max-age=2147483648", "", true),
        ("max-age=99999999999", "", true),
        ("MaX-aGe=3600", "", true),
        ("foobar, max-age=3600", "", true),
        ("max-age=3600;sandarac", "", true),
        ("max-age=3600; other;sandarac", "", true),
        ("max-age=3600;not-for-you", "", false),
        ("max-age=3600;not-for-you", "Cache-Control: max-age=60", true),
        ("max-age=3600", "Age: 7200", false),
        ("max-age =100", "Cache-Control: max-age=1", false),
        ("max-age= 100", "Cache-Control: max-age=1", false),
        ("max-age=0", "Cache-Control: max-age=3600", false),
        ("max-age=3600", "Expires: 0", true),
        ("max-age=3600", "Cache-Control: max-age=1", true),
        ("max-age=1", "Cache-Control: max-age=3600", false),
        ("no-store", "Cache-Control: max-age=3600", false),
        ("max-age=3600;sandarac", "Cache-Control: no-store", true),
        ("content=\"ESI/1.0\"", "Cache-Control: max-age=3600", true),
        ("content=\"ESI/1.0\", no-store", "Cache-Control: max-age=3600", false),
    ] {
        let response = format!("Surrogate-Control: {value}\n{rest}");
        assert_eq!(rfc().reused(&response), expected, "{response}");
    }
    let extended = rfc().lifetimes("Surrogate-Control: max-age=5+10");
    assert_eq!(extended.reuse(&RequestDirectives::default(), later(14)), Reuse::StaleWhileRevalidate);
    assert_eq!(extended.reuse(&RequestDirectives::default(), later(16)), Reuse::Revalidate);
}
