//! The client of one exchange over HTTP/2: one stream of a connection.

use super::encoder;
use super::incoming::Arrived;
use super::streams::Streams;
use crate::response::Response;
use crate::service::{Client, Peer, SessionLimits};
use crate::{BodyError, BodyStep, Duplex, Timer};
use bytes::Bytes;
use sandarac_message::{Fields, FieldsBuf, Name, Piece};
use sandarac_wire::h1::Refusal;
use sandarac_wire::h2::ErrorCode;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// How long, and for how many bytes, the end of a request body without a length is awaited, so that it is
/// forwarded with a length.
const GATHER: Duration = Duration::from_millis(20);
const GATHERED: usize = 64 * 1024;

/// The progress of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The response has not begun.
    Awaited,
    /// The head is made, and not sent.
    Begun,
    /// The head is sent.
    Sent,
    /// The response has ended, or is queued to its end.
    Ended,
}

/// What the head of a request announces about its body.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestBody {
    /// Content-Length, if the client sent one.
    pub(super) length: Option<u64>,
    /// Whether the client waits for 100 (Continue).
    pub(super) expect_continue: bool,
    /// Whether the stream becomes a tunnel, so that what follows the head is no body.
    pub(super) is_tunnel: bool,
    /// Whether its end is never awaited, as for gRPC.
    pub(super) is_stream: bool,
}

/// The client of one exchange.
pub(super) struct Http2Client {
    stream: StreamIo,
    peer: Peer,
    timer: Timer,
    limits: SessionLimits,
    body: RequestBody,
    /// Bytes of the body that are still to come, if known.
    remaining: Option<u64>,
    awaits_continue: bool,
    /// Whether the body may come at any rate.
    at_any_rate: bool,
    /// When the next piece of the body must have arrived.
    body_deadline: Timer,
    /// The block of a head that is not sent.
    block: Vec<u8>,
    stage: Stage,
}

/// The bytes of a stream in both directions.
struct StreamIo {
    streams: Rc<RefCell<Streams>>,
    id: u32,
    /// Bytes that were taken from the streams, and how many of them were used.
    taken: Vec<u8>,
    used: usize,
    /// Bytes of the response's body so far.
    sent: u64,
    /// Whether dropping it now resets the stream.
    is_open: bool,
}

impl Http2Client {
    pub(super) fn new(
        streams: Rc<RefCell<Streams>>,
        id: u32,
        peer: Peer,
        limits: SessionLimits,
        body: RequestBody,
    ) -> Http2Client {
        let remaining = if body.is_tunnel { Some(0) } else { body.length };
        Http2Client {
            stream: StreamIo { streams, id, taken: Vec::new(), used: 0, sent: 0, is_open: false },
            peer,
            timer: Timer::new(),
            limits,
            body,
            remaining,
            awaits_continue: body.expect_continue && remaining != Some(0),
            at_any_rate: false,
            body_deadline: Timer::new(),
            block: Vec::new(),
            stage: Stage::Awaited,
        }
    }

    /// Waits a moment for the end of a body without a length. Many applications cannot read bodies in chunks.
    pub(super) async fn gather(&mut self) {
        if self.remaining.is_some() || self.awaits_continue || self.body.is_stream {
            return;
        }
        self.timer.set(GATHER);
        poll_fn(|cx| {
            let mut streams = self.stream.streams.borrow_mut();
            let (bytes, end) = streams.arrived(self.stream.id);
            if let Some(trailers) = end {
                // Trailers need a body in chunks.
                self.remaining = trailers.view().is_empty().then_some(bytes as u64);
                return Poll::Ready(());
            }
            if bytes >= GATHERED || streams.poll_gone(self.stream.id, cx).is_ready() {
                return Poll::Ready(());
            }
            self.timer.poll(cx)
        })
        .await;
        self.timer.clear();
    }

    /// Sends the head of the response, if it has not been sent.
    fn send_head(&mut self, ends: bool) {
        if self.stage == Stage::Begun {
            self.stage = Stage::Sent;
            let block = std::mem::take(&mut self.block);
            let mut streams = self.stream.streams.borrow_mut();
            if streams.has_room_for_heads()
                || streams.takes_head(block.len()) && self.peer.holder.has_room(block.len())
            {
                streams.send_head(self.stream.id, &block, ends);
            } else {
                // The client takes no heads, and there is no room for more.
                streams.give_up(self.stream.id);
            }
        }
    }

    fn check(&self) -> io::Result<()> {
        match self.stream.streams.borrow().gone(self.stream.id) {
            Some(why) => Err(why.into()),
            None => Ok(()),
        }
    }
}

impl Client for Http2Client {
    fn peer(&self) -> &Peer {
        &self.peer
    }

    fn timer(&mut self) -> &mut Timer {
        &mut self.timer
    }

    fn body_remaining(&self) -> Option<u64> {
        self.remaining
    }

    fn body_arrived(&self) -> Result<u64, Refusal> {
        let waiting = self.stream.data().len() + self.stream.streams.borrow().arrived(self.stream.id).0;
        Ok(waiting as u64)
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<BodyStep, BodyError>> {
        let step = match self.stream.poll_step(cx, self.remaining) {
            Poll::Ready(step) => step,
            Poll::Pending if self.awaits_continue => return Poll::Pending,
            Poll::Pending => {
                if !self.at_any_rate {
                    self.stream.streams.borrow_mut().start_awaiting(self.stream.id);
                }
                loop {
                    if !self.body_deadline.is_set() {
                        self.body_deadline.set(self.limits.body_timeout);
                    }
                    ready!(self.body_deadline.poll(cx));
                    if !self.stream.streams.borrow().is_excused(self.stream.id, self.limits.body_timeout) {
                        self.stream.streams.borrow_mut().stop_awaiting(self.stream.id);
                        return Poll::Ready(Err(BodyError::Late));
                    }
                }
            }
        };
        self.body_deadline.clear();
        self.awaits_continue = false;
        Poll::Ready(match step {
            Ok(Arrived::Data(_)) => Ok(BodyStep::Data(self.stream.used..self.stream.taken.len())),
            Ok(Arrived::End(trailers)) => {
                self.remaining = Some(0);
                Ok(BodyStep::End(trailers))
            }
            Err(why) if why.kind() == ErrorKind::TimedOut => Err(BodyError::Late),
            Err(_) => Err(BodyError::Truncated),
        })
    }

    fn body_data(&self, range: &Range<usize>) -> &[u8] {
        &self.stream.taken[range.clone()]
    }

    fn consume_body(&mut self, range: &Range<usize>) {
        let len = range.end - self.stream.used;
        self.remaining = self.remaining.map(|left| left.saturating_sub(len as u64));
        self.stream.consume(len);
    }

    fn awaits_continue(&self) -> bool {
        self.awaits_continue
    }

    fn take_body_at_any_rate(&mut self, any: bool) {
        self.at_any_rate = any;
    }

    fn pause_body(&mut self) {
        self.stream.streams.borrow_mut().stop_awaiting(self.stream.id);
        self.body_deadline.clear();
    }

    fn give_up_body(&mut self) {
        self.pause_body();
    }

    fn poll_left(&mut self, cx: &mut Context<'_>, _closed_is_left: bool) -> Poll<()> {
        self.stream.streams.borrow_mut().poll_gone(self.stream.id, cx)
    }

    fn has_closed(&mut self) -> bool {
        self.check().is_err()
    }

    fn interim(&mut self, _cx: &mut Context<'_>, status: u16, _reason: &[u8], fields: Fields<'_>) {
        let mut streams = self.stream.streams.borrow_mut();
        // A client that waits for 100 gets it.
        let is_awaited = status == 100 && self.awaits_continue;
        if !is_awaited && !streams.has_room_for_heads() {
            return;
        }
        self.awaits_continue &= status != 100;
        let mut block = Vec::new();
        encoder::bare_response(&mut block, status, fields);
        streams.send_interim(self.stream.id, &block);
    }

    fn begin(&mut self, response: Response<'_>) {
        debug_assert_eq!(self.stage, Stage::Awaited, "a response begins once");
        self.stage = Stage::Begun;
        encoder::response(&mut self.block, &response, |value| {
            self.stream.streams.borrow_mut().merge_priority(self.stream.id, value);
        });
    }

    fn send_begun(&mut self, _cx: &mut Context<'_>) -> io::Result<()> {
        self.send_head(false);
        self.check()
    }

    fn write(&mut self, cx: &mut Context<'_>, piece: &[u8]) -> io::Result<()> {
        self.send_head(false);
        Duplex::write(&mut self.stream, cx, piece)
    }

    fn share(&mut self, _cx: &mut Context<'_>, piece: Piece) -> io::Result<()> {
        self.send_head(false);
        self.stream.send(piece, false)
    }

    fn end(&mut self, _cx: &mut Context<'_>, trailers: Fields<'_>) -> io::Result<()> {
        let trailers = encoder::trailers(trailers);
        let has_more = !trailers.is_empty() || self.stage == Stage::Sent;
        self.send_head(!has_more);
        if has_more {
            self.stream.streams.borrow_mut().send_end(self.stream.id, trailers)?;
        }
        self.stage = Stage::Ended;
        self.check()
    }

    fn poll_room(&mut self, cx: &mut Context<'_>, window: usize) -> Poll<io::Result<()>> {
        // The session judges the speed of the client.
        self.stream.streams.borrow_mut().poll_room(self.stream.id, cx, window)
    }

    fn keeps(&mut self, bytes: usize) {
        self.stream.streams.borrow_mut().keeps(self.stream.id, bytes);
    }

    fn read_limit(&self) -> usize {
        self.stream.streams.borrow().read_limit().min(self.peer.holder.read_limit())
    }

    fn switch(
        &mut self,
        _cx: &mut Context<'_>,
        _status: u16,
        _reason: &[u8],
        fields: Fields<'_>,
    ) -> io::Result<()> {
        // The data of the stream becomes that of the tunnel (RFC 8441 §5).
        let mut own = FieldsBuf::copy_of(fields);
        own.retain(|field| field.id != Name::Other || !field.is(b"Sec-WebSocket-Accept"));
        encoder::bare_response(&mut self.block, 200, own.view());
        self.stage = Stage::Begun;
        self.stream.is_open = true;
        self.send_head(false);
        self.check()
    }

    fn tunnel(&mut self) -> (&mut dyn Duplex, &mut Timer) {
        (&mut self.stream, &mut self.timer)
    }

    fn end_tunnel(&mut self) {
        self.stage = Stage::Ended;
    }
}

impl Drop for Http2Client {
    fn drop(&mut self) {
        let code = match self.stage {
            _ if std::thread::panicking() => ErrorCode::INTERNAL_ERROR,
            Stage::Awaited => ErrorCode::CANCEL,
            _ if self.body.is_tunnel => ErrorCode::CONNECT_ERROR,
            _ => ErrorCode::INTERNAL_ERROR,
        };
        let has_responded = self.stage == Stage::Ended && !self.stream.is_open;
        let unused = self.stream.data().len();
        self.stream.streams.borrow_mut().leave(self.stream.id, unused, has_responded, code);
    }
}

impl StreamIo {
    /// Sends a piece. `is_copy` is whether its memory belongs to nothing else.
    fn send(&mut self, piece: Piece, is_copy: bool) -> io::Result<()> {
        self.sent += piece.len() as u64;
        self.streams.borrow_mut().send(self.id, piece, is_copy)
    }

    /// The next bytes, or the end. `announced` is how many there still are by Content-Length.
    fn poll_step(&mut self, cx: &mut Context<'_>, announced: Option<u64>) -> Poll<io::Result<Arrived>> {
        let unused = self.data().len();
        if unused > 0 {
            return Poll::Ready(Ok(Arrived::Data(unused)));
        }
        self.taken.clear();
        self.used = 0;
        self.streams.borrow_mut().poll_body(self.id, cx, &mut self.taken, announced)
    }
}

impl Duplex for StreamIo {
    fn data(&self) -> &[u8] {
        &self.taken[self.used..]
    }

    fn consume(&mut self, n: usize) {
        self.used += n;
        self.streams.borrow_mut().release(self.id, n);
    }

    fn park(&mut self) {
        if self.data().is_empty() {
            (self.taken, self.used) = (Vec::new(), 0);
        }
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        Poll::Ready(match ready!(self.poll_step(cx, None)) {
            Ok(Arrived::Data(len)) => Ok(len),
            Ok(Arrived::End(_)) => Ok(0),
            Err(why) => Err(why),
        })
    }

    fn write(&mut self, _cx: &mut Context<'_>, bytes: &[u8]) -> io::Result<()> {
        self.send(Bytes::copy_from_slice(bytes).into(), true)
    }

    fn queued(&self) -> usize {
        self.streams.borrow().queued(self.id)
    }

    fn memory(&self, _: bool) -> usize {
        // The session counts what its streams hold.
        0
    }

    fn sent(&self) -> u64 {
        self.sent - self.queued() as u64
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.streams.borrow_mut().poll_room(self.id, cx, 0)
    }

    fn poll_shutdown(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.streams.borrow_mut().send_end(self.id, Vec::new()))
    }

    fn reset_when_dropped(&mut self, reset: bool) {
        self.is_open = reset;
    }
}
