//! The encoder of HTTP/1.1: turns responses into heads, chunks and last chunks.

use crate::response::{Base, Length, Response, STRICT_TRANSPORT_SECURITY};
use sandarac_message::status_fields::CacheStatus;
use sandarac_message::{Fields, Name, Version, decimal};
use sandarac_wire::h1::BodyFraming;
use sandarac_wire::h1::encode::{self, Head};

/// How the end of a body is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    /// By its length; also if there is no body.
    Plain,
    /// By the last chunk.
    Chunked,
    /// By the end of the connection, for clients without chunked coding.
    UntilClose,
}

/// Bytes that are usually enough for the fields that are added to a stored head.
const ADDED: usize = 192;

/// What a head announces about the connection and the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Encoded {
    pub(crate) coding: Coding,
    /// Whether another request may follow.
    pub(crate) keep_alive: bool,
}

/// Appends the head of a response to a client of `version` to `out`. `keep_alive` is whether another request
/// may follow, as far as the response does not rule it out.
pub(crate) fn head(out: &mut Vec<u8>, response: Response<'_>, version: Version, keep_alive: bool) -> Encoded {
    let Response { status, reason, base, added, own, age, cache_status, hsts, length } = response;
    let coding = match length {
        Length::Told | Length::Known(_) => Coding::Plain,
        Length::Unknown if version == Version::Http10 => Coding::UntilClose,
        Length::Unknown => Coding::Chunked,
    };
    let framing = match (coding, length) {
        (Coding::Plain, Length::Known(length)) => BodyFraming::Length(length),
        (Coding::Plain, _) => BodyFraming::None,
        (Coding::Chunked, _) => BodyFraming::Chunked,
        (Coding::UntilClose, _) => BodyFraming::UntilClose,
    };
    let mut is_framed = false;
    match base {
        Base::Stored(head, _) => {
            // With what is added to it, in one step.
            out.reserve(head.encoded().len() + ADDED);
            out.extend_from_slice(head.encoded());
        }
        Base::Selected(fields, keep) => {
            Head::response(out, status, reason).selected(fields, keep);
        }
        Base::Owned(fields) => {
            if fields.first_line().is_empty() {
                encode::status_line(out, status, reason);
            }
            let lines = encode::lines(fields, framing);
            if out.is_empty() {
                *out = lines;
            } else {
                out.extend_from_slice(&lines);
            }
            is_framed = true;
        }
    }
    added.iter().for_each(|(name, value)| encode::line(out, *name, value));
    if !is_framed {
        frame(out, framing);
    }
    if let Some(own) = own {
        own.encode(out);
    }
    if let Some(age) = age {
        out.extend_from_slice(b"Age: ");
        decimal::append(out, age);
        out.extend_from_slice(encode::CRLF);
    }
    if let Some(value) = hsts {
        out.extend_from_slice(STRICT_TRANSPORT_SECURITY);
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(encode::CRLF);
    }
    if let Some((status, name)) = cache_status {
        cache_status_line(out, &status, name);
    }
    let keep_alive = keep_alive && coding != Coding::UntilClose;
    connection(out, version, keep_alive);
    out.extend_from_slice(encode::CRLF);
    Encoded { coding, keep_alive }
}

fn cache_status_line(out: &mut Vec<u8>, status: &CacheStatus<'_>, name: &str) {
    out.extend_from_slice(b"Cache-Status: ");
    status.write(name, out);
    out.extend_from_slice(encode::CRLF);
}

fn frame(out: &mut Vec<u8>, framing: BodyFraming) {
    match framing {
        BodyFraming::Length(length) => {
            out.extend_from_slice(b"Content-Length: ");
            decimal::append(out, length);
            out.extend_from_slice(encode::CRLF);
        }
        BodyFraming::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        BodyFraming::None | BodyFraming::UntilClose => {}
    }
}

/// Writes whether the connection stays open, unless that is the version's default (RFC 9112 §9.3).
fn connection(out: &mut Vec<u8>, version: Version, keep_alive: bool) {
    match (version, keep_alive) {
        (_, false) => encode::line(out, Name::Connection, b"close"),
        (Version::Http10, true) => encode::line(out, Name::Connection, b"keep-alive"),
        _ => {}
    }
}

/// Writes an interim response, or the head of a response that switches to another protocol.
pub(crate) fn bare_head(out: &mut Vec<u8>, status: u16, reason: &[u8], fields: Fields<'_>) {
    let mut head = Head::response(out, status, reason);
    head.fields(fields, BodyFraming::None);
    head.finish();
}

/// Writes the bytes before a piece of a body of `len` bytes.
pub(crate) fn before_piece(out: &mut Vec<u8>, coding: Coding, len: usize) {
    if coding == Coding::Chunked {
        encode::chunk_size(out, len);
    }
}

/// The bytes after a piece of a body.
pub(crate) fn after_piece(coding: Coding) -> &'static [u8] {
    if coding == Coding::Chunked { encode::CRLF } else { b"" }
}

/// Writes the end of a body.
pub(crate) fn end(out: &mut Vec<u8>, coding: Coding, trailers: Fields<'_>) {
    if coding == Coding::Chunked {
        encode::last_chunk(out, trailers);
    }
}
