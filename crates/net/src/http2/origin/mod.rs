//! HTTP/2 with backends: a connection that the requests of a core share, each with one stream.

mod connection;
mod fault;
mod session;
mod stream;
mod streams;

pub use connection::{MAX_STREAMS, OriginConnection};
pub use fault::StreamFault;
pub use stream::{OriginStream, ReceivedHead};
pub use streams::LEASED_WINDOW;
