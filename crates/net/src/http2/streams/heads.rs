//! Heads of responses, which wait for the socket beside the bodies of all streams.

use std::io;

use sandarac_wire::h2::ErrorCode;

use super::{CONNECTION_QUEUE, Streams};

/// Bytes of heads that wait for the socket. Above this, interim responses are dropped: they are optional (RFC 9110 §15.2). Others
/// need room in the account.
const HEAD_QUEUE: usize = 64 * 1024;

impl Streams {
    /// Sends the head of a response.
    pub(in crate::http2) fn send_head(&mut self, id: u32, block: &[u8], ends: bool) {
        // If the stream was reset, that is noticed elsewhere.
        let _ = self.wire.send_head(id, block, ends, &mut self.out);
        self.wake_session();
    }

    /// Whether the client takes heads as fast as they come.
    pub(in crate::http2) fn has_room_for_heads(&self) -> bool {
        self.out.len() <= HEAD_QUEUE
    }

    /// Resets a stream whose client is too slow for what it asks for.
    pub(in crate::http2) fn give_up(&mut self, id: u32) {
        self.wire.reset(id, ErrorCode::ENHANCE_YOUR_CALM, &mut self.out);
        self.lose(id, io::ErrorKind::TimedOut);
        self.wake_session();
    }

    /// Whether a head of so many bytes is within what may wait for one connection.
    pub(in crate::http2) fn takes_head(&self, bytes: usize) -> bool {
        self.out.len() + bytes <= CONNECTION_QUEUE
    }

    /// Sends an interim response.
    pub(in crate::http2) fn send_interim(&mut self, id: u32, block: &[u8]) {
        let _ = self.wire.send_interim(id, block, &mut self.out);
        self.wake_session();
    }
}
