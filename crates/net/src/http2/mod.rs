//! HTTP/2 (RFC 9113), over the codec in [`sandarac_wire::h2`]: with clients, the session of a connection, its streams, and the
//! order in which responses are sent (RFC 9218); with backends, in [`origin`].

mod answered;
mod client;
mod encoder;
mod in_place;
mod incoming;
mod open_streams;
pub(crate) mod origin;
mod outgoing;
mod received;
mod schedule;
mod scratch;
mod session;
mod stream;
mod streams;

pub(crate) use session::{End, serve};
