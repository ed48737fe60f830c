//! Placeholders for parts of a request in the values of edits.

use sandarac_test_support::{Origin, Reply, get, head, post, reply, within};

use crate::{sandarac, site};

/// A route whose edits of requests set `X-Client`, `X-From` and `X-Request-Id`.
const TOLD: &str = "request.set = { X-Client = \"{client}\", X-From = \"{scheme}://{host}{path} {query}\", X-Request-Id = \"{id}\" }";

fn page() -> Reply {
    reply(200).cache("max-age=60")
}

#[test]
fn an_origin_is_told_parts_of_the_request() {
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let proxy = sandarac().config(site(&origin.url(), TOLD, "")).start();
    proxy.exchange(&get("/a/b?c=d").host("shop.example:8080").with("X-Client", "forged")).expect(200);
    let told = origin.last();
    assert_eq!(told.field("x-client"), Some("127.0.0.1"));
    assert_eq!(told.field("x-from"), Some("http://shop.example:8080/a/b ?c=d"));
}

/// Regression: `{client}` was the address of the proxy, while the log named its client.
#[test]
fn the_client_behind_a_trusted_proxy_is_the_one_that_the_log_names() {
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let trusting = "[[listen]]\ntrusted_proxies = [\"127.0.0.0/8\"]";
    let proxy = sandarac().config(site(&origin.url(), TOLD, "").replace("[[listen]]", trusting)).start();
    proxy.exchange(&get("/").with("X-Forwarded-For", "192.0.2.9")).expect(200);
    assert_eq!(origin.last().field("x-client"), Some("192.0.2.9"));
}

/// Regression: the response to one client was a hit for another, because both had sent the same fields.
#[test]
fn what_varies_on_a_field_that_is_written_for_each_client_is_not_shared() {
    for vary in ["X-Client", "X-Request-Id", "Accept-Language, X-Forwarded-For", "Forwarded", "X-Real-IP"] {
        let origin = Origin::new(move |_| page().with("Vary", vary).body("for one"));
        let proxy = sandarac().config(site(&origin.url(), TOLD, "")).start();
        (0..3).for_each(|_| drop(proxy.get("/").expect(200)));
        assert_eq!(origin.count(), 3, "{vary}");
    }
    let origin = Origin::new(|_| page().with("Vary", "X-From").body("for all"));
    let proxy = sandarac().config(site(&origin.url(), TOLD, "")).start();
    (0..3).for_each(|_| drop(proxy.get("/").expect(200)));
    assert_eq!(origin.count(), 1);
}

/// Regression: edits were skipped from the first that did not fit, so that later fields were neither removed nor set.
#[test]
fn a_response_that_edits_make_too_large_is_an_error() {
    for cache in ["max-age=60", "no-store"] {
        let origin = Origin::new(move |_| reply(200).cache(cache).with("X-Secret", "s3cret"));
        let long = "{target}".repeat(9);
        let keys = format!(
            "response.set = {{ X-Long = \"{long}\", X-Policy = \"strict\" }}\npassed_response.remove = [\"X-Secret\"]"
        );
        let proxy = sandarac().config(site(&origin.url(), &keys, "")).start();
        assert_eq!(proxy.get("/short").expect(200).field("x-policy"), Some("strict"));
        let refused = proxy.get(&format!("/{}", "x".repeat(8000))).expect(500);
        assert!(refused.text().contains("head too large"), "{refused:?}");
    }
}

#[test]
fn each_request_has_an_id_that_the_log_names_too() {
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let log = "[log]\naccess = \"stdout\"\nformat = \"json\"";
    let proxy = sandarac().config(site(&origin.url(), TOLD, log)).start();
    let mut client = proxy.connect();
    let ids: Vec<String> = (0..3)
        .map(|_| {
            client.exchange(&get("/").with("X-Request-Id", "not-believed")).expect(200);
            origin.last().field("x-request-id").expect("an id").to_owned()
        })
        .collect();
    assert_ne!(ids[0], ids[1]);
    assert_ne!(ids[1], ids[2]);
    for id in &ids {
        assert!(id.len() > 17 && id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
        let line = format!("\"id\":\"{id}\"");
        within("the line of the log", || proxy.stdout().contains(&line).then_some(()));
    }
}

#[test]
fn the_id_of_a_trusted_peer_is_kept() {
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let trusting = "[[listen]]\ntrusted_proxies = [\"127.0.0.0/8\"]";
    let config = site(&origin.url(), TOLD, "").replace("[[listen]]", trusting);
    let proxy = sandarac().config(config).start();
    proxy.exchange(&get("/").with("X-Request-Id", "edge-17")).expect(200);
    assert_eq!(origin.last().field("x-request-id"), Some("edge-17"));
    for bad in ["two words", "", &"x".repeat(129)] {
        proxy.exchange(&get("/").with("X-Request-Id", bad)).expect(200);
        let id = origin.last().field("x-request-id").expect("an id").to_owned();
        assert!(id != bad && !id.is_empty() && !id.contains(' '), "{id:?}");
    }
}

/// A stored response is the same for all clients, so its placeholders take the values of its key.
#[test]
fn a_stored_response_is_told_its_target_as_it_is_keyed() {
    let origin = Origin::new(|_| page().body("page"));
    let keys = "response.set.Link = \"<https://{host}{path}>; rel=\\\"canonical\\\"\"\nstored_response.set.X-Stored = \"{target}\"";
    let proxy = sandarac().config(site(&origin.url(), keys, "")).start();
    for _ in 0..2 {
        let response = proxy.exchange(&get("/a?b").host("Shop.Example")).expect(200);
        assert_eq!(response.field("link"), Some("<https://shop.example/a>; rel=\"canonical\""));
        assert_eq!(response.field("x-stored"), Some("/a?b"));
    }
    assert_eq!(origin.count(), 1);
}

#[test]
fn what_is_not_keyed_gets_into_no_stored_response_by_any_method() {
    let origin = Origin::new(|request| {
        let reply = page().with("ETag", "\"e\"").body("page");
        if request.method == "POST" { reply.with("Content-Location", "/p") } else { reply }
    });
    let keys = "cache = { ignore_query = [\"utm_*\"] }\nresponse.set.Link = \"<{target}>\"\nstored_response.set.X-Stored = \"{query}\"";
    let proxy = sandarac().config(site(&origin.url(), keys, "")).start();
    for first in [get("/p?utm_a=EVIL"), head("/p?utm_a=EVIL"), post("/p?utm_a=EVIL", "x")] {
        proxy.exchange(&first).expect(200);
        let response = proxy.get("/p").expect(200);
        assert_eq!(response.field("link"), Some("</p>"), "{first:?}");
        assert_eq!(response.field("x-stored").unwrap_or_default(), "", "{first:?}");
    }
}

#[test]
fn a_response_that_is_not_stored_is_told_too() {
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let keys = "passed_response.set.X-Path = \"{path}\"";
    let proxy = sandarac().config(site(&origin.url(), keys, "")).start();
    assert_eq!(proxy.get("/a?b").expect(200).field("x-path"), Some("/a"));
}

#[test]
fn what_a_stored_response_cannot_say_and_words_that_stand_for_nothing_are_refused() {
    for (keys, message, help) in [
        ("response.set.X-Id = \"{id}\"", "{id} is not allowed here", "known here: {host}"),
        ("request.set.X-Ip = \"{address}\"", "{address} is not a known part", "known: {client}, {host}"),
        ("request.set.X-Ip = \"{clients}\"", "{clients} is not a known part", "did you mean {client}?"),
    ] {
        let output = sandarac().config(site("http://127.0.0.1:1", keys, "")).arg("check").run().failure();
        assert!(output.stderr.contains(message) && output.stderr.contains(help), "{keys}: {output:?}");
    }
}

#[test]
fn braces_that_are_no_places_stay() {
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let keys = r#"request.set.X-Json = '{"group": {"ttl": 1}}'
request.set.X-Brace = "{{id}""#;
    let proxy = sandarac().config(site(&origin.url(), keys, "")).start();
    proxy.get("/").expect(200);
    let told = origin.last();
    assert_eq!(told.field("x-json"), Some(r#"{"group": {"ttl": 1}}"#));
    assert_eq!(told.field("x-brace"), Some("{id}"));
}
