//! The order of operations on a connection: what waits to be sent, and what waits for an answer. No I/O; time
//! is an argument.
//!
//! A server answers in order. Every answer but an error carries the opaque token of its request, which must
//! be that of the operation whose turn it is. An operation that was cancelled, or whose deadline has passed,
//! keeps its turn until its answer has come, so that no other operation can get that answer.

use super::address::QueueLimits;
use super::operation::{Abilities, Deadline, Expected, MIN_RATE, Request};
use super::slot::{Answer, Slot};
use super::{Unavailable, Unexpected};
use crate::{Moment, Output};
use bytes::Bytes;
use sandarac_wire::memcached::{Code, ErrorKind, ItemFlags, Line, VALUE_END, Value};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

/// Places of a queue that are kept while it is empty.
const KEPT: usize = 64;

/// Counts of a connection since it was made, over all its reconnections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that were made, with login and probes.
    pub connected: u64,
    /// Operations submitted.
    pub submitted: u64,
    /// Operations that were answered in time, by errors of the server too.
    pub answered: u64,
    /// Operations that failed by their deadline.
    pub timed_out: u64,
    /// Operations that found the queue full.
    pub refused: u64,
    /// Answers that came when nobody waited for them any more.
    pub late: u64,
    /// Bytes that the system has taken.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
}

/// Operations in order.
#[derive(Debug)]
pub(super) struct Pipeline {
    limits: QueueLimits,
    waiting: VecDeque<Waiting>,
    /// Bytes of the requests in `waiting`.
    waiting_bytes: usize,
    /// Bytes of requests that the connection holds, because the socket did not take them.
    unsent: usize,
    in_flight: VecDeque<InFlight>,
    next_opaque: u32,
    /// No deadline passes before this.
    earliest: Option<Moment>,
    /// When bytes last arrived, or began to be awaited.
    heard: Option<Moment>,
    last_answer: Option<Moment>,
    /// Whether this connection has answered an operation.
    has_answered: bool,
    pub(super) counts: Counts,
}

#[derive(Debug)]
struct Waiting {
    request: Request,
    turn: Turn,
}

#[derive(Debug)]
struct InFlight {
    opaque: u32,
    expected: Expected,
    turn: Turn,
}

/// An operation's place and deadline.
#[derive(Debug)]
struct Turn {
    slot: Rc<Slot>,
    since: Moment,
    deadline: Deadline,
    /// Bytes that had moved before.
    moved_before: u64,
}

/// The consequence of a response line.
#[derive(Debug)]
pub(super) enum Step {
    /// The answer was complete.
    Answered,
    /// A value follows. [`Pipeline::value_arrived`] MUST be called with it.
    Follows(Value, PartialAnswer),
}

/// An answer whose value is yet to come.
#[derive(Debug)]
pub(super) struct PartialAnswer {
    code: Code,
    flags: ItemFlags,
    size: u64,
}

impl Counts {
    /// Bytes that have moved in either direction.
    fn moved(&self) -> u64 {
        self.bytes_sent + self.bytes_received
    }
}

impl Turn {
    /// When the deadline passes, unless more bytes than `moved` move until then.
    fn ends(&self, moved: u64) -> Moment {
        match self.deadline {
            Deadline::Total(after) => self.since.plus(after),
            Deadline::Transfer(after) => {
                let transfer = Duration::from_millis((moved - self.moved_before) / MIN_RATE);
                self.since.plus(after + transfer)
            }
        }
    }
}

impl Pipeline {
    pub(super) fn new(limits: QueueLimits) -> Pipeline {
        Pipeline {
            limits,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            unsent: 0,
            in_flight: VecDeque::new(),
            next_opaque: 0,
            earliest: None,
            heard: None,
            last_answer: None,
            has_answered: false,
            counts: Counts::default(),
        }
    }

    /// Adds an operation to the queue, or completes it with [`Unavailable::QueueFull`]. Returns whether it
    /// was added.
    pub(super) fn submit(
        &mut self,
        request: Request,
        slot: Rc<Slot>,
        deadline: Deadline,
        now: Moment,
    ) -> bool {
        self.counts.submitted += 1;
        let cost = request.cost();
        if self.operations() >= self.limits.operations || self.held_bytes() + cost > self.limits.bytes {
            self.counts.refused += 1;
            slot.complete(Err(Unavailable::QueueFull));
            return false;
        }
        let moved = self.counts.moved();
        let turn = Turn { slot, since: now, deadline, moved_before: moved };
        let ends = turn.ends(moved);
        self.earliest = Some(self.earliest.map_or(ends, |earliest| earliest.min(ends)));
        self.waiting_bytes += cost;
        self.waiting.push_back(Waiting { request, turn });
        true
    }

    /// Operations that are not answered, including those whose callers have gone.
    pub(super) fn operations(&self) -> usize {
        self.waiting.len() + self.in_flight.len()
    }

    /// Whether operations wait to be sent.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether no answer is awaited.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Bytes of requests that the system has not taken.
    pub(super) fn held_bytes(&self) -> usize {
        self.waiting_bytes + self.unsent
    }

    /// Starts a new connection.
    pub(super) fn connected(&mut self) {
        debug_assert!(self.in_flight.is_empty());
        self.counts.connected += 1;
        (self.has_answered, self.unsent) = (false, 0);
    }

    /// Encodes the next operation that is still wanted, and can be executed by a server with these abilities.
    /// Returns whether there was one.
    pub(super) fn encode_next(&mut self, abilities: &Abilities, out: &mut Output, now: Moment) -> bool {
        loop {
            let Some(Waiting { request, turn }) = self.waiting.pop_front() else {
                if self.waiting.capacity() > KEPT {
                    self.waiting = VecDeque::new();
                }
                return false;
            };
            self.waiting_bytes -= request.cost();
            if !turn.slot.is_wanted() {
                continue;
            }
            if let Err(unavailable) = request.check(abilities) {
                turn.slot.complete(Err(unavailable));
                continue;
            }
            let opaque = self.next_opaque;
            self.next_opaque = opaque.wrapping_add(1);
            if self.in_flight.is_empty() {
                self.heard = Some(now);
            }
            self.in_flight.push_back(InFlight { opaque, expected: request.expected(), turn });
            encode(request, opaque, out);
            return true;
        }
    }

    /// Records bytes that the system has taken, and those it has not.
    pub(super) fn sent(&mut self, bytes: u64, unsent: usize) {
        self.unsent = unsent;
        self.counts.bytes_sent += bytes;
    }

    /// Records bytes that have arrived.
    pub(super) fn received(&mut self, bytes: usize, now: Moment) {
        self.counts.bytes_received += bytes as u64;
        self.heard = Some(now);
    }

    /// Gives a response line to the operation whose turn it is. After an error the connection MUST be closed.
    pub(super) fn line_arrived(&mut self, line: Line<'_>, now: Moment) -> Result<Step, Unavailable> {
        let Some(front) = self.in_flight.front() else {
            return Err(Unavailable::Unexpected(Unexpected::Unasked));
        };
        let meta = match line {
            Line::Meta(meta) => meta,
            Line::Error(ErrorKind::Server, text) => {
                let too_large = text == b"object too large for cache";
                self.answered(
                    Err(if too_large {
                        Unavailable::ItemTooLarge
                    } else {
                        Unavailable::ServerError(readable(text))
                    }),
                    now,
                );
                return Ok(Step::Answered);
            }
            Line::Error(ErrorKind::Client | ErrorKind::Command, text) => {
                return Err(Unavailable::RequestRefused(readable(text)));
            }
            _ => return Err(Unavailable::Unexpected(Unexpected::Outcome)),
        };
        if meta.opaque != Some(front.opaque) {
            return Err(Unavailable::Unexpected(Unexpected::Opaque));
        }
        if !front.expected.allows(meta.code) {
            return Err(Unavailable::Unexpected(Unexpected::Outcome));
        }
        let (code, flags) = (meta.code, meta.flags);
        let (Code::Value(size), Expected::Value(most)) = (code, front.expected) else {
            self.answered(Ok(Answer { code, flags, value: Bytes::new() }), now);
            return Ok(Step::Answered);
        };
        let kept = usize::try_from(size).ok().filter(|size| *size <= most && front.turn.slot.is_wanted());
        let value = kept.map_or_else(|| Value::skipped(size), Value::kept);
        Ok(Step::Follows(value, PartialAnswer { code, flags, size }))
    }

    /// Gives the value of an answer to the operation whose turn it is; `None` if it was skipped.
    pub(super) fn value_arrived(&mut self, answer: PartialAnswer, value: Option<Bytes>, now: Moment) {
        let PartialAnswer { code, flags, size } = answer;
        let result = value.map(|value| Answer { code, flags, value });
        self.answered(result.ok_or(Unavailable::ValueTooLarge(size)), now);
    }

    fn answered(&mut self, result: Result<Answer, Unavailable>, now: Moment) {
        let front = self.in_flight.pop_front().expect("an answer has its turn");
        if self.in_flight.is_empty() && self.in_flight.capacity() > KEPT {
            self.in_flight = VecDeque::new();
        }
        self.last_answer = Some(now);
        self.has_answered = true;
        if front.turn.slot.complete(result) {
            self.counts.answered += 1;
        } else {
            self.counts.late += 1;
        }
    }

    /// The time until a deadline may pass; `None` if there is none.
    pub(super) fn next_deadline(&self, now: Moment) -> Option<Duration> {
        self.earliest.map(|earliest| earliest.since(now))
    }

    /// Fails the operations whose deadline has passed, and drops those that nobody waits for and that were
    /// not sent.
    pub(super) fn expire(&mut self, now: Moment) {
        let (moved, counts) = (self.counts.moved(), &mut self.counts);
        let mut earliest: Option<Moment> = None;
        let mut expire = |turn: &Turn| {
            if !turn.slot.is_wanted() {
                return false;
            }
            let ends = turn.ends(moved);
            if ends <= now {
                counts.timed_out += 1;
                turn.slot.complete(Err(Unavailable::TimedOut));
                return false;
            }
            earliest = Some(earliest.map_or(ends, |earliest| earliest.min(ends)));
            true
        };
        for in_flight in &self.in_flight {
            expire(&in_flight.turn);
        }
        let waiting_bytes = &mut self.waiting_bytes;
        self.waiting.retain(|waiting| {
            let stays = expire(&waiting.turn);
            if !stays {
                *waiting_bytes -= waiting.request.cost();
            }
            stays
        });
        self.earliest = earliest;
    }

    /// Fails everything in flight, because the connection has ended, and reports whether what waits may be
    /// sent on a new one: after an ordinary end of a connection that has served.
    pub(super) fn disconnected(&mut self, why: &Unavailable) -> bool {
        for in_flight in self.in_flight.drain(..) {
            in_flight.turn.slot.complete(Err(why.clone()));
        }
        (self.unsent, self.heard) = (0, None);
        let has_served = std::mem::take(&mut self.has_answered);
        *why == Unavailable::Closed && has_served && self.has_waiting()
    }

    /// Fails everything.
    pub(super) fn fail_all(&mut self, why: &Unavailable) {
        self.disconnected(why);
        for waiting in self.waiting.drain(..) {
            waiting.turn.slot.complete(Err(why.clone()));
        }
        (self.waiting_bytes, self.earliest) = (0, None);
    }

    /// When the last answer came.
    pub(super) fn last_answer(&self) -> Option<Moment> {
        self.last_answer
    }

    /// How long nothing has arrived while an answer is awaited, also one whose caller has gone.
    pub(super) fn silence(&self, now: Moment) -> Option<Duration> {
        self.in_flight.front()?;
        self.heard.map(|heard| now.since(heard))
    }
}

fn encode(request: Request, opaque: u32, out: &mut Output) {
    match request {
        Request::Get(get, _) => get.encode(opaque, out.inline()),
        Request::Delete(delete) => delete.encode(opaque, out.inline()),
        Request::Set(set, value) => {
            set.encode(value.iter().map(Bytes::len).sum(), opaque, out.inline());
            for part in value {
                out.share(part.into());
            }
            out.inline().extend_from_slice(VALUE_END);
        }
    }
}

/// Text of a server for logs.
pub(super) fn readable(text: &[u8]) -> Box<str> {
    /// Characters that are kept.
    const MOST: usize = 200;
    String::from_utf8_lossy(text).chars().take(MOST).collect::<String>().into()
}
