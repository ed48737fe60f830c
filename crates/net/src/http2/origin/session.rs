//! The session of a connection to a backend. It alone reads and writes the socket, in a task of its own.

use super::super::scratch::Scratch;
use super::fault::StreamFault;
use super::streams::Streams;
use crate::lent::Lent;
use crate::{Conn, Moment, Timer};
use sandarac_message::FieldsBuf;
use sandarac_wire::h2::connection::{Connection, Event};
use sandarac_wire::h2::{ErrorCode, Fault};
use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Bytes of output that may wait for the socket. Above this, nothing is read: a backend that takes nothing is owed no replies.
const UNWRITTEN: usize = 64 * 1024;

/// How long a backend may take to reply to PING after a response did not come in time.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Session {
    conn: Conn,
    streams: Rc<RefCell<Streams>>,
    timer: Timer,
    /// The beginning of the codec's clock.
    began: Moment,
    /// Whether more has to be read before a frame is complete.
    is_partial: bool,
    /// Whether GOAWAY was the last that it says.
    is_ending: bool,
    has_ended: bool,
}

impl Session {
    pub(super) fn new(conn: Conn, streams: Rc<RefCell<Streams>>) -> Session {
        Session {
            conn,
            streams,
            timer: Timer::new(),
            began: Moment::now(),
            is_partial: true,
            is_ending: false,
            has_ended: false,
        }
    }

    /// Serves the connection until it ends. Ready again at once if it has ended.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.has_ended {
            return Poll::Ready(());
        }
        self.streams.borrow_mut().wakes(cx.waker());
        let fault = ready!(self.poll_end(cx));
        self.has_ended = true;
        let mut streams = self.streams.borrow_mut();
        streams.end(fault);
        // The task may not be the one that noticed.
        streams.wake_session();
        Poll::Ready(())
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<StreamFault> {
        loop {
            self.drain();
            if self.write(cx).is_err() {
                return Poll::Ready(StreamFault::Lost);
            }
            // Nobody waits for what the socket does not take now.
            if self.is_ending {
                return Poll::Ready(StreamFault::Lost);
            }
            if self.conn.queued() <= UNWRITTEN {
                match self.read(cx) {
                    Poll::Ready(Ok(())) => continue,
                    Poll::Ready(Err(fault)) => return Poll::Ready(fault),
                    Poll::Pending => {}
                }
            }
            self.conn.park();
            let probed = self.streams.borrow().probed();
            match probed.map(|at| Moment::now().since(at)) {
                Some(waited) if waited >= PROBE_TIMEOUT => return Poll::Ready(StreamFault::Unresponsive),
                Some(waited) => self.timer.set(PROBE_TIMEOUT - waited),
                None => self.timer.clear(),
            }
            ready!(self.timer.poll(cx));
        }
    }

    /// Says goodbye on a connection that is not needed.
    fn drain(&mut self) {
        let mut streams = self.streams.borrow_mut();
        if !self.is_ending && streams.is_drained() {
            self.is_ending = true;
            streams.with_frames(Connection::finish);
        }
    }

    /// Writes what there is, as far as the socket takes it.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), ()> {
        loop {
            if self.conn.queued() > 0 {
                let flushed = self.conn.poll_flush(cx);
                self.streams.borrow_mut().unsent = self.conn.queued();
                match flushed {
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
            streams.write(&mut scratch.output);
            if scratch.output.is_empty() {
                return Ok(());
            }
            self.conn.write_output(cx, &mut scratch.output).map_err(drop)?;
            streams.unsent = self.conn.queued();
        }
    }

    /// Reads once, and takes the frames that are there. Pending if nothing has arrived.
    fn read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamFault>> {
        if self.conn.data().is_empty() || self.is_partial {
            match ready!(self.conn.poll_fill(cx)) {
                Ok(1..) => {}
                Ok(_) | Err(_) => return Poll::Ready(Err(StreamFault::Lost)),
            }
        }
        let mut scratch = Lent::<Scratch>::take();
        let streams = self.streams.clone();
        let mut streams = streams.borrow_mut();
        streams.received();
        // Frames of requests go first: what is written here may answer to what comes after them.
        streams.take_frames(scratch.output.inline());
        let taken = self.take_frames(&mut streams, &mut scratch);
        let written = self.conn.write_output(cx, &mut scratch.output);
        streams.unsent = self.conn.queued();
        Poll::Ready(match (taken, written) {
            (Err(fault), _) => Err(StreamFault::Violation(fault)),
            (Ok(()), Err(_)) => Err(StreamFault::Lost),
            (Ok(()), Ok(())) => Ok(()),
        })
    }

    /// Takes the complete frames in the read buffer. Only their own streams get what they hold.
    fn take_frames(&mut self, streams: &mut Streams, scratch: &mut Scratch) -> Result<(), Fault> {
        let now = Moment::now().since(self.began);
        let Scratch { head, output, .. } = scratch;
        self.is_partial = false;
        while !self.conn.data().is_empty() {
            let received = streams.wire.receive(self.conn.data(), head, output.inline(), now)?;
            let consumed = received.consumed;
            match received.event {
                None if consumed == 0 => {
                    self.is_partial = true;
                    return Ok(());
                }
                None | Some(Event::SettingsAcknowledged | Event::Pong(_)) => {}
                Some(Event::Response { stream, response, end_stream }) => {
                    streams.receive_head(stream, &response, end_stream);
                }
                Some(Event::Data { stream, data, end_stream }) => {
                    streams.receive(stream, data, end_stream, output.inline());
                }
                Some(Event::Trailers { stream, fields }) => {
                    streams.receive_trailers(stream, FieldsBuf::copy_of(fields));
                }
                Some(Event::Reset { stream, fault: Some(fault), .. }) => {
                    streams.lose(stream, StreamFault::Violation(fault));
                }
                Some(Event::Reset { stream, code: ErrorCode::REFUSED_STREAM, .. }) => {
                    streams.lose(stream, StreamFault::Refused);
                }
                Some(Event::Reset { stream, code, .. }) => streams.lose(stream, StreamFault::Reset(code)),
                Some(Event::Malformed { stream, refusal }) => {
                    streams.lose(stream, StreamFault::Malformed(refusal));
                }
                Some(Event::WindowOpened { stream }) => streams.window_opened(stream),
                Some(Event::SettingsChanged) => streams.settings_changed(),
                Some(Event::GoAway { last_stream, .. }) => streams.going_away(last_stream),
                Some(Event::Request { .. } | Event::Refused { .. } | Event::PriorityChanged { .. }) => {
                    debug_assert!(false, "backends send no requests");
                }
            }
            self.conn.consume(consumed);
        }
        Ok(())
    }
}
