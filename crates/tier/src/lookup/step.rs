//! The steps of a lookup: what its driver does, and what it passes back.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sandarac_message::Timestamp;
use sandarac_wire::entry::{EntryKey, EntryKeys, Item, MarkReason, Position, Token};

use crate::command::Command;
use crate::reason::{FetchReason, Refusal};

/// The response that is looked up.
#[derive(Clone, Debug)]
pub struct Target {
    /// The server key of the entry or variant.
    pub key: EntryKey,
    /// The keys of the namespace.
    pub keys: Arc<EntryKeys>,
    /// The host by which it is purged.
    pub host: Bytes,
    /// The path and query by which it is purged.
    pub path: Bytes,
}

impl Target {
    /// The server key of its claim. It is derived when it is needed, because most lookups find an entry.
    pub fn claim(&self) -> EntryKey {
        self.keys.claim(&self.key)
    }
}

/// The next step of a lookup.
#[derive(Debug)]
pub enum LookupStep {
    /// Send these, in one packet, and pass on the replies. [`crate::Reply::Unavailable`] takes the place of
    /// those that did not come within the deadline.
    Send(Vec<Command>),
    /// Call again at this time, or when the fetch has ended. A stale response may be served meanwhile.
    Wait(Timestamp),
    /// An entry. Call [`crate::Lookup::accept`] or [`crate::Lookup::reject`].
    Found(Box<Found>),
    /// Begin the fetch, go on calling [`crate::Lookup::next`], and pass its outcome to
    /// [`crate::Lookup::fetched`].
    Fetch(Fetch),
    /// The end.
    Done {
        /// When the fill was sent that the server accepted: it has had the response since.
        filled: Option<Timestamp>,
    },
}

/// An entry that may be used.
#[derive(Debug)]
pub struct Found {
    /// The item: a representation; a manifest, whose chunks are still to be read; or an index, under which
    /// another lookup finds the variant by [`sandarac_wire::entry::EntryKeys::variant`].
    pub item: Item,
    /// The body of a representation.
    pub body: Bytes,
    /// The bytes of memory that the body is a part of.
    pub memory: usize,
    /// How long the item has lain on the server, which adds to its age.
    pub lain: Duration,
    /// Whether a soft purge made it stale.
    pub softened: bool,
    /// When it was read.
    pub read: Timestamp,
}

/// A fetch from the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Whether this node has the claim.
    pub claimed: bool,
    /// The reason.
    pub reason: FetchReason,
    /// The refusal, if the reason is that the entry is refused.
    pub refusal: Option<Refusal>,
    /// The reason of the mark, if the reason of the fetch is that there is one.
    pub mark: Option<MarkReason>,
    /// The position of the response. Without one it MUST NOT be stored in the tier.
    pub position: Option<Position>,
}

/// The outcome of a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A response, or a mark in its place.
    Fill {
        /// The token of the item.
        token: Token,
        /// Seconds until the server drops it.
        ttl: u32,
        /// The item in pieces, with the position of the [`Fetch`].
        value: Vec<Bytes>,
    },
    /// No response, or one that is neither stored nor marked.
    Nothing,
}
