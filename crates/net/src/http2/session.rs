//! The session of one HTTP/2 connection.
//!
//! It alone reads and writes the socket. Requests that the service answers from memory are answered in place; any other becomes
//! an exchange in a task of its own, which shares its [streams](super::streams).

use super::in_place::{InPlace, Place};
use super::received::{self, ReceivedRequest};
use super::scratch::Scratch;
use super::streams::{Memory, Streams};
use crate::account::{Held, Lease};
use crate::lent::Lent;
use crate::service::{Peer, Refused, Service};
use crate::sessions::Membership;
use crate::{Conn, Moment, RateGauge, Timer};
use sandarac_message::FieldsBuf;
use sandarac_wire::h2::connection::{Config, Connection, Event};
use sandarac_wire::h2::settings::Settings;
use sandarac_wire::h2::{Fault, Priority};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// Concurrent requests of a connection (RFC 9113 §6.5.2 recommends no fewer).
const MAX_STREAMS: u32 = 100;

/// Windows for request bodies: bytes that may wait for their exchanges, of one stream and of a connection.
const STREAM_WINDOW: u32 = 128 * 1024;
const CONNECTION_WINDOW: u32 = 512 * 1024;

/// Bytes of output that may wait for the socket. Above this, nothing is read: a client that takes no responses makes no
/// requests.
const UNWRITTEN: usize = 64 * 1024;

/// How often a client is judged while it is waited for.
const JUDGE_EVERY: Duration = Duration::from_secs(1);

/// How long after GOAWAY requests are still accepted from a client that does not reply to a PING.
const ROUND_TRIP: Duration = Duration::from_secs(1);

/// The shortest deadline to set: a shorter one has already passed on the coarse clock.
const TICK: Duration = Duration::from_millis(1);

/// The data of that PING.
const LAST_PING: [u8; 8] = *b"sandarac";

/// The fate of the connection after the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It is closed.
    Close,
    /// It is closed although the client may still be sending.
    Linger,
    /// It is reset.
    Reset,
}

/// Serves a connection that speaks HTTP/2 to its end.
pub(crate) async fn serve<S: Service>(
    conn: &mut Conn,
    peer: &mut Peer,
    timer: &mut Timer,
    service: &Rc<S>,
    membership: &Membership,
) -> End {
    let mut session = Session::new(conn, peer, timer, service, membership);
    let end = poll_fn(|cx| session.poll(cx)).await;
    session.streams.borrow_mut().lose_all(ErrorKind::ConnectionReset);
    // Exchanges notice that, and end.
    poll_fn(|cx| {
        let mut streams = session.streams.borrow_mut();
        streams.wakes(cx.waker());
        if streams.exchanges() == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    end
}

struct Session<'s, S: Service> {
    conn: &'s mut Conn,
    peer: &'s mut Peer,
    timer: &'s mut Timer,
    service: &'s Rc<S>,
    membership: &'s Membership,
    streams: Rc<RefCell<Streams>>,
    /// The beginning of the codec's clock.
    began: Moment,
    /// Bytes received.
    received: u64,
    /// The incomplete frame or header block at the beginning of [`Conn::data`].
    partial: Option<Partial>,
    /// Whether no request is being served, and since when.
    is_idle: bool,
    idle_since: Moment,
    rate_in: RateGauge,
    rate_out: RateGauge,
    /// Measures the client while it holds so much that it has to give way.
    rate_held: RateGauge,
    /// When a connection that is to end accepts no more requests.
    finishes: Option<Moment>,
    /// The end that follows once everything is written.
    end: Option<End>,
    /// Whether output waits for the socket.
    is_blocked: bool,
    /// The memory of responses and of request bodies that wait.
    responses: Lease,
    uploads: Lease,
}

/// Input that is incomplete.
#[derive(Clone, Copy, Debug)]
struct Partial {
    /// Since when it has been incomplete; for data, since when nothing more of it has come.
    since: Moment,
    is_data: bool,
}

impl<'s, S: Service> Session<'s, S> {
    fn new(
        conn: &'s mut Conn,
        peer: &'s mut Peer,
        timer: &'s mut Timer,
        service: &'s Rc<S>,
        membership: &'s Membership,
    ) -> Session<'s, S> {
        let limits = service.limits(peer.listener).head;
        let config = Config {
            settings: Settings {
                max_concurrent_streams: MAX_STREAMS,
                initial_window_size: STREAM_WINDOW,
                max_header_list_size: limits.head as u32,
                enable_connect_protocol: true,
                ..Config::default().settings
            },
            window: CONNECTION_WINDOW,
            limits,
        };
        let streams = Streams::new(|out| Connection::server(&config, out));
        let began = Moment::now();
        let (responses, uploads) = (peer.holder.nothing(Held::Responses), peer.holder.nothing(Held::Uploads));
        Session {
            conn,
            peer,
            timer,
            service,
            membership,
            streams: Rc::new(RefCell::new(streams)),
            began,
            received: 0,
            partial: None,
            is_idle: true,
            idle_since: began,
            rate_in: RateGauge::new(),
            rate_out: RateGauge::new(),
            rate_held: RateGauge::new(),
            finishes: None,
            end: None,
            is_blocked: false,
            responses,
            uploads,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.streams.borrow_mut().wakes(cx.waker());
        loop {
            self.drain();
            if self.write(cx).is_err() {
                return Poll::Ready(End::Close);
            }
            // The last response may have been written.
            self.end_when_done();
            if let Some(end) = self.end
                && self.conn.queued() == 0
            {
                return Poll::Ready(end);
            }
            if self.end.is_none() && self.conn.queued() <= self.peer.holder.window(UNWRITTEN) {
                match self.read(cx) {
                    Poll::Ready(Ok(())) => continue,
                    Poll::Ready(Err(end)) => return Poll::Ready(end),
                    Poll::Pending => {}
                }
            }
            self.conn.park();
            if self.count_held().is_break() {
                return Poll::Ready(self.cut());
            }
            if self.gives_way() {
                continue;
            }
            match self.judge(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(end)) => return Poll::Ready(end),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Notes whether the connection is idle. Whether it has to end for the sake of another one: then the
    /// client is told, which has to be written.
    fn gives_way(&mut self) -> bool {
        let mut streams = self.streams.borrow_mut();
        if self.end.is_some() || self.conn.queued() > 0 || !streams.is_idle() {
            self.membership.works();
            return false;
        }
        let is_partial = self.partial.is_some() || self.conn.has_part();
        if !self.membership.gives_way(self.conn, self.peer.requests, is_partial) {
            return false;
        }
        self.service.gave_way();
        streams.with_frames(Connection::finish);
        self.end = Some(End::Close);
        true
    }

    /// Counts what the streams hold. Breaks if the socket begins to take no more, and all hold more than they may: then this
    /// client has to give way, if more than a little waits for the socket.
    fn count_held(&mut self) -> ControlFlow<()> {
        let Memory { queues, entries, uploads } = self.streams.borrow().memory();
        let output = self.conn.output_memory();
        self.responses.set(queues + entries + output);
        self.uploads.set(uploads + self.conn.input_memory());
        let is_blocked = self.conn.queued() > 0;
        let was_blocked = std::mem::replace(&mut self.is_blocked, is_blocked);
        match is_blocked && !was_blocked && self.peer.holder.gives_way_at_once(output) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Ends a connection whose client is too slow for what it holds.
    fn cut(&self) -> End {
        self.peer.holder.cut();
        self.service.cut_off();
        End::Reset
    }

    /// Tells the client that the connection ends, if the process or the listener does.
    fn drain(&mut self) {
        if self.finishes.is_none() && self.membership.sessions.have_to_leave(self.peer.listener) {
            self.announce_end();
        }
        if self.finishes.is_some_and(|at| Moment::now() >= at) {
            self.streams.borrow_mut().with_frames(Connection::finish);
        }
    }

    /// Ends a connection that accepts no more requests when it has answered all.
    fn end_when_done(&mut self) {
        if self.finishes.is_none() {
            return;
        }
        let streams = self.streams.borrow();
        if streams.is_idle() && streams.wire.is_drained() && self.end.is_none() {
            self.end = Some(End::Linger);
        }
    }

    fn announce_end(&mut self) {
        self.finishes = Some(Moment::now().plus(ROUND_TRIP));
        self.streams.borrow_mut().with_frames(|wire, out| {
            wire.announce_end(out);
            wire.ping(LAST_PING, out);
        });
    }

    /// Writes what there is, as far as the socket takes it.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), ()> {
        loop {
            if self.conn.queued() > 0 {
                match self.conn.poll_flush(cx) {
                    Poll::Ready(flushed) => flushed.map_err(drop)?,
                    Poll::Pending => return Ok(()),
                }
            }
            let mut streams = self.streams.borrow_mut();
            streams.wire.replies_sent();
            if !streams.has_output() {
                return Ok(());
            }
            let mut scratch = Lent::<Scratch>::take();
            streams.take_frames(scratch.output.inline());
            let truncated = streams.write(cx, &mut scratch.output);
            (0..truncated).for_each(|_| self.service.body_truncated());
            if scratch.output.is_empty() {
                return Ok(());
            }
            self.conn.write_output(cx, &mut scratch.output).map_err(drop)?;
        }
    }

    /// Reads once, and serves the frames that are there. Pending if nothing has arrived.
    fn read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        if self.conn.data().is_empty() || self.partial.is_some() {
            match ready!(self.conn.poll_fill(cx)) {
                Ok(received @ 1..) => self.received += received as u64,
                // A client that has closed its side opens no windows, so nothing more can be sent to it.
                _ => return Poll::Ready(Err(End::Close)),
            }
        }
        let mut scratch = Lent::<Scratch>::take();
        let streams = self.streams.clone();
        let mut streams = streams.borrow_mut();
        streams.take_frames(scratch.output.inline());
        if let Err(fault) = self.serve_frames(&mut streams, &mut scratch) {
            self.service.http2_fault(self.peer, fault, true);
            self.end = Some(End::Linger);
        } else if self.conn.queued() == 0 {
            let truncated = streams.write(cx, &mut scratch.output);
            (0..truncated).for_each(|_| self.service.body_truncated());
        }
        let written = self.conn.write_output(cx, &mut scratch.output);
        Poll::Ready(written.map_err(|_| End::Close))
    }

    /// Serves the complete frames in the read buffer, as long as there is room for output.
    fn serve_frames(&mut self, streams: &mut Streams, scratch: &mut Scratch) -> Result<(), Fault> {
        let limits = self.service.limits(self.peer.listener);
        let (began, now) = (Instant::now(), Moment::now());
        let is_open = self.conn.queued() == 0;
        let Scratch { head, output, block } = scratch;
        while !self.conn.data().is_empty() && output.len() + self.conn.queued() <= UNWRITTEN {
            let since_began = now.since(self.began);
            let received = streams.wire.receive(self.conn.data(), head, output.inline(), since_began)?;
            let consumed = received.consumed;
            match received.event {
                None if consumed == 0 => {
                    self.note_partial(streams, now);
                    return Ok(());
                }
                None | Some(Event::SettingsAcknowledged) => {}
                Some(Event::Request { stream, request, priority, end_stream }) => {
                    self.peer.requests += 1;
                    self.idle_since = now;
                    if !self.peer.holder.may_look_ahead() {
                        self.membership.sessions.end_unfinished(now);
                    }
                    let received =
                        ReceivedRequest { id: stream, request, priority, has_ended: end_stream, began };
                    let responses = &mut self.responses;
                    let mut place = Place { streams, output, block, is_open, responses };
                    received.serve(self.service, self.peer, &self.streams, &limits, &mut place);
                    if self.peer.requests >= limits.max_requests && self.finishes.is_none() {
                        self.finishes = Some(now.plus(ROUND_TRIP));
                        streams.wire.announce_end(output.inline());
                        streams.wire.ping(LAST_PING, output.inline());
                    }
                }
                Some(Event::Refused { stream, refusal }) => {
                    self.peer.requests += 1;
                    self.idle_since = now;
                    let responses = &mut self.responses;
                    let mut place = Place { streams, output, block, is_open, responses };
                    let mut client = InPlace::new(&mut place, stream, Priority::default());
                    self.service.refuse(self.peer, &Refused::Http2(refusal), &[], &mut client);
                    received::finish(self.service, client);
                }
                Some(Event::Malformed { stream, refusal }) => {
                    self.service.ignored(&Refused::Http2(refusal));
                    // Its trailers may be malformed, long after its exchange began.
                    streams.lose(stream, ErrorKind::ConnectionReset);
                }
                Some(Event::Data { stream, data, end_stream }) => {
                    streams.receive(stream, data, end_stream, output.inline());
                }
                Some(Event::Trailers { stream, fields }) => {
                    streams.receive_trailers(stream, FieldsBuf::copy_of(fields));
                }
                Some(Event::Reset { stream, fault, .. }) => {
                    if let Some(fault) = fault {
                        self.service.http2_fault(self.peer, fault, false);
                    }
                    streams.lose(stream, ErrorKind::ConnectionReset);
                }
                Some(Event::WindowOpened { stream }) => streams.window_opened(stream),
                Some(Event::SettingsChanged) => streams.window_opened(0),
                Some(Event::PriorityChanged { stream, priority }) => streams.set_priority(stream, priority),
                Some(Event::Pong(data)) => {
                    if data == LAST_PING && self.finishes.is_some() {
                        streams.wire.finish(output.inline());
                    }
                }
                // The client opens no more streams.
                Some(Event::GoAway { .. }) => self.finishes = Some(now),
                Some(Event::Response { .. }) => debug_assert!(false, "clients send no responses"),
            }
            self.conn.consume(consumed);
        }
        self.partial = None;
        if self.conn.data().is_empty() {
            self.note_partial(streams, now);
        }
        Ok(())
    }

    /// Notes whether the input ends within a frame or a header block.
    fn note_partial(&mut self, streams: &mut Streams, now: Moment) {
        let data = self.conn.data();
        if data.is_empty() && streams.wire.is_between_messages() {
            self.partial = None;
            return;
        }
        // The type and the stream of a frame (RFC 9113 §4.1).
        let is_data = streams.wire.is_between_messages() && data.get(3) == Some(&0);
        if let (true, Some(id)) = (is_data, data.get(5..9)) {
            streams.arrives(u32::from_be_bytes(id.try_into().expect("four bytes")), now);
        }
        let since = self.partial.filter(|_| !is_data).map_or(now, |partial| partial.since);
        self.partial = Some(Partial { since, is_data });
    }

    /// Waits until the client has to be judged again. Fails if the connection has to end.
    fn judge(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let next = self.next_judgement();
        // RST_STREAM or GOAWAY may have to be written.
        if self.conn.queued() == 0 && (self.end.is_some() || self.streams.borrow().has_frames()) {
            return Poll::Ready(next.map(drop));
        }
        match next {
            Err(end) => return Poll::Ready(Err(end)),
            // The coarse clock has to have ticked by then.
            Ok(Some(wait)) => self.timer.set(wait.max(TICK)),
            Ok(None) => self.timer.clear(),
        }
        self.timer.poll(cx).map(Ok)
    }

    /// Judges the client by the time it takes. Returns how long to wait before the next time.
    fn next_judgement(&mut self) -> Result<Option<Duration>, End> {
        let now = Moment::now();
        let limits = self.service.limits(self.peer.listener);
        let mut streams = self.streams.borrow_mut();
        let mut next: Option<Duration> = None;
        let mut judge_in = |wait: Duration| next = Some(next.map_or(wait, |before| before.min(wait)));
        let has_to_give_way = self.peer.holder.presses();
        if has_to_give_way {
            // Whatever it is that the client holds: if it takes little meanwhile, all of it is given up.
            let minimum = limits.min_rate_of_those_who_press(&self.peer.holder);
            if self.rate_held.waits(self.conn.taken(), minimum).is_none() {
                return Err(self.cut());
            }
        } else {
            self.rate_held.goes_on(|| self.conn.taken());
        }
        if self.peer.holder.holds_much() {
            judge_in(JUDGE_EVERY);
        }
        // Output waits for the socket, or for the window of the connection.
        let is_pressed = self.service.memory_pressure().load(Ordering::Relaxed)
            || self.peer.holder.account().is_nearly_full();
        let presses = has_to_give_way || is_pressed && streams.hold_memory();
        let minimum = limits.min_rate_out(presses, &self.peer.holder);
        if self.conn.queued() > 0 || streams.has_scheduled() {
            let sent = self.conn.taken();
            let in_time = self.rate_out.still(sent) < limits.patience(presses);
            if self.rate_out.waits(sent, minimum).is_none() || !in_time {
                return Err(self.cut());
            }
            judge_in(JUDGE_EVERY.min(limits.send_timeout));
        } else {
            // Bytes on their way have been let through by the window, and will count in no other wait.
            self.rate_out.goes_on(|| self.conn.sent());
        }
        if self.end.is_some() {
            return Ok(next);
        }
        // A response waits for the window of its stream.
        let (slow, has_others) = streams.judge_stalled(&limits, presses.then_some(minimum));
        (0..slow).for_each(|_| self.service.cut_off());
        if has_others {
            judge_in(JUDGE_EVERY.min(limits.send_timeout));
        }
        // A response waits for a disk.
        let (truncated, has_others) = streams.judge_reads(limits.send_timeout);
        (0..truncated).for_each(|_| self.service.body_truncated());
        if has_others {
            judge_in(JUDGE_EVERY.min(limits.send_timeout));
        }
        if let Some(wait) = streams.reset_answered() {
            judge_in(wait);
        }
        // An exchange waits for a request body.
        if streams.awaits_bodies() {
            if self.rate_in.waits(self.received, limits.min_rate_in).is_none() {
                streams.lose_uploads();
            }
            judge_in(JUDGE_EVERY);
        } else {
            self.rate_in.goes_on(|| self.received);
        }
        let is_idle = streams.is_idle();
        if is_idle && !std::mem::replace(&mut self.is_idle, is_idle) {
            self.idle_since = now;
        }
        self.is_idle = is_idle;
        let of_requests = if self.peer.requests == 0 { limits.head_timeout } else { limits.idle_timeout };
        let mut deadlines = [
            is_idle.then(|| self.idle_since.plus(of_requests)),
            self.partial.map(|partial| {
                let time = if partial.is_data { limits.body_timeout } else { limits.head_timeout };
                partial.since.plus(time)
            }),
        ]
        .into_iter()
        .flatten();
        if deadlines.clone().any(|deadline| deadline <= now) {
            if self.partial.is_some_and(|partial| !partial.is_data) {
                self.service.ignored(&Refused::Late);
            }
            streams.with_frames(Connection::finish);
            self.end = Some(End::Linger);
            return Ok(next);
        }
        deadlines.by_ref().for_each(|deadline| judge_in(deadline.since(now)));
        if let Some(at) = self.finishes.filter(|at| *at > now) {
            judge_in(at.since(now));
        }
        Ok(next)
    }
}
