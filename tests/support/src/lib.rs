//! Support for the black-box tests: the running binary, origins that do as they are told, and raw
//! connections.
//!
//! A test reads as a transcript of the wire. Nothing here knows Sandarac's insides: bytes are parsed by this crate's own
//! reader, so that a fault shared by client and server code cannot hide. Every wait is bounded by [`PATIENCE`] and ends as soon
//! as what is waited for has come; no test sleeps in the hope that something has happened meanwhile.

mod address;
mod conn;
mod date;
mod dns;
pub mod fastcgi;
mod fin;
pub mod hpack;
pub mod http2;
mod http2_server;
mod hung;
mod left_out;
mod memcached;
mod message;
mod mounted;
mod origin;
mod php_fpm;
mod process;
pub mod registry;
mod reply;
mod request;
mod slow;
mod temp;
mod terminal;
mod wait;
mod worker;

pub use address::Address;
pub use conn::{Conn, Trouble};
pub use date::{http_date, http_date_at, http_date_in};
pub use dns::{NameServer, Service};
pub use http2_server::{Head, Http2Server};
pub use hung::HungFileSystem;
pub use memcached::{Item, Memcached};
pub use message::{Fields, Request, Response};
pub use mounted::MountedFileSystem;
pub use origin::{Listener, Origin, Port};
pub use php_fpm::PhpFpm;
pub use process::{Output, Sandarac, Setup, Signal};
pub use reply::{Reply, reply};
pub use request::{Req, get, head, post, request};
pub use slow::SlowFileSystem;
pub use temp::TempDir;
pub use terminal::Terminal;
pub use wait::{Gate, PATIENCE, eventually, within};
pub use worker::Worker;

#[cfg(test)]
mod tests;
