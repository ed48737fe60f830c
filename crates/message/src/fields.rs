//! Header and trailer fields: one run of bytes, with the position of every name and value beside it.
//!
//! Order, letter case and repetition survive from receipt to forwarding (RFC 9110 §5.3). [`Fields`] is a
//! borrowed view that all rules take; [`FieldsBuf`](crate::FieldsBuf) owns and edits. Both use [`Span`], so
//! the same code reads a head in a connection's buffer, a head being edited and a stored head.

use std::ops::Range;

use crate::Name;
use crate::list::members;
use crate::name::NameSet;

/// The longest head, in bytes, that spans can describe.
pub const MAX_HEAD: usize = u16::MAX as usize;

/// The longest field name, in bytes, that spans can describe.
pub const MAX_NAME: usize = u8::MAX as usize;

/// The positions of one field's name and value in the bytes beside it. Eight bytes, because every stored
/// object has one for each of its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    name_at: u16,
    value_at: u16,
    value_len: u16,
    name_len: u8,
    name: Name,
}

impl Span {
    /// The span of a name at `name_at` and a value at `value_at` of `bytes`; `None` if the field is longer or
    /// further in than [`MAX_HEAD`] and [`MAX_NAME`] allow.
    #[inline(always)]
    pub fn new(
        bytes: &[u8],
        name_at: usize,
        name_len: usize,
        value_at: usize,
        value_len: usize,
    ) -> Option<Span> {
        let name = || Name::of(&bytes[name_at..name_at + name_len]);
        Span::named(name, name_at, name_len, value_at, value_len)
    }

    #[inline(always)]
    pub(crate) fn named(
        name: impl FnOnce() -> Name,
        name_at: usize,
        name_len: usize,
        value_at: usize,
        value_len: usize,
    ) -> Option<Span> {
        if value_at + value_len > MAX_HEAD {
            return None;
        }
        Some(Span {
            name_at: u16::try_from(name_at).ok()?,
            value_at: u16::try_from(value_at).ok()?,
            value_len: u16::try_from(value_len).ok()?,
            name_len: u8::try_from(name_len).ok()?,
            name: name(),
        })
    }

    /// The span of the same field after its bytes were moved from `from` to `to`. The field MUST fit there.
    fn moved(&self, from: usize, to: usize) -> Span {
        let by = (to as u16).wrapping_sub(from as u16);
        Span { name_at: self.name_at.wrapping_add(by), value_at: self.value_at.wrapping_add(by), ..*self }
    }

    /// The known name, or [`Name::Other`].
    pub fn name(&self) -> Name {
        self.name
    }

    pub(crate) fn name_range(&self) -> Range<usize> {
        self.name_at as usize..self.name_at as usize + self.name_len as usize
    }

    pub(crate) fn value_range(&self) -> Range<usize> {
        self.value_at as usize..self.value_at as usize + self.value_len as usize
    }
}

/// One field line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The known name, or [`Name::Other`].
    pub id: Name,
    /// The name as it was received.
    pub name: &'a [u8],
    /// The value as it was received, without surrounding white space.
    pub value: &'a [u8],
}

impl Field<'_> {
    /// Whether this field is called `name`, in any letter case.
    pub fn is(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Bytes of the line, with `: ` and CR LF.
    pub fn encoded_len(&self) -> usize {
        self.name.len() + self.value.len() + 4
    }
}

/// Some of a head's fields, in pieces that are cheap to copy.
pub enum Run<'a> {
    /// Consecutive lines in their wire form.
    Lines(Lines<'a>),
    /// A single field, whose line has other white space.
    Loose(Field<'a>),
}

/// Consecutive field lines in their wire form: `name: value CR LF` each.
pub struct Lines<'a> {
    fields: Fields<'a>,
    place: Range<usize>,
    spans: Range<usize>,
}

impl<'a> Lines<'a> {
    /// The lines.
    pub fn bytes(&self) -> &'a [u8] {
        &self.fields.bytes[self.place.clone()]
    }

    /// The spans of the fields after the lines are copied to position `to`.
    pub(crate) fn spans_at(&self, to: usize) -> impl Iterator<Item = Span> {
        let from = self.place.start;
        self.fields.spans[self.spans.clone()].iter().map(move |span| span.moved(from, to))
    }
}

/// A borrowed view of fields.
#[derive(Clone, Copy, Default)]
pub struct Fields<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) spans: &'a [Span],
}

impl<'a> Fields<'a> {
    /// The fields at `spans` of `bytes`. Spans MUST have been made for these bytes.
    pub fn new(bytes: &'a [u8], spans: &'a [Span]) -> Fields<'a> {
        Fields { bytes, spans }
    }

    /// The number of field lines.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Bytes of all field lines when encoded.
    pub fn encoded_len(&self) -> usize {
        self.spans.iter().map(|span| span.name_len as usize + span.value_len as usize + 4).sum()
    }

    /// The first `count` field lines, and the rest.
    ///
    /// # Panics
    /// If there are fewer than `count`.
    pub fn split_at(self, count: usize) -> (Fields<'a>, Fields<'a>) {
        let (first, rest) = self.spans.split_at(count);
        (Fields { spans: first, ..self }, Fields { spans: rest, ..self })
    }

    pub(crate) fn field(&self, span: &Span) -> Field<'a> {
        Field { id: span.name, name: &self.bytes[span.name_range()], value: &self.bytes[span.value_range()] }
    }

    /// Every field line in order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Field<'a>> + ExactSizeIterator + Clone {
        self.spans.iter().map(move |span| self.field(span))
    }

    /// Every field line in order, but for those of these names.
    pub(crate) fn without(self, names: NameSet) -> impl Iterator<Item = Field<'a>> {
        self.spans.iter().filter(move |span| !names.has(span.name)).map(move |span| self.field(span))
    }

    /// Whether there is a field of this known name.
    pub fn has(&self, name: Name) -> bool {
        self.spans.iter().any(|span| span.name == name)
    }

    /// The first value of a known name.
    pub fn get(&self, name: Name) -> Option<&'a [u8]> {
        self.spans.iter().find(|span| span.name == name).map(|span| &self.bytes[span.value_range()])
    }

    /// Passes the fields for which `keep` returns true to `take`, in order and in as few pieces as possible.
    /// This allows forwarded heads to be copied rather than encoded again.
    pub fn runs(self, mut keep: impl FnMut(&Field<'a>) -> bool, mut take: impl FnMut(Run<'a>)) {
        let mut run: Option<Lines<'a>> = None;
        for (at, span) in self.spans.iter().enumerate() {
            let field = self.field(span);
            if !keep(&field) {
                continue;
            }
            let Some(end) = self.line_end(span) else {
                run.take().map(Run::Lines).into_iter().for_each(&mut take);
                take(Run::Loose(field));
                continue;
            };
            let start = span.name_at as usize;
            match &mut run {
                Some(lines) if lines.place.end == start => {
                    lines.place.end = end;
                    lines.spans.end = at + 1;
                }
                _ => {
                    let lines = Lines { fields: self, place: start..end, spans: at..at + 1 };
                    run.replace(lines).map(Run::Lines).into_iter().for_each(&mut take);
                }
            }
        }
        run.map(Run::Lines).into_iter().for_each(take);
    }

    /// The end of the line of `span`, if it is in its wire form.
    fn line_end(&self, span: &Span) -> Option<usize> {
        let name_end = span.name_range().end;
        let value_end = span.value_range().end;
        let plain = span.value_at as usize == name_end + 2
            && self.bytes[name_end..name_end + 2] == *b": "
            && self.bytes.get(value_end..value_end + 2) == Some(b"\r\n");
        plain.then_some(value_end + 2)
    }

    /// Every value of a known name, in order.
    pub fn all(self, name: Name) -> impl Iterator<Item = &'a [u8]> + Clone {
        self.spans
            .iter()
            .filter(move |span| span.name == name)
            .map(move |span| &self.bytes[span.value_range()])
    }

    /// Every value of any name, known or not, in order. The name's letter case is ignored.
    pub fn all_named(self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + Clone {
        let id = Name::of(name);
        self.spans
            .iter()
            .filter(move |span| {
                span.name == id
                    && (id != Name::Other || self.bytes[span.name_range()].eq_ignore_ascii_case(name))
            })
            .map(move |span| &self.bytes[span.value_range()])
    }

    /// The members of a comma-separated list (RFC 9110 §5.6.1) over all its lines: trimmed, empty ones
    /// skipped, commas inside quoted strings kept.
    pub fn list(self, name: Name) -> impl Iterator<Item = &'a [u8]> + Clone {
        self.all(name).flat_map(members)
    }
}

impl std::fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map()
            .entries(
                self.iter()
                    .map(|field| (String::from_utf8_lossy(field.name), String::from_utf8_lossy(field.value))),
            )
            .finish()
    }
}
