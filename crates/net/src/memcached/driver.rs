//! The task that owns the socket: it connects, sends what waits, and reads answers.
//!
//! It runs while there is a connection or operations wait for one. All operations that are submitted in one
//! turn of the core leave in one write.

use super::address::Settings;
use super::handshake;
use super::operation::Abilities;
use super::pipeline::{PartialAnswer, Pipeline, Step};
use super::{Unavailable, Unexpected};
use crate::{Conn, Moment, Output, Timer, within};
use sandarac_wire::memcached::{Value, parse};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

/// Encoded bytes after which a write begins. Values are shared, not copied.
const WRITE_SIZE: usize = 64 * 1024;

/// A value of this many bytes is read into its place, because copying it takes longer than the reads that
/// this adds.
const LARGE: usize = 16 << 10;

/// Bytes that are read before a large value: its line, and little of the value, which is copied.
const BEGINNING: usize = 1024;

/// The state of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// Not connected. The next operation connects.
    Idle(
        /// Why the last connection or attempt ended, if there was one.
        Option<Unavailable>,
    ),
    /// Connecting, logging in or probing.
    Connecting,
    /// Connected, to a server with these abilities.
    Ready(Rc<Abilities>),
}

/// What a connection's handle and its task share.
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) pipeline: RefCell<Pipeline>,
    pub(super) state: RefCell<ConnectionState>,
    command: Cell<OwnerCommand>,
    is_running: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// A command of the owner to the task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OwnerCommand {
    None,
    /// Close the connection. Operations submitted later use a new one.
    Disconnect,
    /// Fail everything and end.
    End,
}

impl Shared {
    pub(super) fn new(settings: Settings) -> Rc<Shared> {
        Rc::new(Shared {
            pipeline: RefCell::new(Pipeline::new(settings.limits)),
            settings,
            state: RefCell::new(ConnectionState::Idle(None)),
            command: Cell::new(OwnerCommand::None),
            is_running: Cell::new(false),
            waker: RefCell::new(None),
        })
    }

    /// Makes the task look at the queue; starts it if it does not run.
    pub(super) fn proceed(self: &Rc<Shared>) {
        if self.is_running.replace(true) {
            self.wake();
        } else {
            self.command.set(OwnerCommand::None);
            crate::spawn(crate::PanicPart::Tier, || run(Running(self.clone())));
        }
    }

    /// Closes the connection.
    pub(super) fn disconnect(&self) {
        self.pipeline.borrow_mut().fail_all(&Unavailable::Ended);
        self.command.set(OwnerCommand::Disconnect);
        self.wake();
    }

    /// Ends the task.
    pub(super) fn end(&self) {
        self.command.set(OwnerCommand::End);
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Begins a turn of the task: ready if the connection is not wanted any more.
    fn poll_unwanted(&self, cx: &Context<'_>) -> Poll<()> {
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        if self.command.get() == OwnerCommand::None { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Fails the operations whose deadline has passed, and waits for the next deadline.
    fn poll_deadlines(&self, cx: &mut Context<'_>, timer: &mut Timer) {
        let pipeline = &mut *self.pipeline.borrow_mut();
        loop {
            match pipeline.next_deadline(Moment::now()) {
                Some(after) => timer.set_earlier(after),
                None => timer.clear(),
            }
            if timer.poll(cx).is_pending() {
                return;
            }
            pipeline.expire(Moment::now());
        }
    }
}

/// The task's share. Whichever way the task ends, another one can be started afterwards, and no operation
/// waits for it.
struct Running(Rc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.is_running.set(false);
        self.0.pipeline.borrow_mut().fail_all(&Unavailable::Ended);
        let mut state = self.0.state.borrow_mut();
        if !matches!(*state, ConnectionState::Idle(_)) {
            *state = ConnectionState::Idle(None);
        }
    }
}

async fn run(running: Running) {
    let shared = &*running.0;
    let mut timer = Timer::new();
    loop {
        let why = serve(shared, &mut timer).await;
        let reconnects = match shared.command.replace(OwnerCommand::None) {
            OwnerCommand::None => shared.pipeline.borrow_mut().disconnected(&why),
            OwnerCommand::Disconnect => shared.pipeline.borrow().has_waiting(),
            OwnerCommand::End => false,
        };
        if !reconnects {
            shared.pipeline.borrow_mut().fail_all(&why);
            shared.state.replace(ConnectionState::Idle(Some(why)));
            return;
        }
    }
}

/// Connects, and serves until the connection ends. Returns the reason.
async fn serve(shared: &Shared, timer: &mut Timer) -> Unavailable {
    shared.state.replace(ConnectionState::Connecting);
    let opened = {
        let mut opening = pin!(within(shared.settings.connect_timeout, handshake::open(&shared.settings)));
        poll_fn(|cx| {
            if shared.poll_unwanted(cx).is_ready() {
                return Poll::Ready(Err(Unavailable::Ended));
            }
            shared.poll_deadlines(cx, timer);
            let opened = ready!(opening.as_mut().poll(cx));
            Poll::Ready(opened.unwrap_or(Err(Unavailable::ConnectTimedOut)))
        })
        .await
    };
    let (conn, abilities) = match opened {
        Ok(opened) => opened,
        Err(why) => return why,
    };
    let abilities = Rc::new(abilities);
    shared.pipeline.borrow_mut().connected();
    shared.state.replace(ConnectionState::Ready(abilities.clone()));
    let sent = conn.sent();
    let mut link = Link { conn, abilities, value: None, expects_large: false, sent };
    poll_fn(|cx| {
        if shared.poll_unwanted(cx).is_ready() {
            return Poll::Ready(Unavailable::Ended);
        }
        let ended = link.poll(cx, &mut shared.pipeline.borrow_mut());
        shared.poll_deadlines(cx, timer);
        ended
    })
    .await
}

/// An open connection.
struct Link {
    conn: Conn,
    abilities: Rc<Abilities>,
    /// The value that is arriving.
    value: Option<(Value, PartialAnswer)>,
    /// Whether the last value was large. Then the next one is expected to be.
    expects_large: bool,
    /// Bytes sent that are counted.
    sent: u64,
}

impl Link {
    /// Moves bytes in both directions; ready with the reason when the connection has ended.
    fn poll(&mut self, cx: &mut Context<'_>, pipeline: &mut Pipeline) -> Poll<Unavailable> {
        // Answers first: if the server has closed an idle connection, nothing more is sent on it.
        if let Poll::Ready(why) = self.poll_answers(cx, pipeline) {
            return Poll::Ready(why);
        }
        let sent = self.poll_requests(cx, pipeline);
        self.conn.park();
        match sent {
            Ok(()) => Poll::Pending,
            Err(why) => Poll::Ready(why),
        }
    }

    fn poll_answers(&mut self, cx: &mut Context<'_>, pipeline: &mut Pipeline) -> Poll<Unavailable> {
        loop {
            if let Err(why) = self.take_answers(pipeline) {
                return Poll::Ready(why);
            }
            let rest = self.value.as_mut().and_then(|(value, _)| value.rest());
            let received = match rest {
                // All that was read before is taken.
                Some((bytes, missing)) => ready!(self.conn.poll_append_to(cx, bytes, missing)),
                // A single answer is there sooner by one read.
                None if self.expects_large && pipeline.operations() > 1 => {
                    ready!(self.conn.poll_fill_some(cx, BEGINNING))
                }
                None => ready!(self.conn.poll_fill(cx)),
            };
            let Ok(received @ 1..) = received else { return Poll::Ready(Unavailable::Closed) };
            pipeline.received(received, Moment::now());
        }
    }

    /// Takes the answers that have arrived.
    fn take_answers(&mut self, pipeline: &mut Pipeline) -> Result<(), Unavailable> {
        while !self.conn.data().is_empty() {
            let now = Moment::now();
            if let Some((mut value, answer)) = self.value.take() {
                let taken = value.take(self.conn.data()).map_err(Unavailable::Malformed)?;
                self.conn.consume(taken);
                if value.is_complete() {
                    pipeline.value_arrived(answer, value.finish(), now);
                } else {
                    self.value = Some((value, answer));
                }
                continue;
            }
            if pipeline.is_idle() {
                return Err(Unavailable::Unexpected(Unexpected::Unasked));
            }
            let parsed = parse(self.conn.data(), self.abilities.item_size_max);
            let Some(parsed) = parsed.map_err(Unavailable::Malformed)? else { break };
            let len = parsed.len;
            match pipeline.line_arrived(parsed.line, now)? {
                Step::Answered => {}
                Step::Follows(mut value, answer) => {
                    self.expects_large = value.rest().is_some_and(|(_, missing)| missing >= LARGE);
                    self.value = Some((value, answer));
                }
            }
            self.conn.consume(len);
        }
        Ok(())
    }

    fn poll_requests(&mut self, cx: &mut Context<'_>, pipeline: &mut Pipeline) -> Result<(), Unavailable> {
        let now = Moment::now();
        let mut output = Output::new();
        while let Poll::Ready(flushed) = self.conn.poll_flush(cx) {
            flushed.map_err(|_| Unavailable::Closed)?;
            while output.len() < WRITE_SIZE && pipeline.encode_next(&self.abilities, &mut output, now) {}
            if output.is_empty() {
                break;
            }
            self.conn.write_output(cx, &mut output).map_err(|_| Unavailable::Closed)?;
        }
        pipeline.sent(self.conn.sent() - self.sent, self.conn.queued());
        self.sent = self.conn.sent();
        Ok(())
    }
}
