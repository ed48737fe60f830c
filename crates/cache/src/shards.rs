//! The shards of a store, each under its lock, and their totals.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::Key;
use crate::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use crate::budget::Budget;
use crate::queue::Queue;
use crate::shard::Shard;
use crate::stats::Counters;

/// The small queue of S3-FIFO, for objects without proven worth, gets a tenth at first.
const SMALL_SHARE: usize = 10;

/// The bounds of that share, as parts of the store.
const LEAST_SHARE: usize = 100;
const MOST_SHARE: usize = 2;

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
    /// Bytes of a full store that the small queues may take before objects are evicted from them.
    small_share: AtomicUsize,
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
        let small_share = AtomicUsize::new(budget.limit() / SMALL_SHARE);
        Shards {
            shards: (0..count).map(|_| Padded::new(marks)).collect(),
            budget,
            small_bytes: AtomicIsize::new(0),
            main_bytes: AtomicIsize::new(0),
            index_bytes: AtomicIsize::new(0),
            small_share,
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

    /// Whether the next victim is one of the small queues. What readers and leases hold is no part of a queue, so the
    /// share is that of what the queues hold, not of the whole store.
    pub(crate) fn small_exceeds_its_share(&self) -> bool {
        let [small, main] = [&self.small_bytes, &self.main_bytes].map(|bytes| bytes.load(Relaxed) as f64);
        small * self.budget.limit() as f64 > self.small_share() as f64 * (small + main)
    }

    /// Bytes of a full store that the small queues may take before objects are evicted from them.
    fn small_share(&self) -> usize {
        self.bounded_share(self.small_share.load(Relaxed))
    }

    /// Changes the share. Of two changes at the same time, one may be lost: each is small.
    fn pull(&self, bytes: isize) {
        let share = self.small_share().saturating_add_signed(bytes);
        self.small_share.store(self.bounded_share(share), Relaxed);
    }

    fn bounded_share(&self, share: usize) -> usize {
        let limit = self.budget.limit();
        share.clamp(limit / LEAST_SHARE, limit / MOST_SHARE)
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

    /// Adds what has changed to the totals. Never inlined, because a hit changes nothing.
    #[inline(never)]
    fn total(&mut self) {
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
        let pull = self.shard.pull();
        if pull != 0 {
            self.all.pull(pull);
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

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if self.changed {
            self.total();
        }
    }
}
