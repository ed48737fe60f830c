//! Files in memory: a page that is compressed needs the bytes of all its fragments.

use bytes::Bytes;
use sandarac_message::FileRange;
use sandarac_net::{BodyBroken, off_core};
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Bytes that a thread reads at a time.
const READ: usize = 64 << 10;

/// A range of a file that is read.
pub(super) struct FilePiece {
    range: FileRange,
    reading: Option<Reading>,
}

type Reading = Pin<Box<dyn Future<Output = Option<Vec<u8>>>>>;

impl FilePiece {
    pub(super) fn new(range: FileRange) -> FilePiece {
        FilePiece { range, reading: None }
    }

    /// The next bytes; `None` at the end. A file that has become shorter breaks off.
    pub(super) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyBroken>>> {
        let len = self.range.len.min(READ);
        if len == 0 {
            return Poll::Ready(None);
        }
        let (file, start) = (self.range.file.clone(), self.range.start);
        let reading = self.reading.get_or_insert_with(|| {
            let read = move || {
                let mut bytes = vec![0; len];
                file.read_exact_at(&mut bytes, start).ok().map(|()| bytes)
            };
            Box::pin(async move { off_core(read).await.flatten() })
        });
        let read = ready!(reading.as_mut().poll(cx));
        self.reading = None;
        let Some(read) = read else { return Poll::Ready(Some(Err(BodyBroken::Source))) };
        self.range.start += read.len() as u64;
        self.range.len -= read.len();
        Poll::Ready(Some(Ok(read.into())))
    }
}
