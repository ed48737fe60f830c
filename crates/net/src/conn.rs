//! One connection, either side: bytes that arrived and are not yet consumed, bytes that wait for the socket.

use crate::buffer::Buffer;
use crate::lent::Lent;
use crate::{Output, Transport, Unread};
use bytes::Bytes;
use sandarac_message::Piece;
use sandarac_wire::h1::repair::Repairs;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// Slices handed to the kernel in one write.
const SLICES: usize = 64;

/// A connection with its input and output.
///
/// Input is read into a buffer on loan, which [`Conn::park`] gives back while the connection waits. Output is written
/// at once; what the socket does not take is queued, and the caller MUST NOT let the queue grow: it polls
/// [`Conn::poll_flush`] before it produces more than it is willing to hold.
///
/// After a write that failed nothing more is written: where in a message the peer's copy ends, nobody knows.
pub struct Conn {
    transport: Transport,
    buffer: Option<Lent<Buffer>>,
    /// Unconsumed input of a parked connection, in memory of its own size.
    parked: Vec<u8>,
    queue: VecDeque<Piece>,
    queued: usize,
    sent: u64,
    /// Whether a write has failed.
    failed: bool,
    repairs: Repairs,
    /// What counts the bytes written, if anything does.
    meter: Option<Rc<dyn Meter>>,
}

/// Counts bytes as they are written.
pub trait Meter {
    /// So many more bytes were written.
    fn wrote(&self, bytes: u64);
}

impl Conn {
    /// Tells that this was repaired in what came: the connection is not to be used for another message.
    pub fn repaired(&mut self, repairs: Repairs) {
        self.repairs.extend(repairs);
    }

    /// What was repaired in all that came.
    pub fn repairs(&self) -> Repairs {
        self.repairs
    }

    /// Takes a transport into service.
    pub fn new(transport: impl Into<Transport>) -> Conn {
        Conn {
            transport: transport.into(),
            buffer: None,
            parked: Vec::new(),
            queue: VecDeque::new(),
            queued: 0,
            sent: 0,
            failed: false,
            repairs: Repairs::NONE,
            meter: None,
        }
    }

    /// The same, with a meter for what is written.
    pub fn metered(transport: impl Into<Transport>, meter: Rc<dyn Meter>) -> Conn {
        let mut conn = Conn::new(transport);
        conn.meter = Some(meter);
        conn
    }

    /// What carries its bytes.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// What arrived and was not consumed.
    pub fn data(&self) -> &[u8] {
        match &self.buffer {
            Some(buffer) => buffer.data(),
            None => &self.parked,
        }
    }

    /// Drops the first `n` bytes of [`Conn::data`].
    pub fn consume(&mut self, n: usize) {
        match &mut self.buffer {
            Some(buffer) => buffer.consume(n),
            None => drop(self.parked.drain(..n)),
        }
    }

    /// Gives the buffer back, keeping unconsumed input in memory of its own size.
    pub fn park(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            debug_assert!(self.parked.is_empty());
            self.parked = buffer.data().to_vec();
        }
    }

    /// Reads more into [`Conn::data`]: how many bytes, 0 at the end of the stream. A full buffer reads nothing and is
    /// an error of kind `OutOfMemory`: what does not fit a buffer was to be consumed or refused before.
    pub fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let parked = &mut self.parked;
        let buffer = self.buffer.get_or_insert_with(|| Buffer::holding(std::mem::take(parked)));
        let transport = &mut self.transport;
        let polled = buffer.fill(|room| match transport.poll_read(cx, room) {
            Poll::Ready(Ok(n)) => (n, Poll::Ready(Ok(n))),
            other => (0, other),
        });
        let Some(polled) = polled else { return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into())) };
        if polled.is_pending() && buffer.data().is_empty() {
            // What waits holds no buffer.
            self.buffer = None;
        }
        polled
    }

    /// Reads straight into memory of the caller's: how many bytes, 0 at the end of the stream. [`Conn::data`] MUST be
    /// empty.
    pub fn poll_read_into(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        debug_assert!(self.data().is_empty());
        self.transport.poll_read(cx, into)
    }

    /// Writes `slices`, now if the socket takes them; the rest is copied to the queue.
    pub fn write(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> io::Result<()> {
        let mut written = if self.queue.is_empty() { self.write_now(cx, slices)? } else { 0 };
        for slice in slices {
            if written >= slice.len() {
                written -= slice.len();
                continue;
            }
            self.enqueue(Bytes::copy_from_slice(&slice[written..]).into());
            written = 0;
        }
        Ok(())
    }

    /// Writes `output`, now if the socket takes it; the rest is queued, shared pieces without a copy. Empties it, also
    /// where that fails.
    pub fn write_output(&mut self, cx: &mut Context<'_>, output: &mut Output) -> io::Result<()> {
        let mut written = 0;
        if self.queue.is_empty() && !output.is_empty() {
            match output.with_slices::<SLICES, _>(|slices| self.write_now(cx, slices)) {
                Ok(now) => written = now,
                Err(error) => {
                    output.clear();
                    return Err(error);
                }
            }
        }
        let queued = self.queue.len();
        output.drain(written, |rest| self.enqueue(rest));
        // A file that is first in turn was not tried yet.
        if queued == 0
            && let Some(Piece::File(_)) = self.queue.front()
            && let Poll::Ready(flushed) = self.poll_flush(cx)
        {
            return flushed;
        }
        Ok(())
    }

    /// Hands as much of `slices` to the transport as it takes now, nothing being queued before it.
    fn write_now(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.check()?;
        let written = self.transport.poll_write_vectored(cx, slices);
        let written = match self.wrote(written) {
            Poll::Ready(written) => written?,
            Poll::Pending => 0,
        };
        match self.transport.poll_flush(cx) {
            Poll::Ready(Err(error)) => {
                self.reset();
                Err(error)
            }
            _ => Ok(written),
        }
    }

    /// Takes note of what came of a write.
    fn wrote(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(written)) => {
                self.sent += *written as u64;
                if let Some(meter) = &self.meter {
                    meter.wrote(*written as u64);
                }
            }
            Poll::Ready(Err(_)) => self.fail(),
            Poll::Pending => {}
        }
        written
    }

    fn check(&self) -> io::Result<()> {
        if self.failed { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }

    /// What is queued is lost, and nothing is written any more.
    fn fail(&mut self) {
        self.failed = true;
        self.queue = VecDeque::new();
        self.queued = 0;
    }

    /// Adds a piece to the queue without writing.
    pub fn enqueue(&mut self, piece: Piece) {
        self.queued += piece.len();
        self.queue.push_back(piece);
    }

    /// Bytes that wait for the socket.
    pub fn queued(&self) -> usize {
        self.queued + self.transport.held()
    }

    /// Bytes that the socket took, in the life of the connection.
    pub fn sent(&self) -> u64 {
        self.sent - self.transport.held() as u64
    }

    /// Writes the queue; ready when it is empty.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        while let Some(front) = self.queue.front() {
            let written = match front {
                // A file that has become shorter sends nothing, and cannot keep what the head has promised.
                Piece::File(range) => self.transport.poll_send_file(cx, range),
                Piece::Bytes(_) => {
                    let mut slices = [IoSlice::new(&[]); SLICES];
                    let mut count = 0;
                    for (slice, piece) in slices.iter_mut().zip(&self.queue) {
                        let Piece::Bytes(bytes) = piece else { break };
                        *slice = IoSlice::new(bytes);
                        count += 1;
                    }
                    self.transport.poll_write_vectored(cx, &slices[..count])
                }
            };
            let written = ready!(self.wrote(written))?;
            if written == 0 {
                // The end of the connection may be that of the body, which would look whole.
                self.reset();
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.queued -= written;
            self.forget(written);
        }
        let flushed = ready!(self.transport.poll_flush(cx));
        if flushed.is_err() {
            self.fail();
        }
        Poll::Ready(flushed)
    }

    fn forget(&mut self, mut written: usize) {
        while let Some(front) = self.queue.front_mut() {
            if front.len() > written {
                front.advance(written);
                return;
            }
            written -= front.len();
            self.queue.pop_front();
        }
        if self.queue.capacity() > SLICES {
            self.queue = VecDeque::new();
        }
    }

    /// Until this is called with `false`, the end of the connection means a reset: for data whose end nothing but the end of
    /// the connection shows. Holds also where the process is killed.
    pub fn reset_when_dropped(&self, reset: bool) {
        self.transport.reset_when_dropped(reset);
    }

    /// Ends the connection so that the peer can tell that from an orderly end, as far as the transport can say it. What is still
    /// queued is lost.
    pub fn reset(&mut self) {
        self.fail();
        self.transport.reset_when_dropped(true);
    }

    /// Ends the writing direction.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.transport.poll_shutdown(cx)
    }

    /// What has arrived without having been consumed. Asks the kernel where nothing is known to have.
    pub fn unread(&self) -> Unread {
        if self.data().is_empty() { self.transport.unread() } else { Unread::Data }
    }

    /// Whether the last message was written to its end.
    pub fn is_flushed(&self) -> bool {
        self.queued() == 0 && !self.failed
    }
}

impl Drop for Conn {
    /// What was cut off must not look whole.
    fn drop(&mut self) {
        if self.queued() > 0 {
            self.transport.reset_when_dropped(true);
        }
    }
}
