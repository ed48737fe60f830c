//! A connected socket, TCP or Unix.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A connected socket.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP, without delay (Nagle's algorithm off): made by [`Stream::tcp`], or accepted from a listener that is so.
    Tcp(TcpStream),
    /// Over a Unix socket.
    Unix(UnixStream),
}

impl Stream {
    /// Takes a TCP connection into service.
    pub fn tcp(stream: TcpStream) -> Stream {
        // Every write is a whole message or a large piece of one: waiting to fill a segment only adds delay. A socket
        // that refuses the option still works.
        let _ = stream.set_nodelay(true);
        Stream::Tcp(stream)
    }

    /// Reads into `buf`; 0 is the end of the stream.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        let polled = match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, &mut buf),
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, &mut buf),
        };
        polled.map_ok(|()| buf.filled().len())
    }

    /// Writes as much of `slices` as the socket takes now.
    pub fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match (self, slices) {
            // One slice is the common case, and `write` is cheaper for the kernel than `writev`.
            (Stream::Tcp(stream), [slice]) => Pin::new(stream).poll_write(cx, slice),
            (Stream::Tcp(stream), slices) => Pin::new(stream).poll_write_vectored(cx, slices),
            (Stream::Unix(stream), slices) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    /// Ends the writing direction.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    /// Whether something has arrived (data or the end of the stream) that was not read yet, as far as the runtime was
    /// told: no system call. On a connection that waits in a pool, either makes it useless.
    pub fn is_readable(&self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        match self {
            Stream::Tcp(stream) => stream.poll_read_ready(&mut cx).is_ready(),
            Stream::Unix(stream) => stream.try_io(tokio::io::Interest::READABLE, || Ok(())).is_ok(),
        }
    }

    /// The peer's address, where it has one.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.peer_addr().ok(),
            Stream::Unix(_) => None,
        }
    }

    /// The address this side has.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.local_addr().ok(),
            Stream::Unix(_) => None,
        }
    }
}
