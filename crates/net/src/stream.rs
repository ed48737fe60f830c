//! A connected socket, TCP or Unix.

use crate::socket_queue::unacknowledged;
use bytes::BufMut;
use rustix::fs::sendfile;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    connect, recv, send, sendmsg, socket_with,
};
use sandarac_message::FileRange;
use socket2::SockRef;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A connected socket.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP, with Nagle's algorithm off: made by [`Stream::tcp`], or accepted from a listener that has it
    /// off.
    Tcp(TcpStream),
    /// Accepted over TCP, and not yet registered with the runtime.
    Accepted(Accepted),
    /// Over a Unix socket.
    Unix(UnixStream),
}

/// The most bytes of files that the system takes for a client beside those in flight. It holds references to pages, not
/// copies. With the fewer bytes that it takes of other output (see `listen`), a file of 1 MiB costs 1.7 times the CPU time.
const UNSENT_OF_FILES: u32 = 1 << 20;

/// What has arrived on a connection and was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// Nothing.
    Nothing,
    /// Data.
    Data,
    /// The end of the stream, or a reset.
    End,
}

/// An accepted connection that is registered with the runtime at the second read, or when it has to be waited
/// for. A client that sends one request and is answered at once costs two system calls and a registration
/// less.
#[derive(Debug)]
pub struct Accepted {
    /// None only if the runtime failed to register it, or if the stream was [taken](Stream::taken).
    stream: Option<std::net::TcpStream>,
    /// Whether it was read. The second read goes through the runtime, which makes a busy connection yield to
    /// others.
    read: bool,
}

impl Stream {
    /// A stream over a TCP connection.
    pub fn tcp(stream: TcpStream) -> Stream {
        // Every write is a whole message or a large piece of one: waiting to fill a segment only adds delay.
        // A socket that refuses the option still works.
        let _ = stream.set_nodelay(true);
        Stream::Tcp(stream)
    }

    /// Connects to a TCP address.
    pub async fn connect(address: SocketAddr) -> io::Result<Stream> {
        TcpStream::connect(address).await.map(Stream::tcp)
    }

    /// Connects to a Unix socket. The kernel connects or refuses at once, so there is nothing to wait for: asking the runtime
    /// would cost two system calls. Fails with `WouldBlock` if the queue of the socket is full.
    pub fn connect_unix(path: &Path) -> io::Result<Stream> {
        let address = SocketAddrUnix::new(path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &address)?;
        UnixStream::from_std(socket.into()).map(Stream::Unix)
    }

    /// A stream over an accepted connection, which MUST be non-blocking.
    pub fn accepted(stream: std::net::TcpStream) -> Stream {
        Stream::Accepted(Accepted { stream: Some(stream), read: false })
    }

    /// What stands where a stream was taken from: every operation fails.
    pub(crate) fn taken() -> Stream {
        Stream::Accepted(Accepted { stream: None, read: true })
    }

    /// Calls `now` with a connection that is not registered with the runtime. `None` if the operation would
    /// block; the connection is registered then.
    fn at_once<T>(
        &mut self,
        now: impl FnOnce(&mut std::net::TcpStream) -> io::Result<T>,
    ) -> Option<io::Result<T>> {
        let Stream::Accepted(Accepted { stream: Some(stream), .. }) = self else { return None };
        match now(stream) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.register().err().map(Err),
            done => Some(done),
        }
    }

    /// Registers the connection with the runtime.
    fn register(&mut self) -> io::Result<()> {
        if let Stream::Accepted(accepted) = self {
            let stream = accepted.stream.take().ok_or_else(unregistered)?;
            *self = Stream::Tcp(TcpStream::from_std(stream)?);
        }
        Ok(())
    }

    /// Reads into `buf`; 0 is the end of the stream.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        if let Stream::Accepted(accepted) = self {
            if std::mem::replace(&mut accepted.read, true) {
                self.register()?;
            } else if let Some(done) = self.at_once(|stream| stream.read(buf)) {
                return Poll::Ready(done);
            }
        }
        let mut buf = ReadBuf::new(buf);
        let polled = match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, &mut buf),
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, &mut buf),
            Stream::Accepted(_) => return Poll::Ready(Err(unregistered())),
        };
        polled.map_ok(|()| buf.filled().len())
    }

    /// Appends at most `most` bytes to `memory`, which MUST have room for them; 0 is the end of the stream. The
    /// room is not cleared before.
    pub fn poll_append_to(
        &mut self,
        cx: &mut Context<'_>,
        memory: &mut Vec<u8>,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        self.register()?;
        loop {
            match self {
                Stream::Tcp(stream) => ready!(stream.poll_read_ready(cx))?,
                Stream::Unix(stream) => ready!(stream.poll_read_ready(cx))?,
                Stream::Accepted(_) => return Poll::Ready(Err(unregistered())),
            }
            let mut room = (&mut *memory).limit(most);
            let read = match self {
                Stream::Tcp(stream) => stream.try_read_buf(&mut room),
                Stream::Unix(stream) => stream.try_read_buf(&mut room),
                Stream::Accepted(_) => return Poll::Ready(Err(unregistered())),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read),
            }
        }
    }

    /// Writes as much of `slices` as the socket takes now.
    pub fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // One slice is the common case, and `write` is cheaper for the kernel than `writev`.
        let done = self.at_once(|stream| match slices {
            [slice] => stream.write(slice),
            slices => stream.write_vectored(slices),
        });
        if let Some(done) = done {
            return Poll::Ready(done);
        }
        match (self, slices) {
            (Stream::Tcp(stream), [slice]) => Pin::new(stream).poll_write(cx, slice),
            (Stream::Tcp(stream), slices) => Pin::new(stream).poll_write_vectored(cx, slices),
            (Stream::Unix(stream), slices) => Pin::new(stream).poll_write_vectored(cx, slices),
            (Stream::Accepted(_), _) => Poll::Ready(Err(unregistered())),
        }
    }

    /// The same, but the system may keep the end of the slices for what is written next.
    pub(crate) fn poll_write_more(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(done) = self.at_once(|stream| send_more(&*stream, slices)) {
            return Poll::Ready(done);
        }
        self.poll_io(cx, |socket| send_more(socket, slices))
    }

    /// Writes as much of a file as the socket takes now, without a copy into memory of the process.
    pub(crate) fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        range: &FileRange,
    ) -> Poll<io::Result<usize>> {
        if let Some(done) = self.at_once(|stream| send_file(&*stream, range)) {
            return Poll::Ready(done);
        }
        self.poll_io(cx, |socket| send_file(socket, range))
    }

    /// Calls `write` until it does not block.
    fn poll_io(
        &mut self,
        cx: &mut Context<'_>,
        write: impl Fn(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            match self {
                Stream::Tcp(stream) => ready!(stream.poll_write_ready(cx))?,
                Stream::Unix(stream) => ready!(stream.poll_write_ready(cx))?,
                Stream::Accepted(_) => return Poll::Ready(Err(unregistered())),
            }
            let written = match self {
                Stream::Tcp(stream) => stream.try_io(Interest::WRITABLE, || write(stream.as_fd())),
                Stream::Unix(stream) => stream.try_io(Interest::WRITABLE, || write(stream.as_fd())),
                Stream::Accepted(_) => return Poll::Ready(Err(unregistered())),
            };
            match written {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    /// Lets the system take [`UNSENT_OF_FILES`] bytes, where it was to take fewer.
    pub(crate) fn take_more(&self) {
        let raise = |socket: SockRef<'_>| socket.set_tcp_notsent_lowat(UNSENT_OF_FILES);
        // A socket that refuses the option still works.
        let _ = match self {
            Stream::Tcp(stream) => raise(stream.into()),
            Stream::Accepted(Accepted { stream: Some(stream), .. }) => raise(stream.into()),
            Stream::Accepted(_) | Stream::Unix(_) => Ok(()),
        };
    }

    /// Bytes that the system has taken and the peer has not acknowledged; 0 over a Unix socket.
    pub(crate) fn unacknowledged(&self) -> usize {
        match self {
            Stream::Tcp(stream) => unacknowledged(stream),
            Stream::Accepted(Accepted { stream: Some(stream), .. }) => unacknowledged(stream),
            // For a Unix socket the system counts what the bytes occupy, not the bytes.
            Stream::Accepted(_) | Stream::Unix(_) => 0,
        }
    }

    /// Bytes taken that the system does not have yet: always 0.
    #[expect(clippy::unused_self, reason = "a transport that transforms bytes holds some")]
    pub(crate) fn held(&self) -> usize {
        0
    }

    /// Always ready, because nothing is held.
    #[expect(clippy::unused_self, reason = "a transport that transforms bytes holds some")]
    pub(crate) fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Always ready, because it has none.
    #[expect(clippy::unused_self, reason = "a transport that transforms bytes has some")]
    pub(crate) fn poll_last_words(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Does nothing, because nothing is borrowed.
    #[expect(clippy::unused_self, reason = "a transport that transforms bytes borrows memory")]
    pub(crate) fn park(&mut self) {}

    /// Ends the writing direction.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Accepted(Accepted { stream: Some(stream), .. }) => {
                Poll::Ready(stream.shutdown(Shutdown::Write))
            }
            Stream::Accepted(_) => Poll::Ready(Err(unregistered())),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    /// Whether dropping this resets the connection instead of ending it in order. Unix sockets have no reset.
    pub fn reset_when_dropped(&self, reset: bool) {
        let linger = reset.then_some(Duration::ZERO);
        // On failure the peer sees an ordinary end of the connection, as before.
        let _ = match self {
            Stream::Tcp(stream) => set_socket_linger(stream, linger),
            Stream::Accepted(Accepted { stream: Some(stream), .. }) => set_socket_linger(stream, linger),
            Stream::Accepted(_) | Stream::Unix(_) => Ok(()),
        };
    }

    /// What has arrived and was not read yet. Asks the kernel, without waiting: the runtime learns of it only
    /// in its next turn, which is too late for a connection that is about to be used.
    pub fn unread(&self) -> Unread {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let peeked = match self {
            Stream::Tcp(stream) => recv(stream, &mut [0; 1], flags),
            Stream::Accepted(Accepted { stream: Some(stream), .. }) => recv(stream, &mut [0; 1], flags),
            Stream::Accepted(_) => return Unread::End,
            Stream::Unix(stream) => recv(stream, &mut [0; 1], flags),
        };
        match peeked {
            Err(Errno::AGAIN) => Unread::Nothing,
            Ok((_, 1..)) => Unread::Data,
            Ok((_, 0)) | Err(_) => Unread::End,
        }
    }

    /// Reads what the kernel has, without the runtime. Fails with `WouldBlock` if that is nothing.
    pub(crate) fn read_now(&self, buf: &mut [u8]) -> io::Result<usize> {
        let received = match self {
            Stream::Tcp(stream) => recv(stream, buf, RecvFlags::DONTWAIT),
            Stream::Accepted(Accepted { stream: Some(stream), .. }) => recv(stream, buf, RecvFlags::DONTWAIT),
            Stream::Accepted(_) => return Err(unregistered()),
            Stream::Unix(stream) => recv(stream, buf, RecvFlags::DONTWAIT),
        };
        Ok(received?.0)
    }

    /// Writes as much of `bytes` as the kernel takes, without the runtime. For the last words of a connection,
    /// which may be lost.
    pub(crate) fn write_now(&self, bytes: &[u8]) {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let _ = match self {
            Stream::Tcp(stream) => send(stream, bytes, flags),
            Stream::Accepted(Accepted { stream: Some(stream), .. }) => send(stream, bytes, flags),
            Stream::Accepted(_) => return,
            Stream::Unix(stream) => send(stream, bytes, flags),
        };
    }

    /// The peer's address, if it has one.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.peer_addr().ok(),
            Stream::Accepted(accepted) => accepted.stream.as_ref()?.peer_addr().ok(),
            Stream::Unix(_) => None,
        }
    }

    /// The local address, if it has one.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.local_addr().ok(),
            Stream::Accepted(accepted) => accepted.stream.as_ref()?.local_addr().ok(),
            Stream::Unix(_) => None,
        }
    }
}

fn send_more(socket: impl AsFd, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    Ok(sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), SendFlags::MORE | SendFlags::NOSIGNAL)?)
}

fn send_file(socket: impl AsFd, range: &FileRange) -> io::Result<usize> {
    let mut start = range.start;
    Ok(sendfile(socket, &*range.file, Some(&mut start), range.len)?)
}

/// The error for a connection that the runtime failed to register.
fn unregistered() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

#[cfg(test)]
impl Stream {
    /// Whether Nagle's algorithm is off.
    pub(crate) fn nodelay(&self) -> io::Result<bool> {
        match self {
            Stream::Tcp(stream) => stream.nodelay(),
            Stream::Accepted(accepted) => accepted.stream.as_ref().ok_or_else(unregistered)?.nodelay(),
            Stream::Unix(_) => Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    /// A client, and the accepted end of its connection.
    fn connected() -> (std::net::TcpStream, Stream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        accepted.set_nonblocking(true).unwrap();
        (client, Stream::accepted(accepted))
    }

    #[test]
    fn an_accepted_connection_is_read_at_once_or_waited_for() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let mut buf = [0; 8];
            let (mut client, mut stream) = connected();
            client.write_all(b"one").unwrap();
            assert_eq!(poll_fn(|cx| stream.poll_read(cx, &mut buf)).await.unwrap(), 3);
            let written = poll_fn(|cx| stream.poll_write_vectored(cx, &[IoSlice::new(b"1")])).await;
            assert!(written.unwrap() == 1 && matches!(stream, Stream::Accepted(_)));
            client.write_all(b"two").unwrap();
            assert_eq!(poll_fn(|cx| stream.poll_read(cx, &mut buf)).await.unwrap(), 3);
            assert!(matches!(stream, Stream::Tcp(_)));

            let (mut client, mut stream) = connected();
            poll_fn(|cx| {
                assert!(stream.poll_read(cx, &mut buf).is_pending());
                Poll::Ready(())
            })
            .await;
            assert!(matches!(stream, Stream::Tcp(_)));
            client.write_all(b"later").unwrap();
            assert_eq!(poll_fn(|cx| stream.poll_read(cx, &mut buf)).await.unwrap(), 5);
            drop(client);
            assert_eq!(poll_fn(|cx| stream.poll_read(cx, &mut buf)).await.unwrap(), 0);
        });
    }
}
