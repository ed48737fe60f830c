//! Counters of the store.

/// Why an object left the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// To make room.
    Evicted,
    /// Replaced by a newer response to the same requests, or by a mark.
    Replaced,
    /// By a hard purge.
    Purged,
    /// By a ban.
    Banned,
    /// Past every permitted use.
    Expired,
    /// Its body broke off while it arrived.
    Broken,
    /// It outgrew a limit while it arrived.
    Oversize,
    /// To the store of another process.
    Moved,
}

impl Removal {
    /// Every reason, in order.
    pub const ALL: [Removal; 8] = [
        Removal::Evicted,
        Removal::Replaced,
        Removal::Purged,
        Removal::Banned,
        Removal::Expired,
        Removal::Broken,
        Removal::Oversize,
        Removal::Moved,
    ];

    /// The reason as a word, for counters and logs.
    pub const fn word(self) -> &'static str {
        match self {
            Removal::Evicted => "evicted",
            Removal::Replaced => "replaced",
            Removal::Purged => "purged",
            Removal::Banned => "banned",
            Removal::Expired => "expired",
            Removal::Broken => "broken",
            Removal::Oversize => "oversize",
            Removal::Moved => "moved",
        }
    }
}

/// The counters of a shard, under its lock.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counters {
    pub(crate) hits: u64,
    pub(crate) stale: u64,
    pub(crate) misses: u64,
    pub(crate) waits: u64,
    pub(crate) marked: u64,
    pub(crate) stored: u64,
    pub(crate) refreshed: u64,
    pub(crate) unstored: u64,
    pub(crate) kept: u64,
    pub(crate) removed: [u64; Removal::ALL.len()],
}

/// The content and the activity of the store. Counters only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Objects in the store, those arriving included.
    pub objects: u64,
    /// Bytes held: heads, bodies, keys, tags, index, the allocator's rounding, and objects that have left the
    /// store but are still being read. Lent ones too.
    pub bytes: u64,
    /// The most bytes that may be held.
    pub limit: u64,
    /// Of these bytes, those of objects that have left the store and are being read.
    pub held_bytes: u64,
    /// Of these bytes, those that are [lent](crate::Store::lend).
    pub lent_bytes: u64,
    /// Of these bytes, those in memory files.
    pub file_bytes: u64,
    /// How often the system refused a memory file or memory for one, and a part of a large body went to the
    /// heap instead.
    pub file_failures: u64,
    /// Of these bytes, those of the index.
    pub index_bytes: u64,
    /// Of these bytes, those of objects in the small queue.
    pub small_bytes: u64,
    /// Of these bytes, those of objects in the main queue.
    pub main_bytes: u64,
    /// Lookups that found an object to serve, fresh or as fresh as the request requires.
    pub hits: u64,
    /// Lookups that found a stale object to serve while it is validated.
    pub stale: u64,
    /// Lookups that led to a fetch.
    pub misses: u64,
    /// Lookups that joined another request's fetch.
    pub waits: u64,
    /// Lookups that found a mark.
    pub marked: u64,
    /// Objects stored.
    pub stored: u64,
    /// Objects freshened by a 304.
    pub refreshed: u64,
    /// Responses that should have been stored and were not: too large, no room, or purged while being
    /// fetched.
    pub unstored: u64,
    /// Objects whose body broke off, kept as parts.
    pub kept: u64,
    /// Objects that left the store, by [`Removal`].
    pub removed: [u64; Removal::ALL.len()],
    /// Keys being fetched.
    pub flights: u64,
    /// Requests that wait for another request's fetch.
    pub waiters: u64,
    /// Bans that some object has not been tested against.
    pub bans: u64,
}

impl Stats {
    /// The bytes without those that are lent.
    pub fn stored_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.lent_bytes)
    }

    /// Objects that left the store for this reason.
    pub fn removed(&self, removal: Removal) -> u64 {
        self.removed[removal as usize]
    }

    pub(crate) fn count(&mut self, counters: &Counters) {
        self.hits += counters.hits;
        self.stale += counters.stale;
        self.misses += counters.misses;
        self.waits += counters.waits;
        self.marked += counters.marked;
        self.stored += counters.stored;
        self.refreshed += counters.refreshed;
        self.unstored += counters.unstored;
        self.kept += counters.kept;
        for (sum, count) in self.removed.iter_mut().zip(counters.removed) {
            *sum += count;
        }
    }
}
