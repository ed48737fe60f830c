//! Responses, parsed on the client side (RFC 9112 §4).

use super::fields::{self, Controls, Side, bad_line_end};
use super::repair::{self, Anew, Repairs};
use super::scan::find_value_end;
use super::{BodyFraming, Limits, Parsed, Refusal};
use sandarac_message::{Fields, MAX_HEAD, Method, ResponseHead, Span, Version};
use std::ops::Range;

/// A response with a complete head.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// The head, without fields that Connection names.
    pub head: ResponseHead<'a>,
    /// Bytes of the head, including its empty line; the body begins after them.
    pub head_len: usize,
    /// What follows the head.
    pub kind: Kind,
    /// How the body ends. [`BodyFraming::None`] unless `kind` is [`Kind::Final`].
    pub framing: BodyFraming,
    /// Whether the connection may be used again once the body has ended (RFC 9112 §9.3). Never after
    /// [`BodyFraming::UntilClose`] or a change of protocol.
    pub keep_alive: bool,
    /// Repairs of the head; none unless [`parse_or_repair`] made some.
    pub repairs: Repairs,
}

/// What follows a response head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An interim response, 1xx but not 101: another head follows (RFC 9110 §15.2).
    Interim,
    /// 101: the protocol named in Upgrade follows (RFC 9110 §15.2.2). If the request did not ask for one, the
    /// caller MUST treat this as a fault.
    Switching,
    /// 2xx to CONNECT: a tunnel follows (RFC 9110 §9.3.6).
    Tunnel,
    /// Any other status: the final response, and its body.
    Final,
}

/// Reads a response head at the start of `buf`, for a request with method `method`.
///
/// `spans` is overwritten as by [`super::request::parse`]. The caller responds to a refusal with 502.
pub fn parse<'a>(
    buf: &'a [u8],
    limits: &Limits,
    spans: &'a mut Vec<Span>,
    method: Method,
) -> Result<Parsed<Response<'a>>, Refusal> {
    Ok(match read(buf, limits, spans, method, HIGHEST_STATUS)? {
        Parsed::Complete(found) => Parsed::Complete(found.response(buf, spans)),
        Parsed::Partial => Parsed::Partial,
    })
}

/// Reads a head as [`parse`] does, and repairs one that breaks the grammar but has only one reading: see
/// [`super::repair`]. The repaired head is written to `anew`, and the connection must not be used again.
pub fn parse_or_repair<'a>(
    buf: &'a [u8],
    limits: &Limits,
    spans: &'a mut Vec<Span>,
    anew: &'a mut Vec<u8>,
    method: Method,
) -> Result<Parsed<Response<'a>>, Refusal> {
    match read(buf, limits, spans, method, HIGHEST_STATUS) {
        Ok(Parsed::Complete(found)) => Ok(Parsed::Complete(found.response(buf, spans))),
        Ok(Parsed::Partial) => Ok(Parsed::Partial),
        Err(refusal) if repair::may_help(refusal) => repaired(buf, limits, spans, anew, method),
        Err(refusal) => Err(refusal),
    }
}

#[cold]
fn repaired<'a>(
    buf: &[u8],
    limits: &Limits,
    spans: &'a mut Vec<Span>,
    anew: &'a mut Vec<u8>,
    method: Method,
) -> Result<Parsed<Response<'a>>, Refusal> {
    let limit = limits.head.min(MAX_HEAD);
    let Anew { repairs, len } = repair::rewrite(&buf[..buf.len().min(limit)], anew);
    match read(anew, limits, spans, method, b'9')? {
        Parsed::Complete(found) => {
            let response = found.response(anew, spans);
            // The strict parser finds no end that rewriting did not find.
            let head_len = len.unwrap_or(buf.len());
            Ok(Parsed::Complete(Response { head_len, keep_alive: false, repairs, ..response }))
        }
        Parsed::Partial if buf.len() >= limit => Err(Refusal::HeadTooLarge),
        Parsed::Partial => Ok(Parsed::Partial),
    }
}

/// The first digit of the highest statuses defined by RFC 9110 §15.
const HIGHEST_STATUS: u8 = b'5';

/// A parsed head, with its fields in the caller's spans.
struct Found {
    line: StatusLine,
    head_len: usize,
    kind: Kind,
    framing: BodyFraming,
    keep_alive: bool,
}

impl Found {
    fn response<'a>(self, buf: &'a [u8], spans: &'a [Span]) -> Response<'a> {
        let Found { line, head_len, kind, framing, keep_alive } = self;
        Response {
            head: ResponseHead {
                status: line.status,
                reason: &buf[line.reason],
                version: line.version,
                fields: Fields::new(buf, spans),
            },
            head_len,
            kind,
            framing,
            keep_alive,
            repairs: Repairs::NONE,
        }
    }
}

fn read(
    buf: &[u8],
    limits: &Limits,
    spans: &mut Vec<Span>,
    method: Method,
    highest: u8,
) -> Result<Parsed<Found>, Refusal> {
    let limit = limits.head.min(MAX_HEAD);
    let line = match status_line(&buf[..buf.len().min(limit)], highest)? {
        Parsed::Complete(line) => line,
        Parsed::Partial if buf.len() >= limit => return Err(Refusal::HeadTooLarge),
        Parsed::Partial => return Ok(Parsed::Partial),
    };
    let mut controls = Controls::default();
    let head_len = match fields::parse(buf, line.len, Side::Response, limits, spans, &mut controls)? {
        Parsed::Complete(end) => end,
        Parsed::Partial => return Ok(Parsed::Partial),
    };
    controls.check_framing(line.version)?;
    let kind = match line.status {
        101 => Kind::Switching,
        100..=199 => Kind::Interim,
        200..=299 if method == Method::Connect => Kind::Tunnel,
        _ => Kind::Final,
    };
    let announced = controls.chunked || controls.content_length.is_some_and(|length| length > 0);
    if announced && (line.status < 200 || line.status == 204) {
        return Err(Refusal::UnexpectedBody);
    }
    let framing = if kind != Kind::Final || method == Method::Head || matches!(line.status, 204 | 304) {
        BodyFraming::None
    } else {
        match controls.content_length {
            Some(length) => BodyFraming::Length(length),
            None if controls.chunked => BodyFraming::Chunked,
            None => BodyFraming::UntilClose,
        }
    };
    if controls.names_fields {
        fields::drop_named(buf, spans);
    }
    let persists = matches!(kind, Kind::Interim | Kind::Final) && framing != BodyFraming::UntilClose;
    let keep_alive = persists && controls.keep_alive(line.version);
    Ok(Parsed::Complete(Found { line, head_len, kind, framing, keep_alive }))
}

struct StatusLine {
    status: u16,
    reason: Range<usize>,
    version: Version,
    /// Bytes of the line, including its CR LF.
    len: usize,
}

/// Reads `version SP status [SP reason] CR LF`, where `highest` is the highest first digit of a status. The
/// space before an empty reason is often missing.
#[inline]
fn status_line(bytes: &[u8], highest: u8) -> Result<Parsed<StatusLine>, Refusal> {
    let Some(start) = bytes.first_chunk::<12>() else { return short_line(bytes, highest) };
    let version = match start.first_chunk::<9>() {
        Some(b"HTTP/1.1 ") => Version::Http11,
        Some(b"HTTP/1.0 ") => Version::Http10,
        _ => return short_line(bytes, highest),
    };
    let [hundreds @ b'1'..=b'9', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] = start[9..] else {
        return short_line(bytes, highest);
    };
    if hundreds > highest {
        return Err(Refusal::InvalidStatusLine);
    }
    let digit = |byte: u8| u16::from(byte - b'0');
    let status = digit(hundreds) * 100 + digit(tens) * 10 + digit(ones);
    let reason_at = match bytes.get(12) {
        Some(b' ') => 13,
        Some(b'\r') => 12,
        Some(b'\n') => return Err(Refusal::BareLf),
        Some(_) => return Err(Refusal::InvalidStatusLine),
        None => return Ok(Parsed::Partial),
    };
    let end = find_value_end(bytes, reason_at);
    if !bytes[end..].starts_with(b"\r\n") {
        return bad_line_end(&bytes[end..]).map_or(Ok(Parsed::Partial), |refusal| {
            Err(if refusal == Refusal::InvalidFieldValue { Refusal::InvalidStatusLine } else { refusal })
        });
    }
    Ok(Parsed::Complete(StatusLine { status, reason: reason_at..end, version, len: end + 2 }))
}

/// The outcome for a status line that is malformed up to its status, or incomplete.
#[cold]
fn short_line(bytes: &[u8], highest: u8) -> Result<Parsed<StatusLine>, Refusal> {
    for (at, &byte) in bytes.iter().take(12).enumerate() {
        let expected = match at {
            0..=4 => byte == b"HTTP/"[at],
            5 if byte.is_ascii_digit() && byte != b'1' => return Err(Refusal::UnsupportedVersion),
            5 => byte == b'1',
            6 => byte == b'.',
            7 if matches!(byte, b'2'..=b'9') => return Err(Refusal::UnsupportedVersion),
            7 => matches!(byte, b'0' | b'1'),
            8 => byte == b' ',
            9 => (b'1'..=highest).contains(&byte),
            _ => byte.is_ascii_digit(),
        };
        if !expected {
            return Err(match (byte, at) {
                (0, _) => Refusal::Nul,
                (_, 0..=7) => Refusal::InvalidVersion,
                _ => Refusal::InvalidStatusLine,
            });
        }
    }
    Ok(Parsed::Partial)
}
