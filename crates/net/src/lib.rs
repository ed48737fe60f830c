//! Sockets: one worker per core with its own runtime, listening sockets and connections.
//!
//! A [`session`](Service) reads requests and either lets the service answer them from memory, in place, or hands the
//! connection to an exchange. Both sides of the proxy are a [`Conn`]: bytes in, bytes out, no buffer while it waits.

mod body;
mod buffer;
mod clock;
mod conn;
mod lent;
mod listen;
mod output;
mod pace;
mod session;
mod stream;
mod timer;
mod worker;

pub use body::{BodyError, BodyStep, Framer};
pub use buffer::BUFFER_SIZE;
pub use clock::{Moment, wall};
pub use conn::{Conn, Meter};
pub use listen::{Acceptor, Inherited, ListenAddress, Listeners, remove_stale_socket};
pub use output::{COPIED, Output};
pub use pace::{LeastRate, Pace};
pub use session::{Answer, Client, Incoming, Next, Peer, Refused, Service, SessionLimits, discard};
pub use stream::{Stream, Unread};
pub use timer::{Timer, within};
pub use worker::{Command, Entrance, Sessions, run_worker};
