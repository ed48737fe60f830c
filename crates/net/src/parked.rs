//! A connection that belongs to no core: it is registered with no runtime until one takes it up.

use crate::{Conn, Place, Stream, Unread};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::io;
use std::os::fd::AsFd;

/// An idle connection without TLS, which any core may take up.
#[derive(Debug)]
pub struct ParkedConn(Socket, Option<Place>);

#[derive(Debug)]
enum Socket {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl ParkedConn {
    /// Takes a connection from its runtime. `None`, and the connection is closed, if it is not plain, has output or
    /// unread input, or cannot be taken.
    pub fn park(mut conn: Conn) -> Option<ParkedConn> {
        if !conn.data().is_empty() {
            return None;
        }
        let place = conn.take_place();
        let (stream, _) = conn.take_stream()?;
        let socket = match stream {
            Stream::Tcp(stream) => Socket::Tcp(stream.into_std().ok()?),
            Stream::Unix(stream) => Socket::Unix(stream.into_std().ok()?),
            Stream::Accepted(_) => return None,
        };
        Some(ParkedConn(socket, place))
    }

    /// What has arrived on it.
    pub fn unread(&self) -> Unread {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let fd = match &self.0 {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        };
        match recv(fd, &mut [0; 1], flags) {
            Err(Errno::AGAIN) => Unread::Nothing,
            Ok((_, 1..)) => Unread::Data,
            Ok((_, 0)) | Err(_) => Unread::End,
        }
    }

    /// Gives the connection to the runtime of this core.
    pub fn take_up(self) -> io::Result<Conn> {
        let ParkedConn(socket, place) = self;
        let mut conn = Conn::new(match socket {
            Socket::Tcp(stream) => Stream::Tcp(tokio::net::TcpStream::from_std(stream)?),
            Socket::Unix(stream) => Stream::Unix(tokio::net::UnixStream::from_std(stream)?),
        });
        conn.takes(place);
        Ok(conn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::io::{IoSlice, Read, Write};
    use std::os::unix::net::UnixStream;

    fn on_a_runtime<T: Send>(work: impl AsyncFnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
            scope.spawn(move || runtime.block_on(work())).join().unwrap()
        })
    }

    #[test]
    fn a_parked_connection_goes_on_at_another_core() {
        let (mut peer, ours) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let parked = on_a_runtime(async || {
            let conn = Conn::new(Stream::Unix(tokio::net::UnixStream::from_std(ours).unwrap()));
            ParkedConn::park(conn).unwrap()
        });
        assert_eq!(parked.unread(), Unread::Nothing);
        peer.write_all(b"hello").unwrap();
        assert_eq!(parked.unread(), Unread::Data);
        on_a_runtime(async move || {
            let mut conn = parked.take_up().unwrap();
            assert_eq!(poll_fn(|cx| conn.poll_fill(cx)).await.unwrap(), 5);
            poll_fn(|cx| std::task::Poll::Ready(conn.write(cx, &[IoSlice::new(b"you")]))).await.unwrap();
        });
        let mut answer = Vec::new();
        peer.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"you");
    }

    #[test]
    fn a_connection_with_input_is_not_parked_and_an_ended_one_is_seen() {
        let (mut peer, ours) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        peer.write_all(b"x").unwrap();
        on_a_runtime(async || {
            let mut conn = Conn::new(Stream::Unix(tokio::net::UnixStream::from_std(ours).unwrap()));
            poll_fn(|cx| conn.poll_fill(cx)).await.unwrap();
            assert!(ParkedConn::park(conn).is_none());
        });
        let (peer, ours) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let parked = on_a_runtime(async || {
            ParkedConn::park(Conn::new(Stream::Unix(tokio::net::UnixStream::from_std(ours).unwrap())))
                .unwrap()
        });
        drop(peer);
        assert_eq!(parked.unread(), Unread::End);
    }
}
