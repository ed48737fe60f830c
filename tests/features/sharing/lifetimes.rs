//! Responses that are stored although nobody said for how long, and those that never are.

use sandarac_test_support::{Origin, Reply, Request, get, reply};

use super::with;
use crate::{before, numbered, sandarac, site};

fn typed(content_type: &str) -> Reply {
    reply(200).with("Content-Type", content_type)
}

#[test]
fn pages_and_assets_have_a_lifetime_by_default_and_data_has_none() {
    let origin = Origin::new(numbered(|request| typed(request.target.trim_start_matches('/'))));
    let proxy = sandarac().before(&origin).start();
    let is_shared = |content_type: &str| {
        let ask = || proxy.get(&format!("/{content_type}")).text();
        ask() == ask()
    };
    for content_type in [
        "text/html",
        "TEXT/HTML;charset=utf-8",
        "application/xhtml+xml",
        "text/css",
        "text/javascript",
        "application/javascript",
        "image/svg+xml",
        "font/woff2",
        "application/font-woff",
        "video/mp4",
        "application/pdf",
        "application/rss+xml",
    ] {
        assert!(is_shared(content_type), "{content_type}");
    }
    for content_type in [
        "application/json",
        "text/plain",
        "text/xml",
        "application/ld+json",
        "application/octet-stream",
        "text/html-sandboxed",
        "nonsense",
    ] {
        assert!(!is_shared(content_type), "{content_type}");
    }
}

#[test]
fn without_a_media_type_only_some_statuses_have_a_lifetime_by_default() {
    let origin = Origin::new(numbered(|request| {
        let status = request.path()[1..].parse().expect("a status");
        if status == 204 { reply(status) } else { reply(status).with("Location", "/x") }
    }));
    let proxy = sandarac().before(&origin).start();
    for (status, is_stored) in [
        (200, false),
        (203, false),
        (204, true),
        (301, true),
        (308, true),
        (302, false),
        (404, true),
        (410, true),
    ] {
        let ask = || proxy.get(&format!("/{status}")).is_hit();
        ask();
        assert_eq!(ask(), is_stored, "{status}");
    }
}

/// Regression: a list in JSON was still old two minutes after a PUT, and a long poll became a busy loop.
#[test]
fn data_that_says_nothing_is_fetched_each_time_also_with_a_validator() {
    for fields in [&[][..], &[("ETag", "\"a\"")], &[("Last-Modified", "Sat, 28 Nov 2026 00:00:00 GMT")]] {
        let origin = Origin::new(numbered(move |_| {
            fields.iter().fold(typed("application/json"), |reply, (name, value)| reply.with(name, value))
        }));
        let proxy = sandarac().before(&origin).start();
        assert_eq!([proxy.get("/").text(), proxy.get("/").text()], ["1", "2"], "{fields:?}");
        assert_eq!(origin.last().field("if-none-match"), None);
    }
}

#[test]
fn data_that_says_something_is_stored_as_it_says() {
    for (directives, stored) in
        [("public", true), ("max-age=60", true), ("s-maxage=60", true), ("no-transform", false)]
    {
        let origin = Origin::new(numbered(move |_| typed("application/json").cache(directives)));
        let proxy = sandarac().before(&origin).start();
        proxy.get("/");
        assert_eq!(proxy.get("/").is_hit(), stored, "{directives}");
    }
}

/// CouchDB sends its documents so.
#[test]
fn must_revalidate_or_no_cache_with_a_validator_is_validated_at_each_use() {
    for directives in ["must-revalidate", "no-cache"] {
        for content_type in ["application/json", "text/html"] {
            let (proxy, origin) = before(move |request| match request.field("if-none-match") {
                Some("\"1\"") => reply(304).with("ETag", "\"1\"").cache(directives),
                _ => typed(content_type).with("ETag", "\"1\"").cache(directives).body("document"),
            });
            for asked in 1..4 {
                assert_eq!(proxy.get("/").text(), "document");
                assert_eq!(origin.count(), asked, "{directives} {content_type}");
            }
            assert_eq!(origin.last().field("if-none-match"), Some("\"1\""));
        }
    }
}

#[test]
fn the_types_can_be_set_and_check_prints_them() {
    let origin = Origin::new(numbered(|request| match request.path() {
        "/json" => typed("application/json"),
        _ => typed("text/html"),
    }));
    let rule = "cache = { default_ttl_types = [\"application/*\"], default_ttl = \"1m\" }";
    let config = site(&origin.url(), rule, "");
    let proxy = sandarac().config(config).start();
    assert_eq!([proxy.get("/json").text(), proxy.get("/json").text()], ["1", "1"]);
    assert_eq!([proxy.get("/html").text(), proxy.get("/html").text()], ["2", "3"]);
}

#[test]
fn streams_are_never_stored() {
    for content_type in [
        "text/event-stream",
        "Text/Event-Stream; charset=utf-8",
        "multipart/x-mixed-replace; boundary=a",
        "application/grpc+proto",
    ] {
        let origin = Origin::new(numbered(move |_| typed(content_type).cache("public, max-age=60")));
        let proxy = sandarac().before(&origin).start();
        let first = proxy.get("/");
        assert_eq!(first.cache_parameter("detail").as_deref(), Some("stream"), "{content_type}");
        assert_eq!([first.text(), proxy.get("/").text()], ["1", "2"], "{content_type}");
    }
}

/// Regression: a script that asked for JSON got the page that a browser had asked for.
#[test]
fn a_page_that_says_nothing_is_not_for_a_client_that_wants_another_type() {
    let (proxy, origin) = before(|request| match request.field("accept") {
        Some("application/json") => typed("application/json").body("{}"),
        _ => typed("text/html").body("<p>"),
    });
    let ask = |accept: &str| proxy.exchange(&with("/", &[("Accept", accept)]));
    assert_eq!(ask("text/html,*/*;q=0.8").text(), "<p>");
    let json = ask("application/json");
    assert_eq!((json.text().as_str(), json.cache_parameter("detail").as_deref()), ("{}", Some("accept")));
    assert_eq!([ask("text/*").text(), ask("*/*").text(), proxy.get("/").text()], ["<p>", "<p>", "<p>"]);
    assert_eq!(origin.count(), 2);
}

/// Regression: browsers got the feed that a reader had asked for.
#[test]
fn a_feed_that_says_nothing_is_not_for_a_browser_nor_the_page_for_a_reader() {
    const BROWSER: &str = "text/html,application/xhtml+xml,image/webp,*/*;q=0.8";
    const READER: &str = "application/rss+xml, application/atom+xml;q=0.9, */*;q=0.5";
    let forms = |request: &Request| match request.field("accept") {
        Some(READER) => typed("application/rss+xml").body("<rss>"),
        _ => typed("text/html").body("<p>"),
    };
    for order in [[READER, BROWSER], [BROWSER, READER]] {
        let (proxy, _origin) = before(forms);
        for accept in order.iter().chain(&order) {
            let body = proxy.exchange(&with("/", &[("Accept", accept)])).text();
            assert_eq!(body, if *accept == READER { "<rss>" } else { "<p>" }, "{order:?}");
        }
    }
}

#[test]
fn a_lifetime_by_status_may_override_what_forbids_storing() {
    let origin = Origin::new(numbered(|request| match request.path() {
        "/gone" => reply(404).cache("no-store"),
        _ => typed("text/html").cache("private"),
    }));
    let rule = "cache = { ttl = { 404 = \"1m\", override = true } }";
    let proxy = sandarac().config(site(&origin.url(), rule, "")).start();
    let ask = |path: &str| [proxy.get(path).text(), proxy.get(path).text()];
    assert_eq!([ask("/gone"), ask("/page")], [["1", "1"], ["2", "3"]]);
}

/// The other way round, what the script got is no page, and keeps nobody from sharing the page.
#[test]
fn data_for_one_client_keeps_nobody_from_sharing_the_page() {
    let (proxy, origin) = before(|request| match request.field("accept") {
        Some("application/json") => typed("application/json").body("{}"),
        _ => typed("text/html").body("<p>"),
    });
    assert_eq!(proxy.exchange(&get("/").with("Accept", "application/json")).text(), "{}");
    assert_eq!([proxy.get("/").text(), proxy.get("/").text()], ["<p>", "<p>"]);
    let status = proxy.get("/").cache_status();
    assert!(status.contains("; hit"), "{status}");
    assert_eq!(origin.count(), 2);
}

#[test]
fn an_explicit_lifetime_counts_whatever_a_client_accepts() {
    let (proxy, origin) = before(|_| typed("text/html").cache("max-age=60"));
    for accept in ["text/html", "application/json"] {
        proxy.exchange(&get("/").with("Accept", accept));
    }
    assert_eq!(origin.count(), 1);
}

/// An error that a rule names is stored where nothing better is.
#[test]
fn an_error_never_takes_the_place_of_a_success() {
    let (proxy, origin) = before(|request| match request.serial {
        1 => typed("text/html").cache("max-age=0").with("ETag", "\"a\"").body("page"),
        2 => reply(500).body("error"),
        _ => reply(304).with("ETag", "\"a\"").cache("max-age=60"),
    });
    drop(proxy);
    let config = site(&origin.url(), "cache = { status_ttl = { 500 = \"1m\" } }", "");
    let proxy = sandarac().config(config).start();
    assert_eq!(proxy.get("/").text(), "page");
    assert_eq!(proxy.get("/").status, 500);
    assert_eq!(proxy.get("/").text(), "page");
    assert_eq!(proxy.get("/").text(), "page");
    assert_eq!(origin.count(), 3);
}

/// The response that names a file has no page for clients if the file may not be sent.
#[test]
fn a_response_that_names_a_file_its_pool_may_not_send_is_not_stored() {
    for name in ["X-Accel-Redirect", "X-Sendfile"] {
        let origin =
            Origin::new(numbered(move |_| typed("text/html").cache("max-age=60").with(name, "/files/a")));
        let proxy = sandarac().before(&origin).start();
        let first = proxy.get("/");
        assert_eq!(first.cache_parameter("detail").as_deref(), Some("unsent-file"));
        assert_eq!((first.field(name), proxy.get("/").text().as_str()), (None, "2"));
    }
}
