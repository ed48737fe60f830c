//! The access log: one entry per exchange, formatted where it arises, written by a thread of its own.
//!
//! A worker appends lines to its [`Batch`] and hands the batch over without ever waiting; what the writer cannot
//! take is dropped and counted. [`Feed`] carries entries to `sandarac log` and `sandarac top` while somebody looks.

mod feed;
mod format;
mod writer;

pub use feed::{Feed, Line, Subscription};
pub use format::Format;
pub use writer::{Batch, Destination, Log, LogHandle};

use std::net::SocketAddr;
use std::time::Duration;

use sandarac_message::{Timestamp, Version};

/// What is logged of one exchange. Bytes from the network are as received; the formats escape them.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The transaction number of the client's connection.
    pub session: u64,
    /// The transaction number of the request.
    pub request: u64,
    /// The transaction number of the fetch it caused or waited for.
    pub fetch: Option<u64>,
    /// When the first byte of the request arrived.
    pub time: Timestamp,
    /// The client's address; `None` for a peer on a Unix socket.
    pub client: Option<SocketAddr>,
    /// The user of an `Authorization: Basic` request.
    pub user: Option<&'a [u8]>,
    /// The method's token.
    pub method: &'a [u8],
    /// The request target.
    pub target: &'a [u8],
    /// The version of the request.
    pub version: Version,
    /// The host asked for.
    pub host: Option<&'a [u8]>,
    /// The status of the answer; 0 where the client left before there was one.
    pub status: u16,
    /// Bytes of the body that were sent.
    pub bytes: u64,
    /// The `Referer` field.
    pub referer: Option<&'a [u8]>,
    /// The `User-Agent` field.
    pub user_agent: Option<&'a [u8]>,
    /// How the cache took part: `hit`, `miss`, `pass` and so on.
    pub outcome: &'a str,
    /// The named reason of a miss, bypass or refusal.
    pub reason: Option<&'a str>,
    /// From the first byte of the request to the last of the answer.
    pub duration: Duration,
    /// From the first byte of the request to the first of the answer.
    pub first_byte: Option<Duration>,
    /// From asking the origin to the first byte of its answer.
    pub origin: Option<Duration>,
    /// The backend that was asked.
    pub backend: Option<&'a str>,
    /// What went wrong.
    pub error: Option<&'a str>,
}

#[cfg(test)]
impl Entry<'static> {
    /// An entry for tests: a hit in the year 2026.
    pub(crate) fn example() -> Entry<'static> {
        Entry {
            session: 4,
            request: 17,
            fetch: None,
            time: Timestamp::from_millis(1_795_269_336_042),
            client: Some("192.0.2.7:50123".parse().unwrap()),
            user: None,
            method: b"GET",
            target: b"/articles/3?q=%22",
            version: Version::Http11,
            host: Some(b"example.org"),
            status: 200,
            bytes: 8192,
            referer: None,
            user_agent: Some(b"curl/8"),
            outcome: "hit",
            reason: None,
            duration: Duration::from_micros(314),
            first_byte: Some(Duration::from_micros(120)),
            origin: None,
            backend: None,
            error: None,
        }
    }
}
