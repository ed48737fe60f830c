//! `sandarac shared` and `purge --verify`: what the tier has for a URL, and why it is used or not.

use sandarac_test_support::{Sandarac, get, reply};

use super::{Fleet, has_entries};
use crate::numbered;

const PAGE: &str = "http://www.example/page";

/// The lines of a command that begin with a server.
fn servers(node: &Sandarac, command: &[&str]) -> Vec<String> {
    let text = node.admin(command).success().stdout;
    text.lines().filter(|line| line.contains("http")).map(str::to_owned).collect()
}

#[test]
fn an_entry_is_shown_with_its_key_its_times_and_why_it_is_used_or_not() {
    let fleet =
        Fleet::new(numbered(|_| reply(200).cache("max-age=600").with("Surrogate-Key", "news").body("")));
    let nothing = servers(&fleet.second, &["shared", "get", PAGE]);
    assert!(nothing.iter().all(|line| line.contains("there is nothing")), "{nothing:?}");
    fleet.first.get("/page").expect(200);
    has_entries(&fleet.server, 1);

    let shown = servers(&fleet.second, &["shared", "get", PAGE]);
    let entry =
        shown.iter().find(|line| line.contains("representation")).unwrap_or_else(|| panic!("{shown:?}"));
    assert!(entry.contains("status 200") && entry.ends_with("; used"), "{entry}");
    let places = servers(&fleet.second, &["shared", "where", PAGE]);
    assert!(places.iter().any(|place| entry.starts_with(place.as_str())), "{places:?}");

    // A request would still get it.
    let verified = fleet.first.admin(&["purge", "--verify", PAGE]);
    assert!(verified.failure().stderr.contains("a request would still get it"));
    fleet.first.admin(&["purge", PAGE]).success();
    let verified = fleet.first.admin(&["purge", "--verify", PAGE]).success().stdout;
    assert!(verified.contains("0 objects") && verified.contains("not used: purged"), "{verified}");
}

/// Regression: it was said that there is nothing.
#[test]
fn a_page_with_variants_names_the_fields_that_select_one() {
    let fleet = Fleet::new(numbered(|_| {
        reply(200).cache("max-age=600").with("Vary", "Sec-CH-Kind, Sec-CH-Size").body("")
    }));
    fleet.first.exchange(&get("/page").with("Sec-CH-Kind", "a").with("Sec-CH-Size", "b")).expect(200);
    has_entries(&fleet.server, 2);
    let shown = |fields: &[&str]| {
        let mut command = vec!["shared", "get", PAGE];
        fields.iter().for_each(|field| command.extend(["-H", field]));
        servers(&fleet.second, &command).remove(0)
    };
    let line = shown(&[]);
    assert!(
        line.contains("varies on sec-ch-kind, sec-ch-size")
            && line.contains("-H 'sec-ch-kind: …' -H 'sec-ch-size: …'"),
        "{line}"
    );
    let line = shown(&["Sec-CH-Kind: a"]);
    assert!(line.contains("give -H 'sec-ch-size: …'"), "{line}");
    let line = shown(&["Sec-CH-Kind: a", "Sec-CH-Size: c"]);
    assert!(line.contains("no variant for these values"), "{line}");
    let line = shown(&["Sec-CH-Kind: a", "Sec-CH-Size: b"]);
    assert!(line.ends_with("; used"), "{line}");
}

#[test]
fn an_entry_that_is_deleted_is_fetched_again() {
    let fleet = Fleet::new(numbered(|_| reply(200).cache("max-age=600").body("")));
    fleet.load("/page");
    fleet.first.admin(&["shared", "delete", PAGE]).success();
    let shown = servers(&fleet.first, &["shared", "get", PAGE]);
    assert!(shown.iter().all(|line| line.contains("tombstone")), "{shown:?}");
    assert_eq!(fleet.follows("/page", "1"), "2");
}

#[test]
fn a_url_that_is_none_and_a_node_without_a_tier_are_named() {
    let fleet = Fleet::new(numbered(|_| reply(200).body("")));
    let wrong = fleet.first.admin(&["shared", "get", "/page"]).failure();
    assert!(wrong.stderr.contains("is not an absolute URL"), "{}", wrong.stderr);
    let wrong = fleet.first.admin(&["shared", "get", "-H", "de", PAGE]).failure();
    assert!(wrong.stderr.contains("'Accept-Language: de'"), "{}", wrong.stderr);
}
