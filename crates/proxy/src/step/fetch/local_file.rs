//! A file of this machine in place of the body of a response, read as bodies of backends are.

use crate::Fault;
use crate::files::FileBody;
use crate::origin::Origins;
use crate::step::fetch::origin_head::{OriginHead, Seen};
use crate::step::fetch::origin_request::OriginRequest;
use crate::trailers::TrailerRule;
use bytes::{Buf, Bytes};
use sandarac_balance::Address;
use sandarac_message::{FieldsBuf, FileRange, Piece, Span};
use sandarac_net::{Body, BodyError, BodyStep, Conn, FileRead, read_at_once};
use sandarac_wire::h1::Limits;
use std::io;
use std::ops::Range;
use std::task::{Context, Poll, ready};

/// Bytes that are read at a time.
const READ: usize = 64 * 1024;

/// The body of a response that is read from a file.
pub(super) struct LocalFile {
    body: Option<FileBody>,
    /// The rest of the range that is being read.
    range: Option<FileRange>,
    /// Bytes that were read, and are not consumed yet.
    bytes: Bytes,
    /// A read that waits for a disk.
    reading: FileRead,
    /// Bytes of the body still to come.
    left: u64,
}

impl LocalFile {
    /// A body of `len` bytes.
    pub(super) fn new(body: Option<FileBody>, len: u64) -> LocalFile {
        LocalFile { body, range: None, bytes: Bytes::new(), reading: FileRead::default(), left: len }
    }

    /// Reads more, unless there is something to consume. Ready with `false` at the end.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, BodyError>> {
        while self.bytes.is_empty() {
            let Some(range) = &mut self.range else {
                let Some(body) = &mut self.body else { return Poll::Ready(Ok(false)) };
                match ready!(body.poll_piece(cx)) {
                    None => self.body = None,
                    Some(Ok(Piece::File(range))) => self.range = Some(range),
                    Some(Ok(piece)) => self.bytes = piece.to_bytes().unwrap_or_default(),
                    Some(Err(_)) => return Poll::Ready(Err(BodyError::Truncated)),
                }
                continue;
            };
            let at_once = if self.reading.is_under_way() { None } else { read_at_once(range, READ) };
            let read = match at_once {
                Some(read) => read,
                None => ready!(self.reading.poll(cx, range, READ)),
            };
            let read = read.map_err(BodyError::Io)?;
            if read.is_empty() {
                // The file has become shorter.
                return Poll::Ready(Err(BodyError::Truncated));
            }
            range.start += read.len() as u64;
            range.len -= read.len();
            if range.len == 0 {
                self.range = None;
            }
            self.bytes = read.into();
        }
        Poll::Ready(Ok(true))
    }

    fn data(&mut self) -> BodyStep {
        let len = self.bytes.len();
        BodyStep::Data(0..len)
    }

    pub(super) fn remaining(&self) -> Option<u64> {
        Some(self.left)
    }

    pub(super) fn body_step(&mut self) -> Result<Option<BodyStep>, BodyError> {
        if !self.bytes.is_empty() {
            return Ok(Some(self.data()));
        }
        let is_over = self.body.is_none() && self.range.is_none();
        Ok(is_over.then(|| BodyStep::End(FieldsBuf::new())))
    }

    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<BodyStep, BodyError>> {
        Poll::Ready(Ok(match ready!(self.poll_more(cx))? {
            true => self.data(),
            false => BodyStep::End(FieldsBuf::new()),
        }))
    }

    #[expect(clippy::unused_self, reason = "what is read at a time is little")]
    pub(super) fn limit_reads(&mut self, _: usize) {}

    /// The number of bytes that were read and are not used.
    pub(super) fn park(&mut self) -> usize {
        self.bytes.len()
    }

    pub(super) fn piece(&self, range: &Range<usize>) -> &[u8] {
        &self.bytes[range.clone()]
    }

    pub(super) fn consume(&mut self, range: &Range<usize>) {
        self.bytes.advance(range.end);
        self.left = self.left.saturating_sub(range.end as u64);
    }

    pub(super) fn drop_body(&mut self) {
        *self = LocalFile::new(None, 0);
    }

    /// Never: what it sends is read in steps.
    #[expect(clippy::unused_self, reason = "other protocols do")]
    pub(super) fn reads_directly(&self) -> bool {
        false
    }

    pub(super) fn poll_read_into(
        &mut self,
        _: &mut Context<'_>,
        _: &mut [u8],
    ) -> Poll<Result<usize, BodyError>> {
        unreachable!("a file is not read directly")
    }
}

/// The request was sent to the backend that named the file. What is left of its body goes nowhere.
#[expect(clippy::unused_self, reason = "other protocols have a connection")]
impl LocalFile {
    pub(super) fn send(
        &mut self,
        _: &mut Context<'_>,
        _: &OriginRequest<'_>,
        _: &FieldsBuf,
    ) -> Result<(), Fault> {
        unreachable!("no request is sent to a file")
    }

    pub(super) fn poll_head(
        &mut self,
        _: &mut Context<'_>,
        _: &OriginRequest<'_>,
        _: &Limits,
        _: &mut Vec<Span>,
        _: &mut dyn FnMut(&mut Context<'_>, Seen<'_>) -> Result<(), Fault>,
    ) -> Poll<Result<OriginHead, Fault>> {
        unreachable!("the head of the response has arrived")
    }

    pub(super) fn tunnel(&mut self) -> &mut Conn {
        unreachable!("a file switches to no other protocol")
    }

    pub(super) fn send_body(&mut self, _: &mut Context<'_>, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn end_body(
        &mut self,
        _: &mut Context<'_>,
        _: &FieldsBuf,
        _: Option<&TrailerRule>,
    ) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn queued(&self) -> usize {
        0
    }

    pub(super) fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    pub(super) fn sent(&self) -> u64 {
        0
    }

    pub(super) fn is_answered(&self) -> bool {
        true
    }

    pub(super) fn is_late(&self) {}

    pub(super) fn forbid_reuse(&mut self) {}

    pub(super) fn finish(self, _: &Origins, _: &Address) {}

    pub(super) fn spare(self, _: &Origins, _: &Address) {}
}
