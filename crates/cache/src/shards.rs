//! The shards of a store, each under its lock, and their totals.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};

use parking_lot::{Mutex, MutexGuard};

use crate::Key;
use crate::budget::Budget;
use crate::shard::{Queue, Shard};
use crate::stats::Counters;

/// The shards of a store.
pub(crate) struct Shards {
    shards: Box<[Padded]>,
    budget: Arc<Budget>,
    /// Bytes in the small queues of all shards.
    pub(crate) small_bytes: AtomicIsize,
    /// Bytes in the main queues of all shards.
    pub(crate) main_bytes: AtomicIsize,
    /// Bytes of the index of all shards.
    pub(crate) index_bytes: AtomicIsize,
}

/// A shard on cache lines of its own.
#[repr(align(128))]
struct Padded {
    shard: Mutex<Shard>,
    /// Objects in its queues, to be read without the lock.
    queued: [AtomicUsize; 2],
}

impl Padded {
    fn new(marks: usize) -> Padded {
        Padded { shard: Mutex::new(Shard::new(marks)), queued: [const { AtomicUsize::new(0) }; 2] }
    }
}

impl Shards {
    /// `count` shards, a power of two. The marks of each take at most `marks` bytes. The index is charged to
    /// `budget`.
    pub(crate) fn new(count: usize, marks: usize, budget: Arc<Budget>) -> Shards {
        Shards {
            shards: (0..count).map(|_| Padded::new(marks)).collect(),
            budget,
            small_bytes: AtomicIsize::new(0),
            main_bytes: AtomicIsize::new(0),
            index_bytes: AtomicIsize::new(0),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.len()
    }

    pub(crate) fn lock(&self, at: usize) -> Locked<'_> {
        let Padded { shard, queued } = &self.shards[at];
        let shard = shard.lock();
        let (small_before, main_before) = (shard.queued(Queue::Small), shard.queued(Queue::Main));
        Locked { shard, all: self, queued, changed: false, small_before, main_before }
    }

    /// The shard of a key.
    pub(crate) fn lock_for(&self, key: Key) -> Locked<'_> {
        self.lock(key.shard_bits() as usize & (self.shards.len() - 1))
    }

    /// Objects in a queue of a shard, read without its lock.
    pub(crate) fn queue_len(&self, at: usize, queue: Queue) -> usize {
        self.shards[at].queued[queue as usize].load(Relaxed)
    }
}

/// A locked shard. After a change, unlocking it adds the growth of its index and its queues to the totals of
/// all shards.
pub(crate) struct Locked<'a> {
    shard: MutexGuard<'a, Shard>,
    all: &'a Shards,
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
    /// The shard's counters. Counting is not a change.
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
            self.all.small_bytes.fetch_add(small as isize - self.small_before as isize, Relaxed);
        }
        let main = self.shard.queued(Queue::Main);
        if main != self.main_before {
            self.all.main_bytes.fetch_add(main as isize - self.main_before as isize, Relaxed);
        }
        for queue in [Queue::Small, Queue::Main] {
            self.queued[queue as usize].store(self.shard.queue_len(queue), Relaxed);
        }
        let growth = self.shard.growth();
        if growth != 0 {
            self.all.index_bytes.fetch_add(growth, Relaxed);
        }
        match growth {
            0 => {}
            growth if growth > 0 => self.all.budget.add(growth as usize),
            shrunk => self.all.budget.sub(shrunk.unsigned_abs()),
        }
    }
}
