//! Connecting, the login, and the probes that find what a server is able to do.
//!
//! Versions are not compared: builds and proxies differ in what they accept, so each ability is tried. The
//! probes change nothing. They are sent in one write and answered in one round trip; `mn` separates them,
//! because a refused command may be answered by more than one error.

use super::address::{ServerAddress, Settings};
use super::operation::Abilities;
use super::pipeline::readable;
use super::{Unavailable, Unexpected};
use crate::{Conn, Stream};
use sandarac_wire::memcached::{
    Delete, ErrorKind, Line, Mode, Refusal, ServerKey, Set, Ttl, VALUE_END, no_op, parse, stats_settings,
    version,
};
use std::future::poll_fn;
use std::io::{self, IoSlice};

/// The key of the probes. No item has it.
const PROBE: &str = "sandarac:probe";

/// The item limit of a server that does not report one: memcached's default.
const DEFAULT_ITEM_SIZE_MAX: u64 = 1024 * 1024;

/// The most lines in the answer to a probe; memcached's settings have about 80.
const MAX_LINES: usize = 1000;

/// Connects, logs in and probes. The caller limits the time.
pub(super) async fn open(settings: &Settings) -> Result<(Conn, Abilities), Unavailable> {
    let stream = match &settings.address {
        ServerAddress::Tcp(address) => Stream::connect(*address).await,
        ServerAddress::Unix(path) => Stream::connect_unix(path),
    };
    let stream = stream.map_err(|error| Unavailable::NotConnected(error.kind()))?;
    let mut handshake = Handshake { conn: Conn::new(stream) };
    if let Some(login) = &settings.login {
        let mut out = Vec::new();
        login.encode(&mut out);
        handshake.send(&out).await?;
        handshake.login_answer().await?;
    }
    let abilities = handshake.probe().await?;
    let mut conn = handshake.conn;
    if !conn.data().is_empty() {
        return Err(Unavailable::Unexpected(Unexpected::Unasked));
    }
    conn.park();
    Ok((conn, abilities))
}

struct Handshake {
    conn: Conn,
}

/// The reading of one line.
enum Next<T> {
    /// The answer goes on.
    Line,
    /// The answer is complete.
    End(T),
}

impl Handshake {
    async fn send(&mut self, bytes: &[u8]) -> Result<(), Unavailable> {
        let conn = &mut self.conn;
        poll_fn(|cx| conn.write(cx, &[IoSlice::new(bytes)]).into()).await.map_err(|_| Unavailable::Closed)?;
        poll_fn(|cx| conn.poll_flush(cx)).await.map_err(|_: io::Error| Unavailable::Closed)
    }

    /// Reads lines until `read` finds the end of an answer.
    async fn answer<T>(
        &mut self,
        mut read: impl FnMut(Line<'_>) -> Result<Next<T>, Unavailable>,
    ) -> Result<T, Unavailable> {
        for _ in 0..MAX_LINES {
            let next = loop {
                if let Some(parsed) = parse(self.conn.data(), 0).map_err(Unavailable::NotMemcached)? {
                    let next = read(parsed.line)?;
                    let len = parsed.len;
                    self.conn.consume(len);
                    break next;
                }
                let conn = &mut self.conn;
                match poll_fn(|cx| conn.poll_fill(cx)).await {
                    Ok(0) | Err(_) => return Err(Unavailable::Closed),
                    Ok(_) => {}
                }
            };
            if let Next::End(answer) = next {
                return Ok(answer);
            }
        }
        Err(Unavailable::NotMemcached(Refusal::InvalidReply))
    }

    async fn login_answer(&mut self) -> Result<(), Unavailable> {
        self.answer(|line| match line {
            Line::Stored => Ok(Next::End(())),
            Line::Error(ErrorKind::Client, _) => Err(Unavailable::LoginFailed),
            line => Err(unexpected(line)),
        })
        .await
    }

    async fn probe(&mut self) -> Result<Abilities, Unavailable> {
        let key = || ServerKey::new(PROBE).expect("the probe's key is valid");
        let mut out = Vec::new();
        version(&mut out);
        no_op(&mut out);
        stats_settings(&mut out);
        no_op(&mut out);
        // There is no item to replace, so nothing is stored.
        let set = Set { mode: Mode::Replace, explicit_cas: Some(1), ..Set::new(key(), Ttl::EXPIRED) };
        set.encode(0, 0, &mut out);
        out.extend_from_slice(VALUE_END);
        no_op(&mut out);
        Delete { value_only: true, ..Delete::new(key()) }.encode(0, &mut out);
        no_op(&mut out);
        self.send(&out).await?;

        let version = self
            .answer(|line| match line {
                Line::Version(version) => Ok(Next::End(readable(version))),
                line => Err(unexpected(line)),
            })
            .await?;
        self.answer(|line| match line {
            Line::NoOp => Ok(Next::End(())),
            Line::Error(ErrorKind::Command, _) => Err(Unavailable::NoMetaCommands),
            line => Err(unexpected(line)),
        })
        .await?;
        let (item_size_max, cas) = self.settings().await?;
        if !cas {
            return Err(Unavailable::NoCas);
        }
        let explicit_cas = self.accepts().await?;
        let value_removal = self.accepts().await?;
        Ok(Abilities { version, item_size_max, explicit_cas, value_removal })
    }

    /// The item limit, and whether items have CAS values. A proxy that has no settings to show may refuse.
    async fn settings(&mut self) -> Result<(u64, bool), Unavailable> {
        let (mut item_size_max, mut cas) = (DEFAULT_ITEM_SIZE_MAX, true);
        self.answer(|line| match line {
            Line::Stat { name: b"item_size_max", value } => {
                let size = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
                item_size_max = size.ok_or(Unavailable::NotMemcached(Refusal::InvalidReply))?;
                Ok(Next::Line)
            }
            Line::Stat { name: b"cas_enabled", value } => {
                cas = value != b"no";
                Ok(Next::Line)
            }
            Line::Stat { .. } | Line::End | Line::Error(..) => Ok(Next::Line),
            Line::NoOp => Ok(Next::End(())),
            line => Err(unexpected(line)),
        })
        .await?;
        Ok((item_size_max, cas))
    }

    /// Whether the command before the next `mn` was accepted.
    async fn accepts(&mut self) -> Result<bool, Unavailable> {
        let mut accepted = false;
        self.answer(|line| match line {
            Line::Meta(_) => {
                accepted = true;
                Ok(Next::Line)
            }
            Line::Error(..) => Ok(Next::Line),
            Line::NoOp => Ok(Next::End(())),
            line => Err(unexpected(line)),
        })
        .await?;
        Ok(accepted)
    }
}

/// The failure that a line means where another was expected.
fn unexpected(line: Line<'_>) -> Unavailable {
    match line {
        Line::Error(ErrorKind::Client, b"unauthenticated") => Unavailable::LoginRequired,
        // Also what a server with too many connections answers.
        Line::Error(_, text) if !text.is_empty() => Unavailable::ServerError(readable(text)),
        _ => Unavailable::NotMemcached(Refusal::InvalidReply),
    }
}
