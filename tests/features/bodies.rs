//! Bodies of requests and responses, and interim responses.

use sandarac_test_support::{Gate, Listener, Origin, get, head, post, reply, request};

use crate::{before, sandarac, site};

#[test]
fn a_large_body_arrives_whole_in_both_directions() {
    let body: String = (0..400_000).map(|i| format!("{i:06} ")).collect();
    let sent = body.clone();
    let (proxy, origin) = before(move |_| reply(200).cache("no-store").body(&sent));
    let mut client = proxy.connect();
    let response = client.exchange(&post("/", &body)).expect(200);
    assert!(response.text() == body, "the response differs");
    assert!(origin.last().text() == body, "the request differs");
    assert_eq!(response.field("content-length"), Some(body.len().to_string().as_str()));
}

/// Regression: `Content-Length: 0` was dropped, and some origins refused such requests with 411.
#[test]
fn an_empty_body_is_announced_where_the_method_expects_one_or_the_client_announced_it() {
    let (proxy, origin) = before(|_| reply(200).cache("no-store"));
    let mut client = proxy.connect();
    for method in ["POST", "PUT", "PATCH"] {
        client.exchange(&request(method, "/").body("")).expect(200);
        assert_eq!(origin.last().fields.all("content-length"), ["0"], "{method} with a length");
        client.exchange(&request(method, "/")).expect(200);
        assert_eq!(origin.last().fields.all("content-length"), ["0"], "{method} without a length");
        client.exchange(&request(method, "/").chunked(&[])).expect(200);
        assert!(!origin.last().fields.has("content-length"), "{method} in chunks");
    }
    client.exchange(&request("DELETE", "/").with("Content-Length", "00")).expect(200);
    assert_eq!(origin.last().fields.all("content-length"), ["0"]);
    for bodyless in [request("DELETE", "/"), get("/").body(""), get("/").body("").with("Cookie", "a=1")] {
        client.exchange(&bodyless).expect(200);
        assert!(!origin.last().fields.has("content-length"), "{:?}", origin.last());
    }
}

#[test]
fn a_chunked_response_comes_with_its_trailers() {
    let (proxy, origin) = before(|_| {
        reply(200)
            .cache("no-store")
            .with("Trailer", "Sum")
            .chunked()
            .body("hello ")
            .body("world")
            .trailer("Sum", "11")
    });
    let request = get("/").with("TE", "trailers").with("Connection", "TE").with("Cookie", "a=b");
    let response = proxy.exchange(&request).expect(200);
    assert_eq!(response.text(), "hello world");
    assert_eq!(response.field("trailer"), Some("Sum"));
    let asked = origin.last().fields;
    assert_eq!(asked.list("te"), "trailers");
    assert_eq!(asked.list("connection"), "TE");
    assert_eq!(response.trailers.get("sum"), Some("11"));
    assert_eq!(response.fields.all("transfer-encoding"), ["chunked"]);
}

/// A request whose trailers could be taken for another request, for header fields, or for fields that a rule edits.
const WITH_TRAILERS: &str = "POST /in HTTP/1.1\r\nHost: www.example\r\nTransfer-Encoding: chunked\r\nTrailer: Sum\r\n\r\n\
     6\r\nhello \r\n5;name=value\r\nworld\r\n0\r\nSum: 11\r\nX: /smuggled HTTP/1.1\r\nX-Remote-User: admin\r\nX_Remote_User: admin\r\n\
     X-Secret: set\r\nX-Original-URL: /admin\r\nAuthorization: Basic eA==\r\nIf-Match: *\r\nContent-Length: 5\r\n\r\n";

/// Regression: servers that leave trailers unread took them for the next request, and other servers took them for header
/// fields.
#[test]
fn trailers_of_requests_stay_here() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let mut client = proxy.connect();
    client.send(WITH_TRAILERS);
    let mut origin = listener.accept();
    let request = origin.request_head();
    assert_eq!(request.fields.all("transfer-encoding"), ["chunked"]);
    assert!(!request.fields.has("content-length") && !request.fields.has("trailer"), "{request:?}");
    assert!(origin.read_through("0\r\n\r\n").ends_with(b"world\r\n0\r\n\r\n"));
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    client.response().expect(200);
    origin.expect_end();
}

#[test]
fn trailers_of_requests_go_on_where_the_pool_asks_for_them_and_as_fields_would() {
    let origin = Origin::new(|_| reply(200));
    let route = "request = { remove = [\"X-Remote-User\"], set = { X-Secret = \"ours\" } }";
    let text = site(&origin.url(), route, "").replace("[[route]]", "forward_trailers = true\n\n[[route]]");
    let proxy = sandarac().config(text).start();
    let mut client = proxy.connect();
    client.send(WITH_TRAILERS);
    client.response().expect(200);
    let request = origin.last();
    assert_eq!(request.text(), "hello world");
    assert_eq!(request.field("trailer"), Some("Sum"));
    assert_eq!(request.field("x-secret"), Some("ours"));
    assert_eq!(request.trailers.get("sum"), Some("11"));
    assert_eq!(request.trailers.get("x"), Some("/smuggled HTTP/1.1"));
    for name in [
        "x-remote-user",
        "x_remote_user",
        "x-secret",
        "x-original-url",
        "authorization",
        "if-match",
        "content-length",
    ] {
        assert!(!request.trailers.has(name), "{name}");
    }
    assert_eq!(client.get("/next").status, 200);
}

#[test]
fn trailers_of_responses_reach_clients_that_read_them_and_pass_the_edits() {
    let origin = Origin::new(|request| {
        let control = if request.target == "/stored" { "max-age=60" } else { "no-store" };
        reply(200).cache(control).chunked().body("body").trailer("Sum", "4").trailer("X-Internal", "1")
    });
    let route = "response = { remove = [\"X-Internal\"] }";
    let proxy = sandarac().config(site(&origin.url(), route, "")).start();
    for target in ["/stored", "/passed"] {
        let reading = get(target).with("TE", "trailers").with("Connection", "TE");
        let response = proxy.exchange(&reading).expect(200);
        let expected = if response.fields.has("content-length") { None } else { Some("4") };
        assert_eq!(response.trailers.get("sum"), expected);
        assert_eq!(response.trailers.get("x-internal"), None);
        let response = proxy.get(target).expect(200);
        assert_eq!(response.text(), "body");
        assert!(!response.trailers.has("sum"));
    }
}

#[test]
fn a_response_goes_on_as_it_comes() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, _origin) =
        before(move |_| reply(200).cache("no-store").chunked().body("first").pause(&held).body("second"));
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    client.response_head();
    client.read_through("first");
    gate.open();
    client.read_through("second");
}

#[test]
fn a_request_body_goes_on_as_it_comes() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let mut client = proxy.connect();
    client.send("PUT /up HTTP/1.1\r\nHost: www.example\r\nContent-Length: 10\r\n\r\nfirst");
    let mut origin = listener.accept();
    assert_eq!(origin.request_head().target, "/up");
    origin.expect("first");
    client.send("later");
    origin.expect("later").send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    client.response().expect(201);
}

#[test]
fn a_response_that_ends_with_the_connection_reaches_the_client_framed() {
    let (proxy, _origin) = before(|_| reply(200).until_close().body("until the end"));
    let mut client = proxy.connect();
    let response = client.get("/").expect(200);
    assert_eq!(response.text(), "until the end");
    assert_eq!(response.field("transfer-encoding"), Some("chunked"));
    client.get("/").expect(200);
}

#[test]
fn an_http_1_0_origin_is_understood() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    let mut origin = listener.accept();
    origin.request();
    origin.send("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nold times");
    drop(origin);
    let response = client.response().expect(200);
    assert_eq!(response.version, "HTTP/1.1");
    assert_eq!(response.text(), "old times");
}

#[test]
fn head_has_the_fields_of_get_and_no_body() {
    let (proxy, _origin) = before(|_| reply(200).cache("no-store").with("X-Kind", "page").body("12345"));
    let mut client = proxy.connect();
    let response = client.exchange(&head("/")).expect(200);
    assert_eq!(response.field("content-length"), Some("5"));
    assert_eq!(response.field("x-kind"), Some("page"));
    assert_eq!(client.get("/").expect(200).text(), "12345");
}

#[test]
fn statuses_without_a_body_have_none() {
    let (proxy, _origin) = before(|request| reply(request.path()[1..].parse().unwrap()).cache("no-store"));
    let mut client = proxy.connect();
    for status in [204, 304, 204] {
        let asked = get(&format!("/{status}")).with("Cookie", "a=b").with("If-None-Match", "\"v1\"");
        let response = client.exchange(&asked).expect(status);
        assert!(!response.fields.has("transfer-encoding"));
    }
}

#[test]
fn the_origin_decides_whether_a_body_is_wanted() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let mut client = proxy.connect();
    client.send("PUT / HTTP/1.1\r\nHost: www.example\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    let mut origin = listener.accept();
    assert_eq!(origin.request_head().field("expect"), Some("100-continue"));
    origin.send("HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(client.response_head().status, 100);
    client.send("body");
    origin.expect("body").send("HTTP/1.1 204 No Content\r\n\r\n");
    client.response().expect(204);
}

#[test]
fn an_origin_can_refuse_a_body_before_it_is_sent() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let mut client = proxy.connect();
    client.send("PUT / HTTP/1.1\r\nHost: www.example\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    let mut origin = listener.accept();
    origin.request_head();
    origin.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    let response = client.response().expect(403);
    assert!(response.interim.is_empty(), "{response:?}");
    assert_eq!(response.text(), "no");
}

#[test]
fn an_unknown_expectation_is_refused() {
    let (proxy, origin) = before(|_| reply(200));
    proxy.exchange(&get("/").with("Expect", "the-unexpected")).expect(417);
    assert_eq!(origin.count(), 0);
}

#[test]
fn an_answer_before_the_end_of_the_request_reaches_the_client() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let mut client = proxy.connect();
    client.send("POST / HTTP/1.1\r\nHost: www.example\r\nContent-Length: 1000000\r\n\r\nsome");
    let mut origin = listener.accept();
    origin.request_head();
    origin.send("HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlots");
    drop(origin);
    assert_eq!(client.response().expect(413).text(), "lots");
}

#[test]
fn interim_responses_go_on_before_the_final_one() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    let mut origin = listener.accept();
    origin.request();
    origin.send(
        "HTTP/1.1 102 Processing\r\nContent-Length: 0\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n",
    );
    let processing = client.response_head();
    assert_eq!((processing.status, processing.field("content-length")), (102, None));
    let hints = client.response_head();
    assert_eq!(hints.status, 103);
    assert_eq!(hints.field("link"), Some("</style.css>; rel=preload"));
    origin.send("HTTP/1.1 103 Early Hints\r\nLink: </more.css>; rel=preload\r\n\r\n");
    assert_eq!(client.response_head().field("link"), Some("</more.css>; rel=preload"));
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage");
    let page = client.response().expect(200);
    assert_eq!(page.text(), "page");
    assert_eq!(page.field("link"), None);
}

#[test]
fn an_http_1_0_client_gets_no_interim_responses() {
    let (proxy, _origin) = before(|_| reply(200).interim(103, "Link: </a>\r\n").body("page"));
    let response = proxy.exchange(&request("GET", "/").http10()).expect(200);
    assert!(response.interim.is_empty());
    assert_eq!(response.text(), "page");
}

#[test]
fn an_answer_that_does_not_wait_for_the_body_says_that_the_connection_ends() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).start();
    let mut client = proxy.connect();
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    let mut origin = listener.accept();
    origin.request_head();
    origin.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    let response = client.response().expect(403);
    assert_eq!(response.field("connection"), Some("close"));
    client.expect_end();
}

#[test]
fn an_expectation_that_came_twice_goes_on_once() {
    let (proxy, origin) = before(|_| reply(200));
    let twice = "POST / HTTP/1.1\r\nHost: www.example\r\nContent-Length: 4\r\nExpect: 100-continue\r\nExpect: 100-continue\r\n\r\n";
    let mut client = proxy.connect();
    client.send(twice);
    client.response_head().expect(100);
    client.send("body");
    client.response().expect(200);
    assert_eq!(origin.last().fields.all("expect"), ["100-continue"]);
}
