//! Bytes in both directions, for a protocol that HTTP knows nothing of.

use crate::Conn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll};

/// Bytes in both directions, for a protocol that HTTP knows nothing of: a connection, or a stream of one. The
/// methods are those of [`Conn`].
pub trait Duplex {
    /// Bytes that arrived and are not consumed.
    fn data(&self) -> &[u8];

    /// Drops the first `n` bytes of [`Duplex::data`].
    fn consume(&mut self, n: usize);

    /// Gives borrowed memory back while it waits.
    fn park(&mut self);

    /// Reads more into [`Duplex::data`] and returns the number of bytes, 0 at the end in order.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>>;

    /// Writes `bytes` as far as they are taken now, and queues the rest.
    fn write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> io::Result<()>;

    /// Bytes that are queued.
    fn queued(&self) -> usize;

    /// Bytes of memory that it takes in both directions, and that nothing else counts. If it is not read now,
    /// they include what may arrive meanwhile.
    fn memory(&self, is_read: bool) -> usize;

    /// Has each [`Duplex::poll_fill`] read at most so many bytes, where it reads itself.
    fn limit_reads(&mut self, _most: usize) {}

    /// Bytes that were taken so far.
    fn sent(&self) -> u64;

    /// Writes the queue; ready when it is empty.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Ends the writing direction.
    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// While this is set, dropping it tells the peer that it did not end in order.
    fn reset_when_dropped(&mut self, reset: bool);
}

impl Duplex for Conn {
    fn data(&self) -> &[u8] {
        Conn::data(self)
    }

    fn consume(&mut self, n: usize) {
        Conn::consume(self, n);
    }

    fn park(&mut self) {
        Conn::park(self);
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        Conn::poll_fill(self, cx)
    }

    fn write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> io::Result<()> {
        Conn::write(self, cx, &[IoSlice::new(bytes)])
    }

    fn queued(&self) -> usize {
        Conn::queued(self)
    }

    fn memory(&self, _: bool) -> usize {
        self.input_memory() + self.output_memory()
    }

    fn limit_reads(&mut self, most: usize) {
        Conn::limit_reads(self, most);
    }

    fn sent(&self) -> u64 {
        Conn::sent(self)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Conn::poll_flush(self, cx)
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Conn::poll_shutdown(self, cx)
    }

    fn reset_when_dropped(&mut self, reset: bool) {
        Conn::reset_when_dropped(self, reset);
    }
}
