//! A test transport that holds bytes back and delivers them in odd pieces, as a transforming transport does.

use crate::{Stream, Unread};
use sandarac_message::FileRange;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::task::{Context, Poll, ready};

/// The most output bytes that are held.
const MAX_HELD: usize = 1000;

/// A transport that reads ahead and delivers 1, 2, 3 … 7 bytes at a time. It takes up to [`MAX_HELD`] bytes
/// and writes them 13 at a time.
pub struct Held {
    stream: Stream,
    received: VecDeque<u8>,
    turn: usize,
    held: VecDeque<u8>,
    /// Written before the end of the connection.
    last_words: &'static [u8],
}

impl Held {
    pub(crate) fn new(stream: Stream, last_words: &'static [u8]) -> Held {
        Held { stream, received: VecDeque::new(), turn: 0, held: VecDeque::new(), last_words }
    }

    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        if self.received.is_empty() {
            let mut ahead = [0; 4096];
            let read = ready!(self.stream.poll_read(cx, &mut ahead))?;
            self.received.extend(&ahead[..read]);
        }
        self.turn = self.turn % 7 + 1;
        let count = self.turn.min(self.received.len()).min(buf.len());
        for (to, from) in buf.iter_mut().zip(self.received.drain(..count)) {
            *to = from;
        }
        Poll::Ready(Ok(count))
    }

    pub(crate) fn poll_append_to(
        &mut self,
        cx: &mut Context<'_>,
        memory: &mut Vec<u8>,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        let mut arrived = vec![0; most];
        let read = ready!(self.poll_read(cx, &mut arrived))?;
        memory.extend_from_slice(&arrived[..read]);
        Poll::Ready(Ok(read))
    }

    pub(crate) fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut room = MAX_HELD - self.held.len();
        if room == 0 {
            ready!(self.poll_flush(cx))?;
            room = MAX_HELD;
        }
        let mut taken = 0;
        for slice in slices {
            let count = slice.len().min(room - taken);
            self.held.extend(&slice[..count]);
            taken += count;
        }
        Poll::Ready(Ok(taken))
    }

    pub(crate) fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        range: &FileRange,
    ) -> Poll<io::Result<usize>> {
        let mut piece = vec![0; range.len.min(100)];
        let read = range.file.read_at(&mut piece, range.start)?;
        self.poll_write_vectored(cx, &[IoSlice::new(&piece[..read])])
    }

    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.held.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let count = self.held.len().min(13);
        let piece: Vec<u8> = self.held.range(..count).copied().collect();
        let written = ready!(self.stream.poll_write_vectored(cx, &[IoSlice::new(&piece)]))?;
        self.held.drain(..written);
        if self.held.is_empty() {
            return Poll::Ready(Ok(()));
        }
        // More can be written later.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    pub(crate) fn poll_last_words(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let last_words = std::mem::take(&mut self.last_words);
        assert!(last_words.is_empty() || self.held.is_empty(), "the end would overtake what is held");
        self.held.extend(last_words);
        self.poll_flush(cx)
    }

    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_last_words(cx))?;
        self.stream.poll_shutdown(cx)
    }

    #[expect(clippy::unused_self, reason = "the transports have the same methods")]
    pub(crate) fn park(&mut self) {}

    pub(crate) fn unacknowledged(&self) -> usize {
        self.stream.unacknowledged()
    }

    pub(crate) fn reset_when_dropped(&self, reset: bool) {
        self.stream.reset_when_dropped(reset);
    }

    pub(crate) fn unread(&mut self) -> Unread {
        if self.received.is_empty() { self.stream.unread() } else { Unread::Data }
    }

    pub(crate) fn peer_addr(&self) -> Option<SocketAddr> {
        self.stream.peer_addr()
    }

    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        self.stream.local_addr()
    }
}
