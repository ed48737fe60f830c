//! TLS: the transport under a connection, and the handshakes of both sides.
//!
//! rustls's unbuffered API leaves the buffers to us, so a waiting connection borrows none.

mod accept;
mod connect;
mod fault;
mod handshakes;
mod peer;
mod side;
mod stream;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use accept::accept;
pub use connect::connect;
pub use fault::{HandshakeFault, alert_name};
pub(crate) use handshakes::{Handshakes, STALLED};
pub use peer::TlsPeer;
pub use side::{ClientSide, ServerSide};
pub use stream::TlsStream;
