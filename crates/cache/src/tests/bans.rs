//! Bans: expressions, the objects that they match, and their end.

use super::*;
use crate::Expression;

fn ban(store: &Store, expression: &str) {
    store.ban(expression.parse().unwrap(), START);
}

#[test]
fn an_expression_says_what_it_meets() {
    let store = store(1 << 20);
    let head = [("Content-Type", "image/png"), ("X-A", "1"), ("X-A", "2")];
    let object = response("/x/y?z=1").head(404, &head).put(&store, b"");
    for (expression, meets) in [
        (r#"host == "a.example""#, true),
        (r#"host == "A.Example""#, true),
        (r#"host == "b.example""#, false),
        (r#"path ~ "^/x/""#, true),
        (r#"path !~ "^/x/""#, false),
        (r#"path == "/x/y?z=1""#, true),
        (r#"path ~ "y\?z=\d$""#, true),
        ("status == 404", true),
        ("status != 404", false),
        ("status >= 400 && status < 500", true),
        ("status<400||status>499", false),
        (r#"field.content-type ~ "^image/""#, true),
        (r#"field.X-A == "2""#, true),
        (r#"field.X-A != "2""#, false),
        (r#"field.X-B == "2""#, false),
        (r#"field.X-B != "2""#, true),
        (r#"field.X-B ~ ".*""#, false),
        (r#"status == 200 || host == "a.example" && path ~ "nowhere""#, false),
        (r#"(status == 404 || host == "b.example") && path ~ "x""#, true),
        (r#"!(status == 404) || !status == 200"#, true),
        (r#"path == "a\"b\\c""#, false),
    ] {
        assert_eq!(Expression::parse(expression).unwrap().matches(&object), meets, "{expression}");
    }
}

#[test]
fn what_is_wrong_with_an_expression_is_said_with_place_and_remedy() {
    let nested = "!".repeat(40) + "status == 200";
    for (expression, error) in [
        ("", "column 1: a test is missing; write host, path, status or field.NAME"),
        ("hots == \"a\"", "column 1: `hots` cannot be tested; write host, path, status or field.NAME"),
        ("host = \"a\"", "column 6: no comparison of text; write ==, !=, ~ or !~"),
        ("host == a", "column 9: the text is not in quotes; write it as \"text\""),
        ("host == \"a", "column 9: the quotes are not closed; write `\"` after the text"),
        ("host < \"a\"", "column 6: `<` does not compare text; write ==, !=, ~ or !~"),
        ("status ~ 200", "column 8: `~` does not compare a status; write ==, !=, <, <=, > or >="),
        ("status == ok", "column 11: no status code; write a number from 100 to 599"),
        ("status == 99", "column 11: no status code; write a number from 100 to 599"),
        ("(status == 200", "column 15: a parenthesis is not closed; write `)`"),
        ("status == 200 host", "column 15: `host` after the end of a test; join tests with && or ||"),
        ("status == 200 &&", "column 17: a test is missing; write host, path, status or field.NAME"),
        ("field. == \"a\"", "column 1: no field name after `field.`; write for instance field.Content-Type"),
        ("&& x", "column 1: `&&` where a test should begin; write host, path, status or field.NAME"),
        (
            "path ~ \"(\"",
            "column 8: invalid regular expression: unclosed group; write \\\\ before characters meant literally",
        ),
        (&nested, "column 33: nested deeper than 32; split it into several bans"),
    ] {
        assert_eq!(Expression::parse(expression).unwrap_err().to_string(), error, "{expression}");
    }
    assert!(Expression::parse(&"(".repeat(5000)).is_err());
}

#[test]
fn a_ban_counts_against_what_is_there_and_not_against_what_comes() {
    let store = store(1 << 20);
    response("/a").put(&store, b"old");
    response("/b").put(&store, b"old");
    ban(&store, r#"path == "/a""#);
    assert_eq!(look(&store, &get("/b"), START), "hit old");
    assert_eq!(look(&store, &get("/a"), START), "miss");
    assert_eq!(store.stats().removed(crate::Removal::Banned), 1);
    response("/a").put(&store, b"new");
    assert_eq!(look(&store, &get("/a"), START), "hit new");
}

#[test]
fn a_ban_ends_when_all_have_been_tested() {
    let store = store(8 << 20);
    for n in 0..3000 {
        response(&format!("/{n}")).put(&store, b"x");
    }
    ban(&store, r#"path ~ "7$""#);
    ban(&store, "status == 500");
    assert_eq!(store.stats().bans, 2);
    let mut removed = 0;
    loop {
        let swept = store.sweep(100, START);
        assert!(swept.examined < 200);
        removed += swept.removed;
        if swept.round {
            break;
        }
    }
    assert_eq!(removed, 300);
    assert_eq!(store.stats().objects, 2700);
    assert_eq!(store.stats().bans, 0);
    assert_eq!(look(&store, &get("/7"), START), "miss");
    assert_eq!(look(&store, &get("/8"), START), "hit x");
}

#[test]
fn the_same_ban_again_takes_the_place_of_the_first() {
    let store = store(1 << 20);
    for _ in 0..10 {
        ban(&store, "status == 404");
    }
    assert_eq!(store.bans(), ["status == 404"]);
}

#[test]
fn bans_do_not_accumulate() {
    let store = store(1 << 20);
    response("/").put(&store, b"one");
    for n in 0..3000 {
        ban(&store, &format!(r#"path == "/{n}""#));
        assert!(store.stats().bans <= 1024);
    }
    assert_eq!(look(&store, &get("/"), START), "hit one");
}

#[test]
fn a_ban_made_while_a_round_runs_waits_for_the_next() {
    let store = store(8 << 20);
    for n in 0..1000 {
        response(&format!("/{n}")).put(&store, b"x");
    }
    assert!(!store.sweep(100, START).round);
    ban(&store, "status == 200");
    while !store.sweep(100, START).round {}
    assert_eq!(store.stats().bans, 1);
    while !store.sweep(100, START).round {}
    assert_eq!(store.stats().bans, 0);
    assert_eq!(store.stats().objects, 0);
}

#[test]
fn the_sweep_frees_what_is_past_every_use() {
    let store = store(8 << 20);
    for n in 0..1000 {
        response(&format!("/{n}")).lifetimes(START, n, 0, 0).put(&store, b"x");
    }
    let round = |now| {
        let mut removed = 0;
        loop {
            let swept = store.sweep(50, now);
            removed += swept.removed;
            if swept.round {
                return removed;
            }
        }
    };
    assert_eq!(round(at(99)), 100);
    assert_eq!(round(at(499)), 400);
    assert_eq!(store.stats().objects, 500);
    assert_eq!(store.stats().removed(crate::Removal::Expired), 500);
}

#[test]
fn a_fetch_that_outlived_a_ban_is_taken_to_be_met_by_it() {
    let store = store(1 << 20);
    let leader = flight(get("/").lookup(&store, START));
    ban(&store, r#"path == "/elsewhere""#);
    while !store.sweep(1000, START).round {}
    while !store.sweep(1000, START).round {}
    assert_eq!(store.stats().bans, 0);
    leader.store_complete(response("/").new_object(), &[b"one"], None);
    assert_eq!(look(&store, &get("/"), START), "miss");
    assert_eq!(store.stats().unstored, 1);
}

/// Regression: Magento sends the tags of many products in one pattern, and above 4 KiB they stayed.
#[test]
fn a_pattern_of_16_kib_is_one_ban() {
    let store = store(1 << 20);
    let tags: Vec<String> = (0..).map(|n| format!("((^|,)cat_p_{n}(,|$))")).take(600).collect();
    let pattern = tags.join("|");
    assert!(pattern.len() > 12_000 && pattern.len() < 16_384, "{}", pattern.len());
    for (n, meets) in [(0, true), (599, true), (600, false)] {
        let page = response("/")
            .head(200, &[("X-Magento-Tags", &format!("store,cat_p_{n},cat_c_1"))])
            .put(&store, b"");
        let expression: Expression = format!("field.X-Magento-Tags ~ \"{pattern}\"").parse().unwrap();
        assert_eq!(expression.matches(&page), meets, "{n}");
    }
    let backslashes = "\\".repeat(2 * 16_384);
    assert!(Expression::parse(&format!("field.X-Magento-Tags ~ \"{backslashes}\"")).is_ok());
}
