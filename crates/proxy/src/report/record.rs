//! The record of an exchange: the only source of logs, live views and replay.

use sandarac_message::{Name, RequestHead, Timestamp, Version};
use sandarac_net::tls::TlsPeer;
use std::net::IpAddr;
use std::time::Duration;

/// The facts about an exchange at its end. Bytes from the network are as received.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The transaction number of the client's connection.
    pub session: u64,
    /// The transaction number of the request.
    pub request: u64,
    /// The transaction number of the fetch that it caused, or that brought the object it received.
    pub fetch: Option<u64>,
    /// The transaction number of the client's request, if this one is for a fragment of its page.
    pub page: Option<u64>,
    /// The `{id}` sent to the origin, if an edit writes it.
    pub id: Option<&'a str>,
    /// When the first byte of the request arrived.
    pub time: Timestamp,
    /// The client's address; `None` for a peer on a Unix socket.
    pub client: Option<IpAddr>,
    /// The TLS of the client's connection.
    pub tls: Option<&'a TlsPeer>,
    /// The method's token.
    pub method: &'a [u8],
    /// The request target.
    pub target: &'a [u8],
    /// The version of the request.
    pub version: Version,
    /// The requested host.
    pub host: &'a [u8],
    /// The status of the response; 499 if the client left before it began.
    pub status: u16,
    /// Body bytes that were sent or are queued.
    pub bytes: u64,
    /// The `Referer` field.
    pub referer: Option<&'a [u8]>,
    /// The `User-Agent` field.
    pub user_agent: Option<&'a [u8]>,
    /// The `Authorization` field.
    pub authorization: Option<&'a [u8]>,
    /// The part the cache had in it.
    pub outcome: Outcome,
    /// The named reason for a miss, bypass or refusal.
    pub reason: Option<&'a str>,
    /// The name of the request field that is the reason, if one is.
    pub field: Option<&'a [u8]>,
    /// From the first byte of the request to the last of the response.
    pub duration: Duration,
    /// From the first byte of the request to the first of the response; `None` if there was none, or if it
    /// belongs to another protocol.
    pub first_byte: Option<Duration>,
    /// From the request to the origin to the head of its response.
    pub origin: Option<Duration>,
    /// The backend that was tried last, or that responded.
    pub backend: Option<&'a str>,
    /// The protocol over which a backend responded.
    pub backend_protocol: Option<&'static str>,
    /// The error in words.
    pub error: Option<&'a str>,
}

/// The part the cache had in an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered from the store, fresh.
    Hit,
    /// Answered from the store, stale.
    Stale,
    /// Answered from the store, after the origin confirmed it.
    Revalidated,
    /// Fetched, because nothing usable was stored.
    Miss,
    /// Fetched without the store.
    Pass,
    /// Tunnelled.
    Pipe,
    /// Answered with a file.
    File,
    /// Answered by the proxy.
    Synth,
    /// A purge.
    Purge,
    /// Refused, or failed.
    Error,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Outcome; 10] = [
        Outcome::Hit,
        Outcome::Stale,
        Outcome::Revalidated,
        Outcome::Miss,
        Outcome::Pass,
        Outcome::Pipe,
        Outcome::File,
        Outcome::Synth,
        Outcome::Purge,
        Outcome::Error,
    ];

    /// The outcome as logs write it.
    pub const fn text(self) -> &'static str {
        match self {
            Outcome::Hit => "hit",
            Outcome::Stale => "stale",
            Outcome::Revalidated => "revalidated",
            Outcome::Miss => "miss",
            Outcome::Pass => "pass",
            Outcome::Pipe => "pipe",
            Outcome::File => "file",
            Outcome::Synth => "synth",
            Outcome::Purge => "purge",
            Outcome::Error => "error",
        }
    }
}

/// A sink of records. One per core, so that it needs no lock.
pub trait Recorder {
    /// Whether records are wanted. If not, none are made.
    fn wants(&self) -> bool;

    /// Takes a record. MUST NOT block.
    fn record(&self, record: &Record<'_>);
}

/// A record of what the request alone determines.
impl<'a> Record<'a> {
    pub(crate) fn of(request: &RequestHead<'a>, now: Timestamp) -> Record<'a> {
        let fields = request.fields;
        Record {
            session: 0,
            request: 0,
            fetch: None,
            page: None,
            id: None,
            time: now,
            client: None,
            tls: None,
            method: request.method_text,
            target: request.target,
            version: request.version,
            host: fields.get(Name::Host).unwrap_or_default(),
            status: 0,
            bytes: 0,
            referer: fields.get(Name::Referer),
            user_agent: fields.get(Name::UserAgent),
            authorization: fields.get(Name::Authorization),
            outcome: Outcome::Error,
            reason: None,
            field: None,
            duration: Duration::ZERO,
            first_byte: None,
            origin: None,
            backend: None,
            backend_protocol: None,
            error: None,
        }
    }
}
