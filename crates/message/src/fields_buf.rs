//! Owned, editable fields.

use crate::fields::{Field, Fields, Lines, MAX_HEAD, Run, Span};
use crate::{Name, is_token};

/// A head would exceed [`MAX_HEAD`], or a name [`MAX_NAME`](crate::MAX_NAME); the edit was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "header fields grow past {MAX_HEAD} bytes")
    }
}

impl std::error::Error for TooLarge {}

/// Owned, editable fields. The bytes are field lines in their wire form, after the first line of the head if
/// the buffer began with one. A removed field leaves its bytes behind.
#[derive(Clone, Default)]
pub struct FieldsBuf {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    /// The number of bytes before the first field line.
    first_line: usize,
    /// Whether the bytes contain more than the first line and the field lines.
    gaps: bool,
}

impl FieldsBuf {
    /// No fields.
    pub fn new() -> FieldsBuf {
        FieldsBuf::default()
    }

    /// An empty buffer with room for `lines` fields after the first line of a head. [`FieldsBuf::into_lines`]
    /// returns that line before them.
    pub fn after(first_line: Vec<u8>, lines: usize) -> FieldsBuf {
        FieldsBuf {
            first_line: first_line.len(),
            bytes: first_line,
            spans: Vec::with_capacity(lines),
            gaps: false,
        }
    }

    /// A copy of `fields`, without the bytes that follow them in a read buffer.
    pub fn copy_of(fields: Fields<'_>) -> FieldsBuf {
        let end = fields.spans.iter().map(|span| span.value_range().end).max().unwrap_or(0);
        FieldsBuf {
            bytes: fields.bytes[..end].to_vec(),
            spans: fields.spans.to_vec(),
            first_line: 0,
            gaps: true,
        }
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.spans.capacity() * size_of::<Span>()
    }

    /// The fields, borrowed.
    pub fn view(&self) -> Fields<'_> {
        Fields::new(&self.bytes, &self.spans)
    }

    /// Adds a field line after all others. The name MUST be a token, the value MUST NOT have CR, LF or NUL.
    /// These three bytes are replaced in both, so that one field never becomes two.
    pub fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), TooLarge> {
        debug_assert!(is_token(name));
        self.line(name, |bytes| bytes.extend_from_slice(value), || Name::of(name))
    }

    /// Adds a field of a known name in its usual spelling.
    pub fn add(&mut self, name: Name, value: &[u8]) -> Result<(), TooLarge> {
        self.add_with(name, |bytes| bytes.extend_from_slice(value))
    }

    /// Adds a field of a known name; `write` appends the value to the bytes it is given. The value MUST be
    /// valid as in [`FieldsBuf::push`].
    pub fn add_with(&mut self, name: Name, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), TooLarge> {
        self.line(name.text().as_bytes(), write, || name)
    }

    fn line(
        &mut self,
        name: &[u8],
        write: impl FnOnce(&mut Vec<u8>),
        id: impl FnOnce() -> Name,
    ) -> Result<(), TooLarge> {
        let name_at = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(b": ");
        let value_at = self.bytes.len();
        write(&mut self.bytes);
        let value_len = self.bytes.len() - value_at;
        if has_line_end(&self.bytes[name_at..]) {
            replace_line_ends(&mut self.bytes[name_at..]);
        }
        self.bytes.extend_from_slice(b"\r\n");
        match Span::named(id, name_at, name.len(), value_at, value_len) {
            Some(span) => {
                self.spans.push(span);
                Ok(())
            }
            None => {
                self.bytes.truncate(name_at);
                Err(TooLarge)
            }
        }
    }

    /// Adds the `fields` for which `keep` returns true, after all others and in order.
    pub fn extend(
        &mut self,
        fields: Fields<'_>,
        keep: impl FnMut(&Field<'_>) -> bool,
    ) -> Result<(), TooLarge> {
        let mut outcome = Ok(());
        fields.runs(keep, |run| {
            let added = match run {
                Run::Lines(lines) => self.copy(lines),
                Run::Loose(field) => self.push(field.name, field.value),
            };
            outcome = outcome.and(added);
        });
        outcome
    }

    fn copy(&mut self, lines: Lines<'_>) -> Result<(), TooLarge> {
        let at = self.bytes.len();
        if at + lines.bytes().len() > MAX_HEAD {
            return Err(TooLarge);
        }
        self.bytes.extend_from_slice(lines.bytes());
        self.spans.extend(lines.spans_at(at));
        Ok(())
    }

    /// Removes every line of `name` and adds one.
    pub fn set(&mut self, name: Name, value: &[u8]) -> Result<(), TooLarge> {
        self.remove(name);
        self.add(name, value)
    }

    /// Replaces all lines of a name, known or not, by one, at the position of the first. If there is none,
    /// adds the line after the others. Name and value MUST be valid as in [`FieldsBuf::push`].
    pub fn replace(&mut self, name: &[u8], value: &[u8]) -> Result<(), TooLarge> {
        let place = self.view().iter().position(|field| field.is(name));
        self.remove_named(name);
        self.push(name, value)?;
        if let Some(place) = place {
            self.spans[place..].rotate_right(1);
        }
        Ok(())
    }

    /// Removes every line of a known name.
    pub fn remove(&mut self, name: Name) {
        self.retain_names(|known| known != name);
    }

    /// Removes every line of any name, known or not.
    pub fn remove_named(&mut self, name: &[u8]) {
        self.retain(|field| !field.is(name));
    }

    /// Keeps the lines of the names, known or [`Name::Other`], for which `keep` returns true.
    pub fn retain_names(&mut self, mut keep: impl FnMut(Name) -> bool) {
        let before = self.spans.len();
        self.spans.retain(|span| keep(span.name()));
        self.gaps |= self.spans.len() < before;
    }

    /// Keeps the lines for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(Field<'_>) -> bool) {
        let bytes = &self.bytes;
        let before = self.spans.len();
        self.spans.retain(|span| keep(Fields::new(bytes, &[]).field(span)));
        self.gaps |= self.spans.len() < before;
    }

    /// The number of bytes that [`FieldsBuf::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        self.encoded().map_or_else(|| self.view().encoded_len(), <[u8]>::len)
    }

    /// The field lines as [`FieldsBuf::encode`] writes them, if nothing else lies between them.
    pub fn encoded(&self) -> Option<&[u8]> {
        (!self.gaps).then(|| &self.bytes[self.first_line..])
    }

    /// The first line; empty if the buffer began without one.
    pub fn first_line(&self) -> &[u8] {
        &self.bytes[..self.first_line]
    }

    /// The first line, if the buffer began with one, and the field lines, without the final empty line.
    pub fn into_lines(self) -> Vec<u8> {
        if !self.gaps {
            return self.bytes;
        }
        let mut lines = Vec::with_capacity(self.bytes.capacity());
        lines.extend_from_slice(self.first_line());
        self.encode(&mut lines);
        lines
    }

    /// Appends the field lines to `out`, `name: value CR LF` each, without the final empty line.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if let Some(lines) = self.encoded() {
            return out.extend_from_slice(lines);
        }
        self.view().runs(
            |_| true,
            |run| match run {
                Run::Lines(lines) => out.extend_from_slice(lines.bytes()),
                Run::Loose(field) => put_line(out, field.name, field.value),
            },
        );
    }
}

impl std::fmt::Debug for FieldsBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.view().fmt(f)
    }
}

impl<N: AsRef<[u8]>, V: AsRef<[u8]>> FromIterator<(N, V)> for FieldsBuf {
    /// Collects valid fields, for tests and fixed responses.
    ///
    /// # Panics
    /// If they are too large.
    fn from_iter<I: IntoIterator<Item = (N, V)>>(fields: I) -> FieldsBuf {
        let mut buf = FieldsBuf::new();
        for (name, value) in fields {
            buf.push(name.as_ref(), value.as_ref()).expect("literal fields fit a head");
        }
        buf
    }
}

fn put_line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for part in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Whether a byte would end a line or a head.
fn has_line_end(bytes: &[u8]) -> bool {
    // Almost no value has control bytes, and the least byte of a short one is found in a quarter of the time
    // that memchr takes.
    least(bytes) < b' ' && memchr::memchr3(b'\r', b'\n', 0, bytes).is_some()
}

/// The least of all bytes.
fn least(bytes: &[u8]) -> u8 {
    const BLOCK: usize = 16;
    let least = |bytes: &[u8]| bytes.iter().fold(u8::MAX, |least, &byte| least.min(byte));
    // The last block overlaps the one before it.
    let Some(last) = bytes.last_chunk::<BLOCK>() else { return least(bytes) };
    let mut columns = *last;
    for block in bytes.as_chunks::<BLOCK>().0 {
        columns.iter_mut().zip(block).for_each(|(least, byte)| *least = (*least).min(*byte));
    }
    least(&columns)
}

#[cold]
fn replace_line_ends(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        *byte = b' ';
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_NAME;

    fn lines(fields: &FieldsBuf) -> String {
        let mut out = Vec::new();
        fields.encode(&mut out);
        assert_eq!(out.len(), fields.encoded_len());
        assert_eq!(out, fields.clone().into_lines());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn no_value_of_any_length_ends_its_line() {
        for len in 1..70 {
            for at in 0..len {
                for end in [b'\r', b'\n', 0] {
                    let mut value = vec![b'x'; len];
                    value[at] = end;
                    let mut fields = FieldsBuf::new();
                    fields.push(b"A", &value).unwrap();
                    value[at] = b' ';
                    let value = String::from_utf8(value).unwrap();
                    assert_eq!(lines(&fields), format!("A: {value}\r\n"));
                }
            }
        }
    }

    #[test]
    fn a_replaced_line_keeps_its_place() {
        let mut fields: FieldsBuf =
            [("Host", "a"), ("X-One", "1"), ("x-one", "2"), ("Accept", "*/*")].into_iter().collect();
        fields.replace(b"HOST", b"b").unwrap();
        fields.replace(b"X-ONE", b"3").unwrap();
        fields.replace(b"New", b"4").unwrap();
        let mut out = Vec::new();
        fields.encode(&mut out);
        assert_eq!(out, b"HOST: b\r\nX-ONE: 3\r\nAccept: */*\r\nNew: 4\r\n");
        assert_eq!(fields.view().get(Name::Host), Some(&b"b"[..]));
    }

    #[test]
    fn order_case_and_repetition_survive() {
        let fields: FieldsBuf = [("x-B", "1"), ("Host", "a"), ("X-b", "2")].into_iter().collect();
        assert_eq!(lines(&fields), "x-B: 1\r\nHost: a\r\nX-b: 2\r\n");
        assert_eq!(fields.view().all_named(b"X-B").collect::<Vec<_>>(), [b"1", b"2"]);
    }

    #[test]
    fn removed_and_set_fields_leave_the_others_as_they_were() {
        let mut fields: FieldsBuf = [("Via", "1.0 a"), ("X", "1"), ("VIA", "1.1 b")].into_iter().collect();
        fields.set(Name::Via, b"1.1 c").unwrap();
        fields.remove_named(b"x");
        assert_eq!(lines(&fields), "Via: 1.1 c\r\n");
    }

    #[test]
    fn list_members_span_lines_and_keep_quoted_commas() {
        let fields: FieldsBuf =
            [("Cache-Control", "a=\"x, \\\"y\", ,b"), ("cache-control", " c ,")].into_iter().collect();
        let members: Vec<_> = fields.view().list(Name::CacheControl).collect();
        assert_eq!(members, [&b"a=\"x, \\\"y\""[..], b"b", b"c"]);
    }

    fn parsed(text: &str) -> (Vec<u8>, Vec<Span>) {
        let mut spans = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive("\r\n").filter(|line| *line != "\r\n") {
            let name_len = line.find(':').unwrap();
            let value = line[name_len + 1..].trim();
            let value_at = at + name_len + 1 + line[name_len + 1..].find(value).unwrap();
            spans.push(Span::new(text.as_bytes(), at, name_len, value_at, value.len()).unwrap());
            at += line.len();
        }
        (text.as_bytes().to_vec(), spans)
    }

    #[test]
    fn what_stands_as_it_goes_on_the_wire_is_copied_in_one_piece() {
        let (bytes, spans) = parsed("A: 1\r\nB: 2\r\nC:3\r\nD: 4 \r\nE: 5\r\nF: 6\r\nG:\t7\r\nH: 8\r\n\r\n");
        let fields = Fields::new(&bytes, &spans);
        let mut pieces = Vec::new();
        fields.runs(
            |field| field.name != b"F",
            |run| {
                pieces.push(match run {
                    Run::Lines(lines) => String::from_utf8_lossy(lines.bytes()).into_owned(),
                    Run::Loose(field) => String::from_utf8_lossy(field.name).into_owned(),
                });
            },
        );
        assert_eq!(pieces, ["A: 1\r\nB: 2\r\n", "C", "D", "E: 5\r\n", "G", "H: 8\r\n"]);
        let mut copy: FieldsBuf = [("Host", "a")].into_iter().collect();
        copy.extend(fields, |field| field.name != b"B").unwrap();
        assert_eq!(lines(&copy), "Host: a\r\nA: 1\r\nC: 3\r\nD: 4\r\nE: 5\r\nF: 6\r\nG: 7\r\nH: 8\r\n");
        copy.remove_named(b"e");
        assert_eq!(lines(&copy), "Host: a\r\nA: 1\r\nC: 3\r\nD: 4\r\nF: 6\r\nG: 7\r\nH: 8\r\n");
    }

    #[test]
    fn the_first_line_stays_before_the_fields() {
        let mut head = FieldsBuf::after(b"GET / HTTP/1.1\r\n".to_vec(), 2);
        head.add(Name::Host, b"a").unwrap();
        head.push(b"X", b"1").unwrap();
        assert_eq!(head.clone().into_lines(), b"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n");
        head.set(Name::Host, b"b").unwrap();
        assert_eq!(head.into_lines(), b"GET / HTTP/1.1\r\nX: 1\r\nHost: b\r\n");
    }

    #[test]
    fn no_value_makes_a_second_line() {
        let mut fields = FieldsBuf::new();
        fields.push(b"A", b"1\r\nB: 2\0").unwrap();
        fields.add_with(Name::Via, |value| value.extend_from_slice(b"x\ny")).unwrap();
        assert_eq!(lines(&fields), "A: 1  B: 2 \r\nVia: x y\r\n");
    }

    #[test]
    fn a_head_never_grows_past_what_spans_can_describe() {
        let mut fields = FieldsBuf::new();
        assert_eq!(fields.push(b"A", &vec![b'x'; MAX_HEAD]), Err(TooLarge));
        assert_eq!(fields.push(&vec![b'x'; MAX_NAME + 1], b""), Err(TooLarge));
        fields.push(b"A", b"1").unwrap();
        assert_eq!(lines(&fields), "A: 1\r\n");
    }
}
