//! `compress` on a route.

use sandarac_config::explain;
use sandarac_message::codings::Coding;
use sandarac_policy::CompressRule;

use crate::{BASE, load, refused, warnings};

fn route(keys: &str) -> sandarac_policy::Route {
    load(&format!("{BASE}[[route]]\npool = \"app\"\n{keys}\n")).routes.all()[0].clone()
}

fn rule(keys: &str) -> CompressRule {
    *route(keys).compress.expect("a rule")
}

fn complaint(keys: &str) -> String {
    let errors = refused(&format!("{BASE}[[route]]\npool = \"app\"\n{keys}\n"));
    let error = &errors.errors()[0];
    format!("{} ({})", error.message, error.help.as_deref().unwrap_or_default())
}

#[test]
fn it_is_off_unless_a_route_says_so() {
    assert!(route("").compress.is_none());
    assert!(route("compress = false").compress.is_none());
    let usual = rule("compress = true");
    assert_eq!(usual.codings, [Coding::Zstd, Coding::Brotli, Coding::Gzip]);
    assert_eq!((usual.min_size, usual.private), (1024, false));
    let chosen =
        rule("compress = { codings = \"gzip\", min_size = \"2KiB\", types = [\"Text/*\"], private = true }");
    assert_eq!(chosen.codings, [Coding::Gzip]);
    assert_eq!((chosen.min_size, chosen.private), (2048, true));
    assert!(chosen.types.is_some_and(|types| types[0].matches(b"text/plain")));
}

#[test]
fn backends_are_asked_for_one_form_that_serves_all() {
    let asked = |keys: &str| {
        let route = route(keys);
        let rule = route.cache_rule().expect("a cache rule");
        (rule.accept_encoding, rule.policy.vary.ignored.iter().any(|name| **name == *b"accept-encoding"))
    };
    assert_eq!(asked(""), (None, false));
    assert_eq!(asked("compress = true"), (Some("identity"), true));
    assert_eq!(asked("compress = { backend = \"gzip\" }"), (Some("gzip"), true));
    assert_eq!(asked("compress = true\ncache = { raw_accept_encoding = true }"), (None, false));
    assert_eq!(asked("compress = true\ncache = { key_fields = \"Accept-Encoding\" }"), (None, false));
    assert_eq!(asked("compress = true\n[cache]\nprofile = \"rfc\""), (None, false));
}

#[test]
fn mistakes_are_explained() {
    assert_eq!(
        complaint("compress = { codings = [\"gizp\"] }"),
        "\"gizp\" is not \"zstd\", \"br\" or \"gzip\" (did you mean \"gzip\"?)"
    );
    assert_eq!(complaint("compress = { codings = [] }"), "`codings` is empty (compress = false)");
    assert!(complaint("compress = { level = 9 }").starts_with("expected \"fast\", \"normal\" or \"best\""));
    assert!(complaint("compress = { minsize = \"1B\" }").contains("did you mean `min_size`?"));
    assert!(complaint("compress = { types = [\"text html\"] }").contains("is not a media type"));
    let idle = format!(
        "{BASE}[[route]]\nmatch = \"/a\"\nanswer = {{ body = \"x\" }}\ncompress = true\n[[route]]\npool = \"app\"\n"
    );
    assert_eq!(warnings(&idle), ["`compress` has no effect on a route without a `pool`"]);
}

/// Regression: the explanation listed codings that no response of the route has.
#[test]
fn what_has_no_effect_is_not_explained() {
    let explained = |route: &str| {
        let text = format!(
            "{BASE}[[route]]\nmatch = \"/a\"\n{route}\ncompress = true\nfragments = true\n\n[[route]]\npool = \"app\"\n"
        );
        explain(&load(&text))
    };
    for route in ["files = \"/srv/www\"", "answer = { body = \"x\" }"] {
        let told = explained(route);
        assert!(!told.contains("gzip") && !told.contains("fragments"), "{told}");
    }
    for route in ["pool = \"app\"", "files = \"/srv/www\"\ntry = [\"{path}\", \"pool:app\"]"] {
        let told = explained(route);
        assert!(told.contains("gzip") && told.contains("assembled from fragments"), "{told}");
    }
}
