//! Requests, parsed on the server side (RFC 9112 §3).

use super::fields::{self, Controls, Side, bad_line_end};
use super::scan::{find_target_end, find_token_end};
use super::{BodyFraming, Limits, Parsed, Refusal};
use sandarac_message::{Fields, MAX_HEAD, Method, RequestHead, Span, Version};

/// Empty lines tolerated before a request line (RFC 9112 §2.2): some clients send one after a body, none
/// sends many.
pub const MAX_EMPTY_LINES: usize = 4;

/// A request with a complete head.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The head. Its target may have any byte except spaces and control bytes. Its Host is valid and, in
    /// HTTP/1.1, present. Fields that Connection names are removed: a field that is not forwarded must not
    /// select stored responses either.
    pub head: RequestHead<'a>,
    /// Bytes of the head, including its empty line and any empty lines before it; the body begins after them.
    pub head_len: usize,
    /// How the body ends; never [`BodyFraming::UntilClose`].
    pub framing: BodyFraming,
    /// Whether the client lets the connection persist (RFC 9112 §9.3).
    pub keep_alive: bool,
    /// Whether the client waits for 100 (Continue) before it sends the body (RFC 9110 §10.1.1). Never in
    /// HTTP/1.0.
    pub expect_continue: bool,
    /// Whether the client requests another protocol: Upgrade, named in Connection (RFC 9110 §7.8). Never in
    /// HTTP/1.0.
    pub upgrade: bool,
}

/// Reads a request head at the start of `buf`.
///
/// `spans` is overwritten. Its memory is reused, so that nothing is allocated once it has grown. The result
/// does not depend on how the bytes arrive, except that a fault may be found before the head is complete.
/// there.
pub fn parse<'a>(
    buf: &'a [u8],
    limits: &Limits,
    spans: &'a mut Vec<Span>,
) -> Result<Parsed<Request<'a>>, Refusal> {
    let mut at = 0;
    let mut empty_lines = 0;
    while let Some(b'\r' | b'\n') = buf.get(at) {
        match buf[at..] {
            [b'\r', b'\n', ..] if empty_lines == MAX_EMPTY_LINES => return Err(Refusal::EmptyLines),
            [b'\r', b'\n', ..] => (at, empty_lines) = (at + 2, empty_lines + 1),
            [b'\r'] => return Ok(Parsed::Partial),
            [b'\r', ..] => return Err(Refusal::BareCr),
            _ => return Err(Refusal::BareLf),
        }
    }
    let line = match request_line(&buf[at..buf.len().min(limits.head.min(MAX_HEAD)).max(at)], limits)? {
        Parsed::Complete(line) => line,
        Parsed::Partial if buf.len() >= limits.head.min(MAX_HEAD) => return Err(Refusal::HeadTooLarge),
        Parsed::Partial => return Ok(Parsed::Partial),
    };
    let mut controls = Controls::default();
    let head_len = match fields::parse(buf, at + line.len, Side::Request, limits, spans, &mut controls)? {
        Parsed::Complete(end) => end,
        Parsed::Partial => return Ok(Parsed::Partial),
    };
    controls.check_framing(line.version)?;
    if line.version == Version::Http11 && controls.host.is_none() {
        return Err(Refusal::MissingHost);
    }
    if controls.names_fields {
        fields::drop_named(buf, spans);
    }
    Ok(Parsed::Complete(Request {
        head: RequestHead {
            method: Method::of(line.method),
            method_text: line.method,
            target: line.target,
            version: line.version,
            fields: Fields::new(buf, spans),
        },
        head_len,
        framing: match controls.content_length {
            Some(length) => BodyFraming::Length(length),
            None if controls.chunked => BodyFraming::Chunked,
            None => BodyFraming::None,
        },
        keep_alive: controls.keep_alive(line.version),
        expect_continue: controls.expect_continue && line.version == Version::Http11,
        upgrade: controls.upgrade(line.version),
    }))
}

struct RequestLine<'a> {
    method: &'a [u8],
    target: &'a [u8],
    version: Version,
    /// Bytes of the line, including its CR LF.
    len: usize,
}

/// Reads `method SP target SP version CR LF`, where each SP is exactly one space.
#[inline]
fn request_line<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Parsed<RequestLine<'a>>, Refusal> {
    let method_end = if bytes.starts_with(b"GET ") { 3 } else { find_token_end(bytes, 0) };
    if bytes.get(method_end) != Some(&b' ') || method_end == 0 {
        return match bytes.get(method_end..) {
            None | Some([] | [b'\r']) => Ok(Parsed::Partial),
            Some([0, ..]) => Err(Refusal::Nul),
            Some([b'\n', ..]) => Err(Refusal::BareLf),
            Some([b'\r', next, ..]) if *next != b'\n' => Err(Refusal::BareCr),
            Some(_) => Err(Refusal::InvalidMethod),
        };
    }
    let target_at = method_end + 1;
    let target_end = find_target_end(bytes, target_at);
    if target_end - target_at > limits.target {
        return Err(Refusal::TargetTooLong);
    }
    if bytes.get(target_end) != Some(&b' ') || target_end == target_at {
        return match &bytes[target_end..] {
            [] | [b'\r'] => Ok(Parsed::Partial),
            [0, ..] => Err(Refusal::Nul),
            [b'\n', ..] => Err(Refusal::BareLf),
            [b'\r', b'\n', ..] => Err(Refusal::InvalidVersion),
            [b'\r', ..] => Err(Refusal::BareCr),
            _ => Err(Refusal::InvalidTarget),
        };
    }
    let rest = &bytes[target_end + 1..];
    let version = match rest.first_chunk::<10>() {
        Some(b"HTTP/1.1\r\n") => Version::Http11,
        Some(b"HTTP/1.0\r\n") => Version::Http10,
        _ => {
            let preface = bytes.starts_with(b"PRI * ");
            return bad_version(rest, preface).map_or(Ok(Parsed::Partial), Err);
        }
    };
    Ok(Parsed::Complete(RequestLine {
        method: &bytes[..method_end],
        target: &bytes[target_at..target_end],
        version,
        len: target_end + 11,
    }))
}

/// The fault in the rest of a request line from its version on; `None` if it cannot be determined yet.
#[cold]
fn bad_version(rest: &[u8], preface: bool) -> Option<Refusal> {
    let name = b"HTTP/1.";
    let same = rest.iter().zip(name).take_while(|(a, b)| a == b).count();
    if same == rest.len() {
        return None;
    }
    match (same, &rest[same..]) {
        (7, [b'0' | b'1', line_end @ ..]) => bad_line_end(line_end).map(|refusal| match refusal {
            Refusal::InvalidFieldValue => Refusal::InvalidVersion,
            named => named,
        }),
        (7, [b'2'..=b'9', ..]) => Some(Refusal::UnsupportedVersion),
        (5, [b'2', ..]) if preface => Some(Refusal::Http2Preface),
        (5, [b'0'..=b'9', ..]) => Some(Refusal::UnsupportedVersion),
        (_, [0, ..]) => Some(Refusal::Nul),
        _ => Some(Refusal::InvalidVersion),
    }
}
