//! Shards under their locks.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::{Mutex, MutexGuard};

use crate::Key;
use crate::shard::{Queue, Shard};
use crate::stats::Counters;
use crate::store::Store;

/// A shard on cache lines of its own.
#[repr(align(128))]
pub(crate) struct Padded {
    shard: Mutex<Shard>,
    /// Objects in its queues, to be read without the lock.
    pub(crate) queued: [AtomicUsize; 2],
}

impl Padded {
    pub(crate) fn new(marks: usize) -> Padded {
        Padded { shard: Mutex::new(Shard::new(marks)), queued: [const { AtomicUsize::new(0) }; 2] }
    }
}

/// A shard, locked. When it is let go after a change, the store learns how its index and its queues have grown.
pub(crate) struct Locked<'a> {
    shard: MutexGuard<'a, Shard>,
    store: &'a Store,
    queued: &'a [AtomicUsize; 2],
    changed: bool,
    small_before: usize,
    main_before: usize,
}

impl std::ops::Deref for Locked<'_> {
    type Target = Shard;

    fn deref(&self) -> &Shard {
        &self.shard
    }
}

impl std::ops::DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Shard {
        self.changed = true;
        &mut self.shard
    }
}

impl Locked<'_> {
    /// What the shard counts. To count is no change.
    pub(crate) fn counters(&mut self) -> &mut Counters {
        &mut self.shard.counters
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if !self.changed {
            return;
        }
        let small = self.shard.queued(Queue::Small);
        if small != self.small_before {
            self.store.small_bytes.fetch_add(small as isize - self.small_before as isize, Relaxed);
        }
        let main = self.shard.queued(Queue::Main);
        if main != self.main_before {
            self.store.main_bytes.fetch_add(main as isize - self.main_before as isize, Relaxed);
        }
        for queue in [Queue::Small, Queue::Main] {
            self.queued[queue as usize].store(self.shard.queue_len(queue), Relaxed);
        }
        let growth = self.shard.growth();
        if growth != 0 {
            self.store.index_bytes.fetch_add(growth, Relaxed);
        }
        match growth {
            0 => {}
            growth if growth > 0 => self.store.budget.add(growth as usize),
            shrunk => self.store.budget.sub(shrunk.unsigned_abs()),
        }
    }
}

impl Store {
    pub(crate) fn shards(&self) -> usize {
        self.shards.len()
    }

    pub(crate) fn shard(&self, at: usize) -> Locked<'_> {
        let Padded { shard, queued } = &self.shards[at];
        let shard = shard.lock();
        let (small_before, main_before) = (shard.queued(Queue::Small), shard.queued(Queue::Main));
        Locked { shard, store: self, queued, changed: false, small_before, main_before }
    }

    pub(crate) fn lock(&self, key: Key) -> Locked<'_> {
        self.shard(key.shard_bits() as usize & (self.shards.len() - 1))
    }
}
