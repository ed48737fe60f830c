//! The normal form of a field's value: values with the same meaning have the same text.

use crate::Name;
use crate::codings::Codings;
use crate::weighted::Weighted;

/// Replaces Accept-Encoding in keys that compare it by [`raw_codings`](super::VaryRule::raw_codings).
pub(super) const RAW_CODINGS: &[u8] = b"ACCEPT-ENCODING";

/// Takes normalised values piece by piece, until it returns false.
pub(super) trait Sink {
    fn text(&mut self, text: &[u8]) -> bool;

    /// `text` in lower case.
    fn lower(&mut self, text: &[u8]) -> bool;
}

impl Sink for Vec<u8> {
    fn text(&mut self, text: &[u8]) -> bool {
        self.extend_from_slice(text);
        true
    }

    fn lower(&mut self, text: &[u8]) -> bool {
        self.extend(text.iter().map(u8::to_ascii_lowercase));
        true
    }
}

/// The part of an expected value that has not been matched yet.
pub(super) struct Expected<'a>(pub(super) &'a [u8]);

impl Expected<'_> {
    fn take(&mut self, len: usize, same: impl Fn(&[u8]) -> bool) -> bool {
        match self.0.split_at_checked(len) {
            Some((next, rest)) if same(next) => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }
}

impl Sink for Expected<'_> {
    fn text(&mut self, text: &[u8]) -> bool {
        self.take(text.len(), |next| next == text)
    }

    fn lower(&mut self, text: &[u8]) -> bool {
        self.take(text.len(), |next| {
            next.iter().zip(text).all(|(next, byte)| *next == byte.to_ascii_lowercase())
        })
    }
}

/// Passes the normalised values of one field to `sink`, piece by piece, until it returns false: nothing for
/// an absent field, else `:` and the value. Returns whether all was taken.
pub(super) fn normalise<'a>(
    name: &[u8],
    lines: impl Iterator<Item = &'a [u8]> + Clone,
    sink: &mut impl Sink,
) -> bool {
    if lines.clone().next().is_none() {
        return true;
    }
    let id = Name::of(name);
    if id == Name::AcceptEncoding
        && name != RAW_CODINGS
        && let Some(codings) = Codings::of_lines(lines.clone())
    {
        let mut pieces = codings.pieces().peekable();
        return pieces.peek().is_none() || (sink.text(b":") && pieces.all(|piece| sink.text(piece)));
    }
    if !sink.text(b":") {
        return false;
    }
    match id {
        Name::AcceptEncoding => codings(lines.clone(), sink),
        Name::AcceptLanguage => ranges(lines.clone(), sink),
        _ => None,
    }
    .unwrap_or_else(|| {
        lines.enumerate().all(|(at, line)| (at == 0 || sink.text(b",")) && squeeze(line, sink))
    })
}

/// The value without white space around commas and with single spaces elsewhere; quoted strings as they are.
fn squeeze(value: &[u8], sink: &mut impl Sink) -> bool {
    let blank = |byte: u8| byte == b' ' || byte == b'\t';
    let (mut at, mut space, mut first) = (0, false, true);
    while at < value.len() {
        let start = at;
        if blank(value[at]) {
            space = true;
            at += 1;
        } else if value[at] == b',' {
            (space, first) = (false, true);
            at += 1;
            if !sink.text(b",") {
                return false;
            }
        } else {
            let mut quoted = false;
            while at < value.len() && (quoted || !(blank(value[at]) || value[at] == b',')) {
                match value[at] {
                    b'\\' if quoted => at += 1,
                    b'"' => quoted = !quoted,
                    _ => {}
                }
                at += 1;
            }
            at = at.min(value.len());
            if (space && !first && !sink.text(b" ")) || !sink.text(&value[start..at]) {
                return false;
            }
            (space, first) = (false, false);
        }
    }
    true
}

impl Weighted<'_> {
    /// Whether it sorts first, by name, then by descending weight.
    fn precedes(&self, other: &Weighted<'_>) -> bool {
        for (one, other) in self.text.iter().zip(other.text) {
            let (one, other) = (one.to_ascii_lowercase(), other.to_ascii_lowercase());
            if one != other {
                return one < other;
            }
        }
        (self.text.len(), other.weight) < (other.text.len(), self.weight)
    }

    /// In lower case, with the weight in its shortest form and none for 1.
    fn emit(&self, sink: &mut impl Sink) -> bool {
        let lower = sink.lower(self.text);
        if !lower || self.weight == 1000 {
            return lower;
        }
        let digits =
            [self.weight / 100, self.weight / 10 % 10, self.weight % 10].map(|digit| b'0' + digit as u8);
        let shortest = digits.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
        sink.text(b";q=0") && (shortest == 0 || (sink.text(b".") && sink.text(&digits[..shortest])))
    }
}

/// The content codings of all lines sorted by name, because their order is not a preference (RFC 9110
/// §12.5.3). `None`, with nothing passed to `sink`, if they are malformed or too many to sort without
/// allocation.
fn codings<'a>(lines: impl Iterator<Item = &'a [u8]>, sink: &mut impl Sink) -> Option<bool> {
    let mut sorted = [Weighted::default(); 16];
    let mut len = 0;
    // Loops and insertion sort, because hits run this and the lists have three or four members.
    for line in lines {
        for member in crate::members(line) {
            let mut coding = Weighted::of(member)?;
            // RFC 9110 §8.4.1.1 and §8.4.1.3: two old spellings of the same codings.
            if coding.text.eq_ignore_ascii_case(b"x-gzip") || coding.text.eq_ignore_ascii_case(b"x-compress")
            {
                coding.text = &coding.text[2..];
            }
            if len == sorted.len() {
                return None;
            }
            let mut at = len;
            while at > 0 && coding.precedes(&sorted[at - 1]) {
                sorted[at] = sorted[at - 1];
                at -= 1;
            }
            sorted[at] = coding;
            len += 1;
        }
    }
    Some(emit_all(sorted[..len].iter().copied(), sink))
}

/// Language ranges in any letter case, in the given order, which some servers take for preference (RFC 9110
/// §12.5.4).
fn ranges<'a>(lines: impl Iterator<Item = &'a [u8]> + Clone, sink: &mut impl Sink) -> Option<bool> {
    let members = lines.flat_map(crate::members);
    if !members.clone().all(|member| Weighted::of(member).is_some()) {
        return None;
    }
    Some(emit_all(members.filter_map(Weighted::of), sink))
}

fn emit_all<'a>(mut members: impl Iterator<Item = Weighted<'a>>, sink: &mut impl Sink) -> bool {
    let first = members.next();
    first.is_none_or(|first| first.emit(sink)) && members.all(|member| sink.text(b",") && member.emit(sink))
}
