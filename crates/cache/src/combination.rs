//! The combination of a stored part with an arriving one that fits it (RFC 9111 §3.4).

use std::ops::Range;
use std::sync::Arc;

use sandarac_message::range::ByteRange;

use crate::Object;

/// A stored part of a representation, and what is wanted of the body of another that touches it.
pub struct Combination {
    /// The stored part, where it comes first and has yet to be laid in.
    before: Option<Arc<Object>>,
    /// The stored part, where it comes last.
    after: Option<Arc<Object>>,
    /// What is wanted of the arriving body: the stored part has the rest.
    wanted: Range<u64>,
    /// Bytes in the stored part.
    held: u64,
    /// Bytes of the arriving body so far, and in all.
    received: u64,
    len: u64,
}

impl Combination {
    /// How a body of the bytes `part` is combined with a stored part. `None` where they do not touch, where
    /// nothing of what is stored is needed, and where that is still arriving or not as long as it says.
    pub fn of(stored: Arc<Object>, part: ByteRange) -> Option<Combination> {
        let held = stored.range()?.range;
        let body = stored.body();
        if part.covers(&held) || !body.is_whole() || body.len() != Some(held.len()) {
            return None;
        }
        let len = part.len();
        let combination =
            Combination { before: None, after: None, wanted: 0..0, held: held.len(), received: 0, len };
        if part.first < held.first {
            let wanted = 0..held.first - part.first;
            return (wanted.end <= len).then(|| Combination { after: Some(stored), wanted, ..combination });
        }
        let skipped = (held.last - held.first + 1).checked_sub(part.first - held.first)?;
        Some(Combination { before: Some(stored), wanted: skipped.min(len)..len, ..combination })
    }

    /// The stored part, as long as it has not been laid in.
    #[cfg(test)]
    pub(crate) fn part(&self) -> Option<&Arc<Object>> {
        self.before.as_ref().or(self.after.as_ref())
    }

    /// Bytes in the stored part.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// Bytes in both together.
    pub(crate) fn combined_len(&self) -> u64 {
        self.held + (self.wanted.end - self.wanted.start)
    }

    /// The part to be laid in before anything else; once.
    pub(crate) fn take_before(&mut self) -> Option<Arc<Object>> {
        self.before.take()
    }

    /// The part to be laid in at the end, if any. `None` where the arriving body was not as long as it said.
    pub(crate) fn end(self) -> Option<Option<Arc<Object>>> {
        (self.received == self.len).then_some(self.after)
    }

    /// What of the next bytes of the body is wanted.
    pub(crate) fn select<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let within = |at: u64| {
            usize::try_from(at.saturating_sub(self.received)).map_or(bytes.len(), |at| at.min(bytes.len()))
        };
        let (from, to) = (within(self.wanted.start), within(self.wanted.end));
        self.received += bytes.len() as u64;
        &bytes[from..to]
    }

    /// How many of the next bytes of the body are all wanted.
    pub(crate) fn left(&self) -> u64 {
        if self.received < self.wanted.start { 0 } else { self.wanted.end.saturating_sub(self.received) }
    }

    /// Counts bytes that were all wanted.
    pub(crate) fn received(&mut self, bytes: u64) {
        self.received += bytes;
    }

    /// Whether the arriving body comes before the stored part.
    pub(crate) fn precedes(&self) -> bool {
        self.after.is_some()
    }
}
