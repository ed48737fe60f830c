//! The meaning of an attempt without a response: a sign of its backend, and what follows.

use super::origin_response::Failed;
use crate::Fault;
use sandarac_net::StreamFault;
use sandarac_wire::fastcgi::Refusal;

/// The sign of a backend that an attempt without a response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Nothing: a kept connection had ended, or brought the response to an earlier request.
    Stale,
    /// Nothing: this process, or the system, has no descriptor left.
    NoDescriptors,
    /// It does not accept the connection, and has not seen the request.
    Unreachable,
    /// It refused the stream (RFC 9113 §8.7), and may take the next one.
    Refused,
    /// It worked, and ended, or ended the handshake: it does that once.
    Lost,
    /// It is to blame in another way, or was lost already.
    Failed,
    /// Nothing: another attempt would end in the same way.
    NotOfIt,
}

/// The consequences, where another attempt is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Follows {
    /// Whether standard error says so.
    pub(super) complains: bool,
    /// Whether another attempt is made, and where.
    pub(super) again: Again,
    /// Whether the attempt counts against those that one request may lose.
    pub(super) counts: Counts,
    /// Whether another attempt multiplies the load, so that the budget of the pool has to allow it.
    pub(super) pays: bool,
}

/// Where another attempt is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// Over a new connection, also to the same backend: its other kept connections are probably closed for
    /// the same reason.
    Fresh,
    /// At another backend, if there is one, or else at the same.
    Anywhere,
    /// At another backend.
    Elsewhere,
    /// Nowhere.
    No,
}

/// How an attempt counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    /// Once for each backend.
    Once,
    /// Each time.
    Always,
    /// Once for each backend, after some that do not count.
    Late,
}

impl Seen {
    /// The sign that was seen by an attempt over a connection that was `kept`, or a new one, at a backend
    /// that `was_failing` before.
    pub(super) fn of(failed: &Failed, kept: bool, was_failing: bool) -> Seen {
        match failed.fault {
            // A kept connection that ended is no sign of a fault of the backend; a timeout is.
            Fault::NoResponse
            | Fault::TlsFailed(_)
            | Fault::Http2(StreamFault::GoingAway)
            | Fault::BadFastCgi(Refusal::WrongRequest)
                if kept =>
            {
                Seen::Stale
            }
            Fault::NoDescriptors => Seen::NoDescriptors,
            Fault::ConnectFailed(_) => Seen::Unreachable,
            Fault::Http2(StreamFault::Refused) => Seen::Refused,
            Fault::NoResponse if !was_failing => Seen::Lost,
            // Over TLS 1.3 a backend may get the request before it refuses the connection.
            Fault::TlsFailed(_) if !failed.sent => Seen::Lost,
            fault if fault.is_origins() => Seen::Failed,
            _ => Seen::NotOfIt,
        }
    }

    /// The consequences.
    pub(super) fn follows(self) -> Follows {
        use Again::{Anywhere, Elsewhere, Fresh, No};
        use Counts::{Always, Late, Once};
        let row = |complains, again, counts, pays| Follows { complains, again, counts, pays };
        match self {
            Seen::Stale => row(false, Fresh, Once, false),
            Seen::NoDescriptors => row(false, Elsewhere, Once, false),
            Seen::Unreachable => row(true, Elsewhere, Late, false),
            Seen::Refused => row(true, Anywhere, Always, true),
            Seen::Lost => row(true, Elsewhere, Once, false),
            Seen::Failed => row(true, Elsewhere, Once, true),
            Seen::NotOfIt => row(false, No, Once, true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TlsFault;
    use std::io::ErrorKind;

    #[test]
    fn what_is_seen_depends_on_the_connection_and_on_the_backend_before() {
        let seen = |fault, sent, kept, was_failing| {
            Seen::of(&Failed { fault, sent, answered: false }, kept, was_failing)
        };
        let tls = Fault::TlsFailed(TlsFault::Protocol);
        let going_away = Fault::Http2(StreamFault::GoingAway);
        for (fault, sent, kept, was_failing, expected) in [
            (Fault::NoResponse, true, true, false, Seen::Stale),
            (Fault::NoResponse, true, true, true, Seen::Stale),
            (Fault::NoResponse, true, false, false, Seen::Lost),
            (Fault::NoResponse, true, false, true, Seen::Failed),
            (tls, true, true, false, Seen::Stale),
            (tls, false, false, false, Seen::Lost),
            (tls, true, false, false, Seen::Failed),
            (going_away, true, true, false, Seen::Stale),
            (going_away, true, false, false, Seen::Failed),
            (Fault::Http2(StreamFault::Refused), true, true, false, Seen::Refused),
            (Fault::ConnectFailed(ErrorKind::ConnectionRefused), false, false, false, Seen::Unreachable),
            (Fault::NoDescriptors, false, false, false, Seen::NoDescriptors),
            // A timeout over a kept connection is a fault of the backend.
            (Fault::ResponseLate, true, true, false, Seen::Failed),
            (Fault::Overloaded, true, true, false, Seen::Failed),
            (Fault::ClientGone, true, false, false, Seen::NotOfIt),
        ] {
            assert_eq!(
                seen(fault, sent, kept, was_failing),
                expected,
                "{fault:?} {sent} {kept} {was_failing}"
            );
        }
    }
}
