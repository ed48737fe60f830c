//! The meta protocol of memcached, on the client's side (`doc/protocol.txt` of memcached), and the few
//! commands of the older text protocol that the start of a connection needs.
//!
//! [`Get`], [`Set`] and [`Delete`] are requests, which are encoded into the caller's memory. [`parse`] reads
//! one line of a response in place, and [`Value`] assembles the value that follows some of them.

mod key;
mod login;
mod refusal;
mod reply;
mod request;
mod ttl;
mod value;

pub use key::{InvalidKey, MAX_KEY, ServerKey};
pub use login::{InvalidLogin, Login, MAX_LOGIN};
pub use refusal::Refusal;
pub use reply::{Code, ErrorKind, ItemFlags, Line, MAX_LINE, Meta, ParsedLine, Recache, parse};
pub use request::{Delete, Get, Mode, Set, VALUE_END, no_op, stats_settings, version};
pub use ttl::{MAX_TTL, Remaining, Ttl};
pub use value::Value;
