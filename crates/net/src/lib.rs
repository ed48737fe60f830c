//! Sockets: one thread for each core, with its own runtime, listening sockets and connections.
//!
//! A session, of [HTTP/1](http1) or [HTTP/2](http2), reads requests. The [`Service`] either answers them in
//! place from memory, or serves them in an exchange, with a [`Client`] to answer. The client and the backend
//! side of the proxy are both a [`Conn`]: bytes in, bytes out, no buffer while it waits. So is a connection
//! to a [memcached] server.

mod account;
mod body;
mod buffer;
mod byte_queue;
mod clock;
mod conn;
mod core;
mod crowding;
mod duplex;
mod file_reads;
#[cfg(test)]
mod held_transport;
mod http1;
mod http2;
mod leased_bytes;
mod leased_head;
mod lent;
mod listen;
pub mod memcached;
mod minimum_rate;
mod output;
pub mod panics;
mod parked;
mod places;
mod response;
mod service;
mod sessions;
mod socket_queue;
mod stream;
mod task;
mod timer;
pub mod tls;
mod transport;
mod websocket;

pub use self::core::{Command, run_core};
pub use account::{Account, Held, Holder, Lease, Reserve};
pub use body::{BodyError, BodyStep, Framer};
pub use buffer::BUFFER_SIZE;
pub use clock::{Moment, wall, wall_fine};
pub use conn::{Conn, Meter};
pub use crowding::Cores;
pub use duplex::Duplex;
pub use file_reads::{FileRead, is_in_memory, read_at_once};
pub use http2::origin::{
    LEASED_WINDOW, MAX_STREAMS, OriginConnection, OriginStream, ReceivedHead, StreamFault,
};
pub use leased_head::LeasedHead;
pub use listen::{
    Acceptor, CoreSockets, Inherited, ListenAddress, Listener, ListenerId, Listeners, remove_stale_socket,
};
pub use minimum_rate::{MinimumRate, RateGauge};
pub use output::{COPIED, Output};
pub use panics::PanicPart;
pub use parked::ParkedConn;
pub use places::{Place, Places};
pub use response::{Base, Body, BodyBroken, Length, Responder, Response, StoredBlock};
pub use service::{AcceptTls, Answer, Client, Incoming, Peer, Refused, Request, Service, SessionLimits};
pub use sessions::Ending;
pub use stream::{Stream, Unread};
pub use task::{boxed, drop_off_core, off_core, sleep, spawn};
pub use timer::{Timer, within};
pub use transport::Transport;
pub use websocket::websocket_accept;
