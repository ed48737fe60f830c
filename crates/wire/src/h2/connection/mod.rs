//! The state of one connection, without I/O (RFC 9113 §3 to §6).
//!
//! [`Connection::receive`] takes bytes and gives one [`Event`] at a time; replies that the protocol demands
//! are appended to a buffer of the caller. The other methods write frames of this side.

mod budget;
mod event;
mod flow;
mod machine;
mod receive;
mod send;
mod stream;
mod streams;

pub use budget::{BUDGET, Cost, REFILL_PER_SECOND};
pub use event::{Event, Received};
pub use machine::{Config, Connection, MAX_EARLY_PRIORITIES, MAX_UNSENT_REPLIES};
pub use send::{CannotOpen, NoStream};
