//! Pseudo-fields (RFC 9113 §8.3).

use std::ops::Range;

/// The kind of a field section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Response,
    Trailers,
}

/// The values of the pseudo-fields of a head, as places in its bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Pseudo {
    pub(super) method: Option<Range<usize>>,
    pub(super) scheme: Option<Range<usize>>,
    pub(super) authority: Option<Range<usize>>,
    pub(super) path: Option<Range<usize>>,
    pub(super) protocol: Option<Range<usize>>,
    pub(super) status: Option<Range<usize>>,
}

impl Pseudo {
    /// The place for the value of this name; `None` if such a message cannot have it.
    pub(super) fn slot(&mut self, kind: Kind, name: &[u8]) -> Option<&mut Option<Range<usize>>> {
        match (kind, name) {
            (Kind::Request, b":method") => Some(&mut self.method),
            (Kind::Request, b":scheme") => Some(&mut self.scheme),
            (Kind::Request, b":authority") => Some(&mut self.authority),
            (Kind::Request, b":path") => Some(&mut self.path),
            (Kind::Request, b":protocol") => Some(&mut self.protocol),
            (Kind::Response, b":status") => Some(&mut self.status),
            _ => None,
        }
    }
}
