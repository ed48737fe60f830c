//! The body of a message, between the session that receives it and the exchange that uses it.

use sandarac_message::FieldsBuf;
use std::task::Waker;

/// The part of a request that follows its head.
#[derive(Default)]
pub(super) struct Incoming {
    /// Bytes of the body that the exchange has not taken yet.
    pub(super) data: Vec<u8>,
    /// The trailers, once the body has ended.
    pub(super) end: Option<FieldsBuf>,
    /// Whether the exchange waits for more.
    pub(super) is_awaited: bool,
    /// Whether the client sends too slowly.
    pub(super) is_late: bool,
    /// Wakes the exchange.
    pub(super) waker: Option<Waker>,
}

/// A step of a request body.
pub(super) enum Arrived {
    /// So many bytes were put into the buffer.
    Data(usize),
    /// The body has ended.
    End(FieldsBuf),
}

/// Moves at most `most` bytes of `data`, which has arrived, to `into`, which MUST be empty. Returns how many.
/// `announced` is how many the body still has by its Content-Length, and `has_ended` whether its stream has ended.
///
/// The last byte waits for that end. Until then the message is not complete (RFC 9113 §8.1), and it would be malformed
/// if more came (§8.1.1): over HTTP/1 a receiver that had all bytes would take it for whole.
pub(super) fn take_data(
    data: &mut Vec<u8>,
    into: &mut Vec<u8>,
    most: usize,
    announced: Option<u64>,
    has_ended: bool,
) -> usize {
    debug_assert!(into.is_empty());
    let is_all = announced == Some(data.len() as u64);
    let usable = data.len().saturating_sub(usize::from(is_all && !has_ended)).min(most);
    if usable > 0 && usable == data.len() {
        std::mem::swap(data, into);
    } else {
        into.extend(data.drain(..usable));
    }
    usable
}
