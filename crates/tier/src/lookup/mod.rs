//! The lookup of an entry, and the fill after a fetch: one fetch for all nodes.
//!
//! The states, with the packets between them:
//!
//! ```text
//! read (log, entry) ─ judge ┬ found ── (unsuitable: like absent)
//!                           ├ mark ─────────────────────────────── fetch without a claim
//!                           └ absent, tombstone, refused
//!                               │
//!                        claim (add claim, entry) ┬ won ────────── fetch, renew ─ fill, release
//!                               ▲                 └ taken ─ pause ┐
//!                               └─────────────────────────────────┴ waited too long: fetch
//! ```
//!
//! An attempt to claim reads the entry again behind it, so that a node that wins because another has just
//! finished finds what that one stored.

mod step;

pub use step::{Fetch, Found, LookupStep, Outcome, Target};

use std::time::Duration;

use sandarac_balance::Random;
use sandarac_message::Timestamp;
use sandarac_wire::entry::{Content, Item, MarkReason, Position, Token, time_on_server};

use crate::command::{Command, Condition, Reply, StoredItem};
use crate::log_sync::LogSync;
use crate::purge_index::Subject;
use crate::reason::{FetchReason, Refusal};
use crate::rules::{Rule, holds};
use crate::server::{Server, Verdict};

/// A lookup of one key. Dropping it is allowed at any time; a claim that it holds then ends by itself.
#[derive(Debug)]
pub struct Lookup {
    target: Target,
    /// The random number of the node, for its claims.
    node: u64,
    random: Random,
    started: Timestamp,
    sync: LogSync,
    state: State,
    seen: Seen,
    claim: Option<Claim>,
    /// How often the claim was taken.
    polls: u32,
    reason: FetchReason,
    refusal: Option<Refusal>,
    mark: Option<MarkReason>,
    may_fill: bool,
    outcome: Option<Outcome>,
}

#[derive(Debug)]
enum State {
    Reading { claiming: bool },
    Awaiting { claiming: bool, read: Timestamp },
    Judging { reply: Reply, read: Timestamp },
    Found,
    Pausing(Timestamp),
    BeginFetch,
    Fetching,
    AwaitingRenewal { sent: Timestamp },
    AwaitingFill { sent: Timestamp },
    Releasing,
    AwaitingRelease,
    Done { filled: Option<Timestamp> },
}

/// The item under the key, as it was last read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Unread,
    Absent,
    Item { cas: u64, flags: u32 },
}

#[derive(Clone, Copy, Debug)]
struct Claim {
    cas: u64,
    renew_at: Timestamp,
}

impl Lookup {
    /// Begins a lookup at `now`. `node` is the random number of the node.
    pub fn new(target: Target, node: u64, now: Timestamp, server: &Server, seed: u64) -> Lookup {
        Lookup {
            target,
            node,
            random: Random::new(seed),
            started: now,
            sync: LogSync::for_reading(now, server),
            state: State::Reading { claiming: false },
            seen: Seen::Unread,
            claim: None,
            polls: 0,
            reason: FetchReason::Absent,
            refusal: None,
            mark: None,
            may_fill: true,
            outcome: None,
        }
    }

    /// The next step. After [`LookupStep::Send`], the replies MUST be passed on before the next call. `ban`
    /// says whether the expression of a ban holds for a response.
    pub fn next(
        &mut self,
        now: Timestamp,
        server: &mut Server,
        ban: &dyn Fn(&Content, &str) -> bool,
    ) -> LookupStep {
        loop {
            match std::mem::replace(&mut self.state, State::Found) {
                State::Reading { claiming } => {
                    if let Some(packet) = self.read(claiming, now, server) {
                        return LookupStep::Send(packet);
                    }
                }
                State::Judging { reply, read } => match self.sync.next(now, server) {
                    _ if self.sync.failed() => self.unavailable(),
                    Some(command) => {
                        self.state = State::Judging { reply, read };
                        return LookupStep::Send(vec![command]);
                    }
                    None => {
                        if let Some(found) = self.judge(reply, read, now, server, ban) {
                            return LookupStep::Found(Box::new(found));
                        }
                    }
                },
                State::Pausing(until) if now < until => {
                    self.state = State::Pausing(until);
                    return LookupStep::Wait(until);
                }
                State::Pausing(_) => self.state = State::Reading { claiming: true },
                State::BeginFetch => {
                    self.state = State::Fetching;
                    let position = server.position().filter(|_| self.may_fill && self.seen != Seen::Unread);
                    self.may_fill = position.is_some();
                    let refusal = self.refusal.filter(|_| self.reason == FetchReason::Refused);
                    let mark = self.mark.filter(|_| self.reason == FetchReason::Marked);
                    let (claimed, reason) = (self.claim.is_some(), self.reason);
                    return LookupStep::Fetch(Fetch { claimed, reason, refusal, mark, position });
                }
                State::Fetching => {
                    if let Some(step) = self.fetching(now, server) {
                        return step;
                    }
                }
                State::Releasing => match self.release() {
                    Some(command) => {
                        self.state = State::AwaitingRelease;
                        return LookupStep::Send(vec![command]);
                    }
                    None => self.state = State::Done { filled: None },
                },
                State::Done { filled } => {
                    self.state = State::Done { filled };
                    return LookupStep::Done { filled };
                }
                state @ (State::Found
                | State::Awaiting { .. }
                | State::AwaitingRenewal { .. }
                | State::AwaitingFill { .. }
                | State::AwaitingRelease) => {
                    unreachable!("replies and decisions come before the next call: {state:?}")
                }
            }
        }
    }

    /// The packet that reads the log or the entry, or claims the key and reads the entry.
    fn read(&mut self, claiming: bool, now: Timestamp, server: &mut Server) -> Option<Vec<Command>> {
        if now >= self.started.plus(server.settings().shared_wait) {
            self.reason = FetchReason::WaitedTooLong;
            self.state = State::BeginFetch;
            return None;
        }
        let get = Command::Get { key: self.target.key, value: self.seen == Seen::Unread };
        let mut packet = Vec::new();
        if let Some(command) = self.sync.next(now, server) {
            packet.push(command);
            if claiming || !self.sync.may_read_along(server) {
                self.state = State::Reading { claiming };
                return Some(packet);
            }
        } else if self.sync.failed() {
            self.unavailable();
            return None;
        }
        if claiming {
            let condition = if holds(Rule::Claim) { Condition::Absent } else { Condition::Always };
            packet.push(self.claim_command(condition, server));
        }
        packet.push(get);
        self.sync.entry_is_read();
        self.state = State::Awaiting { claiming, read: now };
        Some(packet)
    }

    fn claim_command(&mut self, condition: Condition, server: &Server) -> Command {
        let key = self.target.claim();
        let item = Item { token: Token(self.random.bits()), content: Content::Claim { node: self.node } };
        let value = item.encode(server.sealer(), &key, &[]).expect("a claim has no lists");
        let ttl = Some(server.settings().claim_ttl);
        Command::Set { key, condition, ttl, flags: item.token.flags(), value: vec![value.into()] }
    }

    fn unavailable(&mut self) {
        self.reason = FetchReason::Unavailable;
        self.may_fill = false;
        self.state = State::BeginFetch;
    }

    /// Judges what stands under the key, and sets the state.
    fn judge(
        &mut self,
        reply: Reply,
        read: Timestamp,
        now: Timestamp,
        server: &Server,
        ban: &dyn Fn(&Content, &str) -> bool,
    ) -> Option<Found> {
        let Reply::Item(stored) = reply else {
            self.seen = Seen::Absent;
            self.reason = FetchReason::Absent;
            self.contend(now, server);
            return None;
        };
        let seen = Seen::Item { cas: stored.cas, flags: stored.flags };
        if self.seen != Seen::Unread && stored.value.is_empty() {
            if self.seen == seen {
                self.contend(now, server);
            } else {
                self.seen = Seen::Unread;
                self.state = State::Reading { claiming: false };
            }
            return None;
        }
        self.seen = seen;
        let decoded = Item::decode(server.sealer(), &self.target.key, stored.value.clone());
        let Some((item, body, lain)) = decoded.ok().and_then(|(item, body)| {
            let lain = lain(&item.content, &stored)?;
            Some((item, body, lain))
        }) else {
            self.refuse(Refusal::Invalid, now, server);
            return None;
        };
        let Some(position) = item.content.position() else {
            match item.content {
                Content::Tombstone => {
                    self.reason = FetchReason::Tombstone;
                    self.contend(now, server);
                }
                _ => self.refuse(Refusal::Invalid, now, server),
            }
            return None;
        };
        let verdict = self.verdict(&item.content, position, server, ban);
        if let Verdict::Refuse(refusal) = verdict {
            let is_ahead = matches!(refusal, Refusal::OtherLog | Refusal::BeyondLog);
            let is_known_since = server.read_at().is_some_and(|read_at| read_at > read);
            if is_ahead && !is_known_since && !self.sync.was_read_again() {
                // The entry may be newer than the log that is known.
                self.sync.read_again();
                self.seen = Seen::Unread;
                self.state = State::Judging { reply: Reply::Item(stored), read };
            } else {
                self.refuse(refusal, now, server);
            }
            return None;
        }
        if let Content::Mark { reason, .. } = item.content {
            self.reason = FetchReason::Marked;
            self.mark = Some(reason);
            self.state = State::BeginFetch;
            return None;
        }
        self.state = State::Found;
        Some(Found {
            item,
            body,
            memory: stored.value.len(),
            lain,
            softened: verdict == Verdict::Soften,
            read,
        })
    }

    fn verdict(
        &self,
        content: &Content,
        position: &Position,
        server: &Server,
        ban: &dyn Fn(&Content, &str) -> bool,
    ) -> Verdict {
        let ban = |expression: &str| ban(content, expression);
        let (host, path, tags) = match content {
            Content::Representation(attributes) | Content::Manifest { attributes, .. } => {
                (&attributes.host, &attributes.path, &attributes.tags[..])
            }
            _ => (&self.target.host, &self.target.path, &[][..]),
        };
        server.judge(position, &Subject { host, path, tags, ban: &ban })
    }

    fn refuse(&mut self, refusal: Refusal, now: Timestamp, server: &Server) {
        self.reason = FetchReason::Refused;
        self.refusal = Some(refusal);
        self.contend(now, server);
    }

    /// Fetches with the claim, tries to get it, or pauses.
    fn contend(&mut self, now: Timestamp, server: &Server) {
        self.state = if self.claim.is_some() {
            State::BeginFetch
        } else if self.polls == 0 {
            self.polls = 1;
            State::Reading { claiming: true }
        } else {
            let settings = server.settings();
            let pause = settings.poll.pause(self.polls - 1).mul_f64(0.5 + self.random.fraction() / 2.0);
            self.polls += 1;
            State::Pausing(now.plus(pause).min(self.started.plus(settings.shared_wait)))
        };
    }

    /// Ends the lookup with the entry that was found.
    pub fn accept(&mut self) {
        debug_assert!(matches!(self.state, State::Found));
        self.state = State::Releasing;
    }

    /// Goes on as if there were no entry, because the caller cannot use the one that was found. It stays on
    /// the server until a fill replaces it.
    pub fn reject(&mut self, now: Timestamp, server: &Server) {
        debug_assert!(matches!(self.state, State::Found));
        self.reason = FetchReason::Unsuitable;
        self.contend(now, server);
    }

    /// Notes the end of the fetch.
    pub fn fetched(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }

    fn fetching(&mut self, now: Timestamp, server: &Server) -> Option<LookupStep> {
        let fill = match self.outcome.take() {
            Some(Outcome::Fill { token, ttl, value }) if self.may_fill => Some((token, ttl, value)),
            Some(_) => {
                self.state = State::Releasing;
                return None;
            }
            None => None,
        };
        let Some((token, ttl, value)) = fill else {
            return Some(match self.claim {
                Some(claim) if now >= claim.renew_at => {
                    self.state = State::AwaitingRenewal { sent: now };
                    LookupStep::Send(vec![self.claim_command(Condition::Cas(claim.cas), server)])
                }
                claim => {
                    self.state = State::Fetching;
                    let never = Timestamp::from_millis(u64::MAX);
                    LookupStep::Wait(claim.map_or(never, |claim| claim.renew_at))
                }
            });
        };
        let condition = match self.seen {
            _ if !holds(Rule::ConditionalFill) => Condition::Always,
            Seen::Item { cas, .. } => Condition::Cas(cas),
            Seen::Absent | Seen::Unread => Condition::Absent,
        };
        let (key, flags) = (self.target.key, token.flags());
        let mut packet = vec![Command::Set { key, condition, ttl: Some(ttl), flags, value }];
        packet.extend(self.release());
        self.state = State::AwaitingFill { sent: now };
        Some(LookupStep::Send(packet))
    }

    /// The command that ends the claim.
    fn release(&mut self) -> Option<Command> {
        let claim = self.claim.take()?;
        Some(Command::Delete { key: self.target.claim(), cas: claim.cas })
    }

    /// Takes the replies to the packet, in their order. The packet was sent at the time of its step.
    pub fn reply(&mut self, now: Timestamp, replies: Vec<Reply>, server: &mut Server) {
        let mut replies = replies.into_iter();
        let mut next = || replies.next().unwrap_or(Reply::Unavailable("no-reply"));
        if self.sync.is_waiting() {
            self.sync.reply(now, next(), server);
        }
        let renewal = server.settings().claim_renewal;
        match std::mem::replace(&mut self.state, State::Found) {
            State::Awaiting { claiming, read } => {
                let claimed = if claiming && self.claim.is_none() { next() } else { Reply::Refused };
                match (claimed, next()) {
                    (Reply::Unavailable(_), _) | (_, Reply::Unavailable(_)) => self.unavailable(),
                    (claimed, reply) => {
                        if let Reply::Stored(cas) = claimed {
                            self.claim = Some(Claim { cas, renew_at: read.plus(renewal) });
                        }
                        self.state = State::Judging { reply, read };
                    }
                }
            }
            State::AwaitingRenewal { sent } => {
                self.claim = match (next(), self.claim) {
                    (Reply::Stored(cas), _) => Some(Claim { cas, renew_at: sent.plus(renewal) }),
                    // It may have been renewed under another CAS value. It ends by itself.
                    (Reply::Unavailable(_), Some(claim)) => {
                        Some(Claim { renew_at: sent.plus(renewal), ..claim })
                    }
                    _ => None,
                };
                self.state = State::Fetching;
            }
            State::AwaitingFill { sent } => {
                let filled = matches!(next(), Reply::Stored(_)).then_some(sent);
                self.state = State::Done { filled };
            }
            State::AwaitingRelease => self.state = State::Done { filled: None },
            state => self.state = state,
        }
    }
}

/// How long an item has lain on the server. `None` if the server says that more is left than was given.
fn lain(content: &Content, stored: &StoredItem) -> Option<Duration> {
    match content {
        Content::Representation(attributes) | Content::Manifest { attributes, .. } => {
            time_on_server(attributes.ttl, stored.left?)
        }
        _ => Some(Duration::ZERO),
    }
}
