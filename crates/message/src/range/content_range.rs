//! Content-Range (RFC 9110 §14.4) and the parts it names.

use super::{ByteRange, RangeSpec, number};
use crate::decimal;

/// The part of a representation that a response carries: the Content-Range of a 206.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// The bytes that are sent.
    pub range: ByteRange,
    /// The length of the whole representation, if known.
    pub complete: Option<u64>,
}

impl ContentRange {
    /// The part `range` of a representation of `complete` bytes.
    pub fn of(range: ByteRange, complete: u64) -> ContentRange {
        ContentRange { range, complete: Some(complete) }
    }

    /// The range of a request that selects this part.
    pub fn spec(&self) -> RangeSpec {
        RangeSpec::From(self.range.first, Some(self.range.last))
    }

    /// Reads the value. `None` for other units, for malformed or contradictory values, and for the one of a
    /// 416, which names no part.
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

    /// Appends the value to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"bytes ");
        decimal::append(out, self.range.first);
        out.push(b'-');
        decimal::append(out, self.range.last);
        out.push(b'/');
        match self.complete {
            Some(complete) => decimal::append(out, complete),
            None => out.push(b'*'),
        }
    }

    /// Appends the value in a 416 for a representation of `complete` bytes to `out`.
    pub fn write_unsatisfied(complete: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(b"bytes */");
        decimal::append(out, complete);
    }

    /// Whether these are all bytes of the representation.
    pub fn is_whole(&self) -> bool {
        self.range.first == 0 && self.complete == Some(self.range.len())
    }

    /// The bytes that a request for `spec` gets from a store that holds only these; `None` if some are
    /// missing or that cannot be known.
    pub fn serves(&self, spec: &RangeSpec) -> Option<ByteRange> {
        let wanted = match (self.complete, *spec) {
            (Some(complete), spec) => spec.resolve(complete)?,
            (None, RangeSpec::From(first, Some(last))) => ByteRange { first, last },
            (None, _) => return None,
        };
        self.range.covers(&wanted).then_some(wanted)
    }

    /// These bytes and those of `other` as one range, if they overlap or touch and agree on the complete
    /// length (RFC 9111 §3.4). The caller MUST have found that both responses share a strong validator.
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

    /// Whether a store that holds only these bytes can serve a request for `part`, or for the whole if that
    /// is `None`.
    pub fn answers(&self, part: Option<RangeSpec>) -> bool {
        match part {
            Some(spec) => self.serves(&spec).is_some(),
            None => self.is_whole(),
        }
    }

    /// The bytes missing for a request for `part`, or for the whole if that is `None`: one range that adjoins
    /// these. `None` if none are missing or one range is not enough, and for the last bytes of a
    /// representation of unknown length.
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
    /// Appends the value of a Range field with this one range to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let (first, last) = match *self {
            RangeSpec::From(first, last) => (Some(first), last),
            RangeSpec::Suffix(len) => (None, Some(len)),
        };
        out.extend_from_slice(b"bytes=");
        first.into_iter().for_each(|first| decimal::append(out, first));
        out.push(b'-');
        last.into_iter().for_each(|last| decimal::append(out, last));
    }
}
