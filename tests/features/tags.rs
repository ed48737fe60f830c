//! Tags and groups: objects with the same tag are purged together.

use sandarac_test_support::{get, reply, request};

use crate::cache;

#[test]
fn tags_of_every_kind_are_purged() {
    let (proxy, origin) = cache(|request| match request.path() {
        "/surrogate" => reply(200).cache("max-age=60").with("Surrogate-Key", "red blue"),
        "/cachetag" => reply(200).cache("max-age=60").with("Cache-Tag", "red, green"),
        "/xkey" => reply(200).cache("max-age=60").with("xkey", "red").with("xkey", "yellow"),
        _ => reply(200).cache("max-age=60"),
    });
    let paths = ["/surrogate", "/cachetag", "/xkey", "/plain"];
    let fetched = |paths: &[&str]| {
        let before = origin.count();
        paths.iter().for_each(|path| drop(proxy.get(path).expect(200)));
        origin.requests()[before..].iter().map(|request| request.target.clone()).collect::<Vec<_>>()
    };
    assert_eq!(fetched(&paths).len(), 4);
    assert!(fetched(&paths).is_empty());
    proxy.admin(&["purge", "--tag", "yellow", "none"]).success();
    assert_eq!(fetched(&paths), ["/xkey"]);
    proxy.admin(&["purge", "--tag", "blue", "green"]).success();
    assert_eq!(fetched(&paths), ["/surrogate", "/cachetag"]);
    proxy.admin(&["purge", "--tag", "red"]).success();
    assert_eq!(fetched(&paths), ["/surrogate", "/cachetag", "/xkey"]);
}

#[test]
fn tags_are_not_shown_to_clients() {
    let (proxy, _origin) = cache(|_| {
        reply(200)
            .cache("max-age=60")
            .with("Surrogate-Key", "a")
            .with("Cache-Tag", "b")
            .with("xkey", "c")
            .with("Cache-Groups", "\"d\"")
    });
    for _ in 0..2 {
        let response = proxy.get("/");
        for name in ["surrogate-key", "cache-tag", "xkey"] {
            assert!(!response.fields.has(name), "{name}");
        }
        assert_eq!(response.field("cache-groups"), Some("\"d\""));
    }
}

/// Regression: these fields were removed from whole responses only.
#[test]
fn fields_for_caches_are_not_shown_in_any_form_of_a_response() {
    const HIDDEN: [&str; 5] =
        ["Surrogate-Key", "Cache-Tag", "xkey", "Surrogate-Control", "Sandarac-Cache-Control"];
    let (proxy, _origin) = cache(|request| {
        let control = if request.target == "/own" { "max-age=60, no-cache=\"xkey\"" } else { "max-age=60" };
        let lines: String = HIDDEN.iter().map(|name| format!("{name}: max-age=60\r\n")).collect();
        let answer = HIDDEN.iter().fold(reply(200), |answer, name| answer.with(name, "max-age=60"));
        let answer = answer.cache(control).with("ETag", "\"one\"").interim(103, &lines);
        match &*request.target {
            "/chunked" => {
                let answer = answer.chunked().body("0123456789");
                HIDDEN.iter().fold(answer, |answer, name| answer.trailer(name, "a")).trailer("T", "a")
            }
            _ => answer.body("0123456789"),
        }
    });
    let mut client = proxy.connect();
    for target in ["/", "/chunked", "/own"] {
        let requests = [
            (get(target), 200),
            (get(target), 200),
            (get(target).with("Range", "bytes=2-3"), 206),
            (get(target).with("Range", "bytes=0-1, 4-5"), 206),
            (get(target).with("Range", "bytes=20-"), 416),
            (get(target).with("If-None-Match", "\"one\""), 304),
            (get(target).with("Cache-Control", "no-cache"), 200),
        ];
        for (request, status) in requests {
            let response = client.exchange(&request).expect(status);
            let seen = response.interim.iter().map(|interim| &interim.fields);
            for fields in seen.chain([&response.fields, &response.trailers]) {
                HIDDEN.iter().for_each(|name| assert!(!fields.has(name), "{name}: {target} {status}"));
            }
        }
    }
}

#[test]
fn tags_are_not_shown_on_what_is_not_stored() {
    let (proxy, _origin) =
        cache(|_| reply(200).cache("no-store").with("Surrogate-Key", "a").with("Cache-Tag", "b"));
    let response = proxy.get("/");
    assert!(!response.fields.has("surrogate-key") && !response.fields.has("cache-tag"));
}

#[test]
fn a_list_of_thousands_of_tags_has_no_limit() {
    let (proxy, _origin) = cache(|_| reply(200).cache("max-age=60").with("Surrogate-Key", "tag-19999"));
    assert_eq!(proxy.get("/").text(), "1");
    let tags: Vec<String> = (0..20_000).map(|number| format!("tag-{number}")).collect();
    let mut arguments = vec!["purge", "--tag"];
    arguments.extend(tags.iter().map(String::as_str));
    proxy.admin(&arguments).success();
    assert_eq!(proxy.get("/").text(), "2");
}

#[test]
fn a_group_is_invalidated_by_a_response_to_an_unsafe_method() {
    let (proxy, _origin) = cache(|request| match (request.method.as_str(), request.path()) {
        ("GET", "/a") => reply(200).cache("max-age=60").with("Cache-Groups", "\"scripts\", \"all\""),
        ("GET", "/b") => reply(200).cache("max-age=60").with("Cache-Groups", "\"all\""),
        ("GET", _) => reply(200).cache("max-age=60").with("Cache-Group-Invalidation", "\"all\""),
        _ => reply(204).with("Cache-Group-Invalidation", "\"scripts\""),
    });
    let other_host = get("/a").host("other.example");
    assert_eq!(
        [proxy.get("/a").text(), proxy.get("/b").text(), proxy.exchange(&other_host).text()],
        ["1", "2", "3"]
    );
    proxy.get("/c");
    assert_eq!(
        [proxy.get("/a").text(), proxy.get("/b").text()],
        ["1", "2"],
        "a response to GET invalidates no group"
    );
    proxy.exchange(&request("POST", "/update").body("x")).expect(204);
    assert_eq!(
        [proxy.get("/a").text(), proxy.get("/b").text(), proxy.exchange(&other_host).text()],
        ["6", "2", "3"]
    );
}
