//! The settings of a store.

use std::time::Duration;

/// The settings of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The most bytes it may hold in total.
    pub limit: usize,
    /// The longest body it stores. `None`: any that fits.
    pub max_object: Option<u64>,
    /// The most variants of one key; the oldest makes room.
    pub max_variants: usize,
    /// How far, in bytes, the slowest reader of an object that is not stored may lag behind the fetch before
    /// it slows the fetch down.
    pub window: usize,
    /// How long such a reader may hold up the fetch before it is cut off.
    pub patience: Duration,
    /// The number of shards, rounded up to a power of two; fixed when the store is created. `None`: chosen by
    /// the limit.
    pub shards: Option<usize>,
}

impl Settings {
    /// A store of `limit` bytes, with these defaults:
    ///
    /// - no limit on single bodies, because admission weighs them already;
    /// - 128 variants of a key, more than languages and encodings make, and few enough to search through;
    /// - a window of 256 KiB, of memory that is [lent](crate::Store::lend): a client that reads nothing holds as
    ///   much, and can ask for a hundred objects over one connection. What a slow reader leaves beyond it waits
    ///   in its spool;
    /// - 5 s of patience, after which the readers that keep up have waited long enough.
    pub const fn new(limit: usize) -> Settings {
        Settings {
            limit,
            max_object: None,
            max_variants: 128,
            window: 256 << 10,
            patience: Duration::from_secs(5),
            shards: None,
        }
    }

    pub(crate) fn shard_count(&self) -> usize {
        // A shard of less than 4 MiB would hold too few objects for its queues to be meaningful.
        self.shards.unwrap_or(self.limit >> 22).clamp(1, 64).next_power_of_two()
    }
}
