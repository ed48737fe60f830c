//! One stream that is not closed.

use super::super::priority::Priority;
use super::flow::{ReceiveWindow, SendWindow};
use sandarac_message::Method;

/// What one side has yet to send on a stream. Both are `Ended` when it is closed (RFC 9113 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    /// The head; interim ones may have been sent.
    Head,
    /// Data, or trailers.
    Body,
    /// Nothing: END_STREAM was sent.
    Ended,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub(super) id: u32,
    pub(super) sending: Half,
    pub(super) receiving: Half,
    /// The method of the request.
    pub(super) method: Method,
    pub(super) send_window: SendWindow,
    pub(super) receive_window: ReceiveWindow,
    /// Bytes of data that Content-Length announced and that have not arrived.
    pub(super) announced: Option<u64>,
    pub(super) priority: Priority,
}

impl Stream {
    pub(super) fn is_closed(&self) -> bool {
        self.sending == Half::Ended && self.receiving == Half::Ended
    }
}
