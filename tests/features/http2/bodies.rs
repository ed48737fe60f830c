//! Bodies of requests.

use sandarac_test_support::http2::{END_STREAM, Http2, frame, kind, usual};
use sandarac_test_support::{Listener, reply};

use super::{before, before_with, connect};
use crate::{sandarac, site};

fn detail(response: &sandarac_test_support::Response) -> &str {
    response.field("cache-status").unwrap_or_default()
}

/// Sends a GET whose body has no length: the head, and a frame of data that ends it.
fn get_with(client: &mut Http2, path: &str, body: &str) -> u32 {
    let stream = client.head(&usual("GET", path), false);
    client.data(stream, body, true);
    stream
}

#[test]
fn a_get_with_a_body_bypasses_the_cache_and_its_body_is_forwarded() {
    let (proxy, origin) = before(|_| reply(200).cache("max-age=60").body("page"));
    let mut client = connect(&proxy);
    let stream = client.get("/warm", &[]);
    client.response(stream);
    for (count, path) in [(2, "/warm"), (3, "/cold")] {
        let stream = get_with(&mut client, path, "hello");
        let response = client.response(stream);
        assert!(detail(&response).contains("detail=request-body"), "{response:?}");
        assert_eq!((origin.count(), origin.last().body.as_slice()), (count, &b"hello"[..]));
    }
    // Its response was not stored.
    let stream = client.get("/cold", &[]);
    assert!(!client.response(stream).is_hit());
    let stream = client.head(&usual("HEAD", "/warm"), false);
    client.data(stream, "hello", true);
    let response = client.response(stream);
    assert!(detail(&response).contains("detail=request-body"), "{response:?}");
    assert_eq!(origin.last().body, b"hello");
}

#[test]
fn a_get_whose_body_does_not_come_soon_has_one() {
    let listener = Listener::new();
    let text = site(&listener.url(), "", "").replace("\"127.0.0.1:0\"", "\"127.0.0.1:0\"\nhttp2 = true");
    let proxy = sandarac().config(text).start();
    let mut client = connect(&proxy);
    let stream = client.head(&usual("GET", "/"), false);
    let mut conn = listener.accept();
    assert_eq!(conn.request_head().field("Transfer-Encoding"), Some("chunked"));
    client.data(stream, "late", true);
    conn.expect("4\r\nlate\r\n0\r\n\r\n");
    conn.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\npage");
    let response = client.response(stream);
    assert!(detail(&response).contains("detail=request-body"), "{response:?}");
}

#[test]
fn a_get_that_an_empty_frame_ends_at_once_has_no_body() {
    let (proxy, origin) = before(|_| reply(200).cache("max-age=60").body("page"));
    let mut client = connect(&proxy);
    let warm = client.get("/", &[]);
    client.response(warm);
    let (stream, head) = client.request(&usual("GET", "/"), b"");
    let mut head = head;
    head[4] &= !END_STREAM;
    client.try_send([head, frame(kind::DATA, END_STREAM, stream, "")].concat()).unwrap();
    let response = client.response(stream);
    assert!(response.is_hit(), "{response:?}");
    assert_eq!(origin.count(), 1);
}

/// A request is complete with END_STREAM only (RFC 9113 §8.1), and more than Content-Length makes it malformed
/// (§8.1.1).
#[test]
fn an_upload_of_its_length_is_not_whole_before_its_stream_has_ended() {
    let listener = Listener::new();
    let text = site(&listener.url(), "", "").replace("\"127.0.0.1:0\"", "\"127.0.0.1:0\"\nhttp2 = true");
    let proxy = sandarac().config(text).start();
    for end in ["cancelled", "more"] {
        let mut client = connect(&proxy);
        let stream = client.post("/", &[("content-length", "10")]);
        client.data(stream, "ten bytes.", false);
        let mut conn = listener.accept();
        let mut request = conn.request_head();
        client.settle();
        match end {
            "cancelled" => client.reset(stream),
            _ => client.data(stream, "!", true),
        };
        assert!(conn.try_request_body(&mut request).is_err(), "{end}: {request:?}");
    }
    let mut client = connect(&proxy);
    let stream = client.post("/", &[("content-length", "10")]);
    client.data(stream, "ten bytes.", false);
    let mut conn = listener.accept();
    let mut request = conn.request_head();
    client.settle();
    client.data(stream, "", true);
    conn.try_request_body(&mut request).expect("the whole body");
    assert_eq!(request.body, b"ten bytes.");
}

/// Content-Length: 0 says that there is nothing, and END_STREAM that nothing comes: only both make the request
/// whole.
#[test]
fn an_upload_of_no_bytes_is_not_whole_before_its_stream_has_ended() {
    let (proxy, origin) = before(|_| reply(200).body("done"));
    let mut client = connect(&proxy);
    let stream = client.post("/more", &[("content-length", "0")]);
    client.data(stream, "more", true);
    assert!(client.outcome(stream).is_err());
    let stream = client.post("/empty", &[("content-length", "0")]);
    client.data(stream, "", true);
    assert_eq!(client.response(stream).text(), "done");
    assert_eq!((origin.count_of("/more"), origin.count_of("/empty")), (0, 1));
    assert_eq!(origin.last().field("Content-Length"), Some("0"));
    // Its end does not come soon.
    let listener = Listener::new();
    let text = site(&listener.url(), "", "").replace("\"127.0.0.1:0\"", "\"127.0.0.1:0\"\nhttp2 = true");
    let proxy = sandarac().config(text).start();
    let mut client = connect(&proxy);
    let stream = client.post("/late", &[("content-length", "0")]);
    let mut conn = listener.accept();
    let head = conn.request_head();
    assert_eq!((head.field("Transfer-Encoding"), head.field("Content-Length")), (Some("chunked"), None));
    client.data(stream, "", true);
    conn.expect("0\r\n\r\n");
    conn.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate");
    assert_eq!(client.response(stream).text(), "late");
}

/// Some clients read nothing before they have sent their request, and lose a response whose stream is reset by
/// then.
#[test]
fn a_client_that_is_answered_early_may_go_on_for_a_while_and_is_told_to_stop_then() {
    let (proxy, _origin) = before_with("[limits]\nbody = \"1KiB\"\n", |_| reply(200));
    let mut client = connect(&proxy);
    // The window is large enough for the upload only once the client has acknowledged the settings.
    client.settle();
    let upload = [&usual("POST", "/")[..], &[("content-length", "200000")]].concat();
    let (stream, mut head) = client.request(&upload, b"");
    head[4] &= !END_STREAM;
    let data = frame(kind::DATA, 0, stream, [b'a'; 16_000]);
    let ping = frame(kind::PING, 0, 0, [0; 8]);
    client.try_send([head, data.repeat(4)].concat()).unwrap();
    let mut seen = Vec::new();
    loop {
        let frame = client.next_frame().unwrap();
        seen.push((frame.kind, frame.stream));
        if frame.kind == kind::HEADERS {
            client.try_send([data.repeat(4), ping.clone()].concat()).unwrap();
        }
        if frame.kind == kind::RST_STREAM {
            assert_eq!((frame.stream, frame.number(0)), (stream, 0), "NO_ERROR");
            break;
        }
    }
    let place = |kind, stream| seen.iter().position(|frame| *frame == (kind, stream));
    assert!(place(kind::HEADERS, stream) < place(kind::PING, 0), "{seen:?}");
    assert!(place(kind::PING, 0) < place(kind::RST_STREAM, stream), "{seen:?}");
    let stream = client.get("/", &[]);
    assert_eq!(client.response(stream).status, 200);
}
