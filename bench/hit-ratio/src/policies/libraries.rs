//! Caches from other crates.

use std::hash::{BuildHasherDefault, DefaultHasher};

use super::{Policy, When};

/// Bytes of an object, about; for the tables that a crate makes at its start.
const TYPICAL: u64 = 16 << 10;

/// The same in every run.
type Hasher = BuildHasherDefault<DefaultHasher>;

/// W-TinyLFU, by the crate moka.
pub(super) struct Moka {
    cache: moka::sync::Cache<u32, u32, Hasher>,
    hits: u32,
}

impl Moka {
    pub(super) fn new(capacity: u64) -> Moka {
        let weigher = |_: &u32, cost: &u32| *cost;
        let cache = moka::sync::Cache::builder().max_capacity(capacity).weigher(weigher);
        Moka { cache: cache.build_with_hasher(Hasher::default()), hits: 0 }
    }
}

impl Policy for Moka {
    fn access(&mut self, key: u32, _: When) -> bool {
        let present = self.cache.get(&key).is_some();
        self.hits += u32::from(present);
        // Hits are recorded in a log, which would drop some if it were full.
        if self.hits.is_multiple_of(32) {
            self.cache.run_pending_tasks();
        }
        present
    }

    fn insert(&mut self, key: u32, cost: u64, _: When) {
        self.cache.insert(key, u32::try_from(cost).unwrap_or(u32::MAX));
        // Eviction is deferred otherwise, and the cache larger than its capacity.
        self.cache.run_pending_tasks();
    }
}

/// The crate quick_cache, without shards, which would divide its capacity.
pub(super) struct QuickCache(quick_cache::unsync::Cache<u32, u32, Weighter, Hasher>);

#[derive(Clone)]
struct Weighter;

impl quick_cache::Weighter<u32, u32> for Weighter {
    fn weight(&self, _: &u32, cost: &u32) -> u64 {
        u64::from(*cost)
    }
}

impl QuickCache {
    pub(super) fn new(capacity: u64) -> QuickCache {
        let items = (capacity / TYPICAL) as usize;
        let lifecycle = quick_cache::unsync::DefaultLifecycle::default();
        QuickCache(quick_cache::unsync::Cache::with(items, capacity, Weighter, Hasher::default(), lifecycle))
    }
}

impl Policy for QuickCache {
    fn access(&mut self, key: u32, _: When) -> bool {
        self.0.get(&key).is_some()
    }

    fn insert(&mut self, key: u32, cost: u64, _: When) {
        self.0.insert(key, u32::try_from(cost).unwrap_or(u32::MAX));
    }
}
