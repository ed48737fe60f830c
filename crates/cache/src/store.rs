//! The store: shards, one budget, and the operations that involve more than one shard.

use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use sandarac_message::Timestamp;

use crate::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use crate::ban::Bans;
use crate::budget::Budget;
use crate::flight_state::{Begun, Flying, Offer, Passing};
use crate::forgotten::{Forgotten, Others, Purge, Standing};
use crate::memory_file::MemoryFiles;
use crate::purge_log::PurgeLog;
use crate::queue::Queue;
use crate::settings::Settings;
use crate::shard::Shard;
use crate::shards::{Locked, Shards};
use crate::stats::{Removal, Stats};
use crate::sweep_position::SweepPosition;
use crate::{Key, Object, PageMarkup, Tag};

/// Stored responses, shared by all cores. See the [crate documentation](crate).
pub struct Store {
    pub(crate) shards: Shards,
    pub(crate) budget: Arc<Budget>,
    /// The memory of large bodies.
    pub(crate) files: Arc<MemoryFiles>,
    /// Searches for a victim so far.
    pub(crate) evictions: AtomicUsize,
    /// The shard that gives the next victim.
    pub(crate) hand: AtomicUsize,
    settings: RwLock<Settings>,
    pub(crate) purges: PurgeLog,
    pub(crate) bans: Bans,
    pub(crate) sweep_position: Mutex<SweepPosition>,
    others: OnceLock<Arc<dyn Others>>,
}

impl Store {
    /// An empty store.
    pub fn new(settings: Settings) -> Store {
        let count = settings.shard_count();
        // Marks only limit the effect of a flood of uncacheable responses: a hundredth of the store is
        // plenty.
        let marks = settings.limit / 128 / count;
        let budget = Budget::new(settings.limit);
        Store {
            shards: Shards::new(count, marks, budget.clone()),
            budget,
            files: Arc::new(MemoryFiles::default()),
            evictions: AtomicUsize::new(0),
            hand: AtomicUsize::new(0),
            settings: RwLock::new(settings),
            purges: PurgeLog::new(),
            bans: Bans::new(),
            sweep_position: Mutex::new(SweepPosition::default()),
            others: OnceLock::new(),
        }
    }

    /// The settings in force.
    pub fn settings(&self) -> Settings {
        *self.settings.read()
    }

    /// Changes the settings, except the number of shards. A lower limit is met on return, except for bytes
    /// that readers still hold. The next [sweeps](Store::sweep) compact the objects that remain.
    pub fn configure(&self, settings: Settings) {
        let before = self.settings();
        *self.settings.write() = Settings { shards: before.shards, ..settings };
        self.budget.set_limit(settings.limit);
        self.fit();
        if settings.limit < before.limit {
            self.sweep_position.lock().uncompacted = Some((0, 0));
        }
    }

    /// Has the stores of other processes forget what this one does from here on, and the other way round. Once
    /// only.
    pub fn join(&self, others: Arc<dyn Others>) {
        assert!(self.others.set(others).is_ok(), "a store joins others once");
    }

    /// Tells the others what is forgotten here.
    pub(crate) fn tell_others(&self, purge: Purge, what: impl FnOnce() -> Forgotten) {
        if let Some(others) = self.others.get() {
            others.forget(&what(), purge);
        }
    }

    /// Whether others may have forgotten something that is still here, and have to answer in its place. What it was
    /// not told of is forgotten first.
    pub(crate) fn is_behind(&self, now: Timestamp) -> bool {
        let Some(others) = self.others.get() else { return false };
        match others.have_forgotten() {
            Standing::Current => false,
            Standing::Behind => true,
            Standing::Lost(number) => {
                // Whoever looks up meanwhile does the same.
                self.purge_all(Purge::Hard, now);
                others.caught_up(number);
                false
            }
        }
    }

    /// Whether a purge or a ban since `begun` may match the response to a request for a key, and for a target
    /// if it carries the tag of one. Its other tags are not known before its fields are edited.
    pub fn may_be_purged_since(&self, begun: Begun, key: Key, target: Option<Tag>) -> bool {
        self.bans.latest() != begun.bans || self.purges.may_meet(begun.purges, key, target)
    }

    /// Statistics of all shards. Takes each shard's lock in turn.
    pub fn stats(&self) -> Stats {
        let mut stats =
            Stats { limit: self.budget.limit() as u64, bans: self.bans.len() as u64, ..Stats::default() };
        for shard in 0..self.shards() {
            let shard = self.shard(shard);
            stats.count(&shard.counters);
            stats.objects += shard.len() as u64;
            stats.index_bytes += shard.index_bytes() as u64;
            stats.small_bytes += shard.queued(Queue::Small) as u64;
            stats.main_bytes += shard.queued(Queue::Main) as u64;
            stats.flights += shard.flights.len() as u64;
            stats.waiters += shard.flights.iter().map(|flying| flying.waiters() as u64).sum::<u64>();
        }
        stats.bytes = self.budget.used() as u64;
        stats.held_bytes = self.held_bytes() as u64;
        stats.lent_bytes = self.budget.lent_charged() as u64;
        stats.file_bytes = self.files.used() as u64;
        stats.file_failures = self.files.failures();
        stats
    }

    /// Bytes of objects that are not stored and cannot be freed because they are being read. Takes no lock, so
    /// concurrent changes make it inexact.
    pub fn held_bytes(&self) -> usize {
        self.fixed_bytes().saturating_sub(self.budget.lent_charged()) + self.budget.passing()
    }

    /// The same with those that are lent: all that no eviction can free.
    pub(crate) fn fixed_bytes(&self) -> usize {
        self.used_beside(&[&self.shards.small_bytes, &self.shards.main_bytes, &self.shards.index_bytes])
    }

    /// Bytes charged for anything else than these.
    pub(crate) fn used_beside(&self, these: &[&AtomicIsize]) -> usize {
        let these: isize = these.iter().map(|bytes| bytes.load(Relaxed)).sum();
        self.budget.used().saturating_sub(usize::try_from(these).unwrap_or(0))
    }

    /// The purges and bans that do not apply to a fetch which begins now.
    pub fn begun(&self) -> Begun {
        Begun { purges: self.purges.ended(), bans: self.bans.latest() }
    }

    /// The object, if a fetch may build on it that began before this call: no purge and no ban before then removed it. Bans are
    /// tested, so no lock may be held.
    pub(crate) fn unremoved(&self, object: Option<Arc<Object>>) -> Option<Arc<Object>> {
        object.filter(|object| self.holds(object) && !self.bans.meet(object))
    }

    pub(crate) fn shards(&self) -> usize {
        self.shards.len()
    }

    pub(crate) fn shard(&self, at: usize) -> Locked<'_> {
        self.shards.lock(at)
    }

    pub(crate) fn lock(&self, key: Key) -> Locked<'_> {
        self.shards.lock_for(key)
    }

    /// Removes a flight from its shard.
    pub(crate) fn ground(&self, flying: &Arc<Flying>) {
        ground(&mut self.lock(flying.key), flying);
    }

    /// Passes an abandoned flight to a waiter.
    pub(crate) fn pass_on(&self, flying: &Arc<Flying>, passing: Passing) {
        let mut shard = self.lock(flying.key);
        match flying.offer(passing) {
            Offer::Unneeded => {}
            Offer::To(wake) => {
                drop(shard);
                wake.wake();
            }
            Offer::Nobody => {
                ground(&mut shard, flying);
                drop(shard);
                flying.over();
            }
        }
    }

    /// Whether this very object is in the index.
    pub(crate) fn holds(&self, object: &Arc<Object>) -> bool {
        self.lock(object.key()).slot_of(object).is_some() && !object.is_condemned()
    }

    /// The number of objects of a key that may still be used.
    pub fn count(&self, key: Key) -> usize {
        self.lock(key).variants(key).filter(|(_, object)| !object.is_condemned()).count()
    }

    /// Keeps `block`, the head of an object as a header block of HTTP/2, beside the head. Does nothing if the object has one,
    /// or is not in the index, or if there is no room.
    pub fn keep_block(&self, object: &Arc<Object>, block: Box<[u8]>) {
        let reserved = object.block_bytes(&block);
        if !self.reserve(reserved) {
            return;
        }
        let mut shard = self.lock(object.key());
        // A recoding that was kept meanwhile may have made room that the block needs too.
        let taken = shard.slot_of(object).map_or(0, |slot| shard.keep_block_of(slot, object, block));
        drop(shard);
        self.release(reserved - taken);
    }

    /// Keeps the markup of an object beside it. Does nothing if it has one, or is not in the index, or if there is no room.
    pub fn keep_markup(&self, object: &Arc<Object>, markup: PageMarkup) {
        let reserved = object.markup_bytes(&markup);
        if !self.reserve(reserved) {
            return;
        }
        let mut shard = self.lock(object.key());
        let taken = shard.slot_of(object).map_or(0, |slot| shard.keep_markup(slot, markup));
        drop(shard);
        self.release(reserved - taken);
    }

    /// Makes this object stale, and one that has taken its place as the same copy of an entry of the shared tier.
    pub fn soften(&self, object: &Object, now: Timestamp) {
        let shard = self.lock(object.key());
        object.purge_softly(now);
        let of = |other: &Object| {
            other.copy().zip(object.copy()).is_some_and(|(one, other)| Arc::ptr_eq(one, other))
        };
        shard
            .variants(object.key())
            .filter(|(_, other)| of(other))
            .for_each(|(_, other)| other.purge_softly(now));
    }

    pub(crate) fn count_hit(&self, object: &Object) {
        let mut shard = self.lock(object.key());
        object.hit();
        shard.counters().hits += 1;
    }

    /// Removes this very object, if it is in the index. Returns whether it was.
    pub fn discard(&self, object: &Arc<Object>, removal: Removal) -> bool {
        let mut shard = self.lock(object.key());
        let removed = shard.slot_of(object).and_then(|slot| shard.remove(slot, removal));
        drop(shard);
        removed.is_some()
    }
}

fn ground(shard: &mut Shard, flying: &Arc<Flying>) {
    let entry = shard.flights.find_entry(u64::from(flying.key.hash()), |other| Arc::ptr_eq(flying, other));
    if let Ok(entry) = entry {
        entry.remove();
    }
}
