//! The streams of a connection, shared by its session and its exchanges.
//!
//! Only the session reads and writes the socket. An exchange puts the frames and the body of its response here and wakes the
//! session. The session puts request bodies here and wakes the exchange.

mod files;
mod heads;
mod memory;

use super::answered::Answered;
use super::incoming::{Arrived, Incoming, take_data};
use super::open_streams::OpenStreams;
use super::outgoing::{Outgoing, Wrote};
use super::schedule::Schedule;
use super::stream::Stream;
use crate::service::SessionLimits;
use crate::{MinimumRate, Moment, Output};
use sandarac_message::{FieldsBuf, Piece};
use sandarac_wire::h2::connection::Connection;
use sandarac_wire::h2::{ErrorCode, Priority};
use std::io;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

pub(super) use memory::{Memory, RESPONDING};

/// Bytes of output in one write. A more urgent stream waits for no more than this.
pub(super) const BATCH: usize = 128 * 1024;

/// Bytes of a response body that one exchange may queue, and that all exchanges of a connection may hold. An exchange with an
/// empty queue may always add a piece. One whose client keeps the window of its stream closed may add no second one.
const STREAM_QUEUE: usize = 256 * 1024;
const CONNECTION_QUEUE: usize = 1024 * 1024;

/// Bytes that an exchange may read from its backend at a time, and so the most of a piece, once a connection has more than a
/// few exchanges or holds half of [`CONNECTION_QUEUE`].
const SMALL_READ: usize = 16 * 1024;
const FEW_EXCHANGES: usize = 8;

/// The open streams of a connection, and its codec.
pub(super) struct Streams {
    pub(super) wire: Connection,
    /// Frames of exchanges that are not written.
    out: Vec<u8>,
    open: OpenStreams,
    /// Streams that have something to send and whose own window is open.
    schedule: Schedule,
    /// Streams whose next piece a thread reads from a file.
    reading: Vec<u32>,
    session: Option<Waker>,
    /// Streams that are stalled.
    stalled: usize,
    /// Bytes of memory that only the queues hold, on all streams.
    copied: usize,
    /// Bytes of responses that wait with their backends' connections for room, on all streams.
    waiting: usize,
    /// Bytes of request bodies that no exchange has used yet, on all streams.
    held: usize,
    /// Streams whose exchange waits for more of the request body.
    awaiting_bodies: usize,
    /// Exchanges that have not ended.
    exchanges: usize,
    /// The stream of which a part of a frame of data has come, and when.
    arriving: Option<(u32, Moment)>,
    answered: Answered,
}

impl Streams {
    /// The streams of a new connection. `make` appends its first frames to the buffer.
    pub(super) fn new(make: impl FnOnce(&mut Vec<u8>) -> Connection) -> Streams {
        let mut out = Vec::new();
        let wire = make(&mut out);
        Streams {
            wire,
            out,
            open: OpenStreams::default(),
            schedule: Schedule::default(),
            reading: Vec::new(),
            session: None,
            stalled: 0,
            copied: 0,
            waiting: 0,
            held: 0,
            awaiting_bodies: 0,
            exchanges: 0,
            arriving: None,
            answered: Answered::default(),
        }
    }

    /// Sets the task that is woken when an exchange has something to send.
    pub(super) fn wakes(&mut self, session: &Waker) {
        if !self.session.as_ref().is_some_and(|waker| waker.will_wake(session)) {
            self.session = Some(session.clone());
        }
    }

    /// Exchanges that have not ended.
    pub(super) fn exchanges(&self) -> usize {
        self.exchanges
    }

    /// Bytes of a response's body that the client lets through now on a stream whose body has not begun.
    pub(super) fn let_through(&self, id: u32) -> u32 {
        self.wire.stream_window(id).min(self.wire.connection_window())
    }

    /// Whether no stream is open.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether there is something to write, if windows allow it.
    pub(super) fn has_output(&self) -> bool {
        !self.out.is_empty() || !self.schedule.is_empty() || !self.reading.is_empty()
    }

    /// Whether frames of exchanges wait to be written.
    pub(super) fn has_frames(&self) -> bool {
        !self.out.is_empty()
    }

    /// Lets `act` add frames to those that wait to be written.
    pub(super) fn with_frames(&mut self, act: impl FnOnce(&mut Connection, &mut Vec<u8>)) {
        act(&mut self.wire, &mut self.out);
    }

    /// Whether data waits for the socket or for the window of the connection.
    pub(super) fn has_scheduled(&self) -> bool {
        !self.schedule.is_empty()
    }

    /// Takes the frames of exchanges.
    pub(super) fn take_frames(&mut self, out: &mut Vec<u8>) {
        if !self.out.is_empty() {
            out.extend_from_slice(&self.out);
            // A connection that waits holds no memory.
            self.out = Vec::new();
        }
    }

    /// A request with an exchange begins. `ended` is whether it has no body.
    pub(super) fn open(&mut self, id: u32, priority: Priority, ended: bool) {
        let request = Incoming { end: ended.then(FieldsBuf::new), ..Incoming::default() };
        let stream = Stream { priority, request: Some(Box::new(request)), ..Stream::default() };
        self.open.insert(id, stream);
        self.exchanges += 1;
    }

    /// The rest of a response that was made in place.
    pub(super) fn respond(&mut self, id: u32, priority: Priority, outgoing: Outgoing) {
        let copied = outgoing.list_memory();
        self.copied += copied;
        self.open.insert(id, Stream { priority, outgoing, copied, ..Stream::default() });
        self.schedule(id);
    }

    /// Data of a request was received.
    pub(super) fn receive(&mut self, id: u32, data: &[u8], ended: bool, out: &mut Vec<u8>) {
        let stream = self.open.get_mut(id);
        let Some(request) = stream.and_then(|stream| stream.request.as_mut()) else {
            // The exchange has ended. Once the response is written, the window of the stream stays closed.
            let window = if self.open.contains(id) { id } else { 0 };
            return self.wire.release(window, data.len() as u32, out);
        };
        request.data.extend_from_slice(data);
        self.held += data.len();
        if ended {
            request.end = Some(FieldsBuf::new());
        }
        Streams::wake(request);
    }

    /// A part of a frame of data for this stream has come.
    pub(super) fn arrives(&mut self, id: u32, now: Moment) {
        self.arriving = Some((id, now));
    }

    /// The trailers of a request were received.
    pub(super) fn receive_trailers(&mut self, id: u32, trailers: FieldsBuf) {
        if let Some(request) = self.open.get_mut(id).and_then(|stream| stream.request.as_mut()) {
            request.end = Some(trailers);
            Streams::wake(request);
        }
    }

    /// Gives up a stream that was reset, or whose client is too slow.
    pub(super) fn lose(&mut self, id: u32, why: io::ErrorKind) {
        let Some(stream) = self.open.get_mut(id) else { return };
        stream.outgoing = Outgoing::default();
        if std::mem::take(&mut stream.is_scheduled) {
            self.schedule.remove(id);
        }
        if std::mem::take(&mut stream.is_stalled) {
            self.stalled -= 1;
        }
        stream.reading = None;
        stream.gone = Some(why);
        let (copied, waiting) = (std::mem::take(&mut stream.copied), std::mem::take(&mut stream.waiting));
        match &mut stream.request {
            Some(request) => Streams::wake(request),
            None => self.open.remove(id),
        }
        self.free(copied, waiting);
    }

    /// Whether exchanges hold as much as they may.
    fn is_full(&self) -> bool {
        self.copied + self.waiting > CONNECTION_QUEUE
    }

    /// Counts bytes no longer. Exchanges that wait for room go on if there is some now.
    fn free(&mut self, copied: usize, waiting: usize) {
        let was_full = self.is_full();
        self.copied -= copied;
        self.waiting -= waiting;
        if was_full && !self.is_full() {
            self.open.iter_mut().filter_map(|(_, stream)| stream.request.as_mut()).for_each(|request| {
                Streams::wake(request);
            });
        }
    }

    /// Gives up all streams, because the connection has ended.
    pub(super) fn lose_all(&mut self, why: io::ErrorKind) {
        let all: Vec<u32> = self.open.iter().map(|(id, _)| id).collect();
        all.into_iter().for_each(|id| self.lose(id, why));
    }

    /// The window of a stream was opened, or that of all if `id` is 0. That of the connection alone lets nothing
    /// through on a stalled stream, for which the client would be judged.
    pub(super) fn window_opened(&mut self, id: u32) {
        let is_open = |(id, stream): &(u32, &Stream)| stream.is_stalled && self.wire.stream_window(*id) > 0;
        let opened: Vec<u32> = match id {
            0 if self.stalled == 0 => return,
            0 => self.open.iter().filter(is_open).map(|(id, _)| id).collect(),
            id => vec![id],
        };
        opened.into_iter().for_each(|id| self.schedule(id));
    }

    /// Changes the priority of a stream.
    pub(super) fn set_priority(&mut self, id: u32, priority: Priority) {
        let Some(stream) = self.open.get_mut(id) else { return };
        stream.priority = priority;
        if std::mem::take(&mut stream.is_scheduled) {
            self.schedule.remove(id);
            self.schedule(id);
        }
    }

    /// Writes what streams have to send, by priority, as far as windows and [`BATCH`] allow. Returns how many responses broke
    /// off without an exchange that notices it.
    pub(super) fn write(&mut self, cx: &mut Context<'_>, output: &mut Output) -> usize {
        let (mut freed, mut truncated) = (0, 0);
        self.resume_reads();
        while output.len() < BATCH
            && let Some(id) = self.schedule.take()
        {
            let Some(stream) = self.open.get_mut(id) else { continue };
            stream.is_scheduled = false;
            let wrote = stream.outgoing.write_frame(&mut self.wire, id, output);
            if let Wrote::Data(len) | Wrote::End(len) = wrote {
                stream.sent += len as u64;
                let is_all = matches!(wrote, Wrote::End(_));
                let copied = if is_all { stream.copied } else { len.min(stream.copied) };
                stream.copied -= copied;
                freed += copied;
            }
            match wrote {
                Wrote::Data(_) => {
                    if stream.outgoing.queued() <= STREAM_QUEUE
                        && let Some(request) = &mut stream.request
                    {
                        Streams::wake(request);
                    }
                    if stream.outgoing.has_more() {
                        stream.is_scheduled = true;
                        let Priority { urgency, incremental } = stream.priority;
                        match incremental {
                            true => self.schedule.push(id, urgency),
                            false => self.schedule.push_front(id, urgency),
                        }
                    }
                }
                Wrote::End(_) => match &mut stream.request {
                    Some(request) => Streams::wake(request),
                    None => self.end(id),
                },
                Wrote::Nothing => {}
                Wrote::Blocked if self.wire.awaits_stream_window(id) => {
                    stream.is_stalled = true;
                    self.stalled += 1;
                }
                Wrote::Blocked => {
                    stream.is_scheduled = true;
                    self.schedule.push_front(id, stream.priority.urgency);
                    break;
                }
                Wrote::Unread(most) => {
                    truncated += usize::from(self.read_file(id, cx, most, output.inline()));
                }
            }
        }
        self.free(freed, 0);
        truncated
    }

    /// Whether bytes in memory of the process wait for the client, as those of files do not.
    pub(super) fn hold_memory(&self) -> bool {
        self.open.iter().any(|(_, stream)| stream.holds_memory())
    }

    /// Resets stalled streams whose client is too slow. Returns their number, and whether others are stalled.
    /// `pressed` is the rate under memory pressure, to which streams that hold none, as of files, do not add.
    pub(super) fn judge_stalled(
        &mut self,
        limits: &SessionLimits,
        pressed: Option<MinimumRate>,
    ) -> (usize, bool) {
        let stalled = self.stalled;
        let is_slow = |stream: &mut Stream| {
            let pressed = pressed.filter(|_| stream.holds_memory());
            let patience = limits.patience(pressed.is_some());
            let minimum = pressed.unwrap_or(limits.min_rate_out);
            stream.rate.still(stream.sent) >= patience || stream.rate.waits(stream.sent, minimum).is_none()
        };
        let all = self.open.iter_mut().filter(|(_, stream)| stream.is_stalled).take(stalled);
        let slow: Vec<u32> = all.filter_map(|(id, stream)| is_slow(stream).then_some(id)).collect();
        for id in &slow {
            self.wire.reset(*id, ErrorCode::CANCEL, &mut self.out);
            // Not TimedOut: the session counts it, and the exchange would too.
            self.lose(*id, io::ErrorKind::ConnectionAborted);
        }
        (slow.len(), stalled > slow.len())
    }

    /// Whether an exchange waits for a part of a request body.
    pub(super) fn awaits_bodies(&self) -> bool {
        self.awaiting_bodies > 0
    }

    /// Ends the request bodies that exchanges wait for, because the client sends too slowly.
    pub(super) fn lose_uploads(&mut self) {
        let is_awaited = |stream: &Stream| stream.request.as_ref().is_some_and(|request| request.is_awaited);
        let late = self.open.iter().filter(|(_, stream)| is_awaited(stream)).map(|(id, _)| id);
        for id in late.collect::<Vec<u32>>() {
            if let Some(request) = self.open.get_mut(id).and_then(|stream| stream.request.as_mut()) {
                request.is_late = true;
                Streams::wake(request);
            }
        }
    }

    /// Applies the Priority of a response to its stream (RFC 9218 §8).
    pub(super) fn merge_priority(&mut self, id: u32, value: &[u8]) {
        if let Some(stream) = self.open.get_mut(id) {
            stream.priority = stream.priority.updated_by(value);
        }
    }

    /// Adds a piece of the body. `is_copy` is whether its memory belongs to nothing else.
    pub(super) fn send(&mut self, id: u32, piece: Piece, is_copy: bool) -> io::Result<()> {
        let stream = self.open.get_mut(id).ok_or(io::ErrorKind::NotConnected)?;
        if let Some(why) = stream.gone {
            return Err(why.into());
        }
        let copied = if is_copy { piece.len() } else { 0 };
        stream.copied += copied;
        self.copied += copied;
        stream.outgoing.add(piece);
        self.schedule(id);
        self.wake_session();
        Ok(())
    }

    /// Ends the body, with these trailers, as a block, or none.
    pub(super) fn send_end(&mut self, id: u32, trailers: Vec<u8>) -> io::Result<()> {
        let stream = self.open.get_mut(id).ok_or(io::ErrorKind::NotConnected)?;
        if let Some(why) = stream.gone {
            return Err(why.into());
        }
        stream.outgoing.end(trailers);
        self.schedule(id);
        self.wake_session();
        Ok(())
    }

    /// Bytes of a stream's body that are queued.
    pub(super) fn queued(&self, id: u32) -> usize {
        self.open.get(id).map_or(0, |stream| stream.outgoing.queued())
    }

    /// Ready when no more than `window` bytes are queued on a stream, and there is room for more.
    pub(super) fn poll_room(&mut self, id: u32, cx: &mut Context<'_>, window: usize) -> Poll<io::Result<()>> {
        let is_full = self.is_full();
        let stream = self.open.get_mut(id).ok_or(io::ErrorKind::NotConnected)?;
        if let Some(why) = stream.gone {
            return Poll::Ready(Err(why.into()));
        }
        let queued = stream.outgoing.queued();
        let is_held_back = is_full || queued > window.min(STREAM_QUEUE) || self.wire.awaits_stream_window(id);
        if queued > 0 && is_held_back {
            Streams::register(stream, cx);
            return Poll::Pending;
        }
        let waiting = std::mem::take(&mut stream.waiting);
        self.free(0, waiting);
        Poll::Ready(Ok(()))
    }

    /// Notes that an exchange that waits for room keeps `bytes` of the response.
    pub(super) fn keeps(&mut self, id: u32, bytes: usize) {
        if let Some(stream) = self.open.get_mut(id).filter(|stream| stream.gone.is_none()) {
            self.waiting = self.waiting - stream.waiting + bytes;
            stream.waiting = bytes;
        }
    }

    /// Bytes that an exchange may read from its backend at a time.
    pub(super) fn read_limit(&self) -> usize {
        let holds_much = self.copied + self.waiting > CONNECTION_QUEUE / 2;
        if self.exchanges > FEW_EXCHANGES || holds_much { SMALL_READ } else { usize::MAX }
    }

    /// Why a stream was given up; `None` while it is open.
    pub(super) fn gone(&self, id: u32) -> Option<io::ErrorKind> {
        self.open.get(id).map_or(Some(io::ErrorKind::NotConnected), |stream| stream.gone)
    }

    /// Ready when a stream was given up.
    pub(super) fn poll_gone(&mut self, id: u32, cx: &mut Context<'_>) -> Poll<()> {
        let Some(stream) = self.open.get_mut(id) else { return Poll::Ready(()) };
        if stream.gone.is_some() {
            return Poll::Ready(());
        }
        Streams::register(stream, cx);
        Poll::Pending
    }

    /// Bytes of the request body that wait to be taken, and whether the body has ended after them and how.
    pub(super) fn arrived(&self, id: u32) -> (usize, Option<&FieldsBuf>) {
        let request = self.open.get(id).and_then(|stream| stream.request.as_ref());
        request.map_or((0, None), |request| (request.data.len(), request.end.as_ref()))
    }

    /// The next step of a request body, of which Content-Length `announced` so many bytes that were not taken. Data is
    /// moved to `into`, which MUST be empty.
    pub(super) fn poll_body(
        &mut self,
        id: u32,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        announced: Option<u64>,
    ) -> Poll<io::Result<Arrived>> {
        self.stop_awaiting(id);
        let stream = self.open.get_mut(id).ok_or(io::ErrorKind::NotConnected)?;
        let Some(request) = &mut stream.request else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        let taken = take_data(&mut request.data, into, usize::MAX, announced, request.end.is_some());
        if taken > 0 {
            return Poll::Ready(Ok(Arrived::Data(taken)));
        }
        if let Some(trailers) = request.end.take() {
            request.end = Some(FieldsBuf::new());
            return Poll::Ready(Ok(Arrived::End(trailers)));
        }
        match stream.gone {
            Some(why) => Poll::Ready(Err(why.into())),
            None if request.is_late => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            None => {
                Streams::register(stream, cx);
                Poll::Pending
            }
        }
    }

    /// The exchange waits for more of the request body from now on.
    pub(super) fn start_awaiting(&mut self, id: u32) {
        if let Some(request) = self.open.get_mut(id).and_then(|stream| stream.request.as_mut())
            && !std::mem::replace(&mut request.is_awaited, true)
        {
            self.awaiting_bodies += 1;
            if self.awaiting_bodies == 1 {
                // It begins to measure the client.
                self.wake_session();
            }
        }
    }

    /// The exchange does not wait for more of the request body.
    pub(super) fn stop_awaiting(&mut self, id: u32) {
        if let Some(request) = self.open.get_mut(id).and_then(|stream| stream.request.as_mut())
            && std::mem::take(&mut request.is_awaited)
        {
            self.awaiting_bodies -= 1;
        }
    }

    /// Whether a stream without data for `time` is no fault of the client: a part of a frame has arrived, or exchanges hold
    /// data that was received, so that the window of the connection may be closed.
    pub(super) fn is_excused(&self, id: u32, time: Duration) -> bool {
        let is_arriving = |(arriving, at): (u32, Moment)| arriving == id && Moment::now().since(at) < time;
        self.held > 0 || self.arriving.is_some_and(is_arriving)
    }

    /// Bytes of a request body were used.
    pub(super) fn release(&mut self, id: u32, bytes: usize) {
        self.held -= bytes;
        let before = self.out.len();
        self.wire.release(id, bytes as u32, &mut self.out);
        if self.out.len() > before {
            self.wake_session();
        }
    }

    /// Ends the exchange of a stream, which took `unused` bytes without using them. If its response has not ended, the stream
    /// is reset with `code`.
    pub(super) fn leave(&mut self, id: u32, unused: usize, has_responded: bool, code: ErrorCode) {
        self.stop_awaiting(id);
        self.exchanges -= 1;
        let Some(stream) = self.open.get_mut(id) else { return };
        let unused = unused + stream.request.take().map_or(0, |request| request.data.len());
        let (gone, has_more) = (stream.gone.is_some(), stream.outgoing.has_more());
        let waiting = std::mem::take(&mut stream.waiting);
        self.free(0, waiting);
        self.release(id, unused);
        let mut out = std::mem::take(&mut self.out);
        if !has_responded && !gone {
            self.wire.reset(id, code, &mut out);
            self.lose(id, io::ErrorKind::ConnectionAborted);
        } else if gone || !has_more {
            self.end(id);
        }
        self.out = out;
        self.wake_session();
    }

    /// Forgets a stream whose response is written. If the client has not ended its request, it is told to stop
    /// in a while.
    pub(super) fn end(&mut self, id: u32) {
        self.open.remove(id);
        self.answered.add(id, &self.wire);
    }

    /// Resets streams that were answered some time ago. Returns how long to wait before the next time.
    pub(super) fn reset_answered(&mut self) -> Option<Duration> {
        self.answered.stop(&mut self.wire, &mut self.out)
    }

    fn schedule(&mut self, id: u32) {
        if let Some(stream) = self.open.get_mut(id)
            && stream.outgoing.has_more()
            && !stream.is_scheduled
        {
            stream.is_scheduled = true;
            if std::mem::take(&mut stream.is_stalled) {
                self.stalled -= 1;
                // What the client lets through now, it has taken.
                let let_through = stream.sent + u64::from(self.wire.stream_window(id));
                stream.rate.goes_on(|| let_through);
            }
            self.schedule.push(id, stream.priority.urgency);
        }
    }

    fn wake_session(&mut self) {
        if let Some(session) = &self.session {
            session.wake_by_ref();
        }
    }

    fn wake(request: &mut Incoming) {
        if let Some(waker) = request.waker.take() {
            waker.wake();
        }
    }

    fn register(stream: &mut Stream, cx: &Context<'_>) {
        if let Some(request) = &mut stream.request {
            request.waker = Some(cx.waker().clone());
        }
    }
}
