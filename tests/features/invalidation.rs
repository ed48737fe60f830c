//! Invalidation by unsafe methods (RFC 9111 §4.4).

use sandarac_test_support::{Origin, Reply, Request, Sandarac, get, reply, request};

use crate::cache;

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
        assert_eq!(
            (proxy.get("/a").text().as_str(), proxy.get("/b").text().as_str()),
            ("4", "2"),
            "{method}"
        );
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
    assert_eq!((variant("a").as_str(), variant("b").as_str()), ("1", "2"));
    proxy.exchange(&request("DELETE", "/")).expect(204);
    assert_eq!((variant("a").as_str(), variant("b").as_str()), ("4", "5"));
}
