//! Tests of Vary.

use proptest::prelude::*;

use super::*;
use crate::FieldsBuf;
use crate::written::fields;

fn spec(text: &str) -> VarySpec {
    VarySpec::of(fields(text).view(), &VaryRule::default())
}

#[test]
fn names_are_canonical_and_star_wins() {
    let names = |names: &[&str]| VarySpec::Names(names.iter().map(|name| name.as_bytes().into()).collect());
    for (text, expected) in [
        ("A: b", VarySpec::None),
        ("Vary:", VarySpec::None),
        ("Vary: ,", VarySpec::None),
        ("Vary: Foo", names(&["foo"])),
        ("Vary: foo, Bar,FOO\nVary: baz", names(&["bar", "baz", "foo"])),
        ("Vary: *", VarySpec::Star),
        ("Vary: *, *", VarySpec::Star),
        ("Vary: *\nVary: *", VarySpec::Star),
        ("Vary: , *", VarySpec::Star),
        ("Vary:\nVary: *", VarySpec::Star),
        ("Vary: *, Foo", VarySpec::Star),
        ("Vary: Foo, *", VarySpec::Star),
        ("Vary: Foo Bar", VarySpec::Star),
        ("Vary: \"Foo\"", VarySpec::Star),
    ] {
        assert_eq!(spec(text), expected, "{text}");
    }
    let ignored = VaryRule { ignored: vec![Box::from(&b"User-Agent"[..])], ..VaryRule::default() };
    assert_eq!(VarySpec::of(fields("Vary: user-agent").view(), &ignored), VarySpec::None);
    assert_eq!(VarySpec::of(fields("Vary: USER-AGENT, a").view(), &ignored), names(&["a"]));
}

/// Whether a response to the first request with this Vary answers the second.
fn answers(vary: &str, first: &str, second: &str) -> bool {
    answers_by(&spec(&format!("Vary: {vary}")), first, second)
}

fn answers_by(spec: &VarySpec, first: &str, second: &str) -> bool {
    let (first, second) = (fields(first), fields(second));
    let key = spec.key(first.view());
    let matches = spec.matches(second.view(), &key);
    assert_eq!(matches, key.matches(second.view()));
    assert_eq!(
        matches,
        *spec != VarySpec::Star && key == spec.key(second.view()),
        "keys agree with matching"
    );
    matches
}

#[test]
fn requests_match_on_every_selecting_field() {
    for (vary, first, second, expected) in [
        ("Foo", "Foo: 1", "Foo: 1", true),
        ("Foo", "Foo: 1", "foo: 1", true),
        ("Foo", "Foo: 1", "Foo: 2", false),
        ("Foo", "Foo: 1", "A: 1", false),
        ("Foo", "A: 1", "Foo: 1", false),
        ("Foo", "A: 1", "A: 2", true),
        ("Foo", "Foo:", "A: 1", false),
        ("Foo", "Foo: 1", "Foo: 11", false),
        ("Foo", "Foo: 11", "Foo: 1", false),
        ("foo", "FOO: 1", "Foo: 1", true),
        ("Foo, Bar", "Foo: 1\nBar: a", "Bar: a\nFoo: 1", true),
        ("Foo, Bar", "Foo: 1\nBar: a", "Foo: 1\nBar: b", false),
        ("Foo, Bar, Baz", "Foo: 1\nBaz: 789", "Foo: 1\nBaz: 789", true),
        ("Foo, Bar, Baz", "Foo: 1\nBar: abc4\nBaz: 789", "Foo: 1\nBar: abc\nBaz: 789", false),
        ("*", "Foo: 1", "Foo: 1", false),
        // A value cannot pretend to be another field.
        ("A, B", "A: 1", "A: 1\\nb:2", false),
    ] {
        assert_eq!(answers(vary, first, second), expected, "{vary}: {first} / {second}");
    }
}

#[test]
fn unknown_fields_are_compared_with_white_space_normalised() {
    for (first, second, expected) in [
        ("Foo: 1, 2", "Foo: 1\nFoo: 2", true),
        ("Foo: 1,2", "Foo: 1 , \t2", true),
        ("Foo: a  b", "Foo: a b", true),
        ("Foo: ab", "Foo: a b", false),
        ("Foo: 1, 2", "Foo: 2, 1", false),
        ("Foo: A", "Foo: a", false),
        ("Foo: 1,,2", "Foo: 1,2", false),
        ("Foo: \"a, b\"", "Foo: \"a,b\"", false),
        ("Foo: \"a\\\" , b\"", "Foo: \"a\\\",b\"", false),
        ("Foo: \"a , b", "Foo: \"a,b", false),
    ] {
        assert_eq!(answers("Foo", first, second), expected, "{first} / {second}");
    }
}

#[test]
fn languages_match_in_any_case_but_not_in_any_order() {
    for (first, second, expected) in [
        ("en, de", "eN, De", true),
        ("en, de", "en ,   de", true),
        ("en, de", "de, en", false),
        ("en;q=1.0, de;q=0.50", "en,de; q=0.5", true),
        ("en;q=0", "en;q=0.000", true),
        ("en", "en;q=0.9", false),
        ("en", "fr", false),
        ("*;q=0.1", "*;q=0.100", true),
        ("en;level=1", "en;level=1", true),
        ("en;q=2", "en;q=2", true),
        ("en;q=2", "en", false),
    ] {
        let line = |value| format!("Accept-Language: {value}");
        assert_eq!(answers("Accept-Language", &line(first), &line(second)), expected, "{first} / {second}");
    }
}

#[test]
fn requests_that_accept_the_same_common_codings_match() {
    let line = |value: &str| format!("Accept-Encoding: {value}");
    for (first, second, expected) in [
        ("gzip", "gzip, deflate", true),
        ("gzip, deflate, br, zstd", "zstd;q=0.5, br, gzip", true),
        ("gzip", "gzip, br", false),
        ("gzip", "gzip;q=0", false),
        ("gzip", "gzip, identity;q=0", false),
        ("gzip;q=x", "gzip;q=x", true),
        ("gzip;q=x", "gzip", false),
    ] {
        assert_eq!(answers("Accept-Encoding", &line(first), &line(second)), expected, "{first} / {second}");
    }
    for none in ["", "identity", "deflate"] {
        assert!(answers("Accept-Encoding", &line(none), "A: 1"), "{none}");
        assert!(answers("Accept-Encoding", "A: 1", &line(none)), "{none}");
        assert!(!answers("Accept-Encoding", "A: 1", &line("br")));
    }
}

#[test]
fn raw_codings_match_in_any_order() {
    let rule = VaryRule { raw_codings: true, ..VaryRule::default() };
    let spec = VarySpec::of(fields("Vary: accept-encoding").view(), &rule);
    for (first, second, expected) in [
        ("gzip, deflate, br", "br,GZIP , deflate", true),
        ("gzip, br", "x-gzip, br", true),
        ("gzip", "gzip, deflate", false),
        ("gzip", "gzip;q=0.5", false),
        ("gzip;q=1, br;q=0.8", "br;q=0.80, gzip", true),
        ("gzip", "gzip, br", false),
        ("gzip", "gzip;q=0", false),
        ("gzip", "", false),
        ("identity, *;q=0", "*;q=0.0, identity", true),
        ("gzip;q=x", "gzip;q=x", true),
        ("gzip;q=x", "gzip", false),
    ] {
        let line = |value| format!("Accept-Encoding: {value}");
        assert_eq!(answers_by(&spec, &line(first), &line(second)), expected, "{first} / {second}");
    }
    let many = (0..20).map(|n| format!("c{n}")).collect::<Vec<_>>().join(",");
    let line = format!("Accept-Encoding: {many}");
    assert!(answers_by(&spec, &line, &line), "too many to sort are compared as they are");
}

#[test]
fn keys_survive_storage() {
    let spec = spec("Vary: Accept-Encoding, X");
    let request = fields("Accept-Encoding: br\nX: 1");
    let key = VaryKey::from_bytes(spec.key(request.view()).as_bytes());
    assert_eq!(key.as_bytes(), b"accept-encoding:br\nx:1\n");
    assert!(key.matches(request.view()));
    assert!(VarySpec::None.key(request.view()).is_empty());
}

proptest! {
    #[test]
    fn a_request_matches_its_own_key(
        lines in proptest::collection::vec(("accept-(encoding|language)|x", "[ -~]{0,30}"), 0..5),
    ) {
        let request: FieldsBuf = lines.iter().map(|(name, value)| (name, value.trim())).collect();
        let spec = spec("Vary: accept-encoding, x\nVary: accept-language");
        prop_assert!(spec.key(request.view()).matches(request.view()));
    }

    #[test]
    fn a_key_matches_the_requests_that_make_the_same_key(
        name in "accept-(encoding|language)|x",
        lines in proptest::collection::vec("[ a-z0-9=;.,*\"\\\\\t]{0,20}", 1..4),
        other in "[ a-z=;.,\"]{0,8}",
    ) {
        let spec = spec(&format!("Vary: {name}"));
        let request: FieldsBuf = lines.iter().map(|line| (&*name, line.trim())).collect();
        let key = spec.key(request.view());
        let value = key.as_bytes()[name.len() + 1..].strip_suffix(&[END]).unwrap_or_default();
        let value = std::str::from_utf8(value).unwrap();
        for value in [value, &*other, &lines[0]] {
            let request: FieldsBuf = [(&*name, value.trim())].into_iter().collect();
            prop_assert_eq!(key.matches(request.view()), key == spec.key(request.view()));
        }
    }

    #[test]
    fn no_stored_bytes_panic(bytes: Vec<u8>, value in "[ -~]{0,30}") {
        let request: FieldsBuf = [("x", value.trim())].into_iter().collect();
        VaryKey::from_bytes(bytes).matches(request.view());
    }
}

#[test]
fn names_from_storage_have_the_form_of_those_read_from_a_response() {
    let of_names = |names: &[&str]| VarySpec::of_names(names.iter().map(|n| n.as_bytes().into()).collect());
    for refused in [&[][..], &["b", "a"], &["a", "a"], &["A"], &["a b"], &[""], &["*:"]] {
        assert_eq!(of_names(refused), None, "{refused:?}");
    }
    let raw = VaryRule { raw_codings: true, ..VaryRule::default() };
    for rule in [raw, VaryRule::default()] {
        let spec = VarySpec::of(fields("Vary: Cookie, accept-encoding, X-A").view(), &rule);
        let VarySpec::Names(names) = &spec else { panic!("{spec:?}") };
        assert_eq!(VarySpec::of_names(names.clone()), Some(spec));
    }
}

#[test]
fn a_star_key_is_known_as_one() {
    let request = fields("A: 1");
    assert!(VarySpec::Star.key(request.view()).is_star());
    assert!(VaryKey::from_bytes(&b"no key"[..]).is_star());
    assert!(!spec("Vary: A").key(request.view()).is_star());
    assert!(!VarySpec::None.key(request.view()).is_star());
}
