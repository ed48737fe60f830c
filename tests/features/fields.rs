//! Fields of requests and responses on their way through the proxy.

use sandarac_test_support::{Listener, Origin, Reply, get, head, post, reply};

use crate::{before, cache, sandarac, site};

/// The lines of `all` whose names are among `names`, in order.
fn lines_of<'a>(all: Vec<(&'a str, &'a str)>, names: &[&str]) -> Vec<(&'a str, &'a str)> {
    all.into_iter().filter(|(name, _)| names.contains(name)).collect()
}

/// Regression: interim responses, and responses that switch protocols, were forwarded with these fields.
#[test]
fn fields_that_are_to_be_removed_are_removed_from_responses_of_every_kind() {
    let listener = Listener::new();
    let keys = "cache = \"pass\"\nresponse.remove = [\"X-Internal\"]\npassed_response = { remove = [\"X-Pass\"], set = { X-Set = \"ours\" } }";
    let proxy = sandarac().config(site(&listener.url(), keys, "")).start();
    let secret = "X-Internal: s3cret\r\nX-Pass: s3cret\r\nX-Set: theirs\r\nX-Kept: yes\r\n";
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    let mut origin = listener.accept();
    origin.request();
    origin.send(format!(
        "HTTP/1.1 103 Early Hints\r\n{secret}\r\nHTTP/1.1 200 OK\r\n{secret}Connection: close\r\nContent-Length: 0\r\n\r\n"
    ));
    let hints = client.response_head();
    assert_eq!(hints.status, 103);
    assert_eq!(hints.field("x-kept"), Some("yes"));
    assert_eq!(hints.field("x-set"), None);
    let last = client.response().expect(200);
    assert_eq!(last.field("x-set"), Some("ours"));
    let mut tunnel = proxy.connect();
    tunnel.send(get("/").with("Connection", "upgrade").with("Upgrade", "websocket").to_bytes());
    let mut origin = listener.accept();
    origin.request_head();
    origin.send(format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n{secret}\r\n"
    ));
    let switched = tunnel.response_head();
    assert_eq!(switched.status, 101);
    assert_eq!(switched.field("x-kept"), Some("yes"));
    assert_eq!(switched.field("x-set"), Some("ours"));
    for response in [hints, last, switched] {
        assert!(!response.fields.has("x-internal") && !response.fields.has("x-pass"), "{response:?}");
    }
}

#[test]
fn order_case_and_repetition_survive_in_both_directions() {
    let (proxy, origin) = before(|_| {
        reply(200)
            .with("x-LOWER", "1")
            .with("Set-Cookie", "a=1")
            .with("X-Between", "2")
            .with("Set-Cookie", "b=2")
            .with("ETAG", "\"x\"")
    });
    let request = get("/")
        .with("x-UPPER", "1")
        .with("Accept", "text/html")
        .with("X-Twice", "a")
        .with("accept-LANGUAGE", "de")
        .with("X-Twice", "b");
    let response = proxy.exchange(&request).expect(200);
    let names = ["x-UPPER", "Accept", "X-Twice", "accept-LANGUAGE"];
    let sent = [
        ("x-UPPER", "1"),
        ("Accept", "text/html"),
        ("X-Twice", "a"),
        ("accept-LANGUAGE", "de"),
        ("X-Twice", "b"),
    ];
    assert_eq!(lines_of(origin.last().fields.lines(), &names), sent);
    let names = ["x-LOWER", "Set-Cookie", "X-Between", "ETAG"];
    let sent = [
        ("x-LOWER", "1"),
        ("Set-Cookie", "a=1"),
        ("X-Between", "2"),
        ("Set-Cookie", "b=2"),
        ("ETAG", "\"x\""),
    ];
    assert_eq!(lines_of(response.fields.lines(), &names), sent);
}

#[test]
fn order_and_case_survive_in_the_cache() {
    let (proxy, _origin) =
        cache(|_| reply(200).cache("max-age=60").with("x-B", "2").with("X-a", "1").with("x-B", "3"));
    for _ in 0..2 {
        let response = proxy.get("/");
        assert_eq!(
            lines_of(response.fields.lines(), &["x-B", "X-a"]),
            [("x-B", "2"), ("X-a", "1"), ("x-B", "3")]
        );
    }
}

#[test]
fn fields_of_one_connection_stay_on_it() {
    let (proxy, origin) = before(|_| {
        reply(200)
            .with("Connection", "X-Private, keep-alive")
            .with("X-Private", "1")
            .with("Keep-Alive", "timeout=5")
            .with("Proxy-Connection", "keep-alive")
            .with("Upgrade", "h2c")
            .with("X-Public", "1")
    });
    let request = get("/")
        .with("Connection", "X-Mine, TE, keep-alive")
        .with("X-Mine", "1")
        .with("TE", "trailers")
        .with("Keep-Alive", "timeout=5")
        .with("Proxy-Connection", "keep-alive")
        .with("Upgrade", "websocket")
        .with("X-Ours", "1");
    let response = proxy.exchange(&request).expect(200);
    for name in ["x-mine", "keep-alive", "proxy-connection", "upgrade"] {
        assert!(!origin.last().fields.has(name), "{name} reached the origin");
    }
    assert_eq!(origin.last().field("x-ours"), Some("1"));
    for name in ["x-private", "keep-alive", "proxy-connection", "upgrade"] {
        assert!(!response.fields.has(name), "{name} reached the client");
    }
    assert_eq!(response.field("x-public"), Some("1"));
}

#[test]
fn connection_cannot_take_away_what_a_message_needs() {
    let (proxy, origin) = before(|_| {
        reply(200).with("Connection", "Content-Length, Cache-Control").cache("no-store").body("whole")
    });
    let request = get("/")
        .with("Connection", "Host, X-Forwarded-For, Content-Length, Authorization")
        .with("Authorization", "Basic eA==");
    let response = proxy.exchange(&request);
    if response.status == 200 {
        assert_eq!(origin.last().field("host"), Some("www.example"));
        assert!(origin.last().fields.has("x-forwarded-for"));
        assert_eq!(response.text(), "whole");
    } else {
        assert_eq!(response.status, 400);
        assert_eq!(origin.count(), 0);
    }
}

#[test]
fn a_cached_response_has_no_fields_of_the_connection_it_came_on() {
    let (proxy, _origin) =
        cache(|_| reply(200).cache("max-age=60").with("Connection", "A").with("A", "1").with("B", "2"));
    for _ in 0..2 {
        let response = proxy.get("/");
        assert_eq!(response.field("a"), None);
        assert_eq!(response.field("b"), Some("2"));
    }
}

#[test]
fn via_is_appended_in_both_directions() {
    let (proxy, origin) = before(|_| reply(200).with("Via", "1.0 behind"));
    let response = proxy.exchange(&get("/").with("Via", "1.0 ahead")).expect(200);
    let request_via = origin.last().fields.list("via");
    assert!(request_via.starts_with("1.0 ahead, 1.1 "), "{request_via}");
    let response_via = response.fields.list("via");
    assert!(response_via.starts_with("1.0 behind, 1.1 "), "{response_via}");
}

#[test]
fn the_client_is_named_to_the_origin_whatever_it_says_of_itself() {
    let (proxy, origin) = before(|_| reply(200));
    let request = get("/")
        .with("X-Forwarded-For", "6.6.6.6")
        .with("X-Forwarded-Proto", "https")
        .with("X-Forwarded-Host", "evil.example")
        .with("Forwarded", "for=6.6.6.6;proto=https;host=evil.example");
    proxy.exchange(&request).expect(200);
    let fields = origin.last().fields;
    assert_eq!(fields.all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(fields.all("x-forwarded-proto"), ["http"]);
    assert_eq!(fields.all("x-forwarded-host"), ["www.example"]);
    let forwarded = fields.list("forwarded").to_ascii_lowercase();
    assert!(forwarded.contains("for=127.0.0.1") && forwarded.contains("proto=http"), "{forwarded}");
    assert!(!forwarded.contains("6.6.6.6") && !forwarded.contains("evil"), "{forwarded}");
}

#[test]
fn empty_and_odd_values_survive() {
    let (proxy, origin) = before(|_| reply(200).with("X-Empty", "").with("X-Odd", "a:b \"c\""));
    let mut client = proxy.connect();
    client.send(b"GET / HTTP/1.1\r\nHost: www.example\r\nX-Empty:\r\nX-Padded: \t a\tb \t\r\nX-Latin: caf\xe9\r\n\r\n");
    let response = client.response().expect(200);
    let request = origin.last();
    assert_eq!(request.field("x-empty"), Some(""));
    assert_eq!(request.field("x-padded"), Some("a\tb"));
    assert_eq!(request.field("x-latin"), Some("caf\u{e9}"));
    assert_eq!(response.field("x-empty"), Some(""));
    assert_eq!(response.field("x-odd"), Some("a:b \"c\""));
}

#[test]
fn a_field_that_is_set_keeps_its_place() {
    let origin = Origin::new(|_| reply(200).with("X-First", "1").with("X-Set", "old").with("X-Last", "1"));
    let keys =
        "request.set.Host = \"inner.example\"\nrequest.set.X-Set = \"new\"\nresponse.set.X-Set = \"new\"";
    let proxy = sandarac().config(site(&origin.url(), keys, "")).start();
    let request = get("/").with("X-First", "1").with("X-Set", "old").with("X-Last", "1");
    let response = proxy.exchange(&request).expect(200);
    let names = ["Host", "X-First", "X-Set", "X-Last"];
    let expected = [("Host", "inner.example"), ("X-First", "1"), ("X-Set", "new"), ("X-Last", "1")];
    assert_eq!(lines_of(origin.last().fields.lines(), &names), expected);
    assert_eq!(lines_of(response.fields.lines(), &names), expected[1..]);
}

#[test]
fn content_length_stands_where_it_stood_for_head_too() {
    let (proxy, _origin) = before(|request| {
        let body = if request.method == "HEAD" { "" } else { "four" };
        Reply::verbatim(format!(
            "HTTP/1.1 200 OK\r\nX-First: 1\r\nContent-Length: 4\r\nX-Last: 1\r\n\r\n{body}"
        ))
    });
    for request in [get("/"), head("/")] {
        // A cookie makes both requests bypass the store.
        let response = proxy.exchange(&request.with("Cookie", "a=b")).expect(200);
        let lines = lines_of(response.fields.lines(), &["X-First", "Content-Length", "X-Last"]);
        assert_eq!(lines, [("X-First", "1"), ("Content-Length", "4"), ("X-Last", "1")]);
    }
}

/// Regression: the edits recommended for shared pages also removed the cookies set at login.
#[test]
fn edits_may_be_made_of_what_is_stored_alone_and_of_what_is_not() {
    let origin = Origin::new(|request| {
        let answer = reply(200).with("Set-Cookie", "session=1").with("ETag", "\"one\"");
        match (request.path(), request.method.as_str()) {
            ("/account", _) => answer.cache("private"),
            _ => answer.cache("max-age=60"),
        }
    });
    let keys = "stored_response = { remove = [\"Set-Cookie\"], set = { Cache-Control = \"public, max-age=5\" } }\n\
                passed_response = { set = { X-Passed = \"yes\" } }\n\
                response = { set = { X-All = \"yes\" } }";
    let proxy = sandarac().config(site(&origin.url(), keys, "")).start();
    let edits = |response: sandarac_test_support::Response| {
        let field = |name: &str| response.field(name).unwrap_or_default().to_owned();
        assert_eq!(field("x-all"), "yes");
        [field("set-cookie"), field("cache-control"), field("x-passed")]
    };
    // First a miss, then a hit.
    for _ in 0..2 {
        assert_eq!(edits(proxy.get("/page")), ["", "public, max-age=5", ""]);
    }
    assert_eq!(origin.count(), 1);
    // This request is looked up, but its response may not be stored.
    assert_eq!(edits(proxy.get("/account")), ["session=1", "private", "yes"]);
    // These requests bypass the cache.
    for request in [post("/login", "x"), get("/page").with("Cookie", "session=1")] {
        assert_eq!(edits(proxy.exchange(&request)), ["session=1", "max-age=60", "yes"]);
    }
}

/// Regression: after a validation, a page stayed fresh for as long as its edited Cache-Control said, and answered requests for
/// every variant.
#[test]
fn edits_of_what_is_stored_do_not_change_how_long_and_for_whom_it_is() {
    // The page is stale when it arrives, and after each validation.
    let answer = |status| reply(status).cache("max-age=60").with("Age", "100").with("ETag", "\"one\"");
    let origin = Origin::new(move |request| match request.field("if-none-match") {
        Some(_) => answer(304),
        None => answer(200).with("Vary", "Accept-Language").with("Set-Cookie", "session=1"),
    });
    let keys = "stored_response = { remove = [\"Vary\", \"Set-Cookie\"], \
                set = { Cache-Control = \"max-age=1000\", ETag = \"\\\"two\\\"\" } }";
    let proxy = sandarac().config(site(&origin.url(), keys, "")).start();
    for asked in 1..=3 {
        let response = proxy.exchange(&get("/page").with("Accept-Language", "de")).expect(200);
        let names = ["Vary", "Set-Cookie", "Cache-Control", "ETag"];
        let expected = [("ETag", "\"two\""), ("Cache-Control", "max-age=1000")];
        let mut lines = lines_of(response.fields.lines(), &names);
        lines.sort_by_key(|(name, _)| name.len());
        assert_eq!(lines, expected);
        assert_eq!(origin.count(), asked, "validated each time");
        assert_eq!(origin.last().field("if-none-match"), (asked > 1).then_some("\"one\""));
    }
    proxy.exchange(&get("/page").with("Accept-Language", "fr")).expect(200);
    assert_eq!(origin.last().field("if-none-match"), None, "another variant");
    let known = get("/page").with("Accept-Language", "de").with("If-None-Match", "\"two\"");
    proxy.exchange(&known).expect(304);
}
