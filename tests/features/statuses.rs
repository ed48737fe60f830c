//! The contents of Cache-Status (RFC 9211) and Proxy-Status (RFC 9209).

use sandarac_test_support::{Origin, Port, Reply, Response, get, post, reply};

use crate::{cache, sandarac};

fn ttl(response: &Response) -> i64 {
    let text = response.cache_parameter("ttl").unwrap_or_else(|| panic!("no ttl in {response:?}"));
    text.parse().expect("ttl is an integer")
}

#[test]
fn a_miss_that_is_stored_and_the_hit_after_it() {
    let (proxy, _origin) = cache(|_| reply(200).cache("max-age=600").with("Age", "100"));
    let miss = proxy.get("/");
    assert_eq!(miss.cache_parameter("fwd").as_deref(), Some("uri-miss"));
    assert_eq!(miss.cache_parameter("stored").as_deref(), Some(""));
    let hit = proxy.get("/");
    assert!(hit.is_hit() && hit.cache_parameter("fwd").is_none());
    assert!((470..=500).contains(&ttl(&hit)), "{hit:?}");
    assert_eq!(
        hit.cache_status().split(';').next().map(str::trim),
        miss.cache_status().split(';').next().map(str::trim)
    );
}

#[test]
fn a_miss_that_is_not_stored_says_why() {
    let (proxy, _origin) = cache(|_| reply(200).cache("no-store"));
    let response = proxy.get("/");
    assert_eq!(response.cache_parameter("stored"), None);
    assert_eq!(response.cache_parameter("detail").as_deref(), Some("no-store"));
}

#[test]
fn the_reason_for_going_to_the_origin_is_told() {
    let (proxy, _origin) = cache(|request| match request.path() {
        "/vary" => reply(200).cache("max-age=60").with("Vary", "Foo"),
        _ => reply(200).cache("max-age=3600").with("Age", "3600").with("ETag", "\"v\""),
    });
    let forwarded = |response: Response| response.cache_parameter("fwd").unwrap_or_default();
    proxy.get("/vary");
    assert_eq!(forwarded(proxy.exchange(&get("/vary").with("Foo", "1"))), "vary-miss");
    proxy.get("/stale");
    assert_eq!(forwarded(proxy.get("/stale")), "stale");
    assert_eq!(forwarded(proxy.exchange(&get("/vary").with("Cache-Control", "no-cache"))), "request");
    assert_eq!(forwarded(proxy.exchange(&post("/vary", "x"))), "method");
}

#[test]
fn a_request_past_the_cache_says_so() {
    let origin = Origin::new(|_| reply(200).cache("max-age=60"));
    let proxy = sandarac().before(&origin).start();
    let response = proxy.exchange(&get("/").with("Cookie", "session=1"));
    assert_eq!(response.cache_parameter("fwd").as_deref(), Some("bypass"));
}

#[test]
fn a_validated_response_tells_the_status_of_the_origin() {
    let (proxy, _origin) = cache(|request| match request.field("if-none-match") {
        None => reply(200).cache("no-cache").with("ETag", "\"v\""),
        Some(_) => reply(304).cache("no-cache").with("ETag", "\"v\""),
    });
    proxy.get("/");
    assert_eq!(proxy.get("/").cache_parameter("fwd-status").as_deref(), Some("304"));
}

#[test]
fn a_stale_hit_has_a_negative_ttl() {
    let (proxy, _origin) = cache(|request| match request.serial {
        1 => reply(200).cache("max-age=3600, stale-if-error=600").with("Age", "3700"),
        _ => Reply::none(),
    });
    proxy.get("/");
    assert!(ttl(&proxy.get("/")) <= -100);
}

#[test]
fn cache_status_is_added_after_those_of_caches_behind() {
    let (proxy, _origin) = cache(|_| reply(200).cache("max-age=60").with("Cache-Status", "behind; hit"));
    for _ in 0..2 {
        let list = proxy.get("/").fields.list("cache-status");
        let members: Vec<&str> = list.split(", ").collect();
        assert_eq!(members.len(), 2, "{list}");
        assert_eq!(members[0], "behind; hit", "{list}");
    }
}

#[test]
fn what_the_proxy_answers_itself_says_what_was_wrong() {
    let refusing = Port::new();
    let proxy = sandarac().option("--backend", refusing.url()).start();
    let response = proxy.get("/");
    assert!(matches!(response.status, 502 | 503), "{response:?}");
    let status = response.field("proxy-status").expect("Proxy-Status").to_owned();
    assert!(status.contains("error=connection_refused"), "{status}");
}

#[test]
fn the_kind_of_failure_of_an_origin_is_told() {
    let origin = Origin::new(|request| match request.path() {
        "/closed" => Reply::none(),
        "/garbage" => Reply::verbatim("SSH-2.0-OpenSSH\r\n\r\n").cut(),
        _ => Reply::verbatim("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx").cut(),
    });
    let proxy = sandarac().before(&origin).start();
    let error = |path: &str| {
        let response = proxy.get(path).expect(502);
        let status = response.field("proxy-status").expect("Proxy-Status").to_owned();
        status
            .split(';')
            .find_map(|part| part.trim().strip_prefix("error=").map(str::to_owned))
            .expect("an error type")
    };
    assert!(["connection_terminated", "http_response_incomplete"].contains(&error("/closed").as_str()));
    assert_eq!(error("/garbage"), "http_protocol_error");
    assert_eq!(error("/lengths"), "http_protocol_error");
}

#[test]
fn a_response_of_the_origin_has_no_proxy_status_of_ours() {
    let (proxy, _origin) = cache(|_| reply(503));
    assert!(!proxy.get("/").expect(503).fields.has("proxy-status"));
}

/// Regression: the Content-Length of a 204 was forwarded and stored (RFC 9110 §8.6).
#[test]
fn a_204_goes_on_without_a_length() {
    for cache in ["no-store", "max-age=60"] {
        let answer =
            format!("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nCache-Control: {cache}\r\n\r\n");
        let origin = Origin::new(move |_| Reply::verbatim(&answer));
        let proxy = sandarac().before(&origin).rfc().start();
        for _ in 0..2 {
            assert_eq!(proxy.get("/").expect(204).field("content-length"), None, "{cache}");
        }
    }
}
