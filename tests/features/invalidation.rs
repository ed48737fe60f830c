//! Invalidation by unsafe methods (RFC 9111 §4.4).

use sandarac_test_support::{Gate, Origin, Reply, Request, Sandarac, get, post, reply, request};

use crate::{cache, numbered, sandarac, site};

/// Fresh pages, and unsafe requests answered by `answer`.
fn pages(answer: impl Fn() -> Reply + Send + Sync + 'static) -> (Sandarac, Origin) {
    cache(
        move |request: &Request| {
            if request.method == "GET" { reply(200).cache("max-age=60") } else { answer() }
        },
    )
}

#[test]
fn an_unsafe_request_that_succeeds_invalidates_its_target() {
    for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH"] {
        let (proxy, _origin) = pages(|| reply(200));
        proxy.get("/a");
        proxy.get("/b");
        proxy.exchange(&request(method, "/a").body("x")).expect(200);
        assert_eq!(proxy.get("/a").text(), "4", "{method}");
        assert_eq!(proxy.get("/b").text(), "2", "{method}");
    }
}

#[test]
fn a_redirect_after_an_unsafe_request_invalidates_too() {
    let (proxy, _origin) = pages(|| reply(303).with("Location", "/elsewhere"));
    proxy.get("/a");
    proxy.exchange(&request("POST", "/a").body("x")).expect(303);
    assert_eq!(proxy.get("/a").text(), "3");
}

#[test]
fn an_unsafe_request_that_fails_invalidates_nothing() {
    for status in [400, 403, 500, 503] {
        let (proxy, _origin) = pages(move || reply(status));
        proxy.get("/a");
        proxy.exchange(&request("POST", "/a").body("x")).expect(status);
        assert_eq!(proxy.get("/a").text(), "1", "{status}");
    }
}

#[test]
fn safe_methods_invalidate_nothing() {
    let (proxy, _origin) = pages(|| reply(200));
    proxy.get("/a");
    proxy.exchange(&request("OPTIONS", "/a")).expect(200);
    assert_eq!(proxy.get("/a").text(), "1");
}

#[test]
fn location_and_content_location_are_invalidated_too() {
    for field in ["Location", "Content-Location"] {
        for value in ["/b", "http://www.example/b", "b"] {
            let (proxy, _origin) = pages(move || reply(201).with(field, value));
            proxy.get("/b");
            proxy.exchange(&request("POST", "/a").body("x")).expect(201);
            assert_eq!(proxy.get("/b").text(), "3", "{field}: {value}");
        }
    }
}

#[test]
fn nothing_of_another_host_is_invalidated() {
    let (proxy, _origin) = pages(|| reply(201).with("Location", "http://other.example/b"));
    let other = get("/b").host("other.example");
    proxy.exchange(&other);
    proxy.exchange(&request("POST", "/a").body("x")).expect(201);
    assert_eq!(proxy.exchange(&other).text(), "1");
}

#[test]
fn all_variants_are_invalidated() {
    let (proxy, _origin) = cache(|request| match request.method.as_str() {
        "GET" => reply(200).cache("max-age=60").with("Vary", "Foo"),
        _ => reply(204),
    });
    let variant = |value: &str| proxy.exchange(&get("/").with("Foo", value)).text();
    assert_eq!(variant("a"), "1");
    assert_eq!(variant("b"), "2");
    proxy.exchange(&request("DELETE", "/")).expect(204);
    assert_eq!(variant("a"), "4");
    assert_eq!(variant("b"), "5");
}

#[test]
fn what_is_keyed_by_more_than_its_url_is_invalidated_whole() {
    let origin = Origin::new(numbered(|request| match request.method.as_str() {
        "GET" => reply(200).cache("max-age=60"),
        _ => reply(204),
    }));
    let cache =
        "cache = { key_fields = [\"X-Country\"], key_cookies = [\"theme\"], ignore_query = [\"utm_*\"] }";
    let proxy = sandarac().config(site(&origin.url(), cache, "[purge]\nallow = [\"127.0.0.1\"]")).start();
    let long = format!("/{}", "a".repeat(5000));
    for path in ["/a", "/a?b=1", "/it's", "/\u{e9}%C3%A9?q=\"x\"", "/a\\b", &long] {
        let variants = [get(path).with("X-Country", "de"), get(path).with("Cookie", "theme=dark"), get(path)];
        let ask = || variants.each_ref().map(|request| proxy.exchange(request).text());
        for request in [request("POST", path), request("PURGE", path)] {
            let before = ask();
            assert_eq!(ask(), before, "stored");
            let status = proxy.exchange(&request).status;
            assert_eq!(status / 100, 2, "{path}");
            let after = ask();
            assert!(after.iter().zip(&before).all(|(after, before)| after != before), "{path}: {after:?}");
        }
        let url = format!("http://www.example{path}");
        let before = ask();
        proxy.admin(&["purge", &url]);
        assert!(ask().iter().zip(&before).all(|(after, before)| after != before), "{path}");
    }
}

#[test]
fn what_another_route_keys_is_invalidated_by_its_rule() {
    let origin = Origin::new(numbered(|request| match request.method.as_str() {
        "GET" => reply(200).cache("max-age=60"),
        _ => reply(303).with("Location", "/shop/list?utm_source=form"),
    }));
    let routes = "[[route]]\nmatch = \"/shop/\"\npool = \"app\"\n\
                  cache = { ignore_query = [\"utm_*\"], key_fields = [\"X-Country\"] }\n\
                  [[route]]\npool = \"app\"";
    let text = site(&origin.url(), "", "").replace("[[route]]\npool = \"app\"", routes);
    let proxy = sandarac().config(text).start();
    let ask = || proxy.exchange(&get("/shop/list?utm_medium=mail").with("X-Country", "de")).text();
    assert_eq!([ask(), ask()], ["1", "1"]);
    proxy.exchange(&request("POST", "/form").body("x")).expect(303);
    assert_eq!(ask(), "3");
}

#[test]
fn a_response_to_a_post_that_began_before_a_purge_is_not_stored() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, _origin) = cache(move |request| {
        let page = reply(200).cache("max-age=60").with("Content-Location", &request.target);
        if request.method == "POST" { page.hold(&held) } else { page }
    });
    let mut client = proxy.connect();
    client.send(post("/form", "x").to_bytes());
    gate.reached(1);
    proxy.admin(&["purge", "http://www.example/form"]);
    gate.open();
    assert_eq!(client.response().expect(200).text(), "1");
    assert_eq!(proxy.get("/form").text(), "2");
}

#[test]
fn a_response_to_a_post_is_stored_as_the_route_of_gets_says() {
    let origin = Origin::new(numbered(|request| {
        reply(200).cache("max-age=60").with("Content-Location", &request.target).with("X-Internal", "secret")
    }));
    let routes = "[[route]]\nmatch = \"POST /\"\npool = \"app\"\n\
                  [[route]]\nmatch = \"/\"\npool = \"app\"\nresponse = { remove = [\"X-Internal\"] }";
    let text = site(&origin.url(), "", "").replace("[[route]]\npool = \"app\"", routes);
    let proxy = sandarac().config(text).start();
    proxy.exchange(&post("/form", "x")).expect(200);
    let page = proxy.get("/form").expect(200);
    assert_eq!(page.text(), "2");
    assert_eq!(page.field("x-internal"), None);
}

#[test]
fn a_purge_by_a_tag_of_the_route_meets_the_response_to_a_post_too() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(numbered(move |request| {
        let page = reply(200).cache("max-age=60").with("Content-Location", &request.target);
        if request.method == "POST" { page.hold(&held) } else { page }
    }));
    let keys = "response = { set = { Cache-Tag = \"forms\" } }";
    let proxy = sandarac().config(site(&origin.url(), keys, "")).start();
    let mut client = proxy.connect();
    client.send(post("/form", "x").to_bytes());
    gate.reached(1);
    proxy.admin(&["purge", "--tag", "forms"]).success();
    gate.open();
    client.response().expect(200);
    assert_eq!(proxy.get("/form").text(), "2");
}

#[test]
fn a_ban_by_path_finds_what_was_asked_for_with_ignored_parameters() {
    let origin = Origin::new(numbered(|_| reply(200).cache("max-age=60")));
    let keys = "cache = { ignore_query = [\"utm_*\"] }";
    let proxy = sandarac().config(site(&origin.url(), keys, "")).start();
    proxy.get("/b?utm_source=x");
    proxy.admin(&["ban", "path == \"/b\""]).success();
    assert_eq!(proxy.get("/b").text(), "2");
}

/// A page with these tags in `X-Magento-Tags`.
fn shop(tags: &'static str) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    numbered(move |_| reply(200).cache("max-age=60").with("X-Magento-Tags", tags).with("xkey", "stock"))
}

fn purging(origin: &Origin) -> Sandarac {
    sandarac().config(site(&origin.url(), "", "[purge]\nallow = [\"127.0.0.1\"]")).start()
}

/// Regression: the response said that nothing was stored, and the plugin told its user that the cache was empty.
#[test]
fn plugins_of_wordpress_purge_by_pattern() {
    let origin = Origin::new(shop(""));
    let proxy = purging(&origin);
    let other = |target: &str| get(target).host("other.example");
    let fill = || {
        for target in ["/", "/2026/post?a=1", "/feed"] {
            proxy.get(target).expect(200);
        }
        proxy.exchange(&other("/feed"));
    };
    fill();
    let regex = |target: &str| request("PURGE", target).with("X-Purge-Method", "regex");
    proxy.exchange(&regex("/2026/.*")).expect(200);
    assert!(proxy.get("/").is_hit() && !proxy.get("/2026/post?a=1").is_hit());
    fill();
    proxy.exchange(&regex("/.*")).expect(200);
    assert!(!proxy.get("/").is_hit() && !proxy.get("/feed").is_hit());
    assert!(proxy.exchange(&other("/feed")).is_hit(), "another host");
    fill();
    for method in ["default", "exact"] {
        proxy.exchange(&request("PURGE", "/feed").with("X-Purge-Method", method)).expect(200);
        assert!(!proxy.get("/feed").is_hit() && proxy.get("/").is_hit());
    }
    let wrong = proxy.exchange(&regex("/(")).expect(400).text();
    assert!(wrong.starts_with("400 Bad Request: the pattern is wrong: "), "{wrong}");
    let unknown = request("PURGE", "/").with("X-Purge-Method", "everything");
    assert!(proxy.exchange(&unknown).expect(400).text().contains("`X-Purge-Method` is"));
}

/// Regression: such a request was forwarded to the application, which may answer 200, and nothing was removed.
#[test]
fn methods_that_a_vcl_defines_are_refused_to_those_who_may_purge() {
    let origin = Origin::new(shop(""));
    let proxy = purging(&origin);
    for method in ["BAN", "FULLBAN", "URIBAN", "PURGEKEYS"] {
        let refused = proxy.exchange(&request(method, "/page").with("X-Cache-Tags", "stock")).expect(400);
        assert!(refused.text().contains(&format!("the method {method} is that of a VCL")), "{refused:?}");
    }
    assert_eq!(origin.count(), 0);
    let elsewhere = sandarac().before(&origin).start();
    elsewhere.exchange(&request("BAN", "/page")).expect(200);
    assert_eq!(origin.count(), 1, "for others it is a method like any other");
}

#[test]
fn magento_purges_by_a_pattern_of_tags() {
    let origin = Origin::new(shop("cat_p_1,cat_c_7,store"));
    let proxy = purging(&origin);
    let purge = |pattern: &str| {
        proxy.get("/page").expect(200);
        proxy.exchange(&request("PURGE", "/").with("X-Magento-Tags-Pattern", pattern)).expect(200);
        !proxy.get("/page").is_hit()
    };
    assert_eq!(
        ["((^|,)cat_p_1(,|$))", "((^|,)cat_p_12(,|$))|((^|,)cat_c_7(,|$))", ".*", "((^|,)cat_p(,|$))"]
            .map(purge),
        [true, true, true, false]
    );
}

#[test]
fn a_purge_with_tags_removes_what_has_them() {
    let origin = Origin::new(shop(""));
    let proxy = purging(&origin);
    for field in ["xkey", "Surrogate-Key", "Cache-Tag"] {
        proxy.get("/page").expect(200);
        proxy.exchange(&request("PURGE", "/").with(field, "stock")).expect(200);
        assert!(!proxy.get("/page").is_hit(), "{field}");
        proxy.exchange(&request("PURGE", "/").with(field, "other")).expect(200);
        assert!(proxy.get("/page").is_hit(), "{field}");
    }
}
