//! The value that follows a line.

use super::{Refusal, VALUE_END};
use bytes::Bytes;

/// A value as it arrives, and the CR LF behind it.
///
/// A value that is kept has memory of exactly its size: a larger buffer that it shared would stay in memory
/// for as long as the value. Bytes that were already read are copied by [`Value::take`]; the rest can be
/// appended in its place ([`Value::rest`]).
#[derive(Debug)]
pub struct Value {
    content: Content,
    /// Bytes of [`VALUE_END`] that have arrived.
    ended: usize,
}

#[derive(Debug)]
enum Content {
    Kept {
        /// What has arrived.
        bytes: Vec<u8>,
        size: usize,
    },
    Skipped {
        left: u64,
    },
}

impl Value {
    /// A value of `size` bytes, which are allocated now. The caller MUST have checked the size.
    pub fn kept(size: usize) -> Value {
        Value { content: Content::Kept { bytes: Vec::with_capacity(size), size }, ended: 0 }
    }

    /// A value of `size` bytes that is not wanted. It takes no memory.
    pub fn skipped(size: u64) -> Value {
        Value { content: Content::Skipped { left: size }, ended: 0 }
    }

    /// Takes the bytes of `input` that belong to the value and its end, and returns their number.
    pub fn take(&mut self, input: &[u8]) -> Result<usize, Refusal> {
        let content = match &mut self.content {
            Content::Kept { bytes, size } => {
                let count = input.len().min(*size - bytes.len());
                bytes.extend_from_slice(&input[..count]);
                count
            }
            Content::Skipped { left } => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= count as u64;
                count
            }
        };
        let end = &VALUE_END[self.ended..];
        let count = end.len().min(input.len() - content);
        if input[content..content + count] != end[..count] {
            return Err(Refusal::InvalidValueEnd);
        }
        self.ended += count;
        Ok(content + count)
    }

    /// The bytes that have arrived, and how many are missing, which MUST be appended as they arrive. `None` if
    /// none is missing, or if the value is skipped.
    pub fn rest(&mut self) -> Option<(&mut Vec<u8>, usize)> {
        match &mut self.content {
            Content::Kept { bytes, size } if bytes.len() < *size => {
                let missing = *size - bytes.len();
                Some((bytes, missing))
            }
            _ => None,
        }
    }

    /// Whether the value and its end have arrived.
    pub fn is_complete(&self) -> bool {
        self.ended == VALUE_END.len()
    }

    /// The value, which MUST be complete; `None` if it was skipped.
    pub fn finish(self) -> Option<Bytes> {
        debug_assert!(self.is_complete());
        match self.content {
            Content::Kept { bytes, .. } => Some(bytes.into()),
            Content::Skipped { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_the_same_however_it_arrives() {
        let wire = b"va\r\nlue\r\nEN O1\r\n";
        for cut in 0..=wire.len() {
            for direct in [false, true] {
                let (mut kept, mut skipped) = (Value::kept(7), Value::skipped(7));
                let (first, rest) = wire.split_at(cut);
                let taken = kept.take(first).unwrap();
                assert_eq!(skipped.take(first), Ok(taken));
                assert_eq!(kept.is_complete(), cut >= 9);
                let mut rest = if taken < first.len() { &wire[taken..] } else { rest };
                if direct {
                    let count = kept.rest().map_or(0, |(bytes, missing)| {
                        let count = missing.min(rest.len());
                        bytes.extend_from_slice(&rest[..count]);
                        count
                    });
                    assert_eq!(skipped.take(&rest[..count]), Ok(count));
                    rest = &rest[count..];
                }
                let taken = kept.take(rest).unwrap();
                assert_eq!(skipped.take(rest), Ok(taken));
                assert_eq!(&rest[taken..], b"EN O1\r\n");
                assert_eq!(kept.finish().unwrap(), &b"va\r\nlue"[..]);
                assert!(skipped.is_complete() && skipped.finish().is_none());
            }
        }
    }

    #[test]
    fn a_value_that_does_not_end_where_it_should_is_refused() {
        for wire in ["value", "valu\n", "valu\rx", "valu\nx"] {
            assert_eq!(Value::kept(4).take(wire.as_bytes()), Err(Refusal::InvalidValueEnd), "{wire:?}");
            assert_eq!(Value::skipped(4).take(wire.as_bytes()), Err(Refusal::InvalidValueEnd), "{wire:?}");
        }
        assert_eq!(Value::kept(0).take(b"\r\n"), Ok(2));
    }
}
