//! Why an operation failed.

use sandarac_wire::memcached::Refusal;
use std::io;

/// Why an operation failed. "No such item" and "not stored" are answers, not failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// No connection: refused, unreachable, no such socket.
    NotConnected(io::ErrorKind),
    /// Connecting, with login and probes, took too long.
    ConnectTimedOut,
    /// The server does not speak memcached's protocol.
    NotMemcached(Refusal),
    /// The server is memcached without meta commands (before 1.6).
    NoMetaCommands,
    /// The server is memcached without CAS values (`-C`), so nothing can be stored on a condition.
    NoCas,
    /// The server wants a login, and there is none.
    LoginRequired,
    /// The server refused the login.
    LoginFailed,
    /// The operation's deadline passed. A request that was sent may have been executed.
    TimedOut,
    /// Too much waits for the server already.
    QueueFull,
    /// The server closed the connection, or it broke.
    Closed,
    /// The owner closed the connection.
    Ended,
    /// A malformed response. The connection was closed.
    Malformed(Refusal),
    /// A response that does not belong to the request whose turn it is. The connection was closed.
    Unexpected(Unexpected),
    /// The server did not accept a request. The connection was closed, because it is unknown where in it the
    /// server continues to read.
    RequestRefused(Box<str>),
    /// The server reported a fault of its own. The connection stays.
    ServerError(Box<str>),
    /// The stored value is larger than the operation accepts.
    ValueTooLarge(u64),
    /// The server does not store items of this size.
    ItemTooLarge,
    /// The server lacks what the operation needs.
    Unsupported(Ability),
}

/// The fault of a response that is well-formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unexpected {
    /// Nothing was asked.
    Unasked,
    /// Another opaque token than that of the request.
    Opaque,
    /// An outcome that the request cannot have.
    Outcome,
}

/// An ability that some servers lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ability {
    /// CAS values chosen by the client (`E`).
    ExplicitCas,
    /// Removal of a value whose item stays (`md … x`).
    ValueRemoval,
}

impl Unavailable {
    /// The name, for logs and counters.
    pub const fn name(&self) -> &'static str {
        match self {
            Unavailable::NotConnected(_) => "not-connected",
            Unavailable::ConnectTimedOut => "connect-timed-out",
            Unavailable::NotMemcached(_) => "not-memcached",
            Unavailable::NoMetaCommands => "no-meta-commands",
            Unavailable::NoCas => "no-cas",
            Unavailable::LoginRequired => "login-required",
            Unavailable::LoginFailed => "login-failed",
            Unavailable::TimedOut => "timed-out",
            Unavailable::QueueFull => "queue-full",
            Unavailable::Closed => "closed",
            Unavailable::Ended => "ended",
            Unavailable::Malformed(_) => "malformed",
            Unavailable::Unexpected(_) => "unexpected",
            Unavailable::RequestRefused(_) => "request-refused",
            Unavailable::ServerError(_) => "server-error",
            Unavailable::ValueTooLarge(_) => "value-too-large",
            Unavailable::ItemTooLarge => "item-too-large",
            Unavailable::Unsupported(_) => "unsupported",
        }
    }

    /// Whether the server or the way to it is at fault, so that the failure counts towards its ejection.
    pub const fn blames_server(&self) -> bool {
        match self {
            Unavailable::NotConnected(_)
            | Unavailable::ConnectTimedOut
            | Unavailable::NotMemcached(_)
            | Unavailable::NoMetaCommands
            | Unavailable::NoCas
            | Unavailable::LoginRequired
            | Unavailable::LoginFailed
            | Unavailable::TimedOut
            | Unavailable::Closed
            | Unavailable::Malformed(_)
            | Unavailable::Unexpected(_)
            | Unavailable::RequestRefused(_)
            | Unavailable::ServerError(_) => true,
            Unavailable::QueueFull
            | Unavailable::Ended
            | Unavailable::ValueTooLarge(_)
            | Unavailable::ItemTooLarge
            | Unavailable::Unsupported(_) => false,
        }
    }
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unavailable::NotConnected(kind) => write!(f, "cannot connect: {kind}"),
            Unavailable::ConnectTimedOut => f.write_str("connecting took too long"),
            Unavailable::NotMemcached(refusal) => write!(f, "not a memcached server: {refusal}"),
            Unavailable::NoMetaCommands => {
                f.write_str("the server has no meta commands; memcached 1.6 or later is needed")
            }
            Unavailable::NoCas => f.write_str("the server has no CAS values; start memcached without -C"),
            Unavailable::LoginRequired => f.write_str("the server wants a login"),
            Unavailable::LoginFailed => f.write_str("the server refused the login"),
            Unavailable::TimedOut => f.write_str("no answer within the deadline"),
            Unavailable::QueueFull => f.write_str("too much waits for the server"),
            Unavailable::Closed => f.write_str("the server closed the connection"),
            Unavailable::Ended => f.write_str("the connection is no longer wanted"),
            Unavailable::Malformed(refusal) => write!(f, "malformed response: {refusal}"),
            Unavailable::Unexpected(Unexpected::Unasked) => f.write_str("a response to no request"),
            Unavailable::Unexpected(Unexpected::Opaque) => f.write_str("a response to another request"),
            Unavailable::Unexpected(Unexpected::Outcome) => {
                f.write_str("a response that the request cannot have")
            }
            Unavailable::RequestRefused(text) => write!(f, "the server refused a request: {text}"),
            Unavailable::ServerError(text) => write!(f, "the server reports: {text}"),
            Unavailable::ValueTooLarge(size) => write!(f, "a stored value of {size} bytes is too large"),
            Unavailable::ItemTooLarge => f.write_str("the value is larger than the server's item limit"),
            Unavailable::Unsupported(ability) => f.write_str(match ability {
                Ability::ExplicitCas => "the server does not let clients choose CAS values",
                Ability::ValueRemoval => "the server cannot remove a value and keep its item",
            }),
        }
    }
}

impl std::error::Error for Unavailable {}
