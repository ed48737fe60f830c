//! Items of the shared tier: stored responses and what stands in their place, as kept in memcached.
//!
//! The format is described in `docs/protocols/entry.md`. An [`Item`] is written as bytes that the body
//! follows, so that the body is not copied. A reader gets the body as a slice of the bytes it passed in.
//! Every item has a seal over its server key and its content ([`Sealer`]), which is verified before any field
//! is read. An item that is not valid is refused as a whole, by name ([`EntryError`]).

mod at_rest;
mod attributes;
mod error;
mod frame;
mod item;
mod key;
mod key_derivation;
mod mark;
mod position;
mod purge;
mod purge_log;
mod reader;
mod seal;

pub use at_rest::{Compression, inflate};
pub use attributes::{Attributes, Coding, time_on_server};
pub use error::EntryError;
pub use frame::{Kind, MAGIC, VERSION};
pub use item::{Content, Item};
pub use key::EntryKey;
pub use key_derivation::{EntryKeys, LocalKey};
pub use mark::MarkReason;
pub use position::{LogId, Position};
pub use purge::{Effect, Purge, Record, RecordId};
pub use purge_log::{LogHeader, PurgeLog};
pub use seal::{MIN_SECRET, SEAL_LEN, Sealer, Secret, ShortSecret};

/// The longest body in bytes, as stored and as inflated: the largest item that memcached can be told to
/// accept.
pub const MAX_BODY: u64 = 1 << 30;

/// The most chunks of a body: [`MAX_BODY`] in chunks of 16 KiB.
pub const MAX_CHUNKS: u32 = 1 << 16;

/// The longest TTL in seconds. memcached reads a larger number as a date.
pub const MAX_TTL: u32 = 30 * 24 * 60 * 60;

/// The most tags of a response, and the longest host, path and Vary key in bytes.
pub const MAX_LEN: usize = u16::MAX as usize;

/// The most names in an index.
pub const MAX_VARY_NAMES: usize = 64;

/// A random number of ours in each item. Two items with the same token are the same item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(pub u64);

impl Token {
    /// The low half, for the client flags of memcached.
    pub const fn flags(self) -> u32 {
        self.0 as u32
    }
}
