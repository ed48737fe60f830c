//! The memory of streams, which their connection leases.

use super::Streams;

/// Bytes that a stream takes without an exchange, while its response waits for the client: its entries here and in the
/// codec, and the owner of its pieces. Measured; an exchange has a lease of its own, with room for its stream.
pub(in crate::http2) const RESPONDING: usize = 512;

/// Bytes of memory that the streams of a connection hold.
pub(in crate::http2) struct Memory {
    /// Responses that wait for the client.
    pub(in crate::http2) queues: usize,
    /// The streams themselves whose response waits, without an exchange.
    pub(in crate::http2) entries: usize,
    /// Bodies of requests that wait for exchanges.
    pub(in crate::http2) uploads: usize,
}

impl Streams {
    /// The memory that is counted nowhere else.
    pub(in crate::http2) fn memory(&self) -> Memory {
        Memory {
            queues: self.copied + self.waiting + self.out.capacity(),
            entries: self.responding() * RESPONDING,
            uploads: self.held + self.wire.input_memory(),
        }
    }

    /// Streams without an exchange, whose response waits for the client.
    fn responding(&self) -> usize {
        self.open.len() - self.exchanges
    }
}
