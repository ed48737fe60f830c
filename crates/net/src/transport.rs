//! The transport under a connection: moves bytes, may transform them, and may hold some back. Everything above asks the
//! transport, never the socket.

use crate::{Stream, Unread};
use sandarac_message::FileRange;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::task::{Context, Poll};

/// What carries the bytes of a connection.
pub enum Transport {
    /// A socket: bytes go as they are.
    Plain(Stream),
    /// A socket behind a transport that holds bytes back, for tests.
    #[cfg(test)]
    Held(Box<crate::held_transport::Held>),
}

/// Calls the same method of the transport, whichever it is.
macro_rules! carry {
    ($transport:expr, $method:ident($($argument:expr),*)) => {
        match $transport {
            Transport::Plain(stream) => stream.$method($($argument),*),
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

impl Transport {
    /// Reads into `buf`: how many bytes, 0 at an orderly end. An end that may have cut something off is an error.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        carry!(self, poll_read(cx, buf))
    }

    /// Takes as much of `slices` as it can now. What it takes may be held until [`Transport::poll_flush`].
    pub fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        carry!(self, poll_write_vectored(cx, slices))
    }

    /// Takes as much of a file as it can now; 0 where that ends before the range begins.
    pub fn poll_send_file(&mut self, cx: &mut Context<'_>, range: &FileRange) -> Poll<io::Result<usize>> {
        carry!(self, poll_send_file(cx, range))
    }

    /// Bytes that were taken and that the socket does not have yet.
    pub fn held(&self) -> usize {
        carry!(self, held())
    }

    /// Hands what is held to the socket; ready when nothing is.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        carry!(self, poll_flush(cx))
    }

    /// Ends the writing direction in order. Nothing MUST be held.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        carry!(self, poll_shutdown(cx))
    }

    /// Has the connection `reset`, or ended in order, when this is dropped. A Unix socket knows no reset.
    pub fn reset_when_dropped(&self, reset: bool) {
        carry!(self, reset_when_dropped(reset));
    }

    /// What has arrived that was not read yet. Asks the kernel, without waiting, where nothing is known to have.
    pub fn unread(&self) -> Unread {
        carry!(self, unread())
    }

    /// The peer's address, where it has one.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        carry!(self, peer_addr())
    }

    /// The address of this side, where it has one.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        carry!(self, local_addr())
    }
}
