//! Copies: objects in RAM that the shared tier has, or had.

use sandarac_message::Timestamp;
use sandarac_wire::entry::{Position, Token};

use crate::rules::{Rule, holds};
use crate::server::Server;

/// The knowledge of RAM about the entry that an object belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalCopy {
    /// The token of the entry.
    pub token: Token,
    /// The position up to which the log has no purge that applies to the object. `None` if no log was known
    /// when it was fetched.
    pub position: Option<Position>,
    /// When the log was read, or the fetch began, that the position is from.
    pub confirmed: Timestamp,
    /// When the server was last known to have this entry, or the fetch began.
    pub agreed: Timestamp,
    checking: bool,
    /// No check begins before this time, because one was not answered.
    pause_until: Timestamp,
}

/// The handling of a request that finds a copy. The freshness of the object bounds all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// It is served.
    Serve,
    /// It is served, and the caller begins a [`crate::Check`] ahead of time.
    ServeAndCheck,
    /// The caller begins a check, and the request waits for it.
    CheckFirst,
    /// The request waits for the check that is in flight.
    AwaitCheck,
}

impl LocalCopy {
    /// The copy of an entry that was found, read at `read`, and judged by the log that `server` knows.
    pub fn found(token: Token, read: Timestamp, server: &Server) -> LocalCopy {
        let (position, confirmed) = (server.position(), server.read_at().unwrap_or_default());
        LocalCopy {
            token,
            position,
            confirmed,
            agreed: read,
            checking: false,
            pause_until: Timestamp::default(),
        }
    }

    /// The copy of a response whose fetch began at this time and position. The caller MUST judge the position
    /// when the object enters RAM.
    pub fn fetched(token: Token, began: Timestamp, position: Option<Position>) -> LocalCopy {
        let pause_until = Timestamp::default();
        LocalCopy { token, position, confirmed: began, agreed: began, checking: false, pause_until }
    }

    /// The handling of a request at `now`. `reachable` is false while the server is ejected.
    pub fn hit(&mut self, now: Timestamp, server: &Server, reachable: bool) -> Hit {
        let settings = server.settings();
        let age = now.since(self.agreed);
        let is_covered = self.position.as_ref().is_some_and(|position| server.covers(position));
        let is_recent = age < settings.local_ttl || !holds(Rule::Check);
        if is_covered && server.is_current(now) && is_recent {
            let is_due =
                age >= settings.check_ahead && holds(Rule::Check) && reachable && now >= self.pause_until;
            return if is_due && !self.checking {
                self.checking = true;
                Hit::ServeAndCheck
            } else {
                Hit::Serve
            };
        }
        match (self.checking, reachable && now >= self.pause_until) {
            (true, _) => Hit::AwaitCheck,
            (false, true) => {
                self.checking = true;
                Hit::CheckFirst
            }
            (false, false) => Hit::Serve,
        }
    }

    /// Until when requests may be served after `hit` without asking again. Purges that are read meanwhile are
    /// applied to RAM at once, so that the bounds are those of [`LocalCopy::hit`].
    pub(crate) fn trusted_until(&self, now: Timestamp, server: &Server, hit: Hit) -> Timestamp {
        let settings = server.settings();
        let log_until = server.read_at().map(|read_at| read_at.plus(settings.local_ttl));
        let is_covered = self.position.as_ref().is_some_and(|position| server.covers(position));
        let until = |age| self.agreed.plus(age).min(log_until.unwrap_or_default());
        let from_server = match hit {
            _ if !is_covered => Timestamp::default(),
            Hit::Serve if !self.checking && now >= self.pause_until => until(settings.check_ahead),
            Hit::Serve | Hit::ServeAndCheck => until(settings.local_ttl),
            Hit::CheckFirst | Hit::AwaitCheck => Timestamp::default(),
        };
        match hit {
            // The server does not answer: the question is repeated after the pause.
            Hit::Serve if from_server <= now => now.plus(settings.check_retry),
            _ => from_server,
        }
    }

    /// Whether a check is in flight.
    pub(crate) fn is_being_checked(&self) -> bool {
        self.checking
    }

    /// Notes that a check has ended, or was given up without a result. Until then requests wait for it.
    pub fn end_check(&mut self) {
        self.checking = false;
    }

    /// Takes the result of a check: the server agreed at this time, under the log that it knows.
    pub(crate) fn agree(&mut self, at: Timestamp, server: &Server) {
        self.agreed = self.agreed.max(at);
        self.position = server.position();
        self.confirmed = server.read_at().unwrap_or(self.confirmed);
    }

    /// Notes that a check was not answered: requests are served without one for a while.
    pub(crate) fn unanswered(&mut self, now: Timestamp, server: &Server) {
        self.pause_until = now.plus(server.settings().check_retry);
    }
}
