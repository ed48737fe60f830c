//! Every request counts once among hits, misses and passes, whatever its method.

use sandarac_test_support::{Req, Sandarac, head, reply, request};

use crate::{before, cache, labelled};

/// What all of a metric come to, whatever their labels.
fn total(proxy: &Sandarac, name: &str) -> u64 {
    let stats = proxy.admin_json(&["stats", "--json"]);
    let metrics = stats["metrics"].as_array().expect("metrics");
    metrics.iter().filter(|metric| metric["name"] == name).filter_map(|metric| metric["value"].as_u64()).sum()
}

/// Hits, misses and passes.
fn counts(proxy: &Sandarac) -> [u64; 3] {
    ["hits", "misses", "passes"].map(|name| total(proxy, name))
}

#[test]
fn head_counts_like_get() {
    for method in ["GET", "HEAD"] {
        let (proxy, _origin) = cache(|_| reply(200).cache("max-age=60").with("Vary", "Foo"));
        let ask = |request: Req| proxy.exchange(&request).expect(200);
        let of = |fields: &[(&str, &str)]| {
            fields.iter().fold(request(method, "/"), |request, (name, value)| request.with(name, value))
        };
        ask(of(&[]));
        assert_eq!((counts(&proxy), labelled(&proxy, "misses", "uri-miss")), ([0, 1, 0], 1), "{method}");
        ask(request("GET", "/"));
        let [hits, misses, _] = counts(&proxy);
        ask(of(&[]));
        assert_eq!(counts(&proxy), [hits + 1, misses, 0], "{method}");
        ask(of(&[("Foo", "1")]));
        assert_eq!((counts(&proxy), labelled(&proxy, "misses", "vary-miss")), ([hits + 1, misses + 1, 0], 1));
        ask(of(&[("Cache-Control", "no-cache")]));
        assert_eq!((counts(&proxy), labelled(&proxy, "misses", "request")), ([hits + 1, misses + 2, 0], 1));
        assert_eq!(counts(&proxy).iter().sum::<u64>(), total(&proxy, "requests"), "{method}");
    }
}

#[test]
fn head_says_why_it_was_forwarded_like_get() {
    for method in ["GET", "HEAD"] {
        let (proxy, _origin) = cache(|request| {
            let age = if request.path() == "/stale" { "3600" } else { "0" };
            reply(200).cache("max-age=60").with("Vary", "Foo").with("ETag", "\"v1\"").with("Age", age)
        });
        for target in ["/", "/stale"] {
            proxy.exchange(&request("GET", target)).expect(200);
        }
        for (target, field, reason) in [
            ("/new", ("A", "1"), "uri-miss"),
            ("/", ("Foo", "1"), "vary-miss"),
            ("/", ("Cache-Control", "no-cache"), "request"),
            ("/stale", ("A", "1"), "stale"),
        ] {
            let response = proxy.exchange(&request(method, target).with(field.0, field.1)).expect(200);
            assert_eq!(response.cache_parameter("fwd").as_deref(), Some(reason), "{method} {target}");
        }
    }
}

#[test]
fn head_that_goes_past_the_cache_is_a_pass() {
    let (proxy, _origin) = before(|_| reply(200).cache("max-age=60"));
    proxy.exchange(&head("/").with("Cookie", "a=1")).expect(200);
    assert_eq!((counts(&proxy), labelled(&proxy, "passes", "cookie")), ([0, 0, 1], 1));
}

#[test]
fn head_that_only_wants_what_is_there_is_no_miss() {
    let (proxy, origin) = cache(|_| reply(200).cache("max-age=60"));
    proxy.exchange(&head("/").with("Cache-Control", "only-if-cached")).expect(504);
    assert_eq!((counts(&proxy), labelled(&proxy, "failed", "not-cached"), origin.count()), ([0; 3], 1, 0));
}
