//! A TLS connection as a transport.

use super::side::Side;
use crate::buffer::Buffer;
use crate::byte_queue::ByteQueue;
use crate::lent::Lent;
use crate::{Stream, Unread};
use rustls::CommonState;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, WriteTraffic};
use sandarac_message::FileRange;
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::task::{Context, Poll, ready};

/// The most data in one record (RFC 8446 §5.1).
const MAX_RECORD: usize = 16 * 1024;

/// The most that a record is longer than its data, with its header (RFC 8446 §5.2, RFC 5246 §6.2.3).
const SEALED: usize = 5 + 2048;

const TOO_LONG: &str = "a TLS message is too long";

/// The room to leave for what sealing adds to a record: 29 bytes in TLS 1.2, 22 in TLS 1.3.
const SEALING: usize = 64;

/// Less room than this is not worth a record.
const MIN_ROOM: usize = 1024;

/// The most sealed bytes that may wait for the socket while records are still read. A peer that makes us
/// answer (key updates) without reading is not read from.
const MAX_UNSENT: usize = 16 * 1024;

/// A TLS connection. It borrows buffers only while it has received a part of a record, or has sealed bytes
/// that the socket does not take.
pub struct TlsStream<S: Side> {
    stream: Stream,
    pub(super) side: S,
    /// Records that were received and not processed.
    records: ByteQueue,
    /// Data that was opened and not read: the rest of a record that the reader had no room for.
    opened: Vec<u8>,
    /// Records that the socket does not have yet.
    sealed: ByteQueue,
    /// Sealed bytes that may wait for the socket. Above this, no more is sealed.
    most_sealed: usize,
    /// The data sealed since [`TlsStream::sealed`] was last empty.
    data_sealed: usize,
    /// Whether the peer has ended its data in order.
    peer_has_closed: bool,
    /// Whether our close_notify was sealed.
    has_closed: bool,
    /// Whether TLS itself has failed. Nothing is read or written any more.
    has_failed: bool,
    /// Whether dropping this must not look like an orderly end.
    resets: Cell<bool>,
}

/// Where processing the received records has stopped.
pub(super) enum Processed {
    /// Data was opened; there may be more.
    Data,
    /// All records were processed.
    All,
}

impl<S: Side> TlsStream<S> {
    /// A connection before its handshake. `records` are those received already.
    pub(super) fn new(stream: Stream, side: S, records: ByteQueue) -> TlsStream<S> {
        TlsStream {
            stream,
            side,
            records,
            opened: Vec::new(),
            sealed: ByteQueue::default(),
            most_sealed: usize::MAX,
            data_sealed: 0,
            peer_has_closed: false,
            has_closed: false,
            has_failed: false,
            resets: Cell::new(false),
        }
    }

    /// Bytes of memory that hold what was received and not read.
    pub(crate) fn input_memory(&self) -> usize {
        self.records.memory() + self.opened.capacity()
    }

    /// Bytes of memory that hold what the socket does not have yet.
    pub(crate) fn output_memory(&self) -> usize {
        self.sealed.memory()
    }

    /// Seals no more than so many bytes ahead of the socket.
    pub(crate) fn limit_sealing(&mut self, most: usize) {
        self.most_sealed = most;
    }

    /// Keeps what waits for the socket in memory of its own size.
    pub(crate) fn park_output(&mut self) {
        self.sealed.park();
    }

    /// Bytes that were received and not processed.
    pub(crate) fn unprocessed(&self) -> usize {
        self.records.data().len()
    }

    /// What was negotiated.
    pub fn state(&self) -> &CommonState {
        &self.side
    }

    /// Processes received records. Stops after one that held data, of which `open` takes as much as it
    /// returns; the rest is kept. When all are processed and data may be sent, calls `seal`.
    fn process(
        &mut self,
        open: impl FnOnce(&[u8]) -> usize,
        seal: impl FnOnce(WriteTraffic<'_, S::Data>, &mut ByteQueue),
    ) -> Result<Processed, rustls::Error> {
        loop {
            let status = self.side.process(self.records.data_mut());
            let mut used = status.discard;
            match status.state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    if let Some(record) = traffic.next_record() {
                        let record = record?;
                        used += record.discard;
                        let taken = open(record.payload);
                        self.opened.extend_from_slice(&record.payload[taken..]);
                        self.records.consume(used);
                        return Ok(Processed::Data);
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut message)) => {
                    let encoded = self.sealed.fill(|room| match message.encode(room) {
                        Ok(len) => (len, true),
                        Err(EncodeError::InsufficientSize(_) | EncodeError::AlreadyEncoded) => (0, false),
                    });
                    if encoded != Some(true) {
                        return Err(rustls::Error::General("a message has no room".to_owned()));
                    }
                }
                Ok(ConnectionState::TransmitTlsData(message)) => message.done(),
                Ok(ConnectionState::PeerClosed) => self.peer_has_closed = true,
                Ok(ConnectionState::WriteTraffic(traffic)) => {
                    seal(traffic, &mut self.sealed);
                    self.records.consume(used);
                    return Ok(Processed::All);
                }
                Ok(ConnectionState::BlockedHandshake | ConnectionState::Closed) => {
                    self.records.consume(used);
                    return Ok(Processed::All);
                }
                // Early data is never accepted, and states that are added later are not known here.
                Ok(_) => return Err(rustls::Error::General("unexpected state".to_owned())),
                Err(error) => {
                    self.records.consume(used);
                    return Err(error);
                }
            }
            self.records.consume(used);
        }
    }

    /// Ends the connection because of an error in TLS. The alert that tells the peer is sealed.
    fn fail(&mut self, error: rustls::Error) -> rustls::Error {
        self.has_failed = true;
        while self.side.wants_write() {
            let ConnectionState::EncodeTlsData(mut alert) = (match self.side.process(&mut []).state {
                Ok(state) => state,
                Err(_) => break,
            }) else {
                break;
            };
            self.sealed.fill(|room| (alert.encode(room).unwrap_or(0), ()));
        }
        error
    }

    /// Goes on with the handshake as far as the received records allow; true once it has ended.
    pub(super) fn advance_handshake(&mut self) -> Result<bool, rustls::Error> {
        while self.side.is_handshaking() {
            match self.process(|_| 0, |_, _| ()) {
                // Data may follow the last message of the handshake at once.
                Ok(Processed::Data) => {}
                Ok(Processed::All) => break,
                Err(error) => return Err(self.fail(error)),
            }
        }
        Ok(!self.side.is_handshaking())
    }

    /// Receives more records, and sends what the handshake has to send. Ready with 0 at the end of the stream.
    pub(super) fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if !self.sealed.is_empty() {
            let flushed = self.poll_flush(cx);
            if self.sealed.data().len() > MAX_UNSENT {
                ready!(flushed)?;
            }
        }
        let stream = &mut self.stream;
        let received = self.records.fill(|room| match stream.poll_read(cx, room) {
            Poll::Ready(Ok(n)) => (n, Poll::Ready(Ok(n))),
            other => (0, other),
        });
        match received {
            None => Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, TOO_LONG))),
            Some(Poll::Pending) => {
                self.records.park();
                Poll::Pending
            }
            Some(received) => received,
        }
    }

    fn check(&self) -> io::Result<()> {
        if self.has_failed { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }

    fn take_opened(&mut self, buf: &mut [u8]) -> usize {
        let count = self.opened.len().min(buf.len());
        buf[..count].copy_from_slice(&self.opened[..count]);
        if count == self.opened.len() {
            self.opened = Vec::new();
        } else {
            self.opened.drain(..count);
        }
        count
    }

    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.check()?;
        if !self.opened.is_empty() {
            return Poll::Ready(Ok(self.take_opened(buf)));
        }
        loop {
            let mut read = 0;
            while read < buf.len() && self.opened.is_empty() {
                let room = &mut buf[read..];
                let mut taken = 0;
                let open = |data: &[u8]| {
                    taken = data.len().min(room.len());
                    room[..taken].copy_from_slice(&data[..taken]);
                    taken
                };
                match self.process(open, |_, _| ()) {
                    Ok(Processed::Data) => read += taken,
                    Ok(Processed::All) => break,
                    Err(error) => {
                        let error = self.fail(error);
                        let _ = self.poll_flush(cx);
                        return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
                    }
                }
            }
            if read > 0 || self.peer_has_closed {
                self.records.release();
                return Poll::Ready(Ok(read));
            }
            // No message of a peer is longer than a record once the handshake has ended.
            if self.records.data().len() > MAX_RECORD + SEALED {
                self.has_failed = true;
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, TOO_LONG)));
            }
            if ready!(self.poll_receive(cx))? == 0 {
                // Without close_notify, nobody knows whether something was cut off (RFC 8446 §6.1).
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    pub(crate) fn poll_append_to(
        &mut self,
        cx: &mut Context<'_>,
        memory: &mut Vec<u8>,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        let mut data = Lent::<Buffer>::take();
        let read = data.fill(|room| {
            let most = room.len().min(most);
            match self.poll_read(cx, &mut room[..most]) {
                Poll::Ready(Ok(n)) => (n, Poll::Ready(Ok(n))),
                other => (0, other),
            }
        });
        memory.extend_from_slice(data.data());
        // New memory has room.
        read.unwrap_or(Poll::Ready(Ok(0)))
    }

    pub(crate) fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        let total: usize = slices.iter().map(|slice| slice.len()).sum();
        let mut taken = 0;
        while taken < total {
            let room = self.most_sealed.saturating_sub(self.sealed.data().len());
            if room > 0 {
                let sealed = self.seal(slices, taken, room).map_err(|error| self.untake(taken, error))?;
                taken += sealed;
                self.data_sealed += sealed;
            }
            if taken == total {
                break;
            }
            // The buffer is full, or as full as it may be.
            match self.poll_flush(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(self.untake(taken, error))),
                Poll::Pending if taken > 0 => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(taken))
    }

    /// The error of a write that sealed `taken` bytes. The caller does not learn of those, so they do not count as held.
    fn untake(&mut self, taken: usize, error: io::Error) -> io::Error {
        self.data_sealed = self.data_sealed.saturating_sub(taken);
        error
    }

    /// Seals `slices` without their first `skip` bytes, as far as there is room, and at most `most`; returns the number of bytes.
    fn seal(&mut self, slices: &[IoSlice<'_>], skip: usize, most: usize) -> io::Result<usize> {
        let mut sealed = None;
        // Data that arrived and was not read yet is opened first.
        while sealed.is_none() {
            let processed = self.process(
                |_| 0,
                |traffic, room| sealed = Some(seal_slices(traffic, slices, skip, most, room)),
            );
            match processed {
                Ok(Processed::Data) => {}
                // The handshake has not ended, or both sides have closed.
                Ok(Processed::All) if sealed.is_none() => return Err(io::ErrorKind::NotConnected.into()),
                Ok(Processed::All) => {}
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, self.fail(error))),
            }
        }
        sealed.unwrap_or(Ok(0)).map_err(io::Error::other)
    }

    pub(crate) fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        range: &FileRange,
    ) -> Poll<io::Result<usize>> {
        let mut data = Lent::<Buffer>::take();
        let read = data.fill(|room| {
            let most = room.len().min(range.len);
            let read = range.file.read_at(&mut room[..most], range.start);
            (*read.as_ref().unwrap_or(&0), read.map(drop))
        });
        if let Some(Err(error)) = read {
            return Poll::Ready(Err(error));
        }
        self.poll_write_vectored(cx, &[IoSlice::new(data.data())])
    }

    pub(crate) fn held(&self) -> usize {
        self.data_sealed.min(self.sealed.data().len())
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.sealed.is_empty() {
            let written = ready!(self.stream.poll_write_vectored(cx, &[IoSlice::new(self.sealed.data())]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sealed.consume(written);
        }
        self.sealed.release();
        self.data_sealed = 0;
        Poll::Ready(Ok(()))
    }

    /// Seals a close_notify, once.
    fn close(&mut self) {
        if self.has_closed || self.has_failed || self.side.is_handshaking() {
            return;
        }
        self.has_closed = true;
        let seal = |traffic: &mut WriteTraffic<'_, S::Data>, sealed: &mut ByteQueue| {
            sealed.fill(|room| (traffic.queue_close_notify(room).unwrap_or(0), ()));
        };
        while let Ok(Processed::Data) = self.process(|_| 0, |mut traffic, sealed| seal(&mut traffic, sealed))
        {
        }
    }

    /// Writes close_notify.
    pub(crate) fn poll_last_words(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.close();
        self.poll_flush(cx)
    }

    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_last_words(cx))?;
        self.stream.poll_shutdown(cx)
    }

    pub(crate) fn park(&mut self) {
        self.records.park();
    }

    pub(crate) fn unacknowledged(&self) -> usize {
        self.stream.unacknowledged()
    }

    pub(crate) fn reset_when_dropped(&self, reset: bool) {
        self.resets.set(reset);
        self.stream.reset_when_dropped(reset);
    }

    /// What has arrived above TLS: tickets and the like are not data. A part of a record counts as data,
    /// because it may become some.
    pub(crate) fn unread(&mut self) -> Unread {
        loop {
            if !self.opened.is_empty() {
                return Unread::Data;
            }
            if self.peer_has_closed || self.has_failed {
                return Unread::End;
            }
            match self.process(|_| 0, |_, _| ()) {
                Ok(Processed::Data) => continue,
                Ok(Processed::All) if self.peer_has_closed => return Unread::End,
                Ok(Processed::All) => {}
                Err(error) => {
                    self.fail(error);
                    return Unread::End;
                }
            }
            let stream = &mut self.stream;
            let received = self.records.fill(|room| match stream.read_now(room) {
                Ok(n) => (n, Ok(n)),
                Err(error) => (0, Err(error)),
            });
            match received {
                None => return Unread::Data,
                Some(Ok(1..)) => {}
                Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.records.park();
                    return if self.records.is_empty() { Unread::Nothing } else { Unread::Data };
                }
                Some(Ok(0) | Err(_)) => return Unread::End,
            }
        }
    }

    pub(crate) fn peer_addr(&self) -> Option<SocketAddr> {
        self.stream.peer_addr()
    }

    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        self.stream.local_addr()
    }
}

#[cfg(test)]
impl<S: Side> TlsStream<S> {
    pub(super) fn borrows_nothing(&self) -> bool {
        !self.records.borrows() && !self.sealed.borrows() && self.opened.capacity() == 0
    }
}

impl<S: Side> Drop for TlsStream<S> {
    /// Ends the connection in order, so that the peer does not take the end for a cut.
    fn drop(&mut self) {
        if !self.resets.get() && !self.has_closed {
            self.close();
            self.stream.write_now(self.sealed.data());
        }
    }
}

/// Seals `slices` without their first `skip` bytes into `sealed`, as far as there is room, and at most `most`; returns the
/// number of bytes.
fn seal_slices<D>(
    mut traffic: WriteTraffic<'_, D>,
    slices: &[IoSlice<'_>],
    mut skip: usize,
    most: usize,
    sealed: &mut ByteQueue,
) -> Result<usize, EncryptError> {
    let mut taken = 0;
    for slice in slices {
        let mut rest = &slice[skip.min(slice.len())..];
        skip = skip.saturating_sub(slice.len());
        while !rest.is_empty() && taken < most {
            let now = &rest[..rest.len().min(most - taken)];
            match sealed.fill(|room| seal_record(&mut traffic, now, room)) {
                Some(Ok(count)) if count > 0 => {
                    taken += count;
                    rest = &rest[count..];
                }
                Some(Err(error)) => return Err(error),
                Some(Ok(_)) | None => return Ok(taken),
            }
        }
    }
    Ok(taken)
}

/// Seals one record of the beginning of `data` into `room`. Returns the bytes written, and the data taken: none
/// if there is too little room.
fn seal_record<D>(
    traffic: &mut WriteTraffic<'_, D>,
    data: &[u8],
    room: &mut [u8],
) -> (usize, Result<usize, EncryptError>) {
    if room.len() < MIN_ROOM {
        return (0, Ok(0));
    }
    let count = data.len().min(MAX_RECORD).min(room.len() - SEALING);
    match traffic.encrypt(&data[..count], room) {
        Ok(written) => (written, Ok(count)),
        Err(error) => (0, Err(error)),
    }
}
