//! Methods other than GET and HEAD, and Max-Forwards.

use sandarac_test_support::{Origin, get, head, reply, request};

use crate::{before, cache, sandarac};

#[test]
fn any_method_is_passed_on() {
    let (proxy, origin) = before(|request| reply(200).with("X-Method", &request.method));
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND", "M-SEARCH", "get"] {
        let response = proxy.exchange(&request(method, "/")).expect(200);
        assert_eq!(response.field("x-method"), Some(method));
    }
    assert_eq!(origin.count(), 8);
}

/// Regression: `post /admin` passed a route that forbids `POST /admin`, to an application that reads methods in upper case.
#[test]
fn a_method_in_lower_case_does_not_get_around_a_route() {
    let origin = Origin::new(|_| reply(200));
    let routes = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[pool.app]\nbackends = [{:?}]\n\
         [[route]]\nmatch = {{ method = \"POST\", path = \"/admin\" }}\nanswer = {{ status = 403 }}\n\
         [[route]]\npool = \"app\"\n",
        origin.url()
    );
    let proxy = sandarac().config(routes).start();
    proxy.exchange(&request("POST", "/admin")).expect(403);
    for method in ["post", "Post", "pOST"] {
        proxy.exchange(&request(method, "/admin")).expect(400);
    }
    proxy.exchange(&request("post", "/else")).expect(200);
    assert_eq!(origin.count(), 1);
}

#[test]
fn options_for_the_server_is_passed_on_as_it_is() {
    let (proxy, origin) = before(|_| reply(200).with("Allow", "GET, HEAD"));
    let response = proxy.exchange(&request("OPTIONS", "*")).expect(200);
    assert_eq!(origin.last().target, "*");
    assert_eq!(response.field("allow"), Some("GET, HEAD"));
}

#[test]
fn an_absolute_target_without_a_path_becomes_the_asterisk_of_options() {
    let (proxy, origin) = before(|_| reply(200));
    proxy.exchange(&request("OPTIONS", "http://www.example")).expect(200);
    assert_eq!(origin.last().target, "*");
}

#[test]
fn max_forwards_is_counted_down() {
    let (proxy, origin) = before(|_| reply(200));
    proxy.exchange(&request("OPTIONS", "/").with("Max-Forwards", "3")).expect(200);
    assert_eq!(origin.last().field("max-forwards"), Some("2"));
    proxy.exchange(&get("/").with("Max-Forwards", "3")).expect(200);
    assert_eq!(origin.last().field("max-forwards"), Some("3"), "it counts for OPTIONS and TRACE only");
}

#[test]
fn max_forwards_of_zero_ends_here() {
    let (proxy, origin) = before(|_| reply(200).with("X-From", "origin"));
    for (method, target) in [("OPTIONS", "/"), ("OPTIONS", "*"), ("TRACE", "/")] {
        let response = proxy.exchange(&request(method, target).with("Max-Forwards", "0"));
        assert_eq!(response.field("x-from"), None, "{method} {target}: {response:?}");
        if method == "OPTIONS" {
            assert_eq!(response.status / 100, 2);
        }
    }
    assert_eq!(origin.count(), 0);
}

#[test]
fn connect_is_refused() {
    let (proxy, origin) = before(|_| reply(200));
    let mut client = proxy.connect();
    client.send("CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n");
    let response = client.response_to("CONNECT");
    let allowed = response.expect(405).field("allow").unwrap_or_default().to_owned();
    assert!(allowed.contains("POST") && !allowed.contains("CONNECT"), "{allowed}");
    assert_eq!(origin.count(), 0);
}

/// Regression: HEAD was forwarded as HEAD, and the body that some origins then send was taken for the next client's response.
#[test]
fn head_under_safe_fetches_by_get_and_fills() {
    let (proxy, origin) = before(|request| {
        let control = if request.target == "/private" { "private" } else { "max-age=60" };
        reply(200).cache(control).with("ETag", "\"one\"").body(format!("body of {}", request.target))
    });
    let mut client = proxy.connect();
    let response = client.exchange(&head("/page").with("Range", "bytes=0-1")).expect(200);
    assert_eq!(response.field("content-length"), Some("13"));
    assert_eq!(response.field("etag"), Some("\"one\""));
    assert!(origin.last().method == "GET" && !origin.last().fields.has("range"));
    assert_eq!(client.get("/page").text(), "body of /page");
    assert!(client.exchange(&head("/page")).expect(200).is_hit());
    assert_eq!(origin.count(), 1);
    // The body of a response that may not be stored is not read, and the connection to the origin is closed.
    let opened = origin.connections();
    let response = client.exchange(&head("/private")).expect(200);
    assert_eq!(response.field("content-length"), Some("16"));
    assert_eq!(origin.last().method, "GET");
    assert_eq!(client.get("/private").text(), "body of /private");
    assert_eq!(origin.connections(), opened + 1);
    // A HEAD that bypasses the store is forwarded as HEAD.
    client.exchange(&head("/page").with("Cookie", "a=1")).expect(200);
    assert_eq!(origin.last().method, "HEAD");
}

#[test]
fn head_under_rfc_goes_on_as_it_came() {
    let (proxy, origin) = cache(|_| reply(200).cache("max-age=60").body("body"));
    proxy.exchange(&head("/")).expect(200);
    assert_eq!(origin.last().method, "HEAD");
}
