//! Request targets and Host: which of them counts, and how they are forwarded.

use sandarac_test_support::{get, post, reply};

use crate::{before, cache, sandarac, site};

#[test]
fn an_absolute_target_overrides_host() {
    let (proxy, origin) = before(|_| reply(200));
    proxy.exchange(&get("http://other.example:8080/x?y=z").host("www.example")).expect(200);
    let request = origin.last();
    assert_eq!(request.target, "/x?y=z");
    assert_eq!(request.fields.all("host"), ["other.example:8080"]);
    proxy.exchange(&get("HTTP://third.example")).expect(200);
    let request = origin.last();
    assert_eq!(request.target, "/");
    assert_eq!(request.field("host"), Some("third.example"));
}

/// Regression: it was refused, although an empty path is `/` (RFC 9110 §4.2.3).
#[test]
fn an_absolute_target_with_a_query_and_no_path_has_the_path_of_the_root() {
    let (proxy, origin) = cache(|_| reply(200).cache("max-age=60"));
    assert_eq!(proxy.exchange(&get("http://www.example?x=/y")).expect(200).text(), "1");
    assert_eq!(origin.last().target, "/?x=/y");
    assert!(proxy.exchange(&get("/?x=/y").host("www.example")).is_hit());
    assert!(proxy.exchange(&get("HTTP://www.example?x=/y")).is_hit());
    proxy.exchange(&post("http://www.example?z", "body")).expect(200);
    assert_eq!((origin.last().target.as_str(), origin.last().text().as_str()), ("/?z", "body"));
    proxy.exchange(&get("?x")).expect(400);
}

/// Regression: any client could claim https, and the claim was forwarded to the origin (RFC 9110 §7.4).
#[test]
fn a_target_is_https_only_where_a_trusted_proxy_says_so() {
    let (proxy, origin) = before(|_| reply(200).cache("max-age=60"));
    proxy.exchange(&get("https://www.example/")).expect(421);
    proxy.exchange(&post("https://www.example/", "x")).expect(421);
    assert_eq!(origin.count(), 0);
    let address = "address = \"127.0.0.1:0\"\n";
    let trusting = format!("{address}trusted_proxies = [\"127.0.0.1\"]\n");
    let text = site(&origin.url(), "", "").replace(address, &trusting);
    let proxy = sandarac().config(text).start();
    proxy.exchange(&get("https://www.example/")).expect(200);
    assert_eq!(origin.last().field("x-forwarded-proto"), Some("https"));
    // X-Forwarded-Proto gives the same page; http gives another.
    assert!(proxy.exchange(&get("/").with("X-Forwarded-Proto", "https")).is_hit());
    assert!(!proxy.get("/").is_hit());
}

#[test]
fn an_absolute_target_is_the_same_object_as_its_other_form() {
    let (proxy, origin) = cache(|_| reply(200).cache("max-age=60"));
    proxy.exchange(&get("http://www.example/page"));
    assert!(proxy.exchange(&get("/page").host("www.example")).is_hit());
    assert!(!proxy.exchange(&get("http://other.example/page").host("www.example")).is_hit());
    assert_eq!(origin.count(), 2);
}

#[test]
fn targets_go_on_as_they_came() {
    let (proxy, origin) = before(|_| reply(200));
    for target in ["/", "/a/b?c=d&e", "/%61?%20=+", "/a;b=c,d/e:f@g", "//double//slash/", "/?", "/~a/(b)*!'$"]
    {
        proxy.get(target).expect(200);
        assert_eq!(origin.last().target, target);
    }
}

#[test]
fn unusual_bytes_in_a_target_are_carried_through() {
    let (proxy, origin) = before(|_| reply(200));
    for (raw, encoded) in
        [("/<a>", "/%3Ca%3E"), ("/`", "/%60"), ("/?\"", "/?%22"), ("/{|}^", "/%7B%7C%7D%5E")]
    {
        proxy.get(raw).expect(200);
        let target = origin.last().target;
        assert!(target == raw || target == encoded, "{target}");
    }
    let mut client = proxy.connect();
    client.send(b"GET /caf\xe9 HTTP/1.1\r\nHost: www.example\r\n\r\n");
    client.response().expect(200);
    let target = origin.last().target;
    assert!(target == "/caf\u{e9}" || target.eq_ignore_ascii_case("/caf%e9"), "{target}");
}

#[test]
fn host_is_always_part_of_the_key() {
    let (proxy, origin) = cache(|_| reply(200).cache("max-age=60"));
    let first = proxy.exchange(&get("/").host("a.example"));
    let second = proxy.exchange(&get("/").host("b.example"));
    let third = proxy.exchange(&get("/").host("a.example:81"));
    assert_eq!([first.text(), second.text(), third.text()], ["1", "2", "3"]);
    assert_eq!(proxy.exchange(&get("/").host("b.example")).text(), "2");
    assert_eq!(origin.count(), 3);
}

#[test]
fn the_query_is_part_of_the_key() {
    let (proxy, origin) = cache(|_| reply(200).cache("max-age=60"));
    for target in ["/", "/?", "/?a", "/?b", "/?a&b", "/?a", "/?b"] {
        proxy.get(target).expect(200);
    }
    assert_eq!(
        origin.requests().iter().map(|request| request.target.as_str()).collect::<Vec<_>>(),
        ["/", "/?", "/?a", "/?b", "/?a&b"]
    );
}

#[test]
fn an_asterisk_is_for_options_only() {
    let (proxy, origin) = before(|_| reply(200));
    proxy.get("*").expect(400);
    proxy.get("no-slash").expect(400);
    assert_eq!(origin.count(), 0);
}

#[test]
fn what_is_wrong_with_a_target_is_said_in_words() {
    let (proxy, origin) = before(|_| reply(200));
    for (request, words) in [
        ("GET /../x HTTP/1.1\r\nHost: a\r\n\r\n", "the path leads above the root"),
        ("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", "the path has a malformed percent escape"),
        (
            "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "the request target has a scheme other than http and https",
        ),
    ] {
        let mut client = proxy.connect();
        client.send(request);
        let text = client.response().expect(400).text();
        assert!(text.ends_with(&format!(": {words}\n")), "{text}");
    }
    assert_eq!(origin.count(), 0);
}
