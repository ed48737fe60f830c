//! The recipient of a fetch: one client, which sends the body and receives interim responses, or everyone who
//! is served the stored response.

use super::origin_request::OriginRequest;
use super::trace::FetchTrace;
use crate::downstream::Downstream;
use sandarac_balance::BackendId;
use sandarac_message::{Fields, FieldsBuf};
use sandarac_net::Timer;
use std::cell::{Cell, RefCell};
use std::task::Context;

/// The recipient of a fetch.
pub(crate) enum Recipient<'a, 'c> {
    /// One client. The fetch uses its connection.
    Client(&'a mut Downstream<'c>),
    /// All clients that the stored response will serve. The request has no body.
    Audience(&'a Audience),
}

impl<'c> Recipient<'_, 'c> {
    pub(super) fn client(&mut self) -> Option<&mut Downstream<'c>> {
        match self {
            Recipient::Client(down) => Some(down),
            Recipient::Audience(_) => None,
        }
    }

    /// Passes the timer to `act`: the client connection's or the audience's. One timer serves all waits,
    /// because each takes a place in the runtime's wheel.
    pub(super) fn with_timer<T>(&mut self, act: impl FnOnce(&mut Timer) -> T) -> T {
        match self {
            Recipient::Client(down) => act(down.client.timer()),
            Recipient::Audience(audience) => act(&mut audience.timer.borrow_mut()),
        }
    }

    /// Notes the number and the id of the fetch.
    pub(super) fn begins(&self, trace: &FetchTrace) {
        if let Recipient::Audience(audience) = self {
            *audience.begun.borrow_mut() = trace.clone();
        }
    }

    /// Notes the backend that is tried.
    pub(super) fn asks(&mut self, backend: BackendId) {
        match self {
            Recipient::Client(down) => down.asked = Some(backend),
            Recipient::Audience(audience) => audience.asked.set(Some(backend)),
        }
    }

    /// The backend that was tried last.
    pub(super) fn asked(&self) -> Option<BackendId> {
        match self {
            Recipient::Client(down) => down.asked,
            Recipient::Audience(audience) => audience.asked(),
        }
    }

    /// Whether the fetch was begun without a client.
    pub(super) fn is_background(&self) -> bool {
        matches!(self, Recipient::Audience(audience) if audience.is_background())
    }

    /// Whether the response to `request` is for one client, and that client has left.
    pub(super) fn has_left(&mut self, request: &OriginRequest<'_>, cx: &mut Context<'_>) -> bool {
        request.one_client && self.client().is_some_and(|down| down.poll_left(cx).is_ready())
    }

    /// Bytes that may be read from the origin at a time before the response has begun.
    pub(super) fn read_limit(&self) -> usize {
        match self {
            Recipient::Client(down) => down.client.read_limit(),
            Recipient::Audience(audience) => audience.read_limit,
        }
    }

    /// Whether no client waits for the fetch.
    pub(super) fn is_gone(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Recipient::Client(down) => down.poll_left(cx).is_ready(),
            Recipient::Audience(audience) => audience.attendance.get() != Attendance::Attended,
        }
    }

    /// Whether the request, body included, can be sent from its beginning again.
    pub(super) fn can_replay(&self) -> bool {
        match self {
            Recipient::Client(down) => down.body.can_replay(),
            Recipient::Audience(_) => true,
        }
    }

    /// Forwards an interim response.
    pub(super) fn interim(&mut self, cx: &mut Context<'_>, status: u16, reason: &[u8], fields: FieldsBuf) {
        match self {
            Recipient::Client(down) => down.interim(cx, status, reason, fields.view()),
            Recipient::Audience(audience) if audience.attendance.get() == Attendance::Attended => {
                audience.interims.borrow_mut().push(Interim { status, reason: reason.into(), fields });
            }
            Recipient::Audience(_) => {}
        }
    }
}

/// The state shared by a fetch for the store and the exchange that began it. The fetch continues when the
/// exchange ends.
pub(crate) struct Audience {
    attendance: Cell<Attendance>,
    /// The [`Client::read_limit`](sandarac_net::Client::read_limit) of the exchange.
    read_limit: usize,
    /// Interim responses that the exchange has not forwarded yet. Their number is bounded by the fetch.
    interims: RefCell<Vec<Interim>>,
    /// The backend that was tried last.
    asked: Cell<Option<BackendId>>,
    /// What was known of the fetch when it began.
    begun: RefCell<FetchTrace>,
    /// The timer of the client's connection, or one of the fetch's own.
    timer: RefCell<Timer>,
}

#[derive(Debug)]
struct Interim {
    status: u16,
    reason: Box<[u8]>,
    fields: FieldsBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attendance {
    /// A client waits for the response.
    Attended,
    /// The client has left.
    Left,
    /// There was no client from the beginning.
    Background,
}

impl Audience {
    /// A client waits for the response, whose exchange has this
    /// [`Client::read_limit`](sandarac_net::Client::read_limit).
    pub(crate) fn attended(read_limit: usize) -> Audience {
        Audience { read_limit, ..Audience::new(Attendance::Attended) }
    }

    /// No client waits, because the stored response was served already.
    pub(crate) fn background() -> Audience {
        Audience::new(Attendance::Background)
    }

    fn new(attendance: Attendance) -> Audience {
        Audience {
            attendance: Cell::new(attendance),
            read_limit: usize::MAX,
            interims: RefCell::default(),
            asked: Cell::default(),
            begun: RefCell::default(),
            timer: RefCell::default(),
        }
    }

    /// Lends the fetch the timer of the client's connection. The fetch keeps it if the client leaves.
    pub(crate) fn lend_timer(&self, timer: Timer) {
        self.timer.replace(timer);
    }

    /// The lent timer, without a deadline.
    pub(crate) fn return_timer(&self) -> Timer {
        let mut timer = self.timer.take();
        timer.clear();
        timer
    }

    /// Notes that the client has left.
    pub(crate) fn leave(&self) {
        self.attendance.set(Attendance::Left);
    }

    pub(crate) fn is_background(&self) -> bool {
        self.attendance.get() == Attendance::Background
    }

    pub(crate) fn asked(&self) -> Option<BackendId> {
        self.asked.get()
    }

    /// What was known of the fetch when it began.
    pub(crate) fn begun(&self) -> FetchTrace {
        self.begun.borrow().clone()
    }

    /// Passes `send` each interim response received since the last call: status, reason and fields.
    pub(crate) fn drain_interims(&self, mut send: impl FnMut(u16, &[u8], Fields<'_>)) {
        if self.interims.borrow().is_empty() {
            return;
        }
        for Interim { status, reason, fields } in self.interims.take() {
            send(status, &reason, fields.view());
        }
    }
}
