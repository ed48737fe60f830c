//! One connection, either side: bytes that arrived and are not yet consumed, bytes that wait for the socket.

use crate::{Buffer, Output, Stream};
use bytes::Bytes;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

/// Slices handed to the kernel in one write.
const SLICES: usize = 64;

/// A connection with its input and output.
///
/// Input is read into a buffer on loan, which [`Conn::park`] gives back while the connection waits. Output is written
/// at once; what the socket does not take is queued, and the caller MUST NOT let the queue grow: it polls
/// [`Conn::poll_flush`] before it produces more than it is willing to hold.
#[derive(Debug)]
pub struct Conn {
    stream: Stream,
    buffer: Option<Buffer>,
    start: usize,
    end: usize,
    /// Unconsumed input of a parked connection, in memory of its own size.
    parked: Vec<u8>,
    queue: VecDeque<Bytes>,
    queued: usize,
    sent: u64,
}

impl Conn {
    /// Takes a stream into service.
    pub fn new(stream: Stream) -> Conn {
        Conn {
            stream,
            buffer: None,
            start: 0,
            end: 0,
            parked: Vec::new(),
            queue: VecDeque::new(),
            queued: 0,
            sent: 0,
        }
    }

    /// The socket.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// What arrived and was not consumed.
    pub fn data(&self) -> &[u8] {
        match &self.buffer {
            Some(buffer) => &buffer[self.start..self.end],
            None => &self.parked,
        }
    }

    /// Drops the first `n` bytes of [`Conn::data`].
    pub fn consume(&mut self, n: usize) {
        if self.buffer.is_some() {
            self.start += n;
            debug_assert!(self.start <= self.end);
            if self.start == self.end {
                self.start = 0;
                self.end = 0;
            }
        } else {
            self.parked.drain(..n);
        }
    }

    /// Gives the buffer back, keeping unconsumed input in memory of its own size.
    pub fn park(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            debug_assert!(self.parked.is_empty());
            if self.start < self.end {
                self.parked = buffer[self.start..self.end].to_vec();
            }
            self.start = 0;
            self.end = 0;
        }
    }

    fn unpark(&mut self) -> &mut Buffer {
        if self.buffer.is_none() {
            let mut buffer = Buffer::take();
            let parked = std::mem::take(&mut self.parked);
            buffer[..parked.len()].copy_from_slice(&parked);
            self.start = 0;
            self.end = parked.len();
            self.buffer = Some(buffer);
        }
        self.buffer.as_mut().expect("set above")
    }

    /// Reads more into [`Conn::data`]: how many bytes, 0 at the end of the stream. A full buffer reads nothing and is
    /// an error of kind `OutOfMemory`: what does not fit a buffer was to be consumed or refused before.
    pub fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let (mut start, mut end) = {
            self.unpark();
            (self.start, self.end)
        };
        let buffer = self.buffer.as_mut().expect("unparked");
        if end == buffer.len() {
            if start == 0 {
                return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
            }
            buffer.copy_within(start..end, 0);
            end -= start;
            start = 0;
        }
        let polled = self.stream.poll_read(cx, &mut buffer[end..]);
        if let Poll::Ready(Ok(n)) = polled {
            end += n;
        }
        (self.start, self.end) = (start, end);
        if polled.is_pending() && start == end {
            // What waits holds no buffer.
            self.park();
        }
        polled
    }

    /// Reads straight into memory of the caller's: how many bytes, 0 at the end of the stream. [`Conn::data`] MUST be
    /// empty.
    pub fn poll_read_into(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        debug_assert!(self.data().is_empty());
        self.stream.poll_read(cx, into)
    }

    /// Writes `slices`, now if the socket takes them; the rest is copied to the queue.
    pub fn write(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> io::Result<()> {
        let mut written = 0;
        if self.queue.is_empty() {
            written = match self.stream.poll_write_vectored(cx, slices) {
                Poll::Ready(result) => result?,
                Poll::Pending => 0,
            };
            self.sent += written as u64;
        }
        for slice in slices {
            if written >= slice.len() {
                written -= slice.len();
                continue;
            }
            self.enqueue(Bytes::copy_from_slice(&slice[written..]));
            written = 0;
        }
        Ok(())
    }

    /// Writes and empties `output`, now if the socket takes it; the rest is queued, shared pieces without a copy.
    pub fn write_output(&mut self, cx: &mut Context<'_>, output: &mut Output) -> io::Result<()> {
        let mut written = 0;
        if self.queue.is_empty() && !output.is_empty() {
            let polled =
                output.with_slices::<SLICES, _>(|slices| self.stream.poll_write_vectored(cx, slices));
            written = match polled {
                Poll::Ready(result) => result?,
                Poll::Pending => 0,
            };
            self.sent += written as u64;
        }
        output.drain(written, |rest| self.enqueue(rest));
        Ok(())
    }

    /// Adds bytes to the queue without writing.
    pub fn enqueue(&mut self, bytes: Bytes) {
        self.queued += bytes.len();
        self.queue.push_back(bytes);
    }

    /// Bytes that wait for the socket.
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// Bytes that the socket took, in the life of the connection.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Writes the queue; ready when it is empty.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.queue.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = self.queue.len().min(SLICES);
            for (slice, bytes) in slices.iter_mut().zip(&self.queue) {
                *slice = IoSlice::new(bytes);
            }
            let written = ready!(self.stream.poll_write_vectored(cx, &slices[..count]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += written as u64;
            self.queued -= written;
            self.forget(written);
        }
        Poll::Ready(Ok(()))
    }

    fn forget(&mut self, mut written: usize) {
        while let Some(front) = self.queue.front_mut() {
            if front.len() > written {
                bytes::Buf::advance(front, written);
                return;
            }
            written -= front.len();
            self.queue.pop_front();
        }
        if self.queue.capacity() > SLICES {
            self.queue = VecDeque::new();
        }
    }

    /// Ends the connection so that the peer can tell that from an orderly end, as far as the transport can say it. What is still
    /// queued is lost.
    pub fn reset(&mut self) {
        self.queue.clear();
        self.queued = 0;
        self.stream.reset_when_dropped();
    }

    /// Ends the writing direction.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_shutdown(cx)
    }

    /// Whether nothing is under way: nothing unconsumed, nothing queued, and nothing has arrived. A pooled connection
    /// for which this does not hold was closed by the peer, or speaks out of turn.
    pub fn is_quiet(&self) -> bool {
        self.data().is_empty() && self.queue.is_empty() && !self.stream.is_readable()
    }
}
