//! One stream of a connection to a backend: a request and its response.

use super::fault::StreamFault;
use super::streams::{Arrived, Framing, Streams};
use crate::{BodyError, BodyStep, Duplex};
use bytes::Bytes;
use sandarac_message::{Method, ResponseHeadBuf};
use sandarac_wire::h2::ErrorCode;
use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// A stream for one request. It is opened by [`OriginStream::begin`]. Dropping it cancels what has not ended.
pub struct OriginStream {
    streams: Rc<RefCell<Streams>>,
    /// The stream, once it is open.
    id: Option<u32>,
    /// The body of the response, as its head announces it.
    body: Option<Framing>,
    /// Bytes of the body that were taken from the streams, and how many of them were used.
    taken: Vec<u8>,
    used: usize,
    /// Bytes that are taken at a time.
    step_limit: usize,
    has_ended: bool,
    /// Whether the end of the request was sent.
    has_sent_all: bool,
    /// Whether dropping it means that a tunnel was cut.
    is_cut: bool,
}

/// A head that was received.
#[derive(Debug)]
pub enum ReceivedHead {
    /// An interim response.
    Interim(ResponseHeadBuf),
    /// The final response. Its reason is empty.
    Final(ResponseHeadBuf),
}

impl OriginStream {
    /// A stream that `streams` have promised.
    pub(super) fn promised(streams: Rc<RefCell<Streams>>) -> OriginStream {
        OriginStream {
            streams,
            id: None,
            body: None,
            taken: Vec::new(),
            used: 0,
            step_limit: usize::MAX,
            has_ended: false,
            has_sent_all: false,
            is_cut: false,
        }
    }

    /// Whether the backend accepts extended CONNECT (RFC 8441).
    pub fn allows_protocols(&self) -> bool {
        self.streams.borrow().wire.peer_settings().enable_connect_protocol
    }

    /// Sends the head of the request. `ends` is whether nothing follows it, `is_leased` whether
    /// [`LEASED_WINDOW`](super::LEASED_WINDOW) is leased for its response.
    ///
    /// # Panics
    /// If it was called before.
    pub fn begin(
        &mut self,
        method: Method,
        block: &[u8],
        ends: bool,
        is_leased: bool,
    ) -> Result<(), StreamFault> {
        assert!(self.id.is_none(), "a request begins once");
        let opened = self.streams.borrow_mut().open(method, block, ends, is_leased);
        // The promise is used up even if it could not be kept.
        self.id = Some(*opened.as_ref().unwrap_or(&0));
        self.has_sent_all = ends;
        opened.map(drop)
    }

    /// Sends a piece of the body.
    pub fn send(&mut self, data: &[u8]) -> Result<(), StreamFault> {
        self.streams.borrow_mut().send(self.id(), Bytes::copy_from_slice(data).into())
    }

    /// Ends the body, with trailers as a header block, or none. Does nothing if it has ended.
    pub fn end(&mut self, trailers: Vec<u8>) -> Result<(), StreamFault> {
        if std::mem::replace(&mut self.has_sent_all, true) {
            return Ok(());
        }
        self.streams.borrow_mut().send_end(self.id(), trailers)
    }

    /// Bytes of the body that the connection has not taken yet.
    pub fn queued(&self) -> usize {
        self.streams.borrow().progress(self.id()).0
    }

    /// Bytes of the request that the connection has taken; 0 if the backend did not process it, or was sent
    /// nothing.
    pub fn sent(&self) -> u64 {
        let streams = self.streams.borrow();
        let fault = self.id.and_then(|id| streams.fault(id));
        match (self.id, fault) {
            (None | Some(0), _) => 0,
            (_, Some(fault)) if fault.is_unprocessed() => 0,
            // The head counts as one byte.
            (Some(id), _) => streams.progress(id).1 + 1,
        }
    }

    /// Ready when the connection has taken all of the body that was sent, and its end if that was sent.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamFault>> {
        self.streams.borrow_mut().poll_flush(self.id(), cx)
    }

    /// The next head, until the final one.
    pub fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<ReceivedHead, StreamFault>> {
        let (head, framing) = ready!(self.streams.borrow_mut().poll_head(self.id(), cx))?;
        if framing == Framing::Interim {
            return Poll::Ready(Ok(ReceivedHead::Interim(head)));
        }
        self.body = Some(framing);
        if let Framing::Body(Some(length)) = framing {
            self.may_widen(Some(length));
        }
        Poll::Ready(Ok(ReceivedHead::Final(head)))
    }

    /// Bytes of the body that were not used yet, if the length is known.
    pub fn remaining(&self) -> Option<u64> {
        match self.body {
            Some(Framing::Body(left)) if !self.has_ended => left,
            _ => Some(0),
        }
    }

    /// Has each step of the body be of at most so many bytes; no more than a little of it waits then.
    pub fn limit_steps(&mut self, most: usize) {
        self.step_limit = most;
    }

    /// The next step of the body, if it is there.
    pub fn body_step(&mut self) -> Result<Option<BodyStep>, BodyError> {
        if self.used < self.taken.len() {
            return Ok(Some(BodyStep::Data(self.used..self.taken.len())));
        }
        self.taken.clear();
        self.used = 0;
        let step = match self.body {
            // What HEAD or a status rules out is not waited for, but trailers may have come.
            Some(Framing::Body(left)) => {
                let mut streams = self.streams.borrow_mut();
                streams.body_step(self.id(), &mut self.taken, self.step_limit, left)
            }
            _ => Some(Ok(Arrived::End(Default::default()))),
        };
        match step {
            None => Ok(None),
            Some(Ok(Arrived::Data(len))) => Ok(Some(BodyStep::Data(0..len))),
            Some(Ok(Arrived::End(trailers))) => {
                self.has_ended = true;
                Ok(Some(BodyStep::End(trailers)))
            }
            Some(Err(fault)) => Err(BodyError::Stream(fault)),
        }
    }

    /// The next step of the body.
    pub fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<BodyStep, BodyError>> {
        match self.body_step().transpose() {
            Some(step) => Poll::Ready(step),
            None => {
                self.park();
                self.streams.borrow_mut().wait(self.id(), cx);
                Poll::Pending
            }
        }
    }

    /// The bytes of a [`BodyStep::Data`].
    pub fn piece(&self, range: &Range<usize>) -> &[u8] {
        &self.taken[range.clone()]
    }

    /// Drops the first `n` bytes of the last [`BodyStep::Data`] after their use.
    pub fn consume(&mut self, n: usize) {
        self.used += n;
        if let Some(Framing::Body(Some(left))) = &mut self.body {
            *left = left.saturating_sub(n as u64);
        }
        self.streams.borrow_mut().release(self.id(), n);
        match self.body {
            Some(Framing::Body(left)) => self.may_widen(left),
            _ => self.may_widen(None),
        }
    }

    /// Lets more of a long body wait for this request, of which `announced` bytes are to come, unless little
    /// is read at a time.
    fn may_widen(&self, announced: Option<u64>) {
        if self.step_limit == usize::MAX {
            self.streams.borrow_mut().widen(self.id(), announced);
        }
    }

    /// Bytes of the response that have arrived and are not used, and those that may arrive without being
    /// asked for.
    pub fn may_hold(&self) -> usize {
        self.taken.len() - self.used + self.streams.borrow().may_hold(self.id())
    }

    /// Asks the backend for a sign of life, if it has not said how the stream ends. The connection ends if
    /// none comes.
    pub fn probe(&self) {
        let mut streams = self.streams.borrow_mut();
        if !self.has_ended && self.id.is_some_and(|id| streams.fault(id).is_none()) {
            streams.probe();
        }
    }

    /// The stream; 0 is none.
    fn id(&self) -> u32 {
        self.id.unwrap_or(0)
    }
}

impl Drop for OriginStream {
    fn drop(&mut self) {
        let mut streams = self.streams.borrow_mut();
        let code = if self.is_cut { ErrorCode::CONNECT_ERROR } else { ErrorCode::CANCEL };
        match self.id {
            None => streams.spare(),
            Some(id) => streams.leave(id, self.taken.len() - self.used, code),
        }
    }
}

fn broken(fault: StreamFault) -> io::Error {
    let kind = match fault {
        StreamFault::Lost => io::ErrorKind::BrokenPipe,
        _ => io::ErrorKind::ConnectionReset,
    };
    kind.into()
}

/// The bytes of a tunnel (RFC 9113 §8.5).
impl Duplex for OriginStream {
    fn data(&self) -> &[u8] {
        &self.taken[self.used..]
    }

    fn consume(&mut self, n: usize) {
        OriginStream::consume(self, n);
    }

    fn park(&mut self) {
        if self.used == self.taken.len() {
            (self.taken, self.used) = (Vec::new(), 0);
        }
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match ready!(self.poll_body(cx)) {
            Ok(BodyStep::Data(range)) => Poll::Ready(Ok(range.len())),
            Ok(BodyStep::End(_)) => Poll::Ready(Ok(0)),
            Err(BodyError::Stream(fault)) => Poll::Ready(Err(broken(fault))),
            Err(_) => Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
        }
    }

    fn write(&mut self, _cx: &mut Context<'_>, bytes: &[u8]) -> io::Result<()> {
        self.send(bytes).map_err(broken)
    }

    fn queued(&self) -> usize {
        OriginStream::queued(self)
    }

    fn memory(&self, is_read: bool) -> usize {
        let arrives = if is_read { 0 } else { self.may_hold() };
        self.taken.capacity().max(arrives) + OriginStream::queued(self)
    }

    fn limit_reads(&mut self, most: usize) {
        self.limit_steps(most);
    }

    fn sent(&self) -> u64 {
        OriginStream::sent(self)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        OriginStream::poll_flush(self, cx).map_err(broken)
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.end(Vec::new()).map_err(broken)?;
        OriginStream::poll_flush(self, cx).map_err(broken)
    }

    fn reset_when_dropped(&mut self, reset: bool) {
        self.is_cut = reset;
    }
}
