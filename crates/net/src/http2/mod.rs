//! HTTP/2 with clients: sessions, streams, and the order in which they are served (RFC 9113, RFC 9218).

mod asked;
mod client;
mod encoder;
mod hub;
mod in_place;
mod outgoing;
mod schedule;
mod session;

pub(crate) use session::{End, serve};
