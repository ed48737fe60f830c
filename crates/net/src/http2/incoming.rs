//! The body of a request, between the session that receives it and the exchange that uses it.

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
