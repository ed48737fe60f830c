//! The client of one exchange over HTTP/1.1, which has the connection to itself, and the fate of the
//! connection afterwards.

use super::connection::{Connection, Handover, WaitedFor, poll_room};
use super::encoder::{self, Coding, Encoded};
use crate::account::{Held, Lease};
use crate::response::Response;
use crate::service::{Client, Peer, Service, SessionLimits};
use crate::sessions::Sessions;
use crate::{BUFFER_SIZE, BodyError, BodyStep, COPIED, Duplex, Framer, Output, RateGauge, Timer, Unread};
use sandarac_message::{Fields, Piece, Version};
use sandarac_wire::h1::Refusal;
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// The most bytes of a request body that are read and dropped to keep a connection, and the time allowed for
/// it. A response announces a kept connection only if no more than this is to come.
const DISCARDED: u64 = 64 * 1024;
const DISCARD_FOR: Duration = Duration::from_secs(1);

/// Bytes that wait for the socket. Above this, interim responses are dropped.
const INTERIM_QUEUE: usize = 64 * 1024;

/// What happens to a connection after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Another request may follow.
    KeepAlive,
    /// It is closed once everything is written.
    Close,
    /// It is closed although the client may still be sending.
    CloseLingering,
    /// It is reset, because closing it would look like the end of a complete response.
    Reset,
}

/// The progress of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The response has not begun.
    Awaited,
    /// The head was begun.
    Begun(Encoded),
    /// The response is written or queued to its end.
    Ended(Encoded),
    /// Another protocol has taken the connection over.
    Tunnel,
    /// The other protocol has ended in order.
    TunnelEnded,
}

/// The client of one exchange.
pub(super) struct Http1Client<'c> {
    connection: &'c mut Connection,
    sessions: &'c Sessions,
    limits: SessionLimits,
    version: Version,
    keep_alive: bool,
    /// Whether the request announced that its body waits for 100 (Continue).
    expect_continue: bool,
    /// Whether it still does.
    awaits_continue: bool,
    body: Framer,
    /// Whether the rest of the body will not be read.
    body_given_up: bool,
    /// When the next piece of the body must have arrived.
    body_deadline: Timer,
    body_received: u64,
    rate_in: RateGauge,
    waited_for: WaitedFor,
    /// The memory of input that waits.
    input: Lease,
    /// See [`Service::memory_pressure`].
    pressure: &'c AtomicBool,
    /// Whether the client's connection has failed while it was waited for.
    is_gone: bool,
    /// A head that is begun and not written yet.
    head: Vec<u8>,
    stage: Stage,
}

impl<'c> Http1Client<'c> {
    pub(super) fn new<S: Service, D>(
        service: &'c S,
        connection: &'c mut Connection,
        sessions: &'c Sessions,
        limits: SessionLimits,
        exchange: &Handover<D>,
    ) -> Http1Client<'c> {
        let Handover { incoming, framing, keep_alive } = exchange;
        let waited_for = WaitedFor::new(&connection.peer.holder);
        let input = connection.peer.holder.holds(Held::Uploads, connection.conn.input_memory());
        Http1Client {
            connection,
            sessions,
            limits,
            version: incoming.head.version,
            keep_alive: *keep_alive,
            expect_continue: incoming.expect_continue,
            awaits_continue: incoming.expect_continue && !framing.is_empty(),
            body: Framer::from(*framing),
            body_given_up: false,
            body_deadline: Timer::new(),
            body_received: 0,
            rate_in: RateGauge::new(),
            waited_for,
            input,
            pressure: service.memory_pressure(),
            is_gone: false,
            head: Vec::new(),
            stage: Stage::Awaited,
        }
    }

    fn has_body_ended(&self) -> bool {
        self.body.remaining() == Some(0)
    }

    /// Whether the connection can serve another request after a response that begins now. A client that waits
    /// for 100 (Continue) might send its body after all, or another request instead, and the two cannot be
    /// told apart (RFC 9110 §10.1.1).
    fn may_keep_alive(&self) -> bool {
        let is_small = || self.body.remaining().is_some_and(|left| left <= DISCARDED);
        let can_end = self.has_body_ended() || (!self.expect_continue && is_small());
        self.keep_alive && can_end && !self.body_given_up && !self.sessions.are_last()
    }

    /// Ends the exchange and returns what happens to the connection.
    pub(super) async fn finish(mut self) -> Next {
        if self.is_gone || self.input.holder().is_cut() {
            return Next::Reset;
        }
        self.connection.conn.limit_reads(usize::MAX);
        let keep_alive = match self.stage {
            Stage::Begun(Encoded { coding: Coding::UntilClose, .. }) | Stage::Tunnel => return Next::Reset,
            Stage::Ended(encoded) => encoded.keep_alive && !self.body_given_up,
            Stage::Awaited | Stage::Begun(_) | Stage::TunnelEnded => false,
        };
        match (keep_alive, self.has_body_ended()) {
            (false, true) => Next::Close,
            (true, true) => Next::KeepAlive,
            // A client that waits for 100 (Continue) may send another request instead of the body.
            (true, false) if !self.expect_continue && self.discard_body().await => Next::KeepAlive,
            (_, false) => Next::CloseLingering,
        }
    }

    /// Reads and drops the rest of the request body; false if it is too long, or takes too long.
    async fn discard_body(&mut self) -> bool {
        let Connection { conn, timer, .. } = &mut *self.connection;
        timer.set(DISCARD_FOR);
        let mut limit = DISCARDED;
        poll_fn(|cx| {
            loop {
                match self.body.poll_step(conn, cx) {
                    Poll::Ready(Ok(BodyStep::Data(range))) => {
                        conn.consume(range.end);
                        limit = limit.saturating_sub(range.len() as u64);
                        if limit == 0 {
                            return Poll::Ready(false);
                        }
                    }
                    Poll::Ready(Ok(BodyStep::End(_))) => return Poll::Ready(true),
                    Poll::Ready(Err(_)) => return Poll::Ready(false),
                    Poll::Pending => {
                        ready!(timer.poll(cx));
                        return Poll::Ready(false);
                    }
                }
            }
        })
        .await
    }

    /// Counts the memory of input that waits.
    fn count_input(&mut self) {
        self.input.set(self.connection.conn.input_memory());
    }

    fn coding(&self) -> Coding {
        match self.stage {
            Stage::Begun(encoded) => encoded.coding,
            _ => unreachable!("a response is written before it is begun"),
        }
    }
}

impl Client for Http1Client<'_> {
    fn peer(&self) -> &Peer {
        &self.connection.peer
    }

    fn timer(&mut self) -> &mut Timer {
        &mut self.connection.timer
    }

    fn body_remaining(&self) -> Option<u64> {
        self.body.remaining()
    }

    fn body_arrived(&self) -> Result<u64, Refusal> {
        self.body.survey(self.connection.conn.data())
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<BodyStep, BodyError>> {
        self.connection.conn.limit_reads(self.input.holder().read_limit());
        match self.body.poll_step(&mut self.connection.conn, cx) {
            Poll::Ready(step) => {
                self.body_deadline.clear();
                self.awaits_continue = false;
                match &step {
                    Ok(BodyStep::Data(range)) => self.body_received += range.len() as u64,
                    Ok(BodyStep::End(_)) => {}
                    Err(_) => self.body_given_up = true,
                }
                Poll::Ready(step)
            }
            Poll::Pending if self.awaits_continue => Poll::Pending,
            Poll::Pending => {
                self.count_input();
                // The client may wait for an interim response for which the socket had no room.
                if self.connection.conn.queued() > 0 {
                    let _ = self.connection.conn.poll_flush(cx);
                }
                if !self.body_deadline.is_set() {
                    self.body_deadline.set(self.limits.body_timeout);
                }
                let is_fast = self.rate_in.waits(self.body_received, self.limits.min_rate_in).is_some();
                if !is_fast || self.body_deadline.poll(cx).is_ready() {
                    self.body_given_up = true;
                    return Poll::Ready(Err(BodyError::Late));
                }
                Poll::Pending
            }
        }
    }

    fn body_data(&self, range: &Range<usize>) -> &[u8] {
        &self.connection.conn.data()[range.clone()]
    }

    fn consume_body(&mut self, range: &Range<usize>) {
        self.connection.conn.consume(range.end);
        self.count_input();
    }

    fn awaits_continue(&self) -> bool {
        self.awaits_continue
    }

    fn pause_body(&mut self) {
        self.rate_in.goes_on(|| self.body_received);
        self.body_deadline.clear();
    }

    fn give_up_body(&mut self) {
        self.body_given_up = true;
    }

    fn poll_left(&mut self, cx: &mut Context<'_>, closed_is_left: bool) -> Poll<()> {
        let has_body_ended = self.has_body_ended();
        let conn = &mut self.connection.conn;
        // The responses to earlier requests go on being written meanwhile.
        if conn.queued() > 0 && matches!(conn.poll_flush(cx), Poll::Ready(Err(_))) {
            return Poll::Ready(());
        }
        // Looking beyond the next request would mean taking input that no exchange has asked for yet. Where
        // there is no room for what may come, one byte shows whether the client is there.
        let holder = self.input.holder();
        if holder.is_cut() {
            return Poll::Ready(());
        }
        let has_room = conn.input_memory() > 0 || holder.has_room(BUFFER_SIZE);
        let most = if has_room { holder.read_limit() } else { 1 };
        while conn.data().is_empty() || !has_body_ended && conn.data().len() < most {
            match conn.poll_fill_some(cx, most) {
                Poll::Ready(Ok(received)) if received > 0 => {}
                Poll::Ready(Ok(_)) if closed_is_left => return Poll::Ready(()),
                Poll::Ready(Err(why)) if why.kind() != ErrorKind::OutOfMemory => return Poll::Ready(()),
                _ => break,
            }
        }
        if !has_room {
            conn.park();
        }
        self.count_input();
        Poll::Pending
    }

    fn has_closed(&mut self) -> bool {
        self.connection.conn.unread() == Unread::End
    }

    fn interim(&mut self, cx: &mut Context<'_>, status: u16, reason: &[u8], fields: Fields<'_>) {
        // Interim responses are optional (RFC 9110 §15.2), but a client that waits for 100 gets it.
        let is_awaited = status == 100 && self.awaits_continue;
        let has_room = || self.connection.conn.queued() <= self.input.holder().window(INTERIM_QUEUE);
        if self.version == Version::Http10 || !is_awaited && !has_room() {
            return;
        }
        self.awaits_continue &= status != 100;
        let mut head = Vec::new();
        encoder::bare_head(&mut head, status, reason, fields);
        // A client that has left is noticed when the final response is written.
        let _ = self.connection.conn.write(cx, &[IoSlice::new(&head)]);
        self.waited_for.count(&self.connection.conn);
    }

    fn begin(&mut self, response: Response<'_>) {
        debug_assert_eq!(self.stage, Stage::Awaited, "a response begins once");
        let keep_alive = self.may_keep_alive();
        let encoded = encoder::head(&mut self.head, response, self.version, keep_alive);
        self.stage = Stage::Begun(encoded);
        if encoded.coding == Coding::UntilClose {
            // Until the body has ended. Works even if the process is killed.
            self.connection.conn.reset_when_dropped(true);
        }
    }

    fn send_begun(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.head.is_empty() {
            return Ok(());
        }
        self.connection.conn.write(cx, &[IoSlice::new(&std::mem::take(&mut self.head))])
    }

    fn write(&mut self, cx: &mut Context<'_>, piece: &[u8]) -> io::Result<()> {
        let coding = self.coding();
        let mut head = std::mem::take(&mut self.head);
        encoder::before_piece(&mut head, coding, piece.len());
        let after = encoder::after_piece(coding);
        if piece.len() <= COPIED && !head.is_empty() {
            head.extend_from_slice(piece);
            head.extend_from_slice(after);
            return self.connection.conn.write(cx, &[IoSlice::new(&head)]);
        }
        let slices = [IoSlice::new(&head), IoSlice::new(piece), IoSlice::new(after)];
        let from = usize::from(head.is_empty());
        let to = if after.is_empty() { 2 } else { 3 };
        self.connection.conn.write(cx, &slices[from..to])
    }

    fn share(&mut self, cx: &mut Context<'_>, piece: Piece) -> io::Result<()> {
        let coding = self.coding();
        let mut output = Output::beginning(std::mem::take(&mut self.head));
        encoder::before_piece(output.inline(), coding, piece.len());
        output.share(piece);
        output.inline().extend_from_slice(encoder::after_piece(coding));
        self.connection.conn.write_output(cx, &mut output)
    }

    fn end(&mut self, cx: &mut Context<'_>, trailers: Fields<'_>) -> io::Result<()> {
        let Stage::Begun(encoded) = self.stage else {
            unreachable!("a response ends once, after it has begun")
        };
        encoder::end(&mut self.head, encoded.coding, trailers);
        self.send_begun(cx)?;
        self.stage = Stage::Ended(encoded);
        if encoded.coding == Coding::UntilClose {
            self.connection.conn.reset_when_dropped(false);
        }
        Ok(())
    }

    fn poll_room(&mut self, cx: &mut Context<'_>, window: usize) -> Poll<io::Result<()>> {
        let Connection { conn, timer, .. } = &mut *self.connection;
        let waited_for = &mut self.waited_for;
        let room = poll_room(cx, conn, timer, window, &self.limits, self.pressure, waited_for);
        match &room {
            Poll::Ready(Err(why)) if why.kind() == ErrorKind::TimedOut => self.input.holder().cut(),
            Poll::Ready(Err(_)) => self.is_gone = true,
            _ => {}
        }
        room
    }

    fn keeps(&mut self, bytes: usize) {
        self.waited_for.kept = bytes;
        self.waited_for.count(&self.connection.conn);
    }

    fn read_limit(&self) -> usize {
        self.input.holder().read_limit()
    }

    fn switch(
        &mut self,
        cx: &mut Context<'_>,
        status: u16,
        reason: &[u8],
        fields: Fields<'_>,
    ) -> io::Result<()> {
        let mut head = Vec::new();
        encoder::bare_head(&mut head, status, reason, fields);
        self.stage = Stage::Tunnel;
        self.connection.conn.write(cx, &[IoSlice::new(&head)])
    }

    fn tunnel(&mut self) -> (&mut dyn Duplex, &mut Timer) {
        // The tunnel itself counts its memory.
        self.waited_for.count_nothing();
        self.input.set(0);
        (&mut self.connection.conn, &mut self.connection.timer)
    }

    fn end_tunnel(&mut self) {
        self.stage = Stage::TunnelEnded;
    }
}
