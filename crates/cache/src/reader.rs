//! The reading end of a body.

use std::sync::Arc;
use std::task::{Context, Poll};

use sandarac_message::Piece;

use crate::Object;
use crate::arriving::Broken;
use crate::body::Content;

/// Reads a body from its start to its end, at the pace at which it arrives.
pub struct Reader {
    object: Arc<Object>,
    at: u64,
    /// Its entry among the readers, if the body was arriving when it began.
    entry: Option<usize>,
}

impl Object {
    /// Reads the body from its start, whether it is arriving or whole. `None` if the start is no longer held
    /// because the object outgrew its limit and streams; the request should look up again.
    pub fn reader(self: &Arc<Object>) -> Option<Reader> {
        let entry = match &self.content {
            Content::Whole(_) => None,
            Content::Arriving(arriving) => arriving.register()?,
        };
        Some(Reader { object: self.clone(), at: 0, entry })
    }
}

impl Reader {
    /// The object it reads.
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// Bytes read so far.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Ready while the body streams to its readers, the slowest of which holds up the fetch. Otherwise wakes the task of `cx`
    /// when that begins.
    pub fn poll_streams(&self, cx: &Context<'_>) -> Poll<()> {
        match (&self.object.content, self.entry) {
            (Content::Arriving(arriving), Some(entry)) => arriving.poll_streams(entry, cx),
            _ => Poll::Pending,
        }
    }

    /// The next bytes, never empty; `None` at the end. Wakes the task of `cx` when there is more to read.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, Broken>>> {
        let body = self.object.body();
        if body.is_whole() {
            let chunk = body.slice(self.at..u64::MAX).next();
            self.at += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
            return Poll::Ready(chunk.map(Ok));
        }
        let (Content::Arriving(arriving), Some(entry)) = (&self.object.content, self.entry) else {
            return Poll::Ready(None);
        };
        let polled = arriving.poll_chunk(entry, cx);
        match &polled {
            Poll::Ready(Some(Ok(chunk))) => self.at += chunk.len() as u64,
            // The body became whole between the two checks.
            Poll::Ready(None) if body.is_whole() && self.at < body.len().unwrap_or(0) => {
                return self.poll_chunk(cx);
            }
            _ => {}
        }
        polled
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let (Content::Arriving(arriving), Some(entry)) = (&self.object.content, self.entry) {
            arriving.unregister(entry);
        }
    }
}
