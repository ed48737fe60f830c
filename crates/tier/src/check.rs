//! The check of a copy: whether the server still has the entry.

use bytes::Bytes;
use sandarac_message::Timestamp;
use sandarac_wire::entry::{EntryKey, Position};

use crate::command::{Command, Condition, Reply};
use crate::local_copy::LocalCopy;
use crate::log_sync::LogSync;
use crate::purge_index::Subject;
use crate::reason::Refusal;
use crate::server::{Server, Verdict};

/// A check of one copy. A caller that gives it up before its end MUST call [`LocalCopy::end_check`].
#[derive(Debug)]
pub struct Check {
    key: EntryKey,
    sync: LogSync,
    state: State,
    /// When the entry was read.
    read: Timestamp,
}

#[derive(Debug)]
enum State {
    /// The log, and with it or after it the entry.
    Reading,
    AwaitingEntry,
    /// The reply about the entry is here; the log may have changed.
    Judging(Reply),
    /// The entry is absent, and the copy may be written back.
    Offered(Position),
    AwaitingWrite,
    Ended(CheckResult),
}

/// The next step of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckStep {
    /// Send these, in one packet, and pass on the replies. [`Reply::Unavailable`] takes the place of those
    /// that did not come within the deadline.
    Send(Vec<Command>),
    /// The entry is lost. Write it back under this position, by [`Check::write_back`] or not at all, by
    /// [`Check::keep`].
    Offer(Position),
    /// The result. The copy has been updated.
    Done(CheckResult),
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckResult {
    /// The copy stands.
    Agreed,
    /// A soft purge made it stale.
    Softened,
    /// Another item stands there: the copy is dropped, and the entry looked up.
    Replaced,
    /// The copy is dropped.
    Dropped(Refusal),
    /// The server does not answer: the copy is served within its freshness.
    Unanswered,
}

impl CheckResult {
    /// The name, for logs and counters.
    pub const fn name(self) -> &'static str {
        match self {
            CheckResult::Agreed => "agreed",
            CheckResult::Softened => "softened",
            CheckResult::Replaced => "replaced",
            CheckResult::Dropped(refusal) => refusal.name(),
            CheckResult::Unanswered => "unanswered",
        }
    }
}

impl Check {
    /// Begins a check of the copy of what is stored under `key`.
    pub fn new(key: EntryKey, now: Timestamp, server: &Server) -> Check {
        Check { key, sync: LogSync::for_reading(now, server), state: State::Reading, read: now }
    }

    /// The next step. After [`CheckStep::Send`], the replies MUST be passed on before the next call.
    pub fn next(
        &mut self,
        now: Timestamp,
        copy: &mut LocalCopy,
        server: &mut Server,
        subject: &Subject<'_>,
    ) -> CheckStep {
        loop {
            let get = Command::Get { key: self.key, value: false };
            match std::mem::replace(&mut self.state, State::Reading) {
                State::Reading => match self.sync.next(now, server) {
                    _ if self.sync.failed() => self.end(CheckResult::Unanswered),
                    Some(command) if self.sync.may_read_along(server) => {
                        self.read = now;
                        self.state = State::AwaitingEntry;
                        return CheckStep::Send(vec![command, get]);
                    }
                    Some(command) => return CheckStep::Send(vec![command]),
                    None => {
                        self.read = now;
                        self.state = State::AwaitingEntry;
                        return CheckStep::Send(vec![get]);
                    }
                },
                State::Judging(reply) => match self.sync.next(now, server) {
                    _ if self.sync.failed() => self.end(CheckResult::Unanswered),
                    Some(command) => {
                        self.state = State::Judging(reply);
                        return CheckStep::Send(vec![command]);
                    }
                    None => self.judge(now, copy, server, subject, &reply),
                },
                State::Offered(position) => {
                    self.state = State::Offered(position);
                    return CheckStep::Offer(position);
                }
                State::Ended(result) => {
                    copy.end_check();
                    if result == CheckResult::Unanswered {
                        copy.unanswered(now, server);
                    }
                    self.state = State::Ended(result);
                    return CheckStep::Done(result);
                }
                state @ (State::AwaitingEntry | State::AwaitingWrite) => {
                    unreachable!("the replies come before the next call: {state:?}")
                }
            }
        }
    }

    fn end(&mut self, result: CheckResult) {
        self.state = State::Ended(result);
    }

    fn judge(
        &mut self,
        now: Timestamp,
        copy: &mut LocalCopy,
        server: &Server,
        subject: &Subject<'_>,
        reply: &Reply,
    ) {
        let Some(position) = copy.position else {
            return self.end(CheckResult::Dropped(Refusal::NoPosition));
        };
        let verdict = match server.judge_copy(&position, subject) {
            Verdict::Refuse(Refusal::OtherLog) => server.judge_lost(copy.confirmed, now, subject),
            verdict => verdict,
        };
        let result = match (verdict, reply) {
            (Verdict::Refuse(refusal), _) => CheckResult::Dropped(refusal),
            (_, Reply::Item(item)) if item.flags != copy.token.flags() => CheckResult::Replaced,
            (Verdict::Soften, _) => {
                // The soft purge is applied now. Without this, every check would find it again.
                copy.agree(self.read, server);
                CheckResult::Softened
            }
            (Verdict::Use, reply) => {
                copy.agree(self.read, server);
                match (reply, copy.position) {
                    (Reply::Absent, Some(position)) => {
                        self.state = State::Offered(position);
                        return;
                    }
                    _ => CheckResult::Agreed,
                }
            }
        };
        self.end(result);
    }

    /// Writes the copy back as an item with its token and the offered position. `value` is the item in
    /// pieces; `ttl` is in seconds.
    pub fn write_back(&mut self, copy: &LocalCopy, ttl: u32, value: Vec<Bytes>) -> Command {
        debug_assert!(matches!(self.state, State::Offered(_)));
        self.state = State::AwaitingWrite;
        let flags = copy.token.flags();
        Command::Set { key: self.key, condition: Condition::Absent, ttl: Some(ttl), flags, value }
    }

    /// Keeps the copy without writing it back.
    pub fn keep(&mut self) {
        self.end(CheckResult::Agreed);
    }

    /// Takes the replies to the packet, in their order.
    pub fn reply(&mut self, now: Timestamp, replies: Vec<Reply>, server: &mut Server) {
        let mut replies = replies.into_iter();
        let mut next = || replies.next().unwrap_or(Reply::Unavailable("no-reply"));
        let with_log = self.sync.is_waiting();
        if with_log {
            self.sync.reply(now, next(), server);
        }
        match std::mem::replace(&mut self.state, State::Reading) {
            State::AwaitingEntry => {
                let reply = next();
                if reply == Reply::Absent && !with_log {
                    // The log may be lost too. A copy that is written back under it would be refused.
                    self.sync.read_again();
                }
                self.state = match reply {
                    Reply::Unavailable(_) => State::Ended(CheckResult::Unanswered),
                    reply => State::Judging(reply),
                };
            }
            State::AwaitingWrite => {
                // Another node wrote something else, or nobody knows: the next check finds it.
                self.state = State::Ended(match next() {
                    Reply::Stored(_) => CheckResult::Agreed,
                    Reply::Unavailable(_) => CheckResult::Unanswered,
                    _ => CheckResult::Replaced,
                });
            }
            state => self.state = state,
        }
    }
}
