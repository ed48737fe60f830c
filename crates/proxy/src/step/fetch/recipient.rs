//! The recipient of a fetch: the client whose body goes up and who receives interim responses, or everybody who may be
//! served by a response that is stored.

use super::request::FetchTrace;
use crate::downstream::Downstream;
use sandarac_balance::BackendId;
use sandarac_message::{Fields, FieldsBuf};
use sandarac_net::Timer;
use std::cell::{Cell, RefCell};
use std::task::Context;

/// For whom a fetch is made.
pub(crate) enum Recipient<'a, 'c> {
    /// One client: the fetch has the use of its connection.
    Client(&'a mut Downstream<'c>),
    /// Whoever the stored response will serve. The request has no body.
    Audience(&'a Audience),
}

impl<'c> Recipient<'_, 'c> {
    pub(super) fn client(&mut self) -> Option<&mut Downstream<'c>> {
        match self {
            Recipient::Client(down) => Some(down),
            Recipient::Audience(_) => None,
        }
    }

    /// The deadline in force: that of the client's connection, or the fetch's own.
    pub(super) fn timer<'t>(&'t mut self, own: &'t mut Timer) -> &'t mut Timer {
        match self {
            Recipient::Client(down) => &mut down.client.timer,
            Recipient::Audience(_) => own,
        }
    }

    /// A timer for the fetch's own waits. Making one anew costs a place in the runtime's wheel, so an audience keeps one.
    pub(super) fn take_timer(&self) -> Timer {
        match self {
            Recipient::Client(_) => Timer::new(),
            Recipient::Audience(audience) => audience.take_timer(),
        }
    }

    /// Keeps a timer for the next wait.
    pub(super) fn keep_timer(&self, timer: Timer) {
        if let Recipient::Audience(audience) = self {
            audience.keep_timer(timer);
        }
    }

    /// Notes by which number, and which name of the request, the fetch is known.
    pub(super) fn begins(&self, trace: &FetchTrace) {
        if let Recipient::Audience(audience) = self {
            *audience.begun.borrow_mut() = trace.clone();
        }
    }

    /// Notes which backend is asked.
    pub(super) fn asks(&mut self, backend: BackendId) {
        match self {
            Recipient::Client(down) => down.asked = Some(backend),
            Recipient::Audience(audience) => audience.asked.set(Some(backend)),
        }
    }

    /// The backend that was asked last.
    pub(super) fn asked(&self) -> Option<BackendId> {
        match self {
            Recipient::Client(down) => down.asked,
            Recipient::Audience(audience) => audience.asked(),
        }
    }

    /// Whether the fetch was begun for no client.
    pub(super) fn is_background(&self) -> bool {
        matches!(self, Recipient::Audience(audience) if audience.is_background())
    }

    /// Whether the one client that the response is for has left, so that nobody wants it.
    pub(super) fn is_unwanted(&mut self, cx: &mut Context<'_>) -> bool {
        self.client().is_some_and(|down| down.poll_gone(cx).is_ready())
    }

    /// Whether no client waits that the fetch was begun for.
    pub(super) fn is_gone(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Recipient::Client(down) => down.poll_gone(cx).is_ready(),
            Recipient::Audience(audience) => audience.attendance.get() != Attendance::Attended,
        }
    }

    /// Whether the request, body included, can be sent from its beginning again.
    pub(super) fn can_replay(&self) -> bool {
        match self {
            Recipient::Client(down) => down.can_replay(),
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

/// What a fetch for the store and the exchange that began it know of each other. The fetch goes on when the exchange
/// ends.
pub(crate) struct Audience {
    attendance: Cell<Attendance>,
    /// Interim responses that the exchange has not sent on yet. A fetch forwards a bounded number.
    interims: RefCell<Vec<Interim>>,
    /// The backend that was asked last.
    asked: Cell<Option<BackendId>>,
    /// What was known of the fetch when it began.
    begun: RefCell<FetchTrace>,
    /// The timer of the client's connection, or one that stays with the fetch.
    timer: Cell<Timer>,
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
    /// There never was one.
    Background,
}

impl Audience {
    /// A client waits for the response.
    pub(crate) fn attended() -> Audience {
        Audience::new(Attendance::Attended)
    }

    /// No client waits: what is stored was served to it already.
    pub(crate) fn background() -> Audience {
        Audience::new(Attendance::Background)
    }

    fn new(attendance: Attendance) -> Audience {
        Audience {
            attendance: Cell::new(attendance),
            interims: RefCell::default(),
            asked: Cell::default(),
            begun: RefCell::default(),
            timer: Cell::default(),
        }
    }

    /// Takes the timer for a wait.
    pub(crate) fn take_timer(&self) -> Timer {
        self.timer.take()
    }

    /// Keeps a timer, without its deadline.
    pub(crate) fn keep_timer(&self, mut timer: Timer) {
        timer.clear();
        self.timer.set(timer);
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

    /// Gives each interim response that has come since the last call to `send`: status, reason and fields.
    pub(crate) fn drain_interims(&self, mut send: impl FnMut(u16, &[u8], Fields<'_>)) {
        if self.interims.borrow().is_empty() {
            return;
        }
        for Interim { status, reason, fields } in self.interims.take() {
            send(status, &reason, fields.view());
        }
    }
}
