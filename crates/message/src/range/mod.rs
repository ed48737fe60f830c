//! Byte ranges (RFC 9110 §14): the bytes that a request asks for, and the bytes that a partial response
//! carries.

mod content_range;
mod multipart;

pub use content_range::ContentRange;
pub use multipart::Multipart;

/// The most ranges in one request that are processed. More is abuse (RFC 9110 §17.15), and gets the whole.
pub const MAX_RANGES: usize = 32;

/// Two ranges with a gap smaller than this are sent as one: a part of multipart/byteranges costs about as
/// much.
const WORTHWHILE_GAP: u64 = 80;

/// Bytes of a representation, first and last inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The position of the first byte.
    pub first: u64,
    /// The position of the last byte; never before the first.
    pub last: u64,
}

impl ByteRange {
    /// The number of bytes: at least one.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }

    /// Whether every byte of `other` is one of these.
    pub fn covers(&self, other: &ByteRange) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

/// One range of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeSpec {
    /// From the first position, to the last one or to the end.
    From(u64, Option<u64>),
    /// This many bytes at the end.
    Suffix(u64),
}

impl RangeSpec {
    /// Whether it covers the representation whatever its length.
    pub fn is_whole(&self) -> bool {
        matches!(self, RangeSpec::From(0, None))
    }

    /// The bytes it selects from a representation of `complete` bytes; `None` if it is unsatisfiable.
    pub fn resolve(&self, complete: u64) -> Option<ByteRange> {
        let end = complete.checked_sub(1)?;
        match *self {
            RangeSpec::From(first, last) => {
                (first <= end).then(|| ByteRange { first, last: last.map_or(end, |last| last.min(end)) })
            }
            RangeSpec::Suffix(0) => None,
            RangeSpec::Suffix(len) => Some(ByteRange { first: complete.saturating_sub(len), last: end }),
        }
    }
}

/// Reads a Range field. `None` if it must be ignored (RFC 9110 §14.2), because its unit is not bytes, it is
/// malformed, or it has more than [`MAX_RANGES`] ranges. Numbers that exceed 64 bits become the maximum.
pub fn parse(value: &[u8]) -> Option<Vec<RangeSpec>> {
    let (unit, set) = value.split_at(memchr::memchr(b'=', value)?);
    if !unit.eq_ignore_ascii_case(b"bytes") {
        return None;
    }
    let mut specs = Vec::new();
    for member in
        set[1..].split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
    {
        if specs.len() == MAX_RANGES {
            return None;
        }
        let (first, last) = member.split_at(memchr::memchr(b'-', member)?);
        let last = &last[1..];
        specs.push(match (first, last) {
            (b"", len) => RangeSpec::Suffix(number(len)?),
            (first, b"") => RangeSpec::From(number(first)?, None),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                if last < first {
                    return None;
                }
                RangeSpec::From(first, Some(last))
            }
        });
    }
    (!specs.is_empty()).then_some(specs)
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, byte| {
        byte.is_ascii_digit().then(|| number.saturating_mul(10).saturating_add(u64::from(byte - b'0')))
    })
}

/// The bytes that a Range field selects from a complete representation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All of it: the field is ignored. Respond with 200.
    Whole,
    /// One range. Respond with 206 and Content-Range.
    Single(ByteRange),
    /// Several ranges that do not overlap. Respond with 206 and [`Multipart`].
    Several(Vec<ByteRange>),
    /// Nothing. Respond with 416 and [`ContentRange::write_unsatisfied`].
    Unsatisfiable,
}

/// Applies a Range field to a representation of `complete` bytes. Ranges that overlap, touch or nearly touch
/// become one (RFC 9110 §15.3.7.2); the others keep their order.
pub fn select(value: &[u8], complete: u64) -> Selection {
    let Some(specs) = parse(value) else {
        return Selection::Whole;
    };
    let mut ranges: Vec<ByteRange> = Vec::new();
    for mut range in specs.iter().filter_map(|spec| spec.resolve(complete)) {
        // A range may connect two earlier ones, so it is merged until it stands alone.
        let mut at = ranges.len();
        while let Some(near) = ranges.iter().position(|other| nearly_touch(other, &range)) {
            let other = ranges.remove(near);
            range = ByteRange { first: range.first.min(other.first), last: range.last.max(other.last) };
            at = at.min(near);
        }
        ranges.insert(at.min(ranges.len()), range);
    }
    match ranges[..] {
        [] => Selection::Unsatisfiable,
        [range] => Selection::Single(range),
        _ => Selection::Several(ranges),
    }
}

fn nearly_touch(one: &ByteRange, other: &ByteRange) -> bool {
    let gap = one.first.max(other.first).saturating_sub(one.last.min(other.last));
    gap <= WORTHWHILE_GAP
}

#[cfg(test)]
mod tests;
