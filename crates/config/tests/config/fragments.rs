//! `fragments` on a route.

use sandarac_policy::FragmentRule;

use sandarac_config::explain;

use crate::{BASE, load, refused, warnings};

fn route(keys: &str) -> sandarac_policy::Route {
    load(&format!("{BASE}[[route]]\npool = \"app\"\n{keys}\n")).routes.all()[0].clone()
}

fn complaint(keys: &str) -> String {
    let errors = refused(&format!("{BASE}[[route]]\npool = \"app\"\n{keys}\n"));
    let error = &errors.errors()[0];
    format!("{} ({})", error.message, error.help.as_deref().unwrap_or_default())
}

#[test]
fn it_is_off_unless_a_route_says_so() {
    assert_eq!(route("").fragments, None);
    assert_eq!(route("fragments = false").fragments, None);
    assert_eq!(route("fragments = true").fragments, Some(FragmentRule::Markup));
    assert_eq!(route("fragments = \"announced\"").fragments, Some(FragmentRule::Announced));
}

#[test]
fn backends_are_asked_for_bodies_without_a_coding() {
    let asked = |keys: &str| {
        let route = route(keys);
        let rule = route.cache_rule().expect("a cache rule");
        let ignored = rule.policy.vary.ignored.iter().filter(|name| ***name == *b"accept-encoding").count();
        (rule.accept_encoding, ignored)
    };
    assert_eq!(asked("fragments = false"), (None, 0));
    assert_eq!(asked("fragments = true"), (Some("identity"), 1));
    assert_eq!(asked("fragments = true\ncompress = true"), (Some("identity"), 1));
    assert_eq!(asked("fragments = true\n[cache]\nprofile = \"rfc\""), (Some("identity"), 1));
}

#[test]
fn mistakes_are_explained() {
    let expected = "expected true or false, or \"announced\", found a string";
    assert_eq!(complaint("fragments = \"anounced\""), format!("{expected} (did you mean \"announced\"?)"));
    assert_eq!(complaint("fragments = \"true\""), format!("{expected} (without quotes: true)"));
    assert_eq!(
        complaint("fragments = true\ncompress = { backend = \"gzip\" }"),
        "backends are asked for gzip, in which no fragments can be found (backend = \"plain\")"
    );
    let idle = format!(
        "{BASE}[[route]]\nmatch = \"/a\"\nanswer = {{ body = \"x\" }}\nfragments = true\n[[route]]\npool = \"app\"\n"
    );
    assert_eq!(warnings(&idle), ["`fragments` has no effect on a route without a `pool`"]);
}

#[test]
fn check_explains_it() {
    let explained = explain(&load(&format!("{BASE}[[route]]\npool = \"app\"\nfragments = true\n")));
    assert!(explained.contains("HTML and XML assembled from fragments"), "{explained}");
}
