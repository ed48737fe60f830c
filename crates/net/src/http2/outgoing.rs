//! The queue of a stream: pieces of a response body, and its end.

use crate::Output;
use crate::file_reads::FileReads;
use crate::output::COPIED;
use sandarac_message::Piece;
use sandarac_wire::h2::connection::Connection;
use std::any::Any;
use std::collections::VecDeque;
use std::task::{Context, Poll, ready};

/// Pieces of a body that are not written, and the end of the body.
///
/// A file is read before the head of its frame is written, because it may have become shorter: a frame that announces more than
/// is there would end the connection, with all its streams.
#[derive(Default)]
pub(super) struct Outgoing {
    /// The first piece. Most bodies in memory have no other, and need no list.
    first: Option<Piece>,
    /// The pieces after it; none if there is no first.
    rest: VecDeque<Piece>,
    /// Bytes in all pieces.
    queued: usize,
    /// The block of the trailers, or an empty one, if the body ends after the pieces.
    end: Option<Vec<u8>>,
    /// The read of the file at the front.
    reads: FileReads,
    /// Whose pieces they are. The store counts memory by who holds an object, not by who holds a piece of it.
    owner: Option<Box<dyn Any>>,
}

/// The outcome of [`Outgoing::write_frame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrote {
    /// A frame with so many bytes of data.
    Data(usize),
    /// The same, and the end of the stream.
    End(usize),
    /// Nothing: the queue is empty.
    Nothing,
    /// Nothing: a window is closed.
    Blocked,
    /// Nothing: the file at the front has to be [read](Outgoing::poll_read) first, of which a frame takes so many bytes.
    Unread(usize),
}

/// The file at the front of a queue ends before the length that was announced, or cannot be read.
pub(super) struct FileTruncated;

impl Outgoing {
    /// Whether any of it is in memory of the process.
    pub(super) fn holds_memory(&self) -> bool {
        self.first.iter().chain(&self.rest).any(|piece| !matches!(piece, Piece::File(_)))
    }

    /// Bytes of memory that the list of pieces takes, with the texts between those of a store.
    pub(super) fn list_memory(&self) -> usize {
        let texts = self.rest.iter().map(Piece::len).filter(|len| *len <= COPIED);
        self.rest.capacity() * size_of::<Piece>() + texts.sum::<usize>()
    }

    /// Adds a piece of the body.
    pub(super) fn add(&mut self, piece: Piece) {
        if !piece.is_empty() {
            self.queued += piece.len();
            match self.first {
                None => self.first = Some(piece),
                Some(_) => self.rest.push_back(piece),
            }
        }
    }

    /// Keeps the owner of the pieces until the stream ends.
    pub(super) fn keep(&mut self, owner: Box<dyn Any>) {
        self.owner = Some(owner);
    }

    /// The body ends here, with these trailers, as a header block, or none.
    pub(super) fn end(&mut self, trailers: Vec<u8>) {
        self.end = Some(trailers);
    }

    /// Bytes of the body that are not written.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Whether there is something to write.
    pub(super) fn has_more(&self) -> bool {
        self.first.is_some() || self.end.is_some()
    }

    /// Writes the next frame.
    pub(super) fn write_frame(&mut self, wire: &mut Connection, id: u32, output: &mut Output) -> Wrote {
        let Some(mut piece) = self.first.take() else {
            let Some(trailers) = self.end.take() else { return Wrote::Nothing };
            // A stream that is closed was reset, and what it had to send is dropped.
            let _ = match trailers.is_empty() {
                true => wire.send_data(id, 0, true, output.inline()),
                false => wire.send_trailers(id, &trailers, output.inline()),
            };
            return Wrote::End(0);
        };
        let len = piece.len().min(wire.room(id) as usize);
        if matches!(piece, Piece::File(_)) && (len > 0 || self.reads.is_under_way()) {
            self.first = Some(piece);
            return Wrote::Unread(len);
        }
        if len == 0 {
            self.first = Some(piece);
            return Wrote::Blocked;
        }
        if len < piece.len() {
            let part = piece.slice(0..len);
            piece.advance(len);
            self.first = Some(piece);
            let _ = wire.send_data(id, len as u32, false, output.inline());
            output.share(part);
            self.queued -= len;
            return Wrote::Data(len);
        }
        self.first = self.rest.pop_front();
        let is_last = self.first.is_none() && self.end.as_ref().is_some_and(Vec::is_empty);
        let _ = wire.send_data(id, len as u32, is_last, output.inline());
        output.share(piece);
        self.queued -= len;
        if is_last {
            self.end = None;
            return Wrote::End(len);
        }
        Wrote::Data(len)
    }

    /// Reads the file at the front. Returns the bytes that are in memory instead of it now: at most `most`, or more if a
    /// thread has read them.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
    ) -> Poll<Result<usize, FileTruncated>> {
        let Some(Piece::File(range)) = &mut self.first else { return Poll::Ready(Ok(0)) };
        let bytes = ready!(self.reads.poll_bytes(cx, range, most));
        let read = bytes.len();
        if read == 0 {
            return Poll::Ready(Err(FileTruncated));
        }
        range.start += read as u64;
        range.len -= read;
        if let Some(rest) = self.first.replace(bytes.into()).filter(|rest| !rest.is_empty()) {
            self.rest.push_front(rest);
        }
        Poll::Ready(Ok(read))
    }
}
