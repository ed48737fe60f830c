//! The memory that a head is decoded into.

use sandarac_message::{Fields, Span};

/// Memory for one head, lent by the caller. It may be used for all connections of a core in turn: it is
/// overwritten by each head.
#[derive(Clone, Debug, Default)]
pub struct HeadBuf {
    pub(super) bytes: Vec<u8>,
    pub(super) spans: Vec<Span>,
}

impl HeadBuf {
    /// Forgets the head and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// Whether it holds nothing.
    pub fn is_clear(&self) -> bool {
        self.bytes.is_empty() && self.spans.is_empty()
    }

    /// The fields of the last head that was read.
    pub(super) fn fields(&self) -> Fields<'_> {
        Fields::new(&self.bytes, &self.spans)
    }
}
