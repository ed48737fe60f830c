//! New objects: responses that are to be stored.

use sandarac_message::caching::Lifetimes;
use sandarac_message::range::ContentRange;
use sandarac_message::vary::VarySpec;
use sandarac_message::{Fields, StoredHead};

use crate::Tag;

/// A response to be stored.
pub struct NewObject<'a> {
    /// Its head, without fields that must not be stored.
    pub head: StoredHead,
    /// How long it may be used.
    pub lifetimes: Lifetimes,
    /// What it varies on.
    pub vary: &'a VarySpec,
    /// The fields of the request it answers, as they were looked up with.
    pub request: Fields<'a>,
    /// The host it was asked for, for bans. No more than 65535 bytes are kept.
    pub host: &'a [u8],
    /// The path and query it was asked for, for bans. No more than 65535 bytes are kept.
    pub path: &'a [u8],
    /// The tags and groups it may be purged by.
    pub tags: &'a [Tag],
    /// The part of the representation it is, where it isn't all of it.
    pub range: Option<ContentRange>,
    /// Bytes in the body, where known.
    pub len: Option<u64>,
    /// The longest body that may be stored, where the route sets one. The store's own limit applies in any
    /// case.
    pub limit: Option<u64>,
    /// Whether what has come of it may be kept as a part where the origin breaks off (RFC 9111 §3.3). MUST be
    /// false for what has no strong validator.
    pub resumable: bool,
    /// The transaction number of the fetch.
    pub transaction: u64,
}
