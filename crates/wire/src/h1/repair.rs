//! Repair of responses that break the grammar but have only one reading.
//!
//! Other proxies accept these from origins, and so does this codec, by default: the head is rewritten to
//! conform to RFC 9112 and parsed strictly, and the connection serves no other request. If there are two
//! readings, the response stays refused. Requests are never repaired. docs/decisions/0004-sloppy-responses.md
//! has the table.

use super::Refusal;

macro_rules! repairs {
    ($($variant:ident $name:literal $text:literal),* $(,)?) => {
        /// A kind of repair.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Repair {
            $(#[doc = $text] $variant),*
        }

        impl Repair {
            /// Every repair.
            pub const ALL: &'static [Repair] = &[$(Repair::$variant),*];

            /// The name, for counters and tests.
            pub const fn name(self) -> &'static str {
                match self { $(Repair::$variant => $name),* }
            }
        }
    };
}

repairs! {
    BareLf "bare-lf" "A head all lines of which end in LF alone.",
    MinorVersion "minor-version" "A version between HTTP/1.2 and HTTP/1.9, read as HTTP/1.1 (RFC 9110 §2.5).",
    StatusSpaces "status-spaces" "More than one space before the status.",
    UnknownStatus "unknown-status" "A status between 600 and 999, which is passed on.",
    RepeatedLength "repeated-length" "The same Content-Length more than once, in lines or in a list (RFC 9110 §8.6).",
    UnexpectedBody "unexpected-body" "A body announced for a 204, which has none: what may come is not read.",
    FoldedLine "folded-line" "A field value over several lines, joined by spaces (RFC 9112 §5.2).",
    ChunkSizeSpace "chunk-size-space" "White space after a chunk size.",
    ChunkSizeZeros "chunk-size-zeros" "A chunk size with so many leading zeros that it has more than 16 digits.",
}

/// A set of repairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repairs(u16);

impl Repairs {
    /// None.
    pub const NONE: Repairs = Repairs(0);

    /// Whether nothing was repaired.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `repair` is among them.
    pub const fn contains(self, repair: Repair) -> bool {
        self.0 & 1 << repair as u8 != 0
    }

    /// Adds a repair.
    pub fn insert(&mut self, repair: Repair) {
        self.0 |= 1 << repair as u8;
    }

    /// Adds all of another set.
    pub fn extend(&mut self, others: Repairs) {
        self.0 |= others.0;
    }

    /// The repairs in the set.
    pub fn iter(self) -> impl Iterator<Item = Repair> {
        Repair::ALL.iter().copied().filter(move |&repair| self.contains(repair))
    }
}

/// Whether a head with this refusal may still have only one reading.
pub(super) fn may_help(refusal: Refusal) -> bool {
    matches!(
        refusal,
        Refusal::BareLf
            | Refusal::UnsupportedVersion
            | Refusal::InvalidStatusLine
            | Refusal::RepeatedContentLength
            | Refusal::UnexpectedBody
            | Refusal::FoldedLine
    )
}

/// A rewritten response head.
pub(super) struct Anew {
    pub(super) repairs: Repairs,
    /// Bytes of the original head, once its end has arrived.
    pub(super) len: Option<usize>,
}

/// Rewrites the head in `bytes`, as far as it has arrived, to `out` in its correct form. A line with more
/// than one reading is copied as it is, and refused by the strict parser.
pub(super) fn rewrite(bytes: &[u8], out: &mut Vec<u8>) -> Anew {
    out.clear();
    let mut writer = Writer { out, repairs: Repairs::NONE, is_204: false, length: None, joinable: false };
    let mut at = 0;
    while let Some(lf) = memchr::memchr(b'\n', &bytes[at..]) {
        let line = &bytes[at..at + lf];
        let is_first = at == 0;
        at += lf + 1;
        let (line, is_bare) = line.strip_suffix(b"\r").map_or((line, true), |line| (line, false));
        if is_first && is_bare {
            writer.repairs.insert(Repair::BareLf);
        }
        if is_bare != writer.repairs.contains(Repair::BareLf) {
            // The line ends differ within the head: an attacker may have put an LF into a value. The parser
            // must refuse the line, so a CR before its end must not become part of the line end.
            writer.out.extend_from_slice(line);
            writer.out.extend_from_slice(if line.ends_with(b"\r") { b"\r\n" } else { b"\n" });
            // Joining the next line to it would hide that.
            writer.joinable = false;
        } else if is_first {
            writer.status_line(line);
        } else if line.is_empty() {
            writer.out.extend_from_slice(b"\r\n");
            return Anew { repairs: writer.repairs, len: Some(at) };
        } else {
            writer.field_line(line);
        }
    }
    // The parser checks an incomplete line as far as possible, except one that may have to be joined to the
    // line before it.
    match &bytes[at..] {
        line if at == 0 => {
            writer.status_line(line);
            writer.out.truncate(writer.out.len() - 2);
        }
        [b' ' | b'\t', ..] if writer.joinable => {}
        line => writer.out.extend_from_slice(line),
    }
    Anew { repairs: writer.repairs, len: None }
}

struct Writer<'o> {
    out: &'o mut Vec<u8>,
    repairs: Repairs,
    is_204: bool,
    /// The Content-Length so far.
    length: Option<Vec<u8>>,
    /// Whether a line that begins with white space continues the value of the line before it. False if that
    /// value frames the message, because some readers treat such a line as a separate field.
    joinable: bool,
}

impl Writer<'_> {
    fn line(&mut self, parts: &[&[u8]]) {
        parts.iter().for_each(|part| self.out.extend_from_slice(part));
        self.out.extend_from_slice(b"\r\n");
    }

    fn status_line(&mut self, line: &[u8]) {
        let version_len = b"HTTP/1.1".len();
        let Some((version, rest)) = line.split_at_checked(version_len) else { return self.line(&[line]) };
        let version: &[u8] = match version {
            [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'] => {
                self.repairs.insert(Repair::MinorVersion);
                b"HTTP/1.1"
            }
            known => known,
        };
        let spaces = rest.iter().take_while(|&&byte| byte == b' ').count();
        if spaces > 1 {
            self.repairs.insert(Repair::StatusSpaces);
        }
        let status = &rest[spaces..];
        if matches!(status.first(), Some(b'6'..=b'9')) {
            self.repairs.insert(Repair::UnknownStatus);
        }
        self.is_204 = status.starts_with(b"204");
        self.line(&[version, &rest[..spaces.min(1)], status]);
    }

    fn field_line(&mut self, line: &[u8]) {
        if line[0] == b' ' || line[0] == b'\t' {
            let more = line.trim_ascii();
            if !self.joinable || more.is_empty() {
                return self.line(&[line]);
            }
            self.repairs.insert(Repair::FoldedLine);
            self.out.truncate(self.out.len() - 2);
            return self.line(&[b" ", more]);
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (name, value) = (&line[..colon], line.get(colon + 1..).unwrap_or_default());
        let frames_by_length = name.eq_ignore_ascii_case(b"content-length");
        let frames = frames_by_length || name.eq_ignore_ascii_case(b"transfer-encoding");
        self.joinable = !frames;
        if frames && self.is_204 {
            return self.repairs.insert(Repair::UnexpectedBody);
        }
        let once = if frames_by_length { the_only(value) } else { None };
        let Some(once) = once else { return self.line(&[line]) };
        match &self.length {
            Some(before) if before == once => self.repairs.insert(Repair::RepeatedLength),
            Some(_) => self.line(&[line]),
            None => {
                self.length = Some(once.to_vec());
                if once.len() < value.trim_ascii().len() {
                    self.repairs.insert(Repair::RepeatedLength);
                }
                self.line(&[name, b": ", once]);
            }
        }
    }
}

/// The single member of a list whose members are all equal.
fn the_only(list: &[u8]) -> Option<&[u8]> {
    let mut members = list.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let first = members.next()?;
    members.all(|member| member == first).then_some(first)
}
