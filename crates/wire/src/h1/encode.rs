//! Encoding of messages, always from their parsed form.
//!
//! No CR, LF or NUL of a value reaches the wire: a head has the lines it was given and no more.

use super::BodyFraming;
use super::scan::{find_control, find_target_end};
use sandarac_message::{Field, Fields, FieldsBuf, Name, Run, decimal, is_token};

/// The last chunk and an empty trailer section.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Writes one head: the first line at once, then fields in the order given, then the empty line by
/// [`Head::finish`].
///
/// ```
/// use sandarac_message::{FieldsBuf, Name};
/// use sandarac_wire::h1::{BodyFraming, encode::Head};
///
/// let fields: FieldsBuf = [("Accept", "text/html")].into_iter().collect();
/// let mut out = Vec::new();
/// let mut head = Head::request(&mut out, b"GET", b"/");
/// head.known(Name::Host, b"example.com");
/// head.fields(fields.view(), BodyFraming::None);
/// head.finish();
/// assert_eq!(out, b"GET / HTTP/1.1\r\nHost: example.com\r\nAccept: text/html\r\n\r\n");
/// ```
#[must_use = "a head without its empty line is no head"]
pub struct Head<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Head<'a> {
    /// A request in HTTP/1.1.
    pub fn request(out: &'a mut Vec<u8>, method: &[u8], target: &[u8]) -> Head<'a> {
        request_line(out, method, target);
        Head { out }
    }

    /// A response in HTTP/1.1, including interim ones. A gateway responds in its own version, whatever the
    /// client's (RFC 9110 §2.5).
    pub fn response(out: &'a mut Vec<u8>, status: u16, reason: &[u8]) -> Head<'a> {
        status_line(out, status, reason);
        Head { out }
    }

    /// All of `fields`, in their order and letter case, with the body framed by `framing` only.
    /// Content-Length with that length, or Transfer-Encoding, is at the position where it first occurred, or
    /// else after the other fields. Fields that disagree with `framing` are omitted.
    ///
    /// [`BodyFraming::None`] omits both, so the Content-Length of a response to HEAD has to be written by
    /// [`Head::known`].
    pub fn fields(&mut self, fields: Fields<'_>, framing: BodyFraming) {
        let mut digits = [0; 20];
        let Some((name, value)) = framing_field(framing, &mut digits) else {
            return self.unframed(fields);
        };
        let Some(place) = fields.iter().position(|field| field.id == name) else {
            self.unframed(fields);
            return self.known(name, value);
        };
        let (before, rest) = fields.split_at(place);
        self.unframed(before);
        let spelt = rest.iter().next().map_or(name.text().as_bytes(), |field| field.name);
        self.line(spelt, value);
        self.unframed(rest);
    }

    /// As [`Head::fields`], but in one piece if the fields already frame the body by `framing`.
    pub fn lines(&mut self, fields: &FieldsBuf, framing: BodyFraming) {
        let mut digits = [0; 20];
        let wanted = framing_field(framing, &mut digits);
        match (fields.encoded(), is_framed(fields.view(), wanted)) {
            (Some(lines), Some(framed)) => {
                self.out.extend_from_slice(lines);
                wanted.filter(|_| !framed).into_iter().for_each(|(name, value)| self.known(name, value));
            }
            _ => self.fields(fields.view(), framing),
        }
    }

    /// All of `fields` that do not frame a body.
    fn unframed(&mut self, fields: Fields<'_>) {
        self.selected(fields, |field| !is_framing(field));
    }

    /// Those of `fields` for which `keep` returns true, in their order and letter case.
    pub fn selected<'f>(&mut self, fields: Fields<'f>, keep: impl FnMut(&Field<'f>) -> bool) {
        fields.runs(keep, |run| match run {
            Run::Lines(lines) => self.out.extend_from_slice(lines.bytes()),
            Run::Loose(field) => self.line(field.name, field.value),
        });
    }

    /// One field of a known name.
    pub fn known(&mut self, name: Name, value: &[u8]) {
        self.line(name.text().as_bytes(), value);
    }

    /// One field. `name` MUST be a token; otherwise the field is omitted.
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        debug_assert!(is_token(name));
        if is_token(name) {
            self.line(name, value);
        }
    }

    fn line(&mut self, name: &[u8], value: &[u8]) {
        put_line(self.out, name, value);
    }

    /// The empty line.
    pub fn finish(self) {
        self.out.extend_from_slice(b"\r\n");
    }
}

/// Writes the first line of a request in HTTP/1.1.
pub fn request_line(out: &mut Vec<u8>, method: &[u8], target: &[u8]) {
    debug_assert!(is_token(method) && !target.is_empty());
    put_word(out, method);
    out.push(b' ');
    put_word(out, target);
    out.extend_from_slice(b" HTTP/1.1\r\n");
}

/// Writes the first line of a response in HTTP/1.1.
pub fn status_line(out: &mut Vec<u8>, status: u16, reason: &[u8]) {
    debug_assert!((100..1000).contains(&status));
    let digit = |value: u16| b'0' + (value % 10) as u8;
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(&[digit(status / 100), digit(status / 10), digit(status), b' ']);
    let at = out.len();
    out.extend_from_slice(reason);
    if find_control(out, at) != out.len() {
        sanitise(&mut out[at..], b' ');
    }
    out.extend_from_slice(b"\r\n");
}

/// The lines of a head whose fields were collected after its first line, as [`Head::fields`] would write
/// them, without the empty line. Nothing is copied if the fields already frame the body by `framing`.
pub fn lines(fields: FieldsBuf, framing: BodyFraming) -> Vec<u8> {
    let mut digits = [0; 20];
    let wanted = framing_field(framing, &mut digits);
    let Some(framed) = is_framed(fields.view(), wanted) else {
        let mut out = fields.first_line().to_vec();
        Head { out: &mut out }.fields(fields.view(), framing);
        return out;
    };
    let mut out = fields.into_lines();
    if let Some((name, value)) = wanted.filter(|_| !framed) {
        line(&mut out, name, value);
    }
    out
}

/// Whether `fields` have the one framing field that is wanted, rather than none; `None` if they have others.
fn is_framed(fields: Fields<'_>, wanted: Option<(Name, &[u8])>) -> Option<bool> {
    let mut framing = fields.iter().filter(is_framing).map(|field| (field.id, field.value));
    match (framing.next(), framing.next()) {
        (None, _) => Some(false),
        (first, None) if first == wanted => Some(true),
        _ => None,
    }
}

/// The field for this framing, if there is one.
fn framing_field(framing: BodyFraming, digits: &mut [u8; 20]) -> Option<(Name, &[u8])> {
    match framing {
        BodyFraming::None | BodyFraming::UntilClose => None,
        BodyFraming::Length(length) => Some((Name::ContentLength, decimal::digits(length, digits))),
        BodyFraming::Chunked => Some((Name::TransferEncoding, b"chunked")),
    }
}

fn is_framing(field: &Field<'_>) -> bool {
    matches!(field.id, Name::ContentLength | Name::TransferEncoding)
}

/// Writes the size line of a chunk of `len` bytes; `len` MUST NOT be 0, which would end the body. The data
/// and [`CRLF`] follow it.
pub fn chunk_size(out: &mut Vec<u8>, len: usize) {
    debug_assert!(len > 0);
    let mut digits = [0; 16];
    let mut at = digits.len();
    let mut rest = len;
    while rest > 0 {
        at -= 1;
        digits[at] = b"0123456789abcdef"[rest % 16];
        rest /= 16;
    }
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(CRLF);
}

/// Follows the data of a chunk.
pub const CRLF: &[u8] = b"\r\n";

/// Writes the last chunk and `trailers`; [`LAST_CHUNK`] if there are none.
pub fn last_chunk(out: &mut Vec<u8>, trailers: Fields<'_>) {
    out.extend_from_slice(b"0\r\n");
    for field in trailers.iter() {
        put_line(out, field.name, field.value);
    }
    out.extend_from_slice(CRLF);
}

/// Writes one field line of a known name.
pub fn line(out: &mut Vec<u8>, name: Name, value: &[u8]) {
    put_line(out, name.text().as_bytes(), value);
}

fn put_line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.reserve(name.len() + value.len() + 4);
    let at = out.len();
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    // Checked after writing: with other bytes in front, even a short line fills a whole block.
    if find_control(out, at) != out.len() {
        sanitise(&mut out[at..at + name.len()], b'_');
        sanitise(&mut out[at + name.len()..], b' ');
    }
    out.extend_from_slice(CRLF);
}

/// Copies a word of a request line. A space or control byte, which would end it, becomes `_`.
fn put_word(out: &mut Vec<u8>, word: &[u8]) {
    let at = out.len();
    out.extend_from_slice(word);
    if find_target_end(out, at) != out.len() {
        for byte in out[at..].iter_mut().filter(|byte| **byte <= b' ' || **byte == 0x7f) {
            *byte = b'_';
        }
    }
}

/// Replaces CR, LF and NUL; other control bytes do not end a line.
#[cold]
fn sanitise(bytes: &mut [u8], replacement: u8) {
    for byte in bytes.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        *byte = replacement;
    }
}
