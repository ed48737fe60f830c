//! The access log: one line per exchange, formatted by the core, written by a separate thread.
//!
//! A core appends lines to its [`Outlet`], which sends them in batches without ever waiting; lines that the writer
//! cannot take are dropped and counted. [`Feed`] carries records to `sandarac log` and `sandarac top` while there are
//! watchers.

mod access;
mod feed;
mod filter;
mod format;
mod writer;

pub use access::{AccessLog, Outlet, Target};
pub use feed::{Feed, Line, Subscription, Viewer};
pub use filter::Filter;
pub use format::Format;
pub use writer::Destination;

#[cfg(test)]
use {
    sandarac_message::{Timestamp, Version},
    sandarac_proxy::{Outcome, Record},
    std::time::Duration,
};

/// The user name in an `Authorization` value of the Basic scheme (RFC 7617); `None` for other schemes, and for values
/// that cannot be decoded.
fn basic_user(authorization: &[u8]) -> Option<Vec<u8>> {
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
                // The rest is the password, which must not be logged.
                b':' => return Some(user),
                letter => user.push(letter),
            }
        }
    }
    None
}

/// A record for tests: a hit in the year 2026.
#[cfg(test)]
pub(crate) fn example() -> Record<'static> {
    Record {
        session: 4,
        request: 17,
        fetch: None,
        page: None,
        id: None,
        time: Timestamp::from_millis(1_795_269_336_042),
        client: Some("192.0.2.7".parse().unwrap()),
        tls: None,
        method: b"GET",
        target: b"/articles/3?q=%22",
        version: Version::Http11,
        host: b"example.org",
        status: 200,
        bytes: 8192,
        referer: None,
        user_agent: Some(b"curl/8"),
        authorization: None,
        outcome: Outcome::Hit,
        reason: None,
        field: None,
        duration: Duration::from_micros(314),
        first_byte: Some(Duration::from_micros(120)),
        origin: None,
        backend: None,
        backend_protocol: None,
        error: None,
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
