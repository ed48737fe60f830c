//! Content-Range (RFC 9110 §14.4) and the parts it names.

use std::io::Write;

use super::{ByteRange, RangeSpec, number};

/// The part of a representation that a response carries: Content-Range of a 206.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// The bytes that are sent.
    pub range: ByteRange,
    /// The length of the whole representation, if it is known.
    pub complete: Option<u64>,
}

impl ContentRange {
    /// The range of a representation whose length is known.
    pub fn of(range: ByteRange, complete: u64) -> ContentRange {
        ContentRange { range, complete: Some(complete) }
    }

    /// Reads the value. `None` for other units, for what is malformed or contradicts itself, and for that of
    /// a 416, which names no part.
    pub fn parse(value: &[u8]) -> Option<ContentRange> {
        let (unit, rest) = value.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes ") {
            return None;
        }
        let (range, complete) = rest.split_at(memchr::memchr(b'/', rest)?);
        let complete = match &complete[1..] {
            b"*" => None,
            digits => Some(number(digits)?),
        };
        let (first, last) = range.split_at(memchr::memchr(b'-', range)?);
        let range = ByteRange { first: number(first)?, last: number(&last[1..])? };
        let valid = range.first <= range.last && complete.is_none_or(|complete| range.last < complete);
        valid.then_some(ContentRange { range, complete })
    }

    /// Writes the value to the end of `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        // Writing to a vector cannot fail.
        let _ = write!(out, "bytes {}-{}/", self.range.first, self.range.last);
        let _ = match self.complete {
            Some(complete) => write!(out, "{complete}"),
            None => write!(out, "*"),
        };
    }

    /// Writes the value that a 416 has for a representation of `complete` bytes to the end of `out`.
    pub fn write_unsatisfied(complete: u64, out: &mut Vec<u8>) {
        let _ = write!(out, "bytes */{complete}");
    }

    /// Whether these are all bytes of the representation.
    pub fn is_whole(&self) -> bool {
        self.range.first == 0 && self.complete == Some(self.range.len())
    }

    /// The bytes that a request for `spec` gets from a store that holds only these; `None` where some are
    /// missing or it cannot be known.
    pub fn serves(&self, spec: &RangeSpec) -> Option<ByteRange> {
        let wanted = match (self.complete, *spec) {
            (Some(complete), spec) => spec.resolve(complete)?,
            (None, RangeSpec::From(first, Some(last))) => ByteRange { first, last },
            (None, _) => return None,
        };
        self.range.covers(&wanted).then_some(wanted)
    }

    /// These bytes and those of `other` as one range, where they overlap or touch and agree on the length of
    /// the whole (RFC 9111 §3.4). The caller MUST have found that both responses share a strong validator.
    pub fn union(&self, other: &ContentRange) -> Option<ContentRange> {
        let (one, two) = (self.range, other.range);
        if let (Some(one), Some(two)) = (self.complete, other.complete)
            && one != two
        {
            return None;
        }
        if one.first.max(two.first) > one.last.min(two.last).saturating_add(1) {
            return None;
        }
        let range = ByteRange { first: one.first.min(two.first), last: one.last.max(two.last) };
        let complete = self.complete.or(other.complete);
        complete.is_none_or(|complete| range.last < complete).then_some(ContentRange { range, complete })
    }

    /// Whether a store that holds only these has all that a request for `part` wants, or for the whole where
    /// that is `None`.
    pub fn answers(&self, part: Option<RangeSpec>) -> bool {
        match part {
            Some(spec) => self.serves(&spec).is_some(),
            None => self.is_whole(),
        }
    }

    /// What these bytes lack to answer a request for `part`, or for the whole where that is `None`: one range
    /// that adjoins them. `None` where they lack nothing or more than that, and for the last bytes of a whole
    /// whose length is not known.
    pub fn lacks(&self, part: Option<RangeSpec>) -> Option<RangeSpec> {
        let held = self.range;
        let end = self.complete.map_or(u64::MAX, |complete| complete - 1);
        let wanted = match (self.complete, part.unwrap_or(RangeSpec::From(0, None))) {
            (Some(complete), spec) => spec.resolve(complete)?,
            (None, RangeSpec::From(first, last)) => ByteRange { first, last: last.unwrap_or(end) },
            (None, RangeSpec::Suffix(_)) => return None,
        };
        let follows = wanted.last > held.last && wanted.first <= held.last + 1;
        let precedes = wanted.first < held.first && wanted.last >= held.first - 1;
        match (precedes, follows) {
            (false, true) if wanted.last == end => Some(RangeSpec::From(held.last + 1, None)),
            (false, true) => Some(RangeSpec::From(held.last + 1, Some(wanted.last))),
            (true, false) => Some(RangeSpec::From(wanted.first, Some(held.first - 1))),
            _ => None,
        }
    }
}

impl RangeSpec {
    /// Writes the value of a Range field with this one range to the end of `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let _ = match *self {
            RangeSpec::From(first, Some(last)) => write!(out, "bytes={first}-{last}"),
            RangeSpec::From(first, None) => write!(out, "bytes={first}-"),
            RangeSpec::Suffix(len) => write!(out, "bytes=-{len}"),
        };
    }
}
