//! The streams of a connection to a backend, shared by its session and the requests that use it.
//!
//! Only the session uses the socket. A request puts its frames and its body here and wakes the session. The
//! session puts responses here, each to its own stream, and wakes the request.

use super::super::incoming::take_data;
use super::super::outgoing::{Outgoing, Wrote};
use super::fault::StreamFault;
use crate::{Moment, Output};
use sandarac_message::{Fields, FieldsBuf, Method, Piece, ResponseHeadBuf};
use sandarac_wire::h2::ErrorCode;
use sandarac_wire::h2::connection::Connection;
use sandarac_wire::h2::head::response::Response;
use std::collections::{BTreeMap, VecDeque};
use std::task::{Context, Poll, Waker};

/// Bytes of a response that may wait for its request, at first: what is leased for a request that is not
/// answered covers them.
pub(super) const FIRST_WINDOW: u32 = 8 * 1024;

/// The same for a request with a lease of so many.
pub const LEASED_WINDOW: u32 = 64 * 1024;

/// The same once the response is read without a limit, and has more than that.
pub(super) const STREAM_WINDOW: u32 = 256 * 1024;

/// Bytes of output in one write. Streams take turns within it, frame by frame.
const BATCH: usize = 128 * 1024;

/// Bytes of interim responses that wait for the request to take them.
const MAX_INTERIM: usize = 64 * 1024;

/// Bytes that may wait for the socket on a connection that is given more requests.
const UNSENT: usize = 64 * 1024;

/// The open streams of a connection, and its codec.
pub(super) struct Streams {
    pub(super) wire: Connection,
    /// Frames that are not written.
    out: Vec<u8>,
    open: BTreeMap<u32, Stream>,
    /// Streams that have data to send and whose own window is open, in turn.
    ready: VecDeque<u32>,
    session: Option<Waker>,
    /// The task that waits for the backend's settings.
    opener: Option<Waker>,
    has_settings: bool,
    /// Streams that are promised to requests and not open yet.
    reserved: usize,
    /// The most streams at a time, whatever the backend allows.
    most: usize,
    /// Bytes that wait for the socket.
    pub(super) unsent: usize,
    /// Whether it takes no more requests, and ends after those it has.
    is_closing: bool,
    /// Why the connection has ended.
    ended: Option<StreamFault>,
    idle_since: Moment,
    /// When the backend was asked for a sign of life that has not come.
    probed: Option<Moment>,
}

/// A stream whose request has not ended.
#[derive(Default)]
struct Stream {
    outgoing: Outgoing,
    is_ready: bool,
    /// Whether only its own window holds back what it has to send.
    is_stalled: bool,
    /// Bytes of the body that were written.
    sent: u64,
    /// Heads that the request has not taken, and the bytes of interim ones.
    heads: VecDeque<(ResponseHeadBuf, Framing)>,
    interim: usize,
    /// Bytes of the body that the request has not taken. The window of the stream bounds them.
    data: Vec<u8>,
    /// Bytes of the body that were used.
    used: u64,
    /// Its whole window.
    window: u32,
    /// The trailers, once the response has ended.
    end: Option<FieldsBuf>,
    fault: Option<StreamFault>,
    waker: Option<Waker>,
}

/// The body that follows a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// Another head.
    Interim,
    /// No body.
    None,
    /// A body of this length, if it is known.
    Body(Option<u64>),
}

/// A step of a response body.
pub(super) enum Arrived {
    /// So many bytes were put into the buffer.
    Data(usize),
    /// The body has ended.
    End(FieldsBuf),
}

impl Streams {
    /// The streams of a new connection, at most `most` at a time. `make` appends its first frames to the
    /// buffer.
    pub(super) fn new(most: usize, make: impl FnOnce(&mut Vec<u8>) -> Connection) -> Streams {
        let mut out = Vec::new();
        let wire = make(&mut out);
        Streams {
            wire,
            out,
            open: BTreeMap::new(),
            ready: VecDeque::new(),
            session: None,
            opener: None,
            has_settings: false,
            reserved: 0,
            most,
            unsent: 0,
            is_closing: false,
            ended: None,
            idle_since: Moment::now(),
            probed: None,
        }
    }

    /// Sets the task that is woken when there is something to send.
    pub(super) fn wakes(&mut self, session: &Waker) {
        if !self.session.as_ref().is_some_and(|waker| waker.will_wake(session)) {
            self.session = Some(session.clone());
        }
    }

    /// The task of the session.
    pub(super) fn session(&self) -> Option<Waker> {
        self.session.clone()
    }

    pub(super) fn wake_session(&self) {
        if let Some(session) = &self.session {
            session.wake_by_ref();
        }
    }

    /// Ready when the backend's settings are known, or the connection has ended.
    pub(super) fn poll_settings(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamFault>> {
        match self.ended {
            Some(fault) => Poll::Ready(Err(fault)),
            None if self.has_settings => Poll::Ready(Ok(())),
            None => {
                self.opener = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The streams that may be open at a time.
    pub(super) fn capacity(&self) -> usize {
        self.most.min(self.wire.peer_settings().max_concurrent_streams as usize)
    }

    /// Whether it accepts another request at some time.
    pub(super) fn is_usable(&self) -> bool {
        self.ended.is_none() && !self.is_closing
    }

    /// Whether no request uses it.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.reserved == 0
    }

    /// Since when no request has used it.
    pub(super) fn idle_since(&self) -> Option<Moment> {
        self.is_idle().then_some(self.idle_since)
    }

    /// Promises a stream to a request, if there is one.
    pub(super) fn reserve(&mut self) -> bool {
        let has_room = self.is_usable()
            && self.probed.is_none()
            && self.unsent + self.out.len() <= UNSENT
            && self.open.len() + self.reserved < self.capacity();
        self.reserved += usize::from(has_room);
        has_room
    }

    /// A promised stream is not needed.
    pub(super) fn spare(&mut self) {
        self.reserved -= 1;
        self.left();
    }

    /// Opens a promised stream for a request, which may have a lease of [`LEASED_WINDOW`].
    pub(super) fn open(
        &mut self,
        method: Method,
        block: &[u8],
        ends: bool,
        is_leased: bool,
    ) -> Result<u32, StreamFault> {
        self.reserved -= 1;
        let opened = match self.ended {
            Some(fault) => Err(fault),
            // The backend lowered its limit, or goes away.
            None => self.wire.open(method, block, ends, &mut self.out).map_err(|_| StreamFault::GoingAway),
        };
        match opened {
            Ok(id) => {
                let window = if is_leased { LEASED_WINDOW } else { FIRST_WINDOW };
                if is_leased {
                    self.wire.widen(id, LEASED_WINDOW - FIRST_WINDOW, &mut self.out);
                }
                self.open.insert(id, Stream { window, ..Stream::default() });
                self.wake_session();
            }
            Err(_) => self.left(),
        }
        opened
    }

    /// Takes no more requests, and ends after those it has.
    pub(super) fn close(&mut self) {
        self.is_closing = true;
        self.wake_session();
    }

    /// Whether it may end now.
    pub(super) fn is_drained(&self) -> bool {
        self.is_closing && self.is_idle()
    }

    /// Asks the backend for a sign of life, because a response did not come in time.
    pub(super) fn probe(&mut self) {
        if self.probed.is_none() && self.ended.is_none() {
            self.probed = Some(Moment::now());
            self.wire.ping(*b"sandarac", &mut self.out);
            self.wake_session();
        }
    }

    /// Since when a sign of life has been awaited.
    pub(super) fn probed(&self) -> Option<Moment> {
        self.probed
    }

    /// Something was received.
    pub(super) fn received(&mut self) {
        self.probed = None;
    }

    /// Whether there is something to write, if windows allow it.
    pub(super) fn has_output(&self) -> bool {
        !self.out.is_empty() || !self.ready.is_empty()
    }

    /// Takes the frames that wait.
    pub(super) fn take_frames(&mut self, out: &mut Vec<u8>) {
        if !self.out.is_empty() {
            out.extend_from_slice(&self.out);
            // A connection that waits holds no memory.
            self.out = Vec::new();
        }
    }

    /// Lets `act` add frames.
    pub(super) fn with_frames(&mut self, act: impl FnOnce(&mut Connection, &mut Vec<u8>)) {
        act(&mut self.wire, &mut self.out);
    }

    /// Writes what streams have to send, in turn, as far as windows and [`BATCH`] allow.
    pub(super) fn write(&mut self, output: &mut Output) {
        while output.len() < BATCH
            && let Some(id) = self.ready.pop_front()
        {
            let Some(stream) = self.open.get_mut(&id) else { continue };
            stream.is_ready = false;
            match stream.outgoing.write_frame(&mut self.wire, id, output) {
                Wrote::Data(len) => {
                    stream.sent += len as u64;
                    if stream.outgoing.has_more() {
                        stream.is_ready = true;
                        self.ready.push_back(id);
                    }
                    stream.wake();
                }
                Wrote::End(len) => {
                    stream.sent += len as u64;
                    stream.wake();
                }
                Wrote::Nothing => {}
                Wrote::Unread(_) => debug_assert!(false, "request bodies are in memory"),
                Wrote::Blocked if self.wire.awaits_stream_window(id) => stream.is_stalled = true,
                Wrote::Blocked => {
                    // The window of the connection is closed.
                    stream.is_ready = true;
                    self.ready.push_front(id);
                    break;
                }
            }
        }
    }

    /// The window of a stream was opened, or that of all if `id` is 0.
    pub(super) fn window_opened(&mut self, id: u32) {
        let stalled: Vec<u32> = match id {
            0 => self.open.iter().filter(|(_, stream)| stream.is_stalled).map(|(id, _)| *id).collect(),
            id => vec![id],
        };
        stalled.into_iter().for_each(|id| self.schedule(id));
    }

    /// The backend's settings came.
    pub(super) fn settings_changed(&mut self) {
        self.has_settings = true;
        self.opener.take().into_iter().for_each(Waker::wake);
        self.window_opened(0);
    }

    /// A head was received.
    pub(super) fn receive_head(&mut self, id: u32, response: &Response<'_>, ends: bool) {
        let Some(stream) = self.open.get_mut(&id) else { return };
        let framing = match response {
            _ if response.is_interim() => {
                stream.interim += cost(response.head.fields);
                Framing::Interim
            }
            Response { has_body: true, content_length, .. } if !ends => Framing::Body(*content_length),
            _ => Framing::None,
        };
        if stream.interim > MAX_INTERIM {
            self.wire.reset(id, ErrorCode::ENHANCE_YOUR_CALM, &mut self.out);
            return self.lose(id, StreamFault::TooManyInterim);
        }
        stream.heads.push_back((ResponseHeadBuf::copy_of(&response.head), framing));
        if ends {
            stream.end = Some(FieldsBuf::new());
        }
        stream.wake();
    }

    /// Data was received. What nobody wants is given back.
    pub(super) fn receive(&mut self, id: u32, data: &[u8], ends: bool, out: &mut Vec<u8>) {
        let Some(stream) = self.open.get_mut(&id) else {
            return self.wire.release(id, data.len() as u32, out);
        };
        stream.data.extend_from_slice(data);
        if ends {
            stream.end = Some(FieldsBuf::new());
        }
        stream.wake();
    }

    /// Trailers were received, which end the response.
    pub(super) fn receive_trailers(&mut self, id: u32, trailers: FieldsBuf) {
        if let Some(stream) = self.open.get_mut(&id) {
            stream.end = Some(trailers);
            stream.wake();
        }
    }

    /// Gives up a stream.
    pub(super) fn lose(&mut self, id: u32, fault: StreamFault) {
        if let Some(stream) = self.open.get_mut(&id) {
            stream.outgoing = Outgoing::default();
            stream.fault.get_or_insert(fault);
            stream.wake();
        }
    }

    /// The backend goes away, and processes no stream above `last`.
    pub(super) fn going_away(&mut self, last: u32) {
        self.is_closing = true;
        let above = self.open.range(last.saturating_add(1)..).filter(|(_, stream)| stream.end.is_none());
        let above: Vec<u32> = above.map(|(id, _)| *id).collect();
        above.into_iter().for_each(|id| self.lose(id, StreamFault::GoingAway));
    }

    /// The connection has ended.
    pub(super) fn end(&mut self, fault: StreamFault) {
        self.ended.get_or_insert(fault);
        self.opener.take().into_iter().for_each(Waker::wake);
        let all: Vec<u32> = self.open.keys().copied().collect();
        all.into_iter().for_each(|id| self.lose(id, fault));
    }

    /// Why a stream was given up.
    pub(super) fn fault(&self, id: u32) -> Option<StreamFault> {
        self.open.get(&id).map_or(Some(StreamFault::Lost), |stream| stream.fault)
    }

    /// Adds a piece of the request body.
    pub(super) fn send(&mut self, id: u32, piece: Piece) -> Result<(), StreamFault> {
        self.change(id, |stream| stream.outgoing.add(piece))
    }

    /// Ends the request body, with these trailers, as a block, or none.
    pub(super) fn send_end(&mut self, id: u32, trailers: Vec<u8>) -> Result<(), StreamFault> {
        self.change(id, |stream| stream.outgoing.end(trailers))
    }

    fn change(&mut self, id: u32, act: impl FnOnce(&mut Stream)) -> Result<(), StreamFault> {
        let stream = self.open.get_mut(&id).ok_or(StreamFault::Lost)?;
        if let Some(fault) = stream.fault {
            return Err(fault);
        }
        act(stream);
        self.schedule(id);
        self.wake_session();
        Ok(())
    }

    /// Bytes of the request body that are queued, and those that were written.
    pub(super) fn progress(&self, id: u32) -> (usize, u64) {
        self.open.get(&id).map_or((0, 0), |stream| (stream.outgoing.queued(), stream.sent))
    }

    /// Ready when nothing of the request body is queued, nor its end.
    pub(super) fn poll_flush(&mut self, id: u32, cx: &Context<'_>) -> Poll<Result<(), StreamFault>> {
        let Some(stream) = self.open.get_mut(&id) else { return Poll::Ready(Err(StreamFault::Lost)) };
        match stream.fault {
            Some(fault) => Poll::Ready(Err(fault)),
            None if !stream.outgoing.has_more() => Poll::Ready(Ok(())),
            None => stream.wait(cx),
        }
    }

    /// The next head.
    pub(super) fn poll_head(
        &mut self,
        id: u32,
        cx: &Context<'_>,
    ) -> Poll<Result<(ResponseHeadBuf, Framing), StreamFault>> {
        let Some(stream) = self.open.get_mut(&id) else { return Poll::Ready(Err(StreamFault::Lost)) };
        if let Some((head, framing)) = stream.heads.pop_front() {
            if framing == Framing::Interim {
                stream.interim = stream.interim.saturating_sub(cost(head.fields.view()));
            }
            return Poll::Ready(Ok((head, framing)));
        }
        match stream.fault {
            Some(fault) => Poll::Ready(Err(fault)),
            None => stream.wait(cx),
        }
    }

    /// The next step of the body, if there is one. At most `most` bytes are moved to `into`, which MUST be
    /// empty.
    /// `announced` is how many the body still has by its Content-Length.
    pub(super) fn body_step(
        &mut self,
        id: u32,
        into: &mut Vec<u8>,
        most: usize,
        announced: Option<u64>,
    ) -> Option<Result<Arrived, StreamFault>> {
        let Some(stream) = self.open.get_mut(&id) else { return Some(Err(StreamFault::Lost)) };
        let taken = take_data(&mut stream.data, into, most, announced, stream.end.is_some());
        if taken > 0 {
            return Some(Ok(Arrived::Data(taken)));
        }
        if let Some(trailers) = stream.end.take() {
            stream.end = Some(FieldsBuf::new());
            return Some(Ok(Arrived::End(trailers)));
        }
        stream.fault.map(Err)
    }

    /// Wakes the task when the stream changes.
    pub(super) fn wait(&mut self, id: u32, cx: &Context<'_>) {
        if let Some(stream) = self.open.get_mut(&id) {
            let _: Poll<()> = stream.wait(cx);
        }
    }

    /// Bytes of a response body were used.
    pub(super) fn release(&mut self, id: u32, bytes: usize) {
        let before = self.out.len();
        self.wire.release(id, bytes as u32, &mut self.out);
        if let Some(stream) = self.open.get_mut(&id) {
            stream.used += bytes as u64;
        }
        if self.out.len() > before {
            self.wake_session();
        }
    }

    /// Widens the window of a stream whose body has `announced` bytes more by its Content-Length, or turns
    /// out to be long.
    pub(super) fn widen(&mut self, id: u32, announced: Option<u64>) {
        let Some(stream) = self.open.get_mut(&id) else { return };
        let window = u64::from(stream.window);
        let is_long = announced.map_or(stream.used > window / 2, |left| left > window);
        if is_long && stream.window < STREAM_WINDOW && stream.end.is_none() {
            self.wire.widen(id, STREAM_WINDOW - stream.window, &mut self.out);
            stream.window = STREAM_WINDOW;
            self.wake_session();
        }
    }

    /// Bytes of a response that wait for the request, and those that the backend may send although they are
    /// not used.
    pub(super) fn may_hold(&self, id: u32) -> usize {
        let Some(stream) = self.open.get(&id) else { return 0 };
        let more = if stream.end.is_some() || stream.fault.is_some() { 0 } else { stream.window as usize };
        stream.data.len().max(more)
    }

    /// The request of a stream has ended, with `unused` bytes that it took. What has not ended is reset.
    pub(super) fn leave(&mut self, id: u32, unused: usize, code: ErrorCode) {
        let Some(stream) = self.open.remove(&id) else { return };
        let before = self.out.len();
        self.wire.reset(id, code, &mut self.out);
        self.wire.release(id, (unused + stream.data.len()) as u32, &mut self.out);
        if self.out.len() > before {
            self.wake_session();
        }
        self.left();
    }

    fn left(&mut self) {
        if self.is_idle() {
            self.idle_since = Moment::now();
            self.ready = VecDeque::new();
            if self.is_closing {
                self.wake_session();
            }
        }
    }

    fn schedule(&mut self, id: u32) {
        if let Some(stream) = self.open.get_mut(&id)
            && stream.outgoing.has_more()
            && !stream.is_ready
        {
            stream.is_ready = true;
            stream.is_stalled = false;
            self.ready.push_back(id);
        }
    }
}

/// What an interim response counts for, in bytes.
fn cost(fields: Fields<'_>) -> usize {
    size_of::<ResponseHeadBuf>() + fields.encoded_len()
}

impl Stream {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn wait<T>(&mut self, cx: &Context<'_>) -> Poll<T> {
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            self.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}
