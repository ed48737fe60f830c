//! Connections as transcripts: frames in, events and replies out.

use crate::frames::raw;
use crate::heads::block;
use proptest::prelude::*;
use sandarac_message::Method;
use sandarac_wire::h1::Parsed;
use sandarac_wire::h2::connection::{CannotOpen, Config, Connection, Event, NoStream};
use sandarac_wire::h2::frame::{Frame, PREFACE, decode};
use sandarac_wire::h2::settings::Settings;
use sandarac_wire::h2::{ErrorCode, Fault, HeadBuf, Refusal};
use std::time::Duration;

pub(crate) const SETTINGS: u8 = 4;

/// One side of a connection, with its output.
pub(crate) struct Side {
    pub(crate) connection: Connection,
    pub(crate) out: Vec<u8>,
    now: Duration,
}

impl Side {
    /// A server that has exchanged settings with its client.
    pub(crate) fn server() -> Side {
        Side::server_with(&Config::default())
    }

    fn server_with(config: &Config) -> Side {
        let mut out = Vec::new();
        let mut side = Side { connection: Connection::server(config, &mut out), out, now: Duration::ZERO };
        side.feed(PREFACE).unwrap();
        side.feed(&raw(SETTINGS, 0, 0, b"")).unwrap();
        side.feed(&raw(SETTINGS, 1, 0, b"")).unwrap();
        side.out.clear();
        side
    }

    fn client() -> Side {
        let mut out = Vec::new();
        let connection = Connection::client(&Config::default(), &mut out);
        let mut side = Side { connection, out, now: Duration::ZERO };
        side.feed(&raw(SETTINGS, 0, 0, b"")).unwrap();
        side.feed(&raw(SETTINGS, 1, 0, b"")).unwrap();
        side.out.clear();
        side
    }

    /// Passes whole frames to the connection, and returns the events as text. Data is released at once.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Vec<String>, Fault> {
        let (mut events, mut at) = (Vec::new(), 0);
        let mut head = HeadBuf::default();
        while at < bytes.len() {
            let received = self.connection.receive(&bytes[at..], &mut head, &mut self.out, self.now)?;
            let release = match &received.event {
                Some(Event::Data { stream, data, .. }) => Some((*stream, data.len() as u32)),
                _ => None,
            };
            events.extend(received.event.as_ref().map(told));
            if received.consumed == 0 {
                break;
            }
            at += received.consumed;
            if let Some((stream, bytes)) = release {
                self.connection.release(stream, bytes, &mut self.out);
            }
        }
        Ok(events)
    }

    /// The frames that were written since the last call, as text.
    fn replies(&mut self) -> Vec<String> {
        let out = std::mem::take(&mut self.out);
        let (mut frames, mut at) = (Vec::new(), 0);
        while let Ok(Parsed::Complete((frame, len))) = decode(&out[at..], 1 << 23) {
            frames.push(match frame {
                Frame::Reset { stream, code } => format!("reset {stream} {}", code.name()),
                Frame::GoAway { last_stream, code, debug } => {
                    format!("goaway {last_stream} {} {}", code.name(), String::from_utf8_lossy(debug))
                }
                Frame::WindowUpdate { stream, increment } => format!("window {stream} {increment}"),
                Frame::Ping { ack, data } => format!("ping {ack} {}", String::from_utf8_lossy(&data)),
                Frame::SettingsAck => "settings ack".to_owned(),
                Frame::Headers { stream, block, end_stream, .. } => {
                    format!("headers {stream} {block:?} {end_stream}")
                }
                other => format!("{other:?}"),
            });
            at += len;
        }
        assert_eq!(at, out.len());
        frames
    }

    /// The fault that ends the connection, and the GOAWAY that was sent.
    pub(crate) fn ends(&mut self, bytes: &[u8]) -> Fault {
        let fault = self.feed(bytes).expect_err("the connection ends");
        let last = self.replies().pop().unwrap();
        assert!(last.starts_with("goaway") && last.ends_with(fault.name()), "{last}");
        fault
    }
}

fn told(event: &Event<'_>) -> String {
    match event {
        Event::Request { stream, request, priority, end_stream } => format!(
            "request {stream} {} u={} i={} {}",
            String::from_utf8_lossy(request.head.target),
            priority.urgency,
            priority.incremental,
            end(*end_stream)
        ),
        Event::Response { stream, response, end_stream } => {
            format!("response {stream} {} {}", response.head.status, end(*end_stream))
        }
        Event::Data { stream, data, end_stream } => {
            format!("data {stream} {} {}", String::from_utf8_lossy(data), end(*end_stream))
        }
        Event::Trailers { stream, fields } => format!("trailers {stream} {}", fields.len()),
        Event::Reset { stream, code, fault } => {
            format!("reset {stream} {} {}", code.name(), fault.map_or("peer", Fault::name))
        }
        Event::Refused { stream, refusal } => format!("refused {stream} {}", refusal.name()),
        Event::Malformed { stream, refusal } => format!("malformed {stream} {}", refusal.name()),
        other => format!("{other:?}"),
    }
}

fn end(end_stream: bool) -> &'static str {
    if end_stream { "end" } else { "open" }
}

fn get_block() -> Vec<u8> {
    block(&[(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/")])
}

/// A GET on a stream, with END_STREAM or not.
pub(crate) fn get(stream: u32, end_stream: bool) -> Vec<u8> {
    raw(1, 4 | u8::from(end_stream), stream, &get_block())
}

pub(crate) fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    raw(8, 0, stream, &increment.to_be_bytes())
}

pub(crate) fn reset(stream: u32) -> Vec<u8> {
    raw(3, 0, stream, &8u32.to_be_bytes())
}

#[test]
fn a_connection_begins_with_preface_and_settings() {
    let mut out = Vec::new();
    let fresh = |out: &mut Vec<u8>| Side {
        connection: Connection::server(&Config::default(), out),
        out: Vec::new(),
        now: Duration::ZERO,
    };
    assert_eq!(fresh(&mut out).ends(b"GET / HTTP/1.1\r\n"), Fault::InvalidPreface);
    assert_eq!(fresh(&mut out).feed(&PREFACE[..10]), Ok(vec![]));
    let bytes = [PREFACE, &raw(6, 0, 0, b"12345678")[..]].concat();
    assert_eq!(fresh(&mut out).ends(&bytes), Fault::MissingSettings);
    let mut side = fresh(&mut out);
    let bytes = [PREFACE, &raw(SETTINGS, 0, 0, b"")[..], &raw(6, 0, 0, b"12345678")].concat();
    assert_eq!(side.feed(&bytes), Ok(vec!["SettingsChanged".to_owned()]));
    assert_eq!(side.replies(), ["settings ack", "ping true 12345678"]);
}

#[test]
fn a_request_is_answered_and_its_stream_forgotten() {
    let mut server = Side::server();
    assert_eq!(server.feed(&get(1, true)).unwrap(), ["request 1 / u=3 i=false end"]);
    assert_eq!(server.connection.streams(), 1);
    let Side { connection, out, .. } = &mut server;
    assert_eq!(connection.room(1), 0);
    connection.send_interim(1, b"\x08\x03103", out).unwrap();
    connection.send_head(1, b"\x88", false, out).unwrap();
    assert_eq!(connection.room(1), 16_384);
    connection.send_data(1, 3, true, out).unwrap();
    out.extend(b"abc");
    assert_eq!(connection.streams(), 0);
    assert_eq!(connection.send_data(1, 0, true, out), Err(NoStream));
    assert_eq!(server.replies().len(), 3);
}

#[test]
fn a_client_and_a_server_understand_each_other() {
    let (mut client, mut server) = (Side::client(), Side::server());
    let id = client.connection.open(Method::Post, &get_block(), false, &mut client.out).unwrap();
    client.connection.send_data(id, 4, false, &mut client.out).unwrap();
    client.out.extend(b"body");
    client.connection.send_trailers(id, &block(&[("x", "y")]), &mut client.out).unwrap();
    let sent = std::mem::take(&mut client.out);
    assert_eq!(
        server.feed(&sent).unwrap(),
        ["request 1 / u=3 i=false open", "data 1 body open", "trailers 1 1"]
    );
    server.connection.send_interim(id, b"\x08\x03103", &mut server.out).unwrap();
    server.connection.send_head(id, b"\x88", false, &mut server.out).unwrap();
    server.connection.send_data(id, 2, false, &mut server.out).unwrap();
    server.out.extend(b"ok");
    server.connection.send_trailers(id, &block(&[("grpc-status", "0")]), &mut server.out).unwrap();
    let sent = std::mem::take(&mut server.out);
    assert_eq!(
        client.feed(&sent).unwrap(),
        ["response 1 103 open", "response 1 200 open", "data 1 ok open", "trailers 1 1"]
    );
    assert_eq!((client.connection.streams(), server.connection.streams()), (0, 0));
}

#[test]
fn continuation_frames_are_assembled() {
    let mut server = Side::server();
    let block = get_block();
    let (first, rest) = block.split_at(5);
    let (second, third) = rest.split_at(7);
    let frames = [raw(1, 1, 1, first), raw(9, 0, 1, second), raw(9, 4, 1, third)].concat();
    assert_eq!(server.feed(&frames).unwrap(), ["request 1 / u=3 i=false end"]);
    let interrupted: [&[u8]; 3] = [&raw(6, 0, 0, b"12345678"), &raw(9, 4, 3, b""), &raw(99, 0, 0, b"")];
    for other in interrupted {
        let mut server = Side::server();
        server.feed(&raw(1, 1, 1, first)).unwrap();
        assert!(!server.connection.is_between_messages());
        assert_eq!(server.ends(other), Fault::InterruptedHeaders);
    }
    assert_eq!(Side::server().ends(&raw(9, 4, 1, b"")), Fault::UnexpectedContinuation);
    let mut server = Side::server();
    let endless = [raw(1, 0, 1, b""), raw(9, 0, 1, &[0; 16_000]).repeat(5)].concat();
    assert_eq!(server.ends(&endless), Fault::HeaderBlockTooLarge);
}

#[test]
fn frames_on_idle_streams_end_the_connection() {
    let idle: [&[u8]; 5] =
        [&raw(0, 0, 1, b"x"), &reset(1), &window_update(1, 5), &window_update(2, 5), &reset(2)];
    for frame in idle {
        assert_eq!(Side::server().ends(frame), Fault::IdleStream);
    }
    assert_eq!(Side::server().ends(&get(2, true)), Fault::WrongParity);
    assert_eq!(Side::server().ends(&raw(5, 4, 1, b"\0\0\0\x02")), Fault::Push);
    assert_eq!(Side::client().ends(&raw(1, 5, 1, b"\x88")), Fault::IdleStream);
    // A priority for a stream that is not open yet is no fault.
    assert_eq!(Side::server().feed(&raw(2, 0, 9, b"\0\0\0\x01\x05")), Ok(vec![]));
}

#[test]
fn frames_after_the_end_of_a_stream_are_refused() {
    let mut server = Side::server();
    server.feed(&get(1, true)).unwrap();
    assert_eq!(server.feed(&raw(0, 0, 1, b"x")).unwrap(), ["reset 1 STREAM_CLOSED half-closed-stream"]);
    assert_eq!(server.replies(), ["reset 1 STREAM_CLOSED"]);
    // The peer may not know of the reset.
    assert_eq!(server.feed(&raw(0, 0, 1, b"x")), Ok(vec![]));
    assert_eq!(server.feed(&get(1, true)), Ok(vec![]));
    server.feed(&get(3, true)).unwrap();
    server.connection.send_head(3, b"\x88", true, &mut server.out).unwrap();
    assert_eq!(server.feed(&window_update(3, 5)), Ok(vec![]));
    assert_eq!(server.feed(&reset(3)), Ok(vec![]));
    server.out.clear();
    assert_eq!(server.ends(&raw(0, 0, 3, b"x")), Fault::ClosedStream);
    let mut server = Side::server();
    server.feed(&get(5, true)).unwrap();
    assert_eq!(server.ends(&get(3, true)), Fault::SkippedStream);
    let mut server = Side::server();
    server.feed(&[get(1, false), reset(1), get(3, true)].concat()).unwrap();
    assert_eq!(server.ends(&get(1, true)), Fault::ClosedStream);
    let mut server = Side::server();
    server.feed(&[get(1, false), reset(1)].concat()).unwrap();
    assert_eq!(server.ends(&raw(0, 0, 1, b"x")), Fault::ClosedStream);
}

#[test]
fn malformed_requests_end_their_stream_only() {
    let mut server = Side::server();
    let bad = block(&[(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "x")]);
    assert_eq!(server.feed(&raw(1, 5, 1, &bad)).unwrap(), ["malformed 1 invalid-target"]);
    assert_eq!(server.replies(), ["reset 1 PROTOCOL_ERROR"]);
    let long = "/".repeat(200);
    let config = Config {
        limits: sandarac_wire::h1::Limits { target: 100, ..Default::default() },
        ..Config::default()
    };
    let mut server = Side::server_with(&config);
    let long = block(&[(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", &long)]);
    let refused = format!("refused 1 {}", Refusal::TargetTooLong.name());
    assert_eq!(server.feed(&raw(1, 5, 1, &long)).unwrap(), [refused]);
    server.connection.send_head(1, b"\x08\x03414", true, &mut server.out).unwrap();
    assert_eq!(server.feed(&get(3, true)).unwrap().len(), 1);
    let trailers = [get(5, false), raw(1, 4, 5, &block(&[("x", "y")]))].concat();
    assert_eq!(server.feed(&trailers).unwrap()[1], "reset 5 PROTOCOL_ERROR malformed-message");
}

#[test]
fn a_stream_that_depends_on_itself_is_refused() {
    let mut server = Side::server();
    let headers = raw(1, 5 | 32, 1, &[b"\0\0\0\x01\x10", &get_block()[..]].concat());
    assert_eq!(server.feed(&headers), Ok(vec![]));
    assert_eq!(server.replies(), ["reset 1 PROTOCOL_ERROR"]);
    server.feed(&get(3, true)).unwrap();
    let told = server.feed(&raw(2, 0, 3, b"\0\0\0\x03\x10")).unwrap();
    assert_eq!(told, ["reset 3 PROTOCOL_ERROR self-dependency"]);
    assert_eq!(server.ends(&raw(2, 0, 5, b"\0\0\0\x05\x10")), Fault::SelfDependency);
}

#[test]
fn content_length_has_to_match_the_data() {
    let post = |length: &str| {
        block(&[
            (":method", "POST"),
            (":scheme", "https"),
            (":authority", "a"),
            (":path", "/"),
            ("content-length", length),
        ])
    };
    let open = |server: &mut Side| server.feed(&raw(1, 4, 1, &post("5"))).unwrap();
    let mut server = Side::server();
    open(&mut server);
    let data = [raw(0, 0, 1, b"123"), raw(0, 1 | 8, 1, b"\x0245xx")].concat();
    assert_eq!(server.feed(&data).unwrap(), ["data 1 123 open", "data 1 45 end"]);
    for wrong in [raw(0, 1, 1, b"1234"), raw(0, 0, 1, b"123456"), raw(1, 5, 1, &block(&[("x", "y")]))] {
        let mut server = Side::server();
        open(&mut server);
        assert_eq!(server.feed(&wrong).unwrap(), ["reset 1 PROTOCOL_ERROR content-length-mismatch"]);
    }
    let mut client = Side::client();
    client.connection.open(Method::Head, &get_block(), true, &mut client.out).unwrap();
    let response = block(&[(":status", "200"), ("content-length", "5")]);
    assert_eq!(client.feed(&raw(1, 4, 1, &response)).unwrap(), ["response 1 200 open"]);
    let told = client.feed(&raw(0, 1, 1, b"x")).unwrap();
    assert_eq!(told, ["reset 1 PROTOCOL_ERROR content-length-mismatch"]);
}

#[test]
fn sending_keeps_to_both_windows() {
    let mut server = Side::server();
    server.feed(&[get(1, true), get(3, true)].concat()).unwrap();
    let Side { connection, out, .. } = &mut server;
    for id in [1, 3] {
        connection.send_head(id, b"\x88", false, out).unwrap();
    }
    for _ in 0..3 {
        connection.send_data(1, 16_384, false, out).unwrap();
    }
    assert_eq!((connection.room(1), connection.room(3)), (16_383, 16_383));
    connection.send_data(3, 16_383, false, out).unwrap();
    assert_eq!((connection.room(1), connection.room(3)), (0, 0));
    out.clear();
    assert_eq!(server.feed(&window_update(0, 100)).unwrap(), ["WindowOpened { stream: 0 }"]);
    assert_eq!((server.connection.room(1), server.connection.room(3)), (100, 100));
    // A lower initial window makes the window of stream 1 negative.
    server.feed(&raw(SETTINGS, 0, 0, b"\0\x04\0\0\x40\0")).unwrap();
    assert_eq!((server.connection.room(1), server.connection.room(3)), (0, 1));
    server.feed(&window_update(1, 32_768 + 2)).unwrap();
    assert_eq!(server.connection.room(1), 2);
}

#[test]
fn windows_cannot_be_opened_too_far_or_by_nothing() {
    let max = (1 << 31) - 1;
    assert_eq!(Side::server().ends(&window_update(0, 0)), Fault::ZeroIncrement);
    assert_eq!(Side::server().ends(&window_update(0, max)), Fault::WindowOverflow);
    let mut server = Side::server();
    server.feed(&[get(1, true), get(3, true)].concat()).unwrap();
    assert_eq!(server.feed(&window_update(1, 0)).unwrap(), ["reset 1 PROTOCOL_ERROR zero-increment"]);
    assert_eq!(server.feed(&window_update(3, max)).unwrap(), ["reset 3 FLOW_CONTROL_ERROR window-overflow"]);
    server.feed(&[get(5, true), window_update(5, max - 65_535)].concat()).unwrap();
    server.out.clear();
    assert_eq!(server.ends(&raw(SETTINGS, 0, 0, b"\0\x04\0\x01\0\0")), Fault::WindowOverflow);
}

#[test]
fn received_data_is_limited_until_it_is_released() {
    let mut server = Side::server();
    server.feed(&get(1, false)).unwrap();
    let mut head = HeadBuf::default();
    let frame = raw(0, 0, 1, &[b'x'; 16_383]);
    for _ in 0..4 {
        let Side { connection, out, now } = &mut server;
        connection.receive(&frame, &mut head, out, *now).unwrap();
    }
    assert_eq!(server.replies(), Vec::<String>::new());
    server.connection.release(1, 32_766, &mut server.out);
    assert_eq!(server.replies(), Vec::<String>::new());
    server.connection.release(1, 1, &mut server.out);
    assert_eq!(server.replies(), ["window 0 32767", "window 1 32767"]);
    // The rest of the first window and what was released, and one more byte.
    for _ in 0..2 {
        let Side { connection, out, now } = &mut server;
        connection.receive(&frame, &mut head, out, *now).unwrap();
    }
    assert_eq!(server.ends(&raw(0, 0, 1, &[b'x'; 5])), Fault::WindowExceeded);
}

#[test]
fn data_beyond_the_window_of_a_stream_resets_it_and_returns_to_the_connection() {
    let config = Config {
        settings: Settings { initial_window_size: 10, ..Config::default().settings },
        ..Config::default()
    };
    let mut server = Side::server_with(&config);
    server.feed(&get(1, false)).unwrap();
    let told = server.feed(&raw(0, 0, 1, b"12345678901")).unwrap();
    assert_eq!(told, ["reset 1 FLOW_CONTROL_ERROR window-exceeded"]);
    for id in (3..).step_by(2).take(20) {
        server.feed(&[get(id, false), raw(0, 0, id, &[0; 5_000])].concat()).unwrap();
    }
    assert!(server.replies().iter().any(|reply| reply.starts_with("window 0 ")));
}

#[test]
fn new_streams_are_refused_above_the_limit_and_after_goaway() {
    let config = Config {
        settings: Settings { max_concurrent_streams: 2, ..Config::default().settings },
        ..Config::default()
    };
    let mut server = Side::server_with(&config);
    assert_eq!(server.feed(&[get(1, true), get(3, true), get(5, true)].concat()).unwrap().len(), 2);
    assert_eq!(server.replies(), ["reset 5 REFUSED_STREAM"]);
    server.connection.announce_end(&mut server.out);
    assert!(!server.connection.is_drained());
    server.connection.reset(3, ErrorCode::CANCEL, &mut server.out);
    assert_eq!(server.feed(&get(7, true)).unwrap().len(), 1);
    server.connection.finish(&mut server.out);
    assert_eq!(server.replies(), ["goaway 2147483647 NO_ERROR ", "reset 3 CANCEL", "goaway 7 NO_ERROR "]);
    assert_eq!(server.feed(&get(9, true)), Ok(vec![]));
    assert!(!server.connection.is_drained());
    for id in [1, 7] {
        server.connection.send_head(id, b"\x88", true, &mut server.out).unwrap();
    }
    assert!(server.connection.is_drained());
}

#[test]
fn a_client_obeys_goaway_and_the_servers_limit() {
    let mut client = Side::client();
    let open = |client: &mut Side| client.connection.open(Method::Get, &get_block(), true, &mut client.out);
    client.feed(&raw(SETTINGS, 0, 0, b"\0\x03\0\0\0\x02")).unwrap();
    assert_eq!((open(&mut client), open(&mut client)), (Ok(1), Ok(3)));
    assert_eq!(open(&mut client), Err(CannotOpen::TooManyStreams));
    let goaway = |last: u8| raw(7, 0, 0, &[0, 0, 0, last, 0, 0, 0, 0]);
    let told = client.feed(&goaway(1)).unwrap();
    assert_eq!(told, ["GoAway { last_stream: 1, code: ErrorCode(0) }"]);
    assert_eq!(client.connection.streams(), 1);
    assert_eq!(open(&mut client), Err(CannotOpen::GoingAway));
    assert_eq!(client.feed(&raw(1, 5, 1, b"\x88")).unwrap(), ["response 1 200 end"]);
    assert!(client.connection.is_drained());
    assert_eq!(client.ends(&goaway(3)), Fault::RaisedGoAway);
}

/// A server may have filled the windows of many streams before it knows that they were cancelled.
#[test]
fn data_on_streams_that_a_client_has_cancelled_costs_its_server_nothing() {
    let mut client = Side::client();
    let data = vec![b'x'; 16_000];
    for _ in 0..100 {
        let id = client.connection.open(Method::Get, &get_block(), true, &mut client.out).unwrap();
        client.feed(&raw(1, 4, id, b"\x88")).unwrap();
        client.connection.reset(id, ErrorCode::CANCEL, &mut client.out);
        for _ in 0..16 {
            assert_eq!(client.feed(&raw(0, 0, id, &data)), Ok(vec![]));
        }
        client.connection.replies_sent();
    }
}

#[test]
fn the_peer_is_told_once_that_we_use_no_table() {
    let mut server = Side::server();
    server.feed(&raw(SETTINGS, 0, 0, b"\0\x01\0\0\0\0")).unwrap();
    server.feed(&[get(1, true), get(3, true)].concat()).unwrap();
    server.out.clear();
    for id in [1, 3] {
        server.connection.send_head(id, b"\x88", true, &mut server.out).unwrap();
    }
    assert_eq!(server.replies(), ["headers 1 [32, 136] true", "headers 3 [136] true"]);
}

#[test]
fn priorities_are_kept_for_streams_open_or_not() {
    let mut server = Side::server();
    let update = |id: u32, value: &[u8]| raw(16, 0, 0, &[&id.to_be_bytes(), value].concat());
    assert_eq!(server.feed(&update(3, b"u=1, i")), Ok(vec![]));
    assert_eq!(
        server.feed(&[get(1, true), get(3, true)].concat()).unwrap(),
        ["request 1 / u=3 i=false end", "request 3 / u=1 i=true end"]
    );
    assert_eq!(server.feed(&update(1, b"u=7")).unwrap().len(), 1);
    assert_eq!(server.connection.priority(1).urgency, 7);
    assert_eq!(Side::server().ends(&update(2, b"")), Fault::InvalidPriorityUpdate);
    assert_eq!(Side::client().ends(&update(1, b"")), Fault::InvalidPriorityUpdate);
}

#[test]
fn an_idle_connection_is_small() {
    assert!(size_of::<Connection>() <= 512, "{}", size_of::<Connection>());
}

proptest! {
    /// A connection gives the same events and replies however its input is cut.
    #[test]
    fn cuts_change_nothing(
        frames in prop::collection::vec((0..18u8, 0..64u8, 0..8u32, prop::collection::vec(any::<u8>(), 0..12)), 0..30),
        step in 1..40usize,
    ) {
        let mut bytes = Vec::new();
        for (kind, flags, stream, payload) in frames {
            match kind {
                1 => bytes.extend(get(stream, flags & 1 != 0)),
                17 => bytes.extend(reset(stream)),
                _ => bytes.extend(raw(kind, flags, stream, &payload)),
            }
        }
        let mut whole = Side::server();
        let events = whole.feed(&bytes);
        let mut cut = Side::server();
        let mut read = Ok(Vec::new());
        let (mut at, mut arrived) = (0, 0);
        let mut head = HeadBuf::default();
        while let Ok(events) = &mut read {
            let Side { connection, out, now } = &mut cut;
            let (consumed, data) = match connection.receive(&bytes[at..arrived], &mut head, out, *now) {
                Ok(received) => {
                    events.extend(received.event.as_ref().map(told));
                    let data = match received.event {
                        Some(Event::Data { stream, data, .. }) => Some((stream, data.len() as u32)),
                        _ => None,
                    };
                    (received.consumed, data)
                }
                Err(fault) => {
                    read = Err(fault);
                    break;
                }
            };
            if let Some((stream, len)) = data {
                connection.release(stream, len, out);
            }
            at += consumed;
            if consumed == 0 {
                if arrived == bytes.len() {
                    break;
                }
                arrived = (arrived + step).min(bytes.len());
            }
        }
        prop_assert_eq!(events, read);
        prop_assert_eq!(whole.out, cut.out);
    }
}
