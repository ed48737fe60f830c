//! HTTP/1.1 with clients.

mod client;
mod connection;
mod encoder;
mod session;
#[cfg(test)]
mod tests;

pub(crate) use connection::NewConnection;
pub(crate) use session::{serve, turn_away};
