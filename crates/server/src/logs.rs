//! The access log: one entry per exchange, formatted where it arises, written by a thread of its own.
//!
//! A worker appends lines to its [`Outlet`], which hands them over in batches without ever waiting; what the writer
//! cannot take is dropped and counted. [`Feed`] carries entries to `sandarac log` and `sandarac top` while somebody looks.

mod access;
mod feed;
mod format;
mod writer;

pub use access::{AccessLog, Outlet, Target};
pub use feed::{Feed, Line, Subscription};
pub use format::Format;
pub use writer::Destination;

use std::net::IpAddr;
use std::time::Duration;

use sandarac_message::{Timestamp, Version};
use sandarac_proxy::Record;

/// What is logged of one exchange. Bytes from the network are as received; the formats escape them.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The transaction number of the client's connection.
    pub session: Option<u64>,
    /// The transaction number of the request.
    pub request: u64,
    /// The transaction number of the fetch it caused or waited for.
    pub fetch: Option<u64>,
    /// When the first byte of the request arrived.
    pub time: Timestamp,
    /// The client's address; `None` for a peer on a Unix socket.
    pub client: Option<IpAddr>,
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

/// The user name in an `Authorization` value of the Basic scheme (RFC 7617); `None` for other schemes, and for what
/// cannot be decoded.
pub fn basic_user(authorization: &[u8]) -> Option<Vec<u8>> {
    let (scheme, credentials) = authorization.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let mut user = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for &byte in credentials.trim_ascii() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        (bits, count) = (bits << 6 | u32::from(value), count + 6);
        if count >= 8 {
            count -= 8;
            match (bits >> count) as u8 {
                // What follows is the password, which belongs in no log.
                b':' => return Some(user),
                letter => user.push(letter),
            }
        }
    }
    None
}

impl<'a> Entry<'a> {
    /// What is logged of a record; `user` is the [`basic_user`] of its Authorization.
    pub fn of(record: &Record<'a>, user: Option<&'a [u8]>) -> Entry<'a> {
        Entry {
            session: None,
            request: record.request,
            fetch: record.fetch,
            time: record.time,
            client: record.client,
            user,
            method: record.method,
            target: record.target,
            version: record.version,
            host: Some(record.host).filter(|host| !host.is_empty()),
            status: record.status,
            bytes: record.bytes,
            referer: record.referer,
            user_agent: record.user_agent,
            outcome: record.outcome.text(),
            reason: record.reason,
            duration: record.duration,
            first_byte: None,
            origin: record.origin,
            backend: record.backend,
            error: record.error,
        }
    }
}

#[cfg(test)]
impl Entry<'static> {
    /// An entry for tests: a hit in the year 2026.
    pub(crate) fn example() -> Entry<'static> {
        Entry {
            session: Some(4),
            request: 17,
            fetch: None,
            time: Timestamp::from_millis(1_795_269_336_042),
            client: Some("192.0.2.7".parse().unwrap()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_of_basic_credentials_is_told_and_nothing_else() {
        assert_eq!(basic_user(b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==").as_deref(), Some(&b"Aladdin"[..]));
        assert_eq!(basic_user(b"basic Og==").as_deref(), Some(&b""[..]));
        for other in [&b"Bearer QWxhZGRpbjpv"[..], b"Basic", b"Basic !", b"Basic QWxhZGRpbg==", b""] {
            assert_eq!(basic_user(other), None);
        }
    }
}
