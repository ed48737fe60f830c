//! The body of an object: arriving, or whole.

use std::ops::Range;
use std::sync::Arc;

use crate::arriving::Arriving;
use crate::whole_body::{Slices, Whole};

/// The body, with the text of host and path so that they share an allocation.
#[derive(Clone)]
pub(crate) enum Content {
    Whole(Whole),
    Arriving(Arc<Arriving>),
}

impl Content {
    /// The body, if it is whole.
    pub(crate) fn whole(&self) -> Option<&Whole> {
        match self {
            Content::Whole(whole) => Some(whole),
            Content::Arriving(_) => None,
        }
    }

    /// The bytes that are charged with the object.
    pub(crate) fn own_bytes(&self) -> usize {
        match self {
            Content::Whole(whole) => whole.own_bytes(),
            Content::Arriving(_) => 0,
        }
    }
}

/// The body of an object. Its representation is private to the store; it yields reference-counted segments.
///
/// The sender of segments SHOULD keep the object until they are handed to the system: bytes are charged while
/// their object lives.
#[derive(Clone, Copy)]
pub struct Body<'a> {
    content: &'a Content,
    text: usize,
}

impl<'a> Body<'a> {
    pub(crate) fn new(content: &'a Content, text: usize) -> Body<'a> {
        Body { content, text }
    }

    /// The body, if it is whole; read without a lock.
    pub(crate) fn whole(self) -> Option<&'a Whole> {
        match self.content {
            Content::Whole(whole) => Some(whole),
            Content::Arriving(arriving) => arriving.whole(),
        }
    }

    /// Whether the body is whole. If not, read it through [`crate::Object::reader`].
    pub fn is_whole(self) -> bool {
        self.whole().is_some()
    }

    /// Bytes in the body; while it arrives, the length that the origin announced.
    pub fn len(self) -> Option<u64> {
        match (self.whole(), self.content) {
            (Some(whole), _) => Some(whole.len(self.text)),
            (None, Content::Arriving(arriving)) => arriving.expected(),
            (None, Content::Whole(_)) => None,
        }
    }

    /// Whether it is known to have no bytes.
    pub fn is_empty(self) -> bool {
        self.len() == Some(0)
    }

    /// The segments of a whole body; none if it is arriving. No segment is empty.
    pub fn segments(self) -> Slices<'a> {
        self.slice(0..u64::MAX)
    }

    /// The bytes at `range` of a whole body, cut at its end; none if it is arriving. Costs a search among the
    /// segments, not a walk.
    pub fn slice(self, range: Range<u64>) -> Slices<'a> {
        match self.whole() {
            Some(whole) => whole.slice(range, self.text),
            None => Slices::NONE,
        }
    }
}
