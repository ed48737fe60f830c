//! The combination of a stored part with an arriving one that fits it (RFC 9111 §3.4).

use std::ops::Range;
use std::sync::Arc;

use sandarac_message::range::ByteRange;

use crate::Object;

/// A stored part of a representation, and the range that is wanted of an arriving body that touches it.
pub struct Combination {
    /// The stored part, if it comes first and has not been added yet.
    before: Option<Arc<Object>>,
    /// The stored part, if it comes last.
    after: Option<Arc<Object>>,
    /// The range wanted of the arriving body: the rest is in the stored part.
    wanted: Range<u64>,
    /// Bytes in the stored part.
    held: u64,
    /// Bytes of the arriving body so far, and in total.
    received: u64,
    len: u64,
}

impl Combination {
    /// How a body with the bytes `part` is combined with a stored part. `None` if they do not touch, if
    /// nothing of the stored part is needed, or if it is still arriving or not as long as announced.
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

    /// The stored part, until it has been added.
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

    /// The part that comes before everything else; returned once.
    pub(crate) fn take_before(&mut self) -> Option<Arc<Object>> {
        self.before.take()
    }

    /// The part that comes last, if any. `None` if the arriving body did not have its announced length.
    pub(crate) fn end(self) -> Option<Option<Arc<Object>>> {
        (self.received == self.len).then_some(self.after)
    }

    /// The wanted part of the next bytes of the body.
    pub(crate) fn select<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let within = |at: u64| {
            usize::try_from(at.saturating_sub(self.received)).map_or(bytes.len(), |at| at.min(bytes.len()))
        };
        let (from, to) = (within(self.wanted.start), within(self.wanted.end));
        self.received += bytes.len() as u64;
        &bytes[from..to]
    }

    /// How many of the next bytes of the body are wanted without a gap.
    pub(crate) fn left(&self) -> u64 {
        if self.received < self.wanted.start { 0 } else { self.wanted.end.saturating_sub(self.received) }
    }

    /// Counts received bytes, all of them wanted.
    pub(crate) fn received(&mut self, bytes: u64) {
        self.received += bytes;
    }

    /// Whether the arriving body comes before the stored part.
    pub(crate) fn precedes(&self) -> bool {
        self.after.is_some()
    }
}
