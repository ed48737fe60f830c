//! The reading end of a body.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;

use crate::Object;
use crate::object::Content;

/// Why a body ends before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The fill gave up: the origin broke off, or its response was found to be malformed.
    Aborted,
    /// This reader was too slow for an object that isn't stored, and held up others.
    TooSlow,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Broken::Aborted => "the origin's response broke off",
            Broken::TooSlow => "read too slowly from a response that is not stored",
        })
    }
}

impl std::error::Error for Broken {}

/// Reads a body from its start to its end, at the pace at which it arrives.
pub struct Reader {
    object: Arc<Object>,
    at: u64,
    /// Its entry, where the body was arriving when it began.
    entry: Option<usize>,
}

impl Reader {
    pub(crate) fn new(object: &Arc<Object>) -> Option<Reader> {
        let entry = match &object.content {
            Content::Whole(_) => None,
            Content::Arriving(arriving) => arriving.register()?,
        };
        Some(Reader { object: object.clone(), at: 0, entry })
    }

    /// The object it reads.
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// Bytes read so far.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// The next bytes, never none; `None` at the end. Wakes the task of `cx` when there is more to say.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
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
            // It became whole between the two looks.
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
