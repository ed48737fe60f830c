//! Request bodies that are received before a backend is chosen.

use crate::Fault;
use crate::shared::Shared;
use crate::spool::{Spool, SpoolMemory};
use bytes::Bytes;
use sandarac_message::Piece;
use sandarac_net::{FileRead, Holder};
use std::io;
use std::task::{Context, Poll, ready};

/// Bytes that are read from a file at a time.
const READ: usize = 256 << 10;

/// A body, or the beginning of one, that is gathered.
pub(crate) struct Gathered {
    spool: Spool,
    /// The most bytes of a body that is gathered.
    limit: u64,
    bytes: u64,
    end: End,
    /// The next piece to send, and where it goes on.
    next: (usize, usize),
    reading: FileRead,
}

/// The end of what is gathered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// More is gathered.
    Open,
    /// The body goes on.
    Cut,
    /// It is the end of the body.
    Whole,
}

impl Gathered {
    /// Nothing yet of a body that may have `limit` bytes.
    pub(crate) fn new(shared: &Shared, holder: &Holder, limit: u64) -> Gathered {
        Gathered {
            // A body is known to be longer once more has arrived.
            spool: Spool::of_request(shared, holder, limit.saturating_add(1)),
            limit,
            bytes: 0,
            end: End::Open,
            next: (0, 0),
            reading: FileRead::default(),
        }
    }

    /// Ready with the memory for more. An error means that no more can be gathered.
    pub(crate) fn poll_reserve(&mut self, cx: &mut Context<'_>) -> Poll<Result<SpoolMemory, Fault>> {
        if self.bytes > self.limit {
            return Poll::Ready(Err(Fault::BodyNotGathered));
        }
        match self.spool.poll_reserve(cx) {
            Poll::Ready(memory) => Poll::Ready(Ok(memory)),
            Poll::Pending if self.spool.is_being_written() => Poll::Pending,
            Poll::Pending => Poll::Ready(Err(Fault::GatheringFull)),
        }
    }

    /// Adds bytes of the body.
    pub(crate) fn append(&mut self, memory: SpoolMemory, data: &[u8]) {
        self.bytes += data.len() as u64;
        self.spool.append(memory, data);
    }

    /// Ends the gathering; `whole` if the body ends here.
    pub(crate) fn close(&mut self, whole: bool) {
        self.end = if whole { End::Whole } else { End::Cut };
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.end != End::Open
    }

    /// Whether it is the whole body.
    pub(crate) fn is_whole(&self) -> bool {
        self.end == End::Whole
    }

    /// Ready when nothing of it is being written any more.
    pub(crate) fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.spool.poll_pieces(cx)
    }

    /// Bytes gathered.
    pub(crate) fn len(&self) -> u64 {
        self.bytes
    }

    /// The next piece to send; `None` after the last.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        let (at, from) = self.next;
        let piece = match self.spool.pieces().get(at) {
            _ if self.spool.is_lost() => return Poll::Ready(Err(io::ErrorKind::Other.into())),
            None => return Poll::Ready(Ok(None)),
            Some(piece) => piece.slice(from..piece.len()),
        };
        let bytes = match (piece.to_bytes(), &piece) {
            (None, Piece::File(range)) => {
                let bytes = ready!(self.reading.poll(cx, range, READ))?;
                if bytes.is_empty() {
                    return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                }
                bytes.into()
            }
            (bytes, _) => bytes.unwrap_or_default(),
        };
        self.next = if bytes.len() == piece.len() { (at + 1, 0) } else { (at, from + bytes.len()) };
        Poll::Ready(Ok(Some(bytes)))
    }

    /// Begins again with the first piece.
    pub(crate) fn rewind(&mut self) {
        self.next = (0, 0);
        self.reading = FileRead::default();
    }
}
