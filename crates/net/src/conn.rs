//! A connection to a client or a backend: bytes that arrived and are not yet consumed, and bytes that wait
//! for the socket.

use crate::byte_queue::ByteQueue;
use crate::file_reads::{FileReads, Ready};
use crate::output::{After, in_memory};
use crate::{Holder, Output, Place, Stream, Transport, Unread};
use bytes::Bytes;
use sandarac_message::{FileRange, Piece};
use sandarac_wire::h1::repair::Repairs;
use std::any::Any;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// Slices passed to the kernel in one write.
const SLICES: usize = 64;

/// A file from this size on is worth a system call that lets the system take more of it.
const LARGE: usize = 128 << 10;

/// A connection with its input and output.
///
/// Input is read into a borrowed buffer, which [`Conn::park`] gives back while the connection waits. Output
/// is written at once. What the socket does not take is queued. The caller MUST NOT let the queue grow: it
/// polls [`Conn::poll_flush`] before it produces more than it is willing to hold.
///
/// After a failed write nothing more is written, because it is unknown where in a message the peer's copy
/// ends.
pub struct Conn {
    transport: Transport,
    input: ByteQueue,
    queue: VecDeque<Piece>,
    queued: usize,
    /// Of these bytes, at most so many are in memory that belongs to nothing else.
    copied: usize,
    sent: u64,
    /// Bytes that one [`Conn::poll_fill`] reads at most.
    read_limit: usize,
    /// The read of the file at the front of the queue.
    reads: FileReads,
    /// What is kept while the queue is not empty.
    kept: Vec<Box<dyn Any>>,
    /// Whether the system may take more for the peer, because a large file was sent.
    takes_more: bool,
    /// Whether a write has failed.
    failed: bool,
    repairs: Repairs,
    /// The counts of its bytes, if it is a client's.
    counts: Option<Counts>,
    /// The place of its descriptor, if that is one of a counted number.
    place: Option<Place>,
}

/// The places that count the bytes of a client.
struct Counts {
    meter: Rc<dyn Meter>,
    /// Counts them too, and may have the connection fail.
    holder: Holder,
}

/// Counts bytes as they are written.
pub trait Meter {
    /// Counts `bytes` more bytes written.
    fn wrote(&self, bytes: u64);
}

impl Conn {
    /// Records a repair of the input. The connection MUST NOT be used for another message.
    pub fn repaired(&mut self, repairs: Repairs) {
        self.repairs.extend(repairs);
    }

    /// Notes the place of its descriptor, which it gives back at its end.
    pub fn takes(&mut self, place: Option<Place>) {
        self.place = place;
    }

    /// Takes the place from it, for one that has the same descriptor.
    pub(crate) fn take_place(&mut self) -> Option<Place> {
        self.place.take()
    }

    /// All repairs of the input so far.
    pub fn repairs(&self) -> Repairs {
        self.repairs
    }

    /// A connection over a transport.
    pub fn new(transport: impl Into<Transport>) -> Conn {
        Conn {
            transport: transport.into(),
            input: ByteQueue::default(),
            queue: VecDeque::new(),
            queued: 0,
            copied: 0,
            sent: 0,
            read_limit: usize::MAX,
            reads: FileReads::default(),
            kept: Vec::new(),
            takes_more: false,
            failed: false,
            repairs: Repairs::NONE,
            counts: None,
            place: None,
        }
    }

    /// The connection of a client, which is `holder`, with a meter for the bytes written.
    pub(crate) fn of_client(transport: impl Into<Transport>, meter: Rc<dyn Meter>, holder: &Holder) -> Conn {
        let mut conn = Conn::new(transport);
        conn.counts = Some(Counts { meter, holder: holder.clone() });
        conn
    }

    /// The transport that carries its bytes.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Takes the socket and what was read from it, so that TLS can begin. `None` if the connection is not
    /// plain, or has output.
    pub(crate) fn take_stream(&mut self) -> Option<(Stream, ByteQueue)> {
        let Transport::Plain(stream) = &mut self.transport else { return None };
        if self.queued > 0 || self.failed {
            return None;
        }
        Some((std::mem::replace(stream, Stream::taken()), std::mem::take(&mut self.input)))
    }

    /// Goes on over another transport.
    pub(crate) fn set_transport(&mut self, transport: Transport) {
        self.transport = transport;
    }

    /// Bytes that arrived and are not consumed.
    pub fn data(&self) -> &[u8] {
        self.input.data()
    }

    /// Drops the first `n` bytes of [`Conn::data`].
    pub fn consume(&mut self, n: usize) {
        self.input.consume(n);
    }

    /// Gives the buffer back, keeping unconsumed input in memory of its own size.
    pub fn park(&mut self) {
        self.input.park();
        self.transport.park();
    }

    /// Bytes of memory that hold input.
    pub(crate) fn input_memory(&self) -> usize {
        self.input.memory() + self.transport.input_memory()
    }

    /// Whether a part of a record has come, which is no data yet.
    pub(crate) fn has_part(&self) -> bool {
        self.transport.has_part()
    }

    /// Has each [`Conn::poll_fill`] read at most so many bytes.
    pub fn limit_reads(&mut self, most: usize) {
        self.read_limit = most;
    }

    /// Reads more into [`Conn::data`] and returns the number of bytes, 0 at the end of the stream. If the
    /// buffer is full, reads nothing and fails with `OutOfMemory`: the caller should have consumed or refused
    /// the data before.
    pub fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.poll_fill_some(cx, self.read_limit)
    }

    /// The same, but reads at most `most` bytes.
    pub fn poll_fill_some(&mut self, cx: &mut Context<'_>, most: usize) -> Poll<io::Result<usize>> {
        self.may_go_on()?;
        let transport = &mut self.transport;
        let polled = self.input.fill(|room| {
            let most = room.len().min(most);
            match transport.poll_read(cx, &mut room[..most]) {
                Poll::Ready(Ok(n)) => (n, Poll::Ready(Ok(n))),
                other => (0, other),
            }
        });
        let Some(polled) = polled else { return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into())) };
        if polled.is_pending() {
            // A waiting connection holds no buffer.
            self.input.release();
        }
        if let (Poll::Ready(Ok(bytes)), Some(counts)) = (&polled, &self.counts) {
            counts.holder.moves(*bytes);
        }
        polled
    }

    /// Reads directly into the caller's memory and returns the number of bytes, 0 at the end of the stream.
    /// [`Conn::data`] MUST be empty.
    pub fn poll_read_into(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        debug_assert!(self.data().is_empty());
        self.transport.poll_read(cx, into)
    }

    /// Appends at most `most` bytes to `memory`, within its capacity, and returns their number, 0 at the end of
    /// the stream. [`Conn::data`] MUST be empty, and the capacity larger than the length.
    pub fn poll_append_to(
        &mut self,
        cx: &mut Context<'_>,
        memory: &mut Vec<u8>,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        debug_assert!(self.data().is_empty());
        let most = most.min(memory.capacity() - memory.len());
        self.transport.poll_append_to(cx, memory, most)
    }

    /// Writes `slices` as far as the socket takes them now; the rest is copied to the queue.
    pub fn write(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> io::Result<()> {
        let mut written = if self.queue.is_empty() { self.write_now(cx, slices, After::Any)? } else { 0 };
        for slice in slices {
            if written >= slice.len() {
                written -= slice.len();
                continue;
            }
            self.copied += slice.len() - written;
            self.enqueue(Bytes::copy_from_slice(&slice[written..]).into());
            written = 0;
        }
        Ok(())
    }

    /// Writes `output` as far as the socket takes it now; the rest is queued, shared pieces without a copy.
    /// Empties `output` even on failure.
    pub fn write_output(&mut self, cx: &mut Context<'_>, output: &mut Output) -> io::Result<()> {
        let mut written = 0;
        if self.queue.is_empty() && !output.is_empty() {
            let sends_files = self.transport.sends_files();
            match output
                .with_slices::<SLICES, _>(sends_files, |slices, after| self.write_now(cx, slices, after))
            {
                Ok(now) => written = now,
                Err(error) => {
                    output.clear();
                    return Err(error);
                }
            }
        }
        let queued = self.queue.len();
        let kept = output.take_kept();
        output.drain(written, |rest, is_copy| {
            self.copied += if is_copy { rest.len() } else { 0 };
            self.enqueue(rest);
        });
        if !self.queue.is_empty() {
            self.kept.extend(kept);
        }
        // A file at the front of the queue was not tried yet.
        if queued == 0
            && self
                .queue
                .front()
                .is_some_and(|front| in_memory(front, self.transport.sends_files()).is_none())
            && let Poll::Ready(flushed) = self.poll_flush(cx)
        {
            return flushed;
        }
        Ok(())
    }

    /// Hands as much of `slices` to the transport as it takes now. The queue MUST be empty.
    fn write_now(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>], after: After) -> io::Result<usize> {
        self.check()?;
        self.limit_sealing();
        let written = match after {
            After::Any => self.transport.poll_write_vectored(cx, slices),
            After::File if slices.is_empty() => Poll::Ready(Ok(0)),
            After::File => self.transport.poll_write_more(cx, slices),
        };
        let written = match self.wrote(written) {
            Poll::Ready(written) => written?,
            Poll::Pending => 0,
        };
        match self.transport.poll_flush(cx) {
            Poll::Ready(Err(error)) => {
                self.reset();
                Err(error)
            }
            Poll::Ready(Ok(())) => Ok(written),
            Poll::Pending => {
                self.park_output();
                Ok(written)
            }
        }
    }

    /// Where all hold more than they may, little is sealed for a client before the socket has taken it.
    fn limit_sealing(&mut self) {
        if let Some(counts) = &self.counts {
            self.transport.limit_sealing(|| counts.holder.sealed_limit());
        }
    }

    /// Keeps sealed output in memory of its own size, where nothing may be held ahead for the client: otherwise it goes on
    /// borrowing a buffer, which saves copying it.
    fn park_output(&mut self) {
        if self.counts.as_ref().is_some_and(|counts| !counts.holder.may_look_ahead()) {
            self.transport.park_output();
        }
    }

    /// Records the outcome of a write.
    fn wrote(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(written)) => {
                self.sent += *written as u64;
                if let Some(counts) = &self.counts {
                    counts.meter.wrote(*written as u64);
                    counts.holder.moves(*written);
                }
            }
            Poll::Ready(Err(_)) => self.fail(),
            Poll::Pending => {}
        }
        written
    }

    fn check(&self) -> io::Result<()> {
        if self.failed { Err(io::ErrorKind::BrokenPipe.into()) } else { self.may_go_on() }
    }

    /// Fails if its holder has to give way, which was counted already: not as too late.
    fn may_go_on(&self) -> io::Result<()> {
        match &self.counts {
            Some(counts) if counts.holder.is_cut() => Err(io::ErrorKind::ConnectionAborted.into()),
            _ => Ok(()),
        }
    }

    /// Drops the queue; nothing is written any more.
    fn fail(&mut self) {
        self.failed = true;
        self.reads = FileReads::default();
        self.queue = VecDeque::new();
        (self.queued, self.copied) = (0, 0);
        self.kept = Vec::new();
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

    /// Bytes of memory that hold output, and belong to nothing else, such as the store.
    pub(crate) fn output_memory(&self) -> usize {
        self.copied + self.transport.output_memory() + self.queue.len() * size_of::<Piece>()
    }

    /// Whether bytes in memory of the process wait for the socket.
    pub(crate) fn holds_memory(&self) -> bool {
        self.queue.iter().any(|piece| !matches!(piece, Piece::File(_)))
    }

    /// Bytes that the socket has taken during the life of the connection.
    pub fn sent(&self) -> u64 {
        self.sent - self.transport.held() as u64
    }

    /// Bytes that the peer has acknowledged during the life of the connection. Over a Unix socket, and where TLS adds
    /// to them, about so many.
    pub fn taken(&self) -> u64 {
        self.sent().saturating_sub(self.transport.unacknowledged() as u64)
    }

    /// Writes the queue; ready when it is empty.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.poll_write_queue(cx);
        if flushed.is_pending() {
            self.park_output();
        }
        flushed
    }

    fn poll_write_queue(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        self.limit_sealing();
        let sends_files = self.transport.sends_files();
        while let Some(front) = self.queue.front() {
            let is_large = front.len() >= LARGE && in_memory(front, sends_files).is_none();
            if is_large && !std::mem::replace(&mut self.takes_more, true) {
                self.transport.take_more();
            }
            let written = match front {
                // A file that has become shorter sends nothing: the length that the head announced cannot be
                // met.
                Piece::File(range) => match ready!(self.reads.poll(cx, range)) {
                    Ready::InMemory(len) if len >= range.len => self.transport.poll_send_file(cx, range),
                    Ready::InMemory(len) => {
                        let part = FileRange { len, ..range.clone() };
                        self.transport.poll_send_file(cx, &part)
                    }
                    Ready::Read(bytes) if !bytes.is_empty() => {
                        self.replace_front(bytes);
                        continue;
                    }
                    Ready::Read(_) => Poll::Ready(Ok(0)),
                },
                Piece::Mapped(range) if in_memory(front, sends_files).is_none() => {
                    self.transport.poll_send_file(cx, &range.file())
                }
                Piece::Bytes(_) | Piece::Mapped(_) => {
                    let mut slices = [IoSlice::new(&[]); SLICES];
                    let mut count = 0;
                    for (slice, piece) in slices.iter_mut().zip(&self.queue) {
                        let Some(bytes) = in_memory(piece, sends_files) else { break };
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
            self.copied = self.copied.min(self.queued);
            self.forget(written);
        }
        let flushed = ready!(self.transport.poll_flush(cx));
        if flushed.is_err() {
            self.fail();
        }
        Poll::Ready(flushed)
    }

    /// Puts `bytes` in place of the beginning of the queue, where they were read from.
    fn replace_front(&mut self, bytes: Bytes) {
        self.copied += bytes.len();
        if let Some(front) = self.queue.front_mut() {
            front.advance(bytes.len());
            if front.is_empty() {
                self.queue.pop_front();
            }
        }
        self.queue.push_front(bytes.into());
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
        self.kept = Vec::new();
        if self.queue.capacity() > SLICES {
            self.queue = VecDeque::new();
        }
    }

    /// While this is set, dropping the connection resets it. For data whose end is shown only by the end of
    /// the connection. Works even if the process is killed.
    pub fn reset_when_dropped(&self, reset: bool) {
        self.transport.reset_when_dropped(reset);
    }

    /// Ends the connection so that the peer can distinguish it from an orderly end, if the transport can
    /// express that. Queued output is lost.
    pub fn reset(&mut self) {
        self.fail();
        self.transport.reset_when_dropped(true);
    }

    /// Writes the last words of the transport, unless the output broke off.
    pub(crate) fn poll_last_words(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_flushed() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        self.transport.poll_last_words(cx)
    }

    /// Ends the writing direction.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.transport.poll_shutdown(cx)
    }

    /// What has arrived without having been consumed. Asks the kernel if the connection holds nothing unread.
    pub fn unread(&mut self) -> Unread {
        if self.data().is_empty() { self.transport.unread() } else { Unread::Data }
    }

    /// Whether the last message was written to its end.
    pub fn is_flushed(&self) -> bool {
        self.queued() == 0 && !self.failed
    }
}

impl Drop for Conn {
    /// Resets a connection with queued output: a truncated message must not look complete.
    fn drop(&mut self) {
        if self.queued() > 0 {
            self.transport.reset_when_dropped(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_test_support::within;
    use std::io::Read;
    use std::net::TcpListener;

    #[test]
    fn what_the_peer_takes_counts_while_the_socket_takes_nothing() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let socket = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (mut peer, _) = listener.accept().unwrap();
            let mut conn = Conn::new(Stream::tcp(socket));
            conn.enqueue(Bytes::from(vec![b'x'; 64 << 20]).into());
            let mut cx = Context::from_waker(std::task::Waker::noop());
            assert!(conn.poll_flush(&mut cx).is_pending());
            let (sent, taken) = (conn.sent(), conn.taken());
            assert!(taken < sent);
            peer.read_exact(&mut vec![0; sent as usize]).unwrap();
            within("all that was sent to be taken", || (conn.taken() == sent).then_some(()));
            assert_eq!(conn.sent(), sent);
        });
    }
}
