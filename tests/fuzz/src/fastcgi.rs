//! Responses of FastCGI applications: however cut the same, bounded, and every head re-serialisable.

use sandarac_message::Method;
use sandarac_wire::fastcgi::head::{self, Rewritten};
use sandarac_wire::fastcgi::{Decoded, Decoder, EndStatus, Event, Refusal, RequestId};
use sandarac_wire::h1::{Limits, Parsed, response};

const LIMITS: Limits = Limits { head: 1024, fields: 20, target: 0 };

#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    end: Option<EndStatus>,
    refusal: Option<Refusal>,
}

/// Reads a stream, `step` bytes at a time.
fn read(bytes: &[u8], step: usize) -> Read {
    let (mut decoder, mut read) = (Decoder::new(RequestId::FIRST), Read::default());
    let (mut at, mut arrived) = (0, 0);
    loop {
        let data = &bytes[at..arrived];
        let Decoded { consumed, event } = match decoder.decode(data) {
            Ok(decoded) => decoded,
            Err(refusal) => return Read { refusal: Some(refusal), ..read },
        };
        assert!(consumed <= data.len());
        match event {
            Event::Stdout(range) => {
                assert!(!range.is_empty() && range.end == consumed);
                read.stdout.extend_from_slice(&data[range]);
            }
            Event::Stderr(range) => {
                assert!(!range.is_empty() && range.end == consumed);
                read.stderr.extend_from_slice(&data[range]);
            }
            Event::End(status) => return Read { end: Some(status), ..read },
            Event::NeedMore if arrived == bytes.len() => return read,
            Event::NeedMore => {
                // What is kept for the next call is a part of a header or of an end.
                assert!(data.len() - consumed < 8);
                arrived = (arrived + step).min(bytes.len());
            }
        }
        at += consumed;
    }
}

/// Reads the head at the start of an application's output.
fn check_head(output: &[u8]) {
    let Some(end) = head::end(output, 0) else { return };
    for seen in 0..end {
        // A head has one end, however its output arrives.
        let early = head::end(&output[..seen], 0);
        assert_eq!(early.or_else(|| head::end(output, seen)), Some(end));
    }
    let (mut spans, mut memory) = (Vec::new(), Rewritten::default());
    let Ok(found) = head::parse(output, end, &LIMITS, &mut spans, &mut memory, Method::Get) else { return };
    assert_eq!(found.head_len, end);
    let head = found.response.head;
    assert!((200..1000).contains(&head.status));
    // Written anew, the strict parser of HTTP/1.1 reads the same fields.
    let mut written = Vec::new();
    sandarac_wire::h1::encode::status_line(&mut written, head.status.min(599), head.reason);
    for field in head.fields.iter() {
        assert!(!field.is(b"status") && !field.is(b"transfer-encoding"));
        written.extend_from_slice(&[field.name, b": ", field.value, b"\r\n"].concat());
    }
    written.extend_from_slice(b"\r\n");
    let (mut spans, roomy) = (Vec::new(), Limits { head: 4096, ..LIMITS });
    let Ok(Parsed::Complete(again)) = response::parse(&written, &roomy, &mut spans, Method::Get) else {
        panic!("{:?}", String::from_utf8_lossy(&written))
    };
    assert!(
        again.head.fields.iter().map(|field| field.value).eq(head.fields.iter().map(|field| field.value))
    );
}

/// Checks one input.
pub(crate) fn run(bytes: &[u8]) {
    let whole = read(bytes, bytes.len().max(1));
    for step in [1, 7, 64] {
        assert_eq!(read(bytes, step), whole);
    }
    check_head(&whole.stdout);
    check_head(bytes);
}
