//! HTTP/2 connections: however the input is cut, the same events and replies; heads are what HTTP/1 may get. The first
//! byte chooses the role and whether requests are answered.

use crate::common::check_fields;
use sandarac_message::Method;
use sandarac_wire::h2::connection::{Config, Connection, Event, MAX_UNSENT_REPLIES};
use sandarac_wire::h2::{Fault, HeadBuf};
use std::time::Duration;

type Outcome = (Vec<String>, Option<Fault>, Vec<u8>);

/// Reads a stream, `step` bytes at a time. Returns the events as text, the fault, and what was written.
fn read(choice: u8, bytes: &[u8], step: usize) -> Outcome {
    let (mut events, mut out, mut head) = (Vec::new(), Vec::new(), HeadBuf::default());
    let config = Config::default();
    let mut connection = if choice & 1 == 0 {
        Connection::server(&config, &mut out)
    } else {
        let mut client = Connection::client(&config, &mut out);
        for method in [Method::Get, Method::Head] {
            client
                .open(method, b"\x82\x86\x84\x41\x01a", choice & 2 != 0, &mut out)
                .expect("streams are free");
        }
        client
    };
    let begun = out.len();
    let (mut at, mut arrived) = (0, 0);
    loop {
        let received = match connection.receive(&bytes[at..arrived], &mut head, &mut out, Duration::ZERO) {
            Ok(received) => received,
            Err(fault) => return (events, Some(fault), out),
        };
        at += received.consumed;
        let consumed = received.consumed;
        let (mut answer, mut release) = (None, None);
        if let Some(event) = received.event {
            events.push(format!("{event:?}"));
            match event {
                Event::Request { stream, request, .. } => {
                    check_fields(request.head.fields);
                    assert!(!request.head.target.is_empty());
                    assert!(!request.head.target.iter().any(|&byte| byte <= b' ' || byte == 0x7f));
                    answer = Some(stream);
                }
                Event::Response { response, .. } => check_fields(response.head.fields),
                Event::Trailers { fields, .. } => check_fields(fields),
                Event::Data { stream, data, .. } => release = Some((stream, data.len() as u32)),
                _ => {}
            }
        }
        if let Some((stream, len)) = release {
            connection.release(stream, len, &mut out);
        }
        if let Some(stream) = answer.filter(|_| choice & 4 != 0) {
            connection.send_head(stream, b"\x88", true, &mut out).expect("the stream is open");
        }
        assert!(connection.streams() <= 100);
        if consumed == 0 {
            if arrived == bytes.len() {
                assert!(out.len() <= begun + MAX_UNSENT_REPLIES + 32 * bytes.len());
                return (events, None, out);
            }
            arrived = (arrived + step).min(bytes.len());
        }
    }
}

/// Checks one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let whole = read(choice, bytes, bytes.len().max(1));
    for step in [1, 7] {
        assert_eq!(read(choice, bytes, step), whole);
    }
}
