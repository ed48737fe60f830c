//! Wire codecs without I/O: bytes in, messages out, and back.
//!
//! Nothing here opens a socket, reads a clock or draws a random number. Ambiguous input is refused with a
//! named reason ([`h1::Refusal`], [`h2::Fault`], [`fastcgi::Refusal`], [`resume::Malformed`], [`entry::EntryError`],
//! [`memcached::Refusal`]).
//! Forwarded messages are encoded from their parsed form ([`h1::encode`]).

pub mod entry;
pub mod fastcgi;
mod faults;
pub mod h1;
pub mod h2;
pub mod memcached;
pub mod proxy_protocol;
pub mod resume;
