//! The cache rule of a route: the choices that RFC 9111 leaves open, and the key.

use std::time::Duration;

use sandarac_message::caching::Policy;
use sandarac_message::glob::Glob;

use crate::byte_size::ByteSize;

/// The parts of a key beside scheme, host, path and query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRule {
    /// Query parameters that are ignored.
    pub ignore_query: Vec<Glob>,
    /// Request fields whose values are part of it.
    pub fields: Vec<Box<[u8]>>,
    /// Cookies whose values are part of it.
    pub cookies: Vec<Glob>,
}

/// How a route uses the shared tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedUse {
    /// It is not used, or there is none.
    Off,
    /// Its entries are used, and nothing is written to it.
    Read,
    /// Its entries are used, and responses are written to it.
    ReadWrite,
}

/// How a route uses the cache.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheRule {
    /// What is looked up and stored, and for how long. Its ignored cookies include those of `key`, which
    /// count as ignored for the lookup and are forwarded.
    pub policy: Policy,
    /// The parts of the key.
    pub key: KeyRule,
    /// The largest response that is stored.
    pub max_object: ByteSize,
    /// How long a request waits for a fetch in progress before a stale response stands in for it; no limit if
    /// it is `None`.
    pub stale_after: Option<Duration>,
    /// The value of `Accept-Encoding` that backends get in place of the client's, if that is not what selects responses.
    pub accept_encoding: Option<&'static str>,
    /// The use of the shared tier.
    pub shared: SharedUse,
}
