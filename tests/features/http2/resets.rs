//! Streams that are reset while their response is awaited or sent.

use sandarac_test_support::http2::{END_HEADERS, END_STREAM, Ended, Http2, block, frame, kind, usual};
use sandarac_test_support::{Conn, Listener, Sandarac, Signal};

use crate::{sandarac, site};

/// What makes the proxy reset stream 1, whose request has a body of 10 bytes and has sent 5, or what resets it.
fn resets() -> Vec<(&'static str, Vec<u8>)> {
    let trailers =
        |flags: u8, fields: &[(&str, &str)]| frame(kind::HEADERS, END_HEADERS | flags, 1, block(fields));
    let many: Vec<(String, &str)> = (0..300).map(|n| (format!("x-{n}"), "1")).collect();
    let large = "v".repeat(15_000);
    vec![
        ("upper case in a trailer", trailers(END_STREAM, &[("X", "y")])),
        ("a space in a trailer", trailers(END_STREAM, &[("x t", "y")])),
        ("a control byte in a trailer", trailers(END_STREAM, &[("x", "a\0b")])),
        ("a pseudo-field in trailers", trailers(END_STREAM, &[(":path", "/")])),
        ("a field of the connection in trailers", trailers(END_STREAM, &[("transfer-encoding", "chunked")])),
        ("too many trailers", frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, block(&many))),
        (
            "too large trailers",
            (0..3)
                .flat_map(|n| {
                    let (kind, flags) = [(kind::HEADERS, END_STREAM), (kind::CONTINUATION, 0)][n.min(1)];
                    let flags = flags | if n == 2 { END_HEADERS } else { 0 };
                    frame(kind, flags, 1, block(&[("x", &large)]))
                })
                .collect(),
        ),
        ("trailers before the end of the length", trailers(END_STREAM, &[("x", "y")])),
        ("a second head", trailers(0, &[("x", "y")])),
        ("an end before the length", frame(kind::DATA, END_STREAM, 1, "6789")),
        ("data beyond the length", frame(kind::DATA, 0, 1, "6789012345")),
        ("a window opened by nothing", frame(kind::WINDOW_UPDATE, 0, 1, [0; 4])),
        ("a window opened too far", frame(kind::WINDOW_UPDATE, 0, 1, [0x7f, 0xff, 0xff, 0xff])),
        ("a dependency on itself", frame(kind::PRIORITY, 0, 1, [0, 0, 0, 1, 1])),
        ("a frame of a wrong length", frame(kind::PRIORITY, 0, 1, [0; 4])),
        ("the client", frame(kind::RST_STREAM, 0, 1, [0, 0, 0, 8])),
    ]
}

/// Sandarac before a backend that takes one request at a time.
fn before_one() -> (Sandarac, Listener) {
    let listener = Listener::new();
    let text = site(&listener.url(), "", "")
        .replace("\"127.0.0.1:0\"", "\"127.0.0.1:0\"\nhttp2 = true")
        .replace("[pool.app]", "[pool.app]\nmax_in_flight = 1");
    (sandarac().config(format!("threads = 1\n{text}")).start(), listener)
}

/// Sends the head of an upload and a half of its body, and returns the client and the backend's connection.
fn begin_upload(proxy: &Sandarac, listener: &Listener) -> (Http2, Conn) {
    let mut client = Http2::over(Conn::to(proxy.address()), &[(4, 1 << 20)]);
    let stream = client.post("/", &[("content-length", "10")]);
    client.data(stream, "12345", false);
    let mut backend = listener.accept();
    backend.request_head();
    (client, backend)
}

/// Waits until stream 1 is reset, and checks that another request on its connection is served.
fn goes_on(name: &str, client: &mut Http2, listener: &Listener) {
    // Shown if the test fails.
    println!("{name}");
    if name != "the client" {
        let outcome = client.outcome(1);
        assert!(matches!(outcome, Err(Ended::Reset(_))), "{name}: {outcome:?}");
    }
    client.window(0, 1 << 20);
    let stream = client.get("/next", &[]);
    let mut backend = listener.accept();
    assert_eq!(backend.request_head().target, "/next", "{name}");
    backend.send(
        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnext",
    );
    assert_eq!(client.response(stream).text(), "next", "{name}");
}

#[test]
fn a_reset_stream_gives_back_its_place_at_the_backend_whatever_the_reason() {
    let (mut proxy, listener) = before_one();
    for (name, reset) in resets() {
        let (mut client, mut backend) = begin_upload(&proxy, &listener);
        client.try_send(reset).unwrap();
        goes_on(name, &mut client, &listener);
        backend.read_to_end();
    }
    proxy.signal(Signal::Terminate);
    assert!(proxy.wait().success());
}

#[test]
fn a_stream_that_is_reset_while_its_response_is_sent_leaves_the_order_of_output() {
    let (mut proxy, listener) = before_one();
    let mut last = None;
    for (name, reset) in resets() {
        let (mut client, mut backend) = begin_upload(&proxy, &listener);
        client.gives_windows = false;
        backend.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n").send(vec![b'x'; 150_000]);
        // The window of the connection is used up, and more waits for it.
        while client.begun(1).body.len() < 65_535 {
            client.step().unwrap();
        }
        client.try_send(reset).unwrap();
        goes_on(name, &mut client, &listener);
        last = Some(client);
    }
    proxy.signal(Signal::Terminate);
    assert_eq!(last.unwrap().end(), Ended::Closed);
    assert!(proxy.wait().success());
}

#[test]
fn a_request_with_refused_trailers_is_not_left_to_wait_for_its_end() {
    let (proxy, listener) = before_one();
    let mut client = Http2::to(proxy.address());
    let stream = client.head(&usual("POST", "/"), false);
    client.data(stream, "12345", false);
    let mut backend = listener.accept();
    assert_eq!(backend.request_head().field("Transfer-Encoding"), Some("chunked"));
    backend.expect("5\r\n12345\r\n");
    client.trailers(stream, &[("X", "y")]);
    assert_eq!(client.outcome(stream).unwrap_err(), Ended::Reset(1));
    // The body did not end, as far as the backend knows.
    backend.expect_end();
}
