//! The transport under a connection: it moves bytes, and may transform them or hold some back. All other code
//! uses the transport, never the socket.

use crate::tls::{ClientSide, ServerSide, TlsStream};
use crate::{Stream, Unread};
use sandarac_message::FileRange;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::task::{Context, Poll};

/// The transport of a connection's bytes.
pub enum Transport {
    /// A socket: bytes are passed unchanged.
    Plain(Stream),
    /// TLS with a client.
    TlsClient(Box<TlsStream<ServerSide>>),
    /// TLS with a backend.
    TlsBackend(Box<TlsStream<ClientSide>>),
    /// A socket behind a transport that holds bytes back, for tests.
    #[cfg(test)]
    Held(Box<crate::held_transport::Held>),
}

/// Calls the same method on whichever transport it is.
macro_rules! carry {
    ($transport:expr, $method:ident($($argument:expr),*)) => {
        match $transport {
            Transport::Plain(stream) => stream.$method($($argument),*),
            Transport::TlsClient(tls) => tls.$method($($argument),*),
            Transport::TlsBackend(tls) => tls.$method($($argument),*),
            #[cfg(test)]
            Transport::Held(held) => held.$method($($argument),*),
        }
    };
}

impl From<Stream> for Transport {
    fn from(stream: Stream) -> Transport {
        Transport::Plain(stream)
    }
}

impl From<TlsStream<ClientSide>> for Transport {
    fn from(tls: TlsStream<ClientSide>) -> Transport {
        Transport::TlsBackend(Box::new(tls))
    }
}

impl Transport {
    /// Reads into `buf` and returns the number of bytes, 0 at an orderly end. An end that may have cut
    /// something off is an error.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        carry!(self, poll_read(cx, buf))
    }

    /// Appends at most `most` bytes to `memory`, which MUST have room for them, and returns their number, 0 at an
    /// orderly end. The room is not cleared before.
    pub fn poll_append_to(
        &mut self,
        cx: &mut Context<'_>,
        memory: &mut Vec<u8>,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        carry!(self, poll_append_to(cx, memory, most))
    }

    /// Bytes of memory that hold input which could not be passed on yet.
    pub(crate) fn input_memory(&self) -> usize {
        match self {
            Transport::TlsClient(tls) => tls.input_memory(),
            Transport::TlsBackend(tls) => tls.input_memory(),
            _ => 0,
        }
    }

    /// Bytes of memory that hold output which the socket does not have yet.
    pub(crate) fn output_memory(&self) -> usize {
        match self {
            Transport::TlsClient(tls) => tls.output_memory(),
            Transport::TlsBackend(tls) => tls.output_memory(),
            other => other.held(),
        }
    }

    /// Has TLS with a client seal no more than so many bytes ahead of the socket.
    pub(crate) fn limit_sealing(&mut self, most: impl FnOnce() -> usize) {
        if let Transport::TlsClient(tls) = self {
            tls.limit_sealing(most());
        }
    }

    /// Keeps what waits for the socket in memory of its own size.
    pub(crate) fn park_output(&mut self) {
        if let Transport::TlsClient(tls) = self {
            tls.park_output();
        }
    }

    /// Whether a part of a record has come.
    pub(crate) fn has_part(&self) -> bool {
        matches!(self, Transport::TlsClient(tls) if tls.unprocessed() > 0)
    }

    /// Takes as much of `slices` as it can now. Bytes taken may be held until [`Transport::poll_flush`].
    pub fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        carry!(self, poll_write_vectored(cx, slices))
    }

    /// The same for a plain transport, where the caller sends a file next: the system may keep the end of the
    /// slices until then.
    pub(crate) fn poll_write_more(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Transport::Plain(stream) => stream.poll_write_more(cx, slices),
            other => other.poll_write_vectored(cx, slices),
        }
    }

    /// Whether it sends files without reading them.
    pub(crate) fn sends_files(&self) -> bool {
        matches!(self, Transport::Plain(_))
    }

    /// Takes as much of a file as it can now; 0 if the file ends before the range begins.
    pub fn poll_send_file(&mut self, cx: &mut Context<'_>, range: &FileRange) -> Poll<io::Result<usize>> {
        carry!(self, poll_send_file(cx, range))
    }

    /// Lets the system take more than usual: large files are sent.
    pub(crate) fn take_more(&self) {
        if let Transport::Plain(stream) = self {
            stream.take_more();
        }
    }

    /// Bytes that the socket has, and the peer has not acknowledged.
    pub(crate) fn unacknowledged(&self) -> usize {
        carry!(self, unacknowledged())
    }

    /// Bytes taken that the socket does not have yet, or fewer; 0 only if it has all.
    pub fn held(&self) -> usize {
        carry!(self, held())
    }

    /// Passes the held bytes to the socket; ready when none are left.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        carry!(self, poll_flush(cx))
    }

    /// Writes what a transport that transforms bytes says at their end. No bytes may be held.
    pub(crate) fn poll_last_words(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        carry!(self, poll_last_words(cx))
    }

    /// Ends the writing direction in order, after the last words. No bytes may be held.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        carry!(self, poll_shutdown(cx))
    }

    /// Whether dropping this resets the connection instead of ending it in order. Unix sockets have no reset.
    pub fn reset_when_dropped(&self, reset: bool) {
        carry!(self, reset_when_dropped(reset));
    }

    /// What has arrived and was not read yet. Asks the kernel, without waiting, if the transport holds
    /// nothing unread.
    pub fn unread(&mut self) -> Unread {
        carry!(self, unread())
    }

    /// Gives back borrowed memory while the connection waits.
    pub fn park(&mut self) {
        carry!(self, park());
    }

    /// The peer's address, if it has one.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        carry!(self, peer_addr())
    }

    /// The local address, if it has one.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        carry!(self, local_addr())
    }
}
