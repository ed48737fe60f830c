//! Vary (RFC 9110 §12.5.5, RFC 9111 §4.1): which requests a stored response answers.
//!
//! The key of a variant is the normalised text of the selecting fields itself, not a hash of it: clients choose these
//! values, and must not be able to choose a collision.

use crate::{Fields, Name};

/// What a response varies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VarySpec {
    /// Nothing: it answers every request to its target.
    None,
    /// Something no request shows: it answers no other request.
    Star,
    /// The fields of these names: lower case, in order, each once.
    Names(Vec<Box<[u8]>>),
}

impl VarySpec {
    /// Reads Vary over all its lines, without the names in `ignored` (any letter case). A member that is no field name
    /// counts as `*`.
    pub fn of(response: Fields<'_>, ignored: &[Box<[u8]>]) -> VarySpec {
        if !response.has(Name::Vary) {
            return VarySpec::None;
        }
        let mut names: Vec<Box<[u8]>> = Vec::new();
        for member in response.list(Name::Vary) {
            if member == b"*" || !crate::is_token(member) {
                return VarySpec::Star;
            }
            if !ignored.iter().any(|name| name.eq_ignore_ascii_case(member)) {
                names.push(member.to_ascii_lowercase().into());
            }
        }
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { VarySpec::None } else { VarySpec::Names(names) }
    }

    /// The key of the variant that answers `request`.
    pub fn key(&self, request: Fields<'_>) -> VaryKey {
        let mut key = Vec::new();
        match self {
            VarySpec::None => {}
            VarySpec::Star => key.extend_from_slice(STAR),
            VarySpec::Names(names) => {
                for name in names {
                    key.extend_from_slice(name);
                    normalise(name, request, &mut |text| {
                        key.extend_from_slice(text);
                        true
                    });
                    key.push(END);
                }
            }
        }
        VaryKey(key.into())
    }

    /// Whether a response that varies so, and was selected by the request of `key`, answers `request`.
    pub fn matches(&self, request: Fields<'_>, key: &VaryKey) -> bool {
        *self != VarySpec::Star && key.matches(request)
    }
}

/// The names a stored response varies on, with the normalised values they had in the request it answered:
/// `name` LF where the field was absent, `name:value` LF where it was there. Keys are equal exactly when they select
/// the same requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VaryKey(Box<[u8]>);

/// No field name holds it, so no key of names begins so.
const STAR: &[u8] = b"*:";
/// No field value holds it.
const END: u8 = b'\n';

impl VaryKey {
    /// The key as bytes, for storage.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A key read back from storage. Bytes that are no key match no request.
    pub fn from_bytes(bytes: impl Into<Box<[u8]>>) -> VaryKey {
        VaryKey(bytes.into())
    }

    /// Whether the response varies on nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the response answers `request`. Allocates nothing.
    pub fn matches(&self, request: Fields<'_>) -> bool {
        let mut rest = &self.0[..];
        while !rest.is_empty() {
            let name_end = rest.iter().position(|&byte| byte == b':' || byte == END).unwrap_or(rest.len());
            let (name, after) = rest.split_at(name_end);
            if !crate::is_token(name) || name == b"*" {
                return false;
            }
            rest = after;
            let same = normalise(name, request, &mut |text| match rest.strip_prefix(text) {
                Some(after) => {
                    rest = after;
                    true
                }
                None => false,
            });
            match rest.split_first() {
                Some((&END, after)) if same => rest = after,
                _ => return false,
            }
        }
        true
    }
}

/// Hands the normalised values of one field to `sink`, piece by piece, until it returns false: nothing for an absent
/// field, else `:` and the value. Returns whether all was taken.
fn normalise<'a>(name: &'a [u8], request: Fields<'a>, sink: &mut impl FnMut(&[u8]) -> bool) -> bool {
    let lines = request.all_named(name);
    if lines.clone().next().is_none() {
        return true;
    }
    if !sink(b":") {
        return false;
    }
    let members = lines.clone().flat_map(crate::members);
    match Name::of(name) {
        Name::AcceptEncoding => codings(members, sink),
        Name::AcceptLanguage => ranges(members, sink),
        _ => None,
    }
    .unwrap_or_else(|| lines.enumerate().all(|(at, line)| (at == 0 || sink(b",")) && squeeze(line, sink)))
}

/// The value without white space around commas and with single spaces elsewhere; quoted strings as they are.
fn squeeze(value: &[u8], sink: &mut impl FnMut(&[u8]) -> bool) -> bool {
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
            if !sink(b",") {
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
            if (space && !first && !sink(b" ")) || !sink(&value[start..at]) {
                return false;
            }
            (space, first) = (false, false);
        }
    }
    true
}

/// A member of a list with weights (RFC 9110 §12.4.2).
#[derive(Clone, Copy, Debug, Default)]
struct Weighted<'a> {
    text: &'a [u8],
    /// Thousandths.
    weight: u16,
}

impl<'a> Weighted<'a> {
    /// Reads `text` or `text;q=weight`; nothing else.
    fn of(member: &'a [u8]) -> Option<Weighted<'a>> {
        let mut parts = member.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let text = parts.next()?;
        let weight = match (parts.next(), parts.next()) {
            (None, _) => 1000,
            (Some([b'q' | b'Q', b'=', weight @ ..]), None) => thousandths(weight)?,
            _ => return None,
        };
        crate::is_token(text).then_some(Weighted { text, weight })
    }

    /// In lower case, with the weight in its shortest form and none for 1.
    fn emit(&self, sink: &mut impl FnMut(&[u8]) -> bool) -> bool {
        let lower = self.text.iter().all(|byte| {
            let byte = byte.to_ascii_lowercase();
            sink(&[byte])
        });
        if !lower || self.weight == 1000 {
            return lower;
        }
        let digits =
            [self.weight / 100, self.weight / 10 % 10, self.weight % 10].map(|digit| b'0' + digit as u8);
        let shortest = digits.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
        sink(b";q=0") && (shortest == 0 || (sink(b".") && sink(&digits[..shortest])))
    }
}

fn thousandths(text: &[u8]) -> Option<u16> {
    let (whole, fraction) = match text {
        [whole] => (*whole, &[][..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (*whole, fraction),
        _ => return None,
    };
    let mut number = 0;
    for at in 0..3 {
        let digit = *fraction.get(at).unwrap_or(&b'0');
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number * 10 + u16::from(digit - b'0');
    }
    match whole {
        b'0' => Some(number),
        b'1' if number == 0 => Some(1000),
        _ => None,
    }
}

/// Content codings in order of their names, which is no order of preference (RFC 9110 §12.5.3). `None`, with nothing
/// handed on, for what is malformed or too long to sort without allocation.
fn codings<'a>(
    members: impl Iterator<Item = &'a [u8]>,
    sink: &mut impl FnMut(&[u8]) -> bool,
) -> Option<bool> {
    let mut sorted = [Weighted::default(); 16];
    let mut len = 0;
    for member in members {
        let mut coding = Weighted::of(member)?;
        // RFC 9110 §8.4.1.1 and §8.4.1.3: two old spellings of the same codings.
        if coding.text.eq_ignore_ascii_case(b"x-gzip") || coding.text.eq_ignore_ascii_case(b"x-compress") {
            coding.text = &coding.text[2..];
        }
        *sorted.get_mut(len)? = coding;
        len += 1;
    }
    let sorted = &mut sorted[..len];
    sorted.sort_unstable_by(|a, b| {
        let lower = |coding: &Weighted<'a>| coding.text.iter().map(u8::to_ascii_lowercase);
        lower(a).cmp(lower(b)).then(b.weight.cmp(&a.weight))
    });
    Some(emit_all(sorted.iter().copied(), sink))
}

/// Language ranges in any letter case, in the order given: some servers take it for preference (RFC 9110 §12.5.4).
fn ranges<'a>(
    members: impl Iterator<Item = &'a [u8]> + Clone,
    sink: &mut impl FnMut(&[u8]) -> bool,
) -> Option<bool> {
    if !members.clone().all(|member| Weighted::of(member).is_some()) {
        return None;
    }
    Some(emit_all(members.filter_map(Weighted::of), sink))
}

fn emit_all<'a>(
    mut members: impl Iterator<Item = Weighted<'a>>,
    sink: &mut impl FnMut(&[u8]) -> bool,
) -> bool {
    let first = members.next();
    first.is_none_or(|first| first.emit(sink)) && members.all(|member| sink(b",") && member.emit(sink))
}
