//! Every request counts once, and bytes count when they are written.

use sandarac_test_support::{Gate, Origin, Req, Sandarac, get, head, post, reply, request, within};

use crate::{before, cache, labelled, sandarac, site};

/// The sum of a metric over all labels.
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
        assert_eq!(counts(&proxy), [0, 1, 0], "{method}");
        assert_eq!(labelled(&proxy, "misses", "uri-miss"), 1, "{method}");
        ask(request("GET", "/"));
        let [hits, misses, _] = counts(&proxy);
        ask(of(&[]));
        assert_eq!(counts(&proxy), [hits + 1, misses, 0], "{method}");
        ask(of(&[("Foo", "1")]));
        assert_eq!(counts(&proxy), [hits + 1, misses + 1, 0], "{method}");
        assert_eq!(labelled(&proxy, "misses", "vary-miss"), 1, "{method}");
        ask(of(&[("Cache-Control", "no-cache")]));
        assert_eq!(counts(&proxy), [hits + 1, misses + 2, 0], "{method}");
        assert_eq!(labelled(&proxy, "misses", "request"), 1, "{method}");
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
    assert_eq!(counts(&proxy), [0, 0, 1]);
    assert_eq!(labelled(&proxy, "passes", "cookie"), 1);
}

#[test]
fn head_that_only_wants_what_is_there_is_no_miss() {
    let (proxy, origin) = cache(|_| reply(200).cache("max-age=60"));
    proxy.exchange(&head("/").with("Cache-Control", "only-if-cached")).expect(504);
    assert_eq!(counts(&proxy), [0; 3]);
    assert_eq!(labelled(&proxy, "failed", "not-cached"), 1);
    assert_eq!(origin.count(), 0);
}

/// The outcomes of requests: each request has exactly one.
const OUTCOMES: [&str; 10] = [
    "hits",
    "hits_stale",
    "revalidated",
    "misses",
    "passes",
    "pipes",
    "files",
    "synthetic",
    "purges",
    "failed",
];

/// The count of each outcome.
fn outcomes(proxy: &Sandarac) -> [u64; 10] {
    OUTCOMES.map(|name| total(proxy, name))
}

/// Regression: a revalidated response counted as a miss too, and other requests counted twice or never.
#[test]
fn each_request_has_one_outcome() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |request| match &*request.target {
        "/held" => reply(200).cache("no-store").hold(&held),
        "/confirmed" if request.fields.has("if-none-match") => reply(304),
        "/confirmed" => reply(200).cache("no-cache").with("ETag", "\"one\""),
        "/stale" if request.fields.has("if-none-match") => reply(503),
        "/stale" => reply(200).cache("max-age=0, stale-if-error=60").with("ETag", "\"one\""),
        "/broken" => reply(200).length(10).body("five.").cut(),
        "/none" => sandarac_test_support::Reply::none(),
        _ => reply(200).cache("max-age=60").body("page"),
    });
    let routes = "[[route]]\nmatch = \"/answer\"\nanswer = { status = 204 }\n\n[[route]]\nmatch = \"/passwd\"\nfiles = \"/etc\"\n\n\
         [purge]\nallow = [\"127.0.0.1\"]";
    let text = site(&origin.url(), "", "").replace("[[route]]", &format!("{routes}\n\n[[route]]"));
    let proxy = sandarac().config(text).start();
    let requests: [(Req, &str); 15] = [
        (get("/page"), "misses"),
        (get("/page"), "hits"),
        (head("/page"), "hits"),
        (get("/page").with("Cookie", "a=1"), "passes"),
        (post("/page", "body"), "passes"),
        (get("/confirmed"), "misses"),
        (get("/confirmed"), "revalidated"),
        (get("/stale"), "misses"),
        (get("/stale"), "hits_stale"),
        (get("/answer"), "synthetic"),
        (get("/passwd"), "files"),
        (request("PURGE", "/page"), "purges"),
        (get("/none"), "failed"),
        (request("CONNECT", "www.example:80").host("www.example:80"), "failed"),
        (get("/page").with("Connection", "upgrade").with("Upgrade", "websocket"), "pipes"),
    ];
    for (request, outcome) in requests {
        let before = outcomes(&proxy);
        proxy.exchange(&request);
        let after = outcomes(&proxy);
        let grown: Vec<&str> =
            (0..OUTCOMES.len()).filter(|&at| after[at] > before[at]).map(|at| OUTCOMES[at]).collect();
        assert_eq!(grown, [outcome], "{request:?}");
        assert_eq!(after.iter().sum::<u64>(), total(&proxy, "requests"), "{request:?}");
    }
    // Clients that leave before, and in the middle of, a response.
    let mut client = proxy.connect();
    client.send(get("/broken").to_bytes()).read_through("five.");
    let mut client = proxy.connect();
    client.send(get("/held").to_bytes());
    gate.reached(1);
    client.reset();
    gate.open();
    within("each to have one outcome", || {
        (outcomes(&proxy).iter().sum::<u64>() == total(&proxy, "requests")).then_some(())
    });
}

/// Regression: the body of a hit counted before any of it was written.
#[test]
fn bytes_count_as_they_are_written() {
    const LENGTH: usize = 3_400_000;
    let (proxy, _origin) = cache(|_| reply(200).cache("max-age=60").body(vec![b'x'; LENGTH]));
    proxy.get("/").expect(200);
    let bytes = || total(&proxy, "bytes_to_clients");
    let whole = bytes();
    assert!((LENGTH..LENGTH + 1000).contains(&(whole as usize)), "{whole}");
    for _ in 0..20 {
        proxy.paused(|| {
            let mut client = proxy.connect();
            client.send(get("/").to_bytes());
            client.reset();
        });
    }
    within("the clients to be gone", || (total(&proxy, "connections_open") == 0).then_some(()));
    assert_eq!(bytes(), whole);
}

/// Regression: of a body that was stored, only what had come with its head counted.
#[test]
fn every_byte_of_a_body_from_an_origin_counts_once() {
    const LEN: usize = 3_000_000;
    for cache in ["max-age=60", "no-store"] {
        for chunked in [false, true] {
            let (proxy, _origin) = before(move |_| {
                let page = reply(200).cache(cache).body(vec![b'x'; LEN]);
                if chunked { page.chunked() } else { page }
            });
            proxy.get("/").expect(200);
            proxy.counts("bytes_from_origins", LEN as u64);
        }
    }
}
