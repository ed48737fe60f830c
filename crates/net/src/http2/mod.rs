//! HTTP/2 with clients (RFC 9113), over the codec in [`sandarac_wire::h2`]: the session of a connection, its streams, and the order in
//! which responses are sent (RFC 9218).

mod client;
mod encoder;
mod in_place;
mod outgoing;
mod received;
mod schedule;
mod session;
mod streams;

pub(crate) use session::{End, serve};
