//! Field lines, parsed strictly, and their effect on framing and the connection.

use super::scan::{find_control, find_plain_end, find_token_end, find_value_end};
use super::{Limits, MAX_FIELDS, Parsed, Refusal};
use sandarac_message::hop::{HopByHop, is_standing};
use sandarac_message::target::Authority;
use sandarac_message::{Fields, MAX_HEAD, MAX_NAME, Name, Span, Version};

/// The properties of a head's framing and connection that its fields determine.
#[derive(Default)]
pub(super) struct Controls {
    /// Start and end of the value of the only Host line.
    pub(super) host: Option<(usize, usize)>,
    pub(super) content_length: Option<u64>,
    /// Whether there is a Transfer-Encoding, which is `chunked`.
    pub(super) chunked: bool,
    pub(super) expect_continue: bool,
    /// Whether there is an Upgrade field.
    upgrade: bool,
    option_close: bool,
    option_keep_alive: bool,
    option_upgrade: bool,
    /// Whether Connection has an option that may name a field of this message.
    pub(super) names_fields: bool,
}

impl Controls {
    /// Processes one field line. Not inlined, because most fields are not of these.
    #[inline(never)]
    fn take_in(&mut self, name: Name, line: &Line, bytes: &[u8], side: Side) -> Result<(), Refusal> {
        let text = &bytes[line.start..line.end];
        match name {
            Name::Host if side == Side::Request => {
                if self.host.is_some() {
                    return Err(Refusal::RepeatedHost);
                }
                // Most hosts are plain, with a short port or none; the value ends with the line.
                let plain_end = find_plain_end(bytes, line.start);
                if (plain_end != line.end || text.is_empty()) && !is_host(text) {
                    return Err(Refusal::InvalidHost);
                }
                self.host = Some((line.start, line.end));
            }
            Name::ContentLength => {
                if self.content_length.is_some() {
                    return Err(Refusal::RepeatedContentLength);
                }
                self.content_length = Some(content_length(text)?);
            }
            Name::TransferEncoding => {
                if self.chunked {
                    return Err(Refusal::RepeatedTransferEncoding);
                }
                // Implementations trim different white space from a coding, which has been used for
                // smuggling. Only spaces before it are harmless.
                let padded = line.end != line.line_end
                    || bytes[line.colon + 1..line.start].iter().any(|&byte| byte != b' ');
                transfer_encoding(text, padded)?;
                self.chunked = true;
            }
            Name::Connection => match text {
                b"keep-alive" | b"Keep-Alive" => self.option_keep_alive = true,
                b"close" => self.option_close = true,
                _ => {
                    for option in text.split(|&byte| byte == b',') {
                        let option = option.trim_ascii();
                        self.option_close |= option.eq_ignore_ascii_case(b"close");
                        self.option_keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                        self.option_upgrade |= option.eq_ignore_ascii_case(b"upgrade");
                        self.names_fields |= !is_standing(Name::of(option));
                    }
                }
            },
            Name::Upgrade => self.upgrade = true,
            Name::Expect if side == Side::Request => {
                if !text.eq_ignore_ascii_case(b"100-continue") {
                    return Err(Refusal::UnknownExpectation);
                }
                self.expect_continue = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the connection persists after this message (RFC 9112 §9.3).
    pub(super) fn keep_alive(&self, version: Version) -> bool {
        !self.option_close && (version == Version::Http11 || self.option_keep_alive)
    }

    /// Whether the sender requests, or agrees to, another protocol (RFC 9110 §7.8).
    pub(super) fn upgrade(&self, version: Version) -> bool {
        self.upgrade && self.option_upgrade && version == Version::Http11
    }

    /// Checks the framing fields against each other and the version (RFC 9112 §6.1).
    pub(super) fn check_framing(&self, version: Version) -> Result<(), Refusal> {
        if self.chunked && self.content_length.is_some() {
            return Err(Refusal::TransferEncodingAndLength);
        }
        if self.chunked && version == Version::Http10 {
            return Err(Refusal::TransferEncodingInHttp10);
        }
        Ok(())
    }
}

/// The sender and the kind of the section.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Request,
    Response,
    Trailers,
}

/// One field line.
struct Line {
    at: usize,
    colon: usize,
    /// The start of the value.
    start: usize,
    /// The end of the value.
    end: usize,
    /// The position of the CR.
    line_end: usize,
}

impl Line {
    #[inline(always)]
    fn span(&self, bytes: &[u8]) -> Option<Span> {
        Span::new(bytes, self.at, self.colon - self.at, self.start, self.end - self.start)
    }
}

/// Reads field lines from `at` to the empty line, and returns the position after it. `spans` is overwritten.
#[inline]
pub(super) fn parse(
    buf: &[u8],
    mut at: usize,
    side: Side,
    limits: &Limits,
    spans: &mut Vec<Span>,
    controls: &mut Controls,
) -> Result<Parsed<usize>, Refusal> {
    // Bytes past the limit are ignored, so that a head is too large whether or not more of it has arrived.
    let limit = limits.head.min(MAX_HEAD);
    let bytes = &buf[..buf.len().min(limit)];
    let max_fields = limits.fields.min(MAX_FIELDS);
    spans.clear();
    loop {
        let (line, span) = match plain_lines(bytes, &mut at, max_fields, spans) {
            Some(found) => found,
            None if bytes[at..].starts_with(b"\r\n") => return Ok(Parsed::Complete(at + 2)),
            None => {
                let line = match any_line(bytes, at)? {
                    Found::Field(line) => line,
                    Found::Unfinished if buf.len() >= limit => return Err(Refusal::HeadTooLarge),
                    Found::Unfinished => return Ok(Parsed::Partial),
                };
                if spans.len() == max_fields {
                    return Err(Refusal::TooManyFields);
                }
                let span = line.span(bytes).ok_or(Refusal::HeadTooLarge)?;
                (line, span)
            }
        };
        // They have no meaning in trailers, and are dropped later.
        if is_control(span.name()) && side != Side::Trailers {
            controls.take_in(span.name(), &line, bytes, side)?;
        }
        spans.push(span);
        at = line.line_end + 2;
    }
}

/// Removes the fields that Connection names (RFC 9110 §7.6.1).
#[cold]
pub(super) fn drop_named(bytes: &[u8], spans: &mut Vec<Span>) {
    let fields = Fields::new(bytes, spans);
    let connection = HopByHop::of(fields);
    let kept = spans.iter().zip(fields.iter()).filter(|(_, field)| !connection.names(field));
    *spans = kept.map(|(span, _)| *span).collect();
}

/// Whether [`Controls`] processes fields of this name.
fn is_control(name: Name) -> bool {
    use Name::*;
    matches!(name, Host | ContentLength | TransferEncoding | Connection | Upgrade | Expect)
}

/// Reads lines from `at` on while they have the most common form: a plain name, a colon, one space, and a
/// value without tabs and surrounding white space. Stops at a line that needs [`any_line`], and returns a
/// line that [`Controls`] processes.
///
/// This only affects speed. The loop has no calls, so its state stays in registers.
#[inline]
fn plain_lines(
    bytes: &[u8],
    at: &mut usize,
    max_fields: usize,
    spans: &mut Vec<Span>,
) -> Option<(Line, Span)> {
    let room = spans.capacity().min(max_fields);
    while spans.len() < room {
        let colon = find_plain_end(bytes, *at);
        let start = colon + 2;
        match bytes.get(colon..) {
            Some([b':', b' ', first, ..]) if *first > b' ' && colon > *at => {}
            _ => return None,
        }
        let end = find_control(bytes, start);
        if !bytes[end..].starts_with(b"\r\n") || bytes[end - 1] == b' ' {
            return None;
        }
        let line = Line { at: *at, colon, start, end, line_end: end };
        let span = line.span(bytes)?;
        if is_control(span.name()) {
            return Some((line, span));
        }
        spans.push(span);
        *at = end + 2;
    }
    None
}

enum Found {
    Field(Line),
    /// No fault yet, and no end.
    Unfinished,
}

/// Reads the line at `at`, of any form except the empty line.
#[inline(never)]
fn any_line(bytes: &[u8], at: usize) -> Result<Found, Refusal> {
    let colon = find_token_end(bytes, at);
    if bytes.get(colon) != Some(&b':') || colon == at {
        return no_field(&bytes[at..], colon - at);
    }
    if colon - at > MAX_NAME {
        return Err(Refusal::FieldNameTooLong);
    }
    let space = bytes[colon + 1..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let start = colon + 1 + space;
    let line_end = find_value_end(bytes, start);
    if !bytes[line_end..].starts_with(b"\r\n") {
        return bad_line_end(&bytes[line_end..]).map_or(Ok(Found::Unfinished), Err);
    }
    // A value has no white space except the space and HTAB.
    let end = start + bytes[start..line_end].trim_ascii_end().len();
    Ok(Found::Field(Line { at, colon, start, end, line_end }))
}

/// The outcome for a line that is not a field. The first `name_len` bytes of `rest` are token bytes.
#[cold]
fn no_field(rest: &[u8], name_len: usize) -> Result<Found, Refusal> {
    match (name_len, &rest[name_len..]) {
        (_, [] | [b'\r']) => Ok(Found::Unfinished),
        (0, [b' ' | b'\t', ..]) => Err(Refusal::FoldedLine),
        (_, [b' ' | b'\t', ..]) => Err(Refusal::SpaceInFieldName),
        (_, [0, ..]) => Err(Refusal::Nul),
        (_, [b'\n', ..]) => Err(Refusal::BareLf),
        (_, [b'\r', next, ..]) if *next != b'\n' => Err(Refusal::BareCr),
        _ => Err(Refusal::InvalidFieldName),
    }
}

/// The fault at the end of a field value or line, given the bytes from the first control byte on; `None` if
/// it cannot be determined yet.
#[cold]
pub(super) fn bad_line_end(rest: &[u8]) -> Option<Refusal> {
    match rest {
        [] | [b'\r'] | [b'\r', b'\n', ..] => None,
        [b'\r', ..] => Some(Refusal::BareCr),
        [b'\n', ..] => Some(Refusal::BareLf),
        [0, ..] => Some(Refusal::Nul),
        _ => Some(Refusal::InvalidFieldValue),
    }
}

/// A Content-Length (RFC 9110 §8.6): digits only.
pub(crate) fn content_length(text: &[u8]) -> Result<u64, Refusal> {
    if text.contains(&b',') {
        return Err(Refusal::RepeatedContentLength);
    }
    if text.is_empty() {
        return Err(Refusal::InvalidContentLength);
    }
    text.iter()
        .try_fold(0u64, |length, &byte| {
            let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
            length.checked_mul(10)?.checked_add(digit)
        })
        .ok_or(Refusal::InvalidContentLength)
}

/// A Transfer-Encoding: only `chunked` is accepted; anything else is refused by name.
fn transfer_encoding(text: &[u8], padded: bool) -> Result<(), Refusal> {
    if text.eq_ignore_ascii_case(b"chunked") {
        return if padded { Err(Refusal::InvalidTransferEncoding) } else { Ok(()) };
    }
    let mut codings = 0;
    let mut chunked = 0;
    let mut chunked_last = false;
    for coding in text.split(|&byte| byte == b',') {
        let coding = coding.trim_ascii();
        if find_token_end(coding, 0) != coding.len() || coding.is_empty() {
            return Err(Refusal::InvalidTransferEncoding);
        }
        codings += 1;
        chunked_last = coding.eq_ignore_ascii_case(b"chunked");
        chunked += usize::from(chunked_last);
    }
    Err(match (codings, chunked) {
        (_, 2..) => Refusal::RepeatedTransferEncoding,
        (_, 1) if !chunked_last => Refusal::InvalidTransferEncoding,
        _ => Refusal::UnknownTransferCoding,
    })
}

/// Whether `host` is a host with an optional port (RFC 9110 §7.2, RFC 3986 §3.2.2). An empty one is not,
/// because a gateway could not look it up. Nor is one with a comma, because two joined Hosts look like that.
pub(crate) fn is_host(host: &[u8]) -> bool {
    // No more digits than a port needs, because some readers stop after them.
    Authority::parse(host).is_some_and(|authority| {
        !authority.host.contains(&b',') && host.len() - authority.host.len() <= ":65535".len()
    })
}
