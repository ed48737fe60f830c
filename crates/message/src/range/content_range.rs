//! Content-Range (RFC 9110 §14.4) and the parts it names.

use std::io::Write;

use super::{ByteRange, RangeSpec, number};

/// The value of Content-Range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// The bytes that are sent; `None` in a 416.
    pub range: Option<ByteRange>,
    /// The length of the whole representation, if it is known.
    pub complete: Option<u64>,
}

impl ContentRange {
    /// The range of a representation whose length is known.
    pub fn of(range: ByteRange, complete: u64) -> ContentRange {
        ContentRange { range: Some(range), complete: Some(complete) }
    }

    /// What a 416 says of a representation of `complete` bytes.
    pub fn unsatisfied(complete: u64) -> ContentRange {
        ContentRange { range: None, complete: Some(complete) }
    }

    /// Reads the value. `None` for other units and for what is malformed or contradicts itself.
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
        if range == b"*" {
            return complete.is_some().then_some(ContentRange { range: None, complete });
        }
        let (first, last) = range.split_at(memchr::memchr(b'-', range)?);
        let range = ByteRange { first: number(first)?, last: number(&last[1..])? };
        let valid = range.first <= range.last && complete.is_none_or(|complete| range.last < complete);
        valid.then_some(ContentRange { range: Some(range), complete })
    }

    /// Writes the value to the end of `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"bytes ");
        // Writing to a vector cannot fail.
        let _ = match self.range {
            Some(range) => write!(out, "{}-{}/", range.first, range.last),
            None => write!(out, "*/"),
        };
        let _ = match self.complete {
            Some(complete) => write!(out, "{complete}"),
            None => write!(out, "*"),
        };
    }

    /// Whether these are all bytes of the representation, so that they can be stored as a whole (RFC 9111 §3.3).
    pub fn is_whole(&self) -> bool {
        match (self.range, self.complete) {
            (Some(range), Some(complete)) => range.first == 0 && range.len() == complete,
            _ => false,
        }
    }

    /// The bytes that a request for `spec` gets from a store that holds only these; `None` where some are missing or
    /// it cannot be known.
    pub fn serves(&self, spec: &RangeSpec) -> Option<ByteRange> {
        let held = self.range?;
        let wanted = match (self.complete, *spec) {
            (Some(complete), spec) => spec.resolve(complete)?,
            (None, RangeSpec::From(first, Some(last))) => ByteRange { first, last },
            (None, _) => return None,
        };
        held.covers(&wanted).then_some(wanted)
    }

    /// These bytes and those of `other` as one range, where they overlap or touch and agree on the length of the whole
    /// (RFC 9111 §3.4). The caller MUST have found that both responses share a strong validator.
    pub fn union(&self, other: &ContentRange) -> Option<ContentRange> {
        let (one, two) = (self.range?, other.range?);
        if let (Some(one), Some(two)) = (self.complete, other.complete)
            && one != two
        {
            return None;
        }
        if one.first.max(two.first) > one.last.min(two.last).saturating_add(1) {
            return None;
        }
        let range = ByteRange { first: one.first.min(two.first), last: one.last.max(two.last) };
        Some(ContentRange { range: Some(range), complete: self.complete.or(other.complete) })
    }

    /// What to ask for to complete these bytes: what stands after them, or else before them; `None` where nothing is
    /// known to be missing.
    pub fn missing(&self) -> Option<RangeSpec> {
        let range = self.range?;
        match self.complete {
            Some(complete) if range.last + 1 < complete => Some(RangeSpec::From(range.last + 1, None)),
            None => Some(RangeSpec::From(range.last.checked_add(1)?, None)),
            Some(_) => range.first.checked_sub(1).map(|last| RangeSpec::From(0, Some(last))),
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
