//! Files in memory: a page that is compressed needs the bytes of all its fragments.

use bytes::Bytes;
use sandarac_message::FileRange;
use sandarac_net::{BodyBroken, FileRead};
use std::task::{Context, Poll, ready};

/// Bytes that a thread reads at a time.
const READ: usize = 64 << 10;

/// A range of a file that is read.
pub(super) struct FilePiece {
    range: FileRange,
    reading: FileRead,
}

impl FilePiece {
    pub(super) fn new(range: FileRange) -> FilePiece {
        FilePiece { range, reading: FileRead::default() }
    }

    /// The next bytes; `None` at the end. A file that has become shorter breaks off.
    pub(super) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyBroken>>> {
        if self.range.len == 0 {
            return Poll::Ready(None);
        }
        let read = ready!(self.reading.poll(cx, &self.range, READ)).unwrap_or_default();
        if read.is_empty() {
            return Poll::Ready(Some(Err(BodyBroken::Source)));
        }
        self.range.start += read.len() as u64;
        self.range.len -= read.len();
        Poll::Ready(Some(Ok(read.into())))
    }
}
