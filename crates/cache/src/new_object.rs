//! New objects: responses to be stored.

use sandarac_message::StoredHead;
use sandarac_message::caching::Lifetimes;
use sandarac_message::range::ContentRange;
use sandarac_message::vary::VaryKey;

use crate::Tag;
use sandarac_tier::SharedCopy;
use std::sync::Arc;

/// A response to be stored.
pub struct NewObject<'a> {
    /// Its head, without fields that must not be stored.
    pub head: StoredHead,
    /// How long it may be used.
    pub lifetimes: Lifetimes,
    /// The requests that it answers.
    pub vary: VaryKey,
    /// The host it was requested from, for bans. No more than 65535 bytes are kept.
    pub host: &'a [u8],
    /// The path and query it was requested by, for bans. No more than 65535 bytes are kept.
    pub path: &'a [u8],
    /// The tags and groups it can be purged by.
    pub tags: &'a [Tag],
    /// The part of the representation it holds, if not all of it.
    pub range: Option<ContentRange>,
    /// Bytes in the body, if known.
    pub len: Option<u64>,
    /// The longest body that may be stored, if the route sets a limit. The store's own limit applies in any
    /// case.
    pub limit: Option<u64>,
    /// Whether an incomplete body may be kept as a part when the origin breaks off (RFC 9111 §3.3). MUST be
    /// false for a response without a strong validator.
    pub resumable: bool,
    /// What is known of its entry in the shared tier, if it has one.
    pub copy: Option<Arc<SharedCopy>>,
    /// The transaction number of the fetch.
    pub transaction: u64,
}
