//! The store: shards, one budget, and what goes over more than one shard.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use sandarac_message::caching::{RequestDirectives, Reuse};
use sandarac_message::range::RangeSpec;
use sandarac_message::vary::{VaryKey, VarySpec};
use sandarac_message::{Fields, Name, Timestamp};

use crate::ban::Bans;
use crate::budget::Budget;
use crate::flight::{Begun, Errand, Flight, Flying, Waiter};
use crate::locked::{Locked, Padded};
use crate::purge::PurgeLog;
use crate::shard::{Found, Queue, Shard};
use crate::stats::{Removal, Stats};
use crate::sweep::Sweeper;
use crate::{Key, Mark, Object, Tag};

/// Beyond so many proxies that requests passed, fetches for them are not told apart: clients can claim any number.
const MOST_PASSED: usize = 8;

/// How a store is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The most bytes it may hold in all.
    pub limit: usize,
    /// The longest body it stores. `None`: whatever there is room for.
    pub max_object: Option<u64>,
    /// The most objects of one key that differ in what they vary on; the oldest makes room.
    pub max_variants: usize,
    /// How far, in bytes, the slowest reader of an object that isn't stored may be behind the fetch before it slows it.
    pub window: usize,
    /// How long such a reader may hold up the fetch before it is cut off.
    pub patience: Duration,
    /// Shards, rounded up to a power of two; fixed when the store is made. `None`: as many as suit the limit.
    pub shards: Option<usize>,
}

impl Settings {
    /// A store of `limit` bytes, and otherwise:
    ///
    /// - no limit on single bodies, because admission weighs them already;
    /// - 128 variants of a key, more than languages and encodings make, and few enough to look through;
    /// - a window of 1 MiB, a second of a gigabit divided among a hundred readers;
    /// - 5 s of patience, after which the readers that keep up have waited long enough.
    pub const fn new(limit: usize) -> Settings {
        Settings {
            limit,
            max_object: None,
            max_variants: 128,
            window: 1 << 20,
            patience: Duration::from_secs(5),
            shards: None,
        }
    }

    fn shard_count(&self) -> usize {
        // A shard of less than 4 MiB would hold too few objects for its queues to tell anything.
        self.shards.unwrap_or(self.limit >> 22).clamp(1, 64).next_power_of_two()
    }
}

/// Stored responses, shared by all cores. See the [crate documentation](crate).
pub struct Store {
    pub(crate) shards: Box<[Padded]>,
    pub(crate) budget: Arc<Budget>,
    /// Bytes in the small queues of all shards.
    pub(crate) small_bytes: AtomicIsize,
    /// Bytes in the main queues of all shards.
    pub(crate) main_bytes: AtomicIsize,
    /// Bytes of the index of all shards.
    pub(crate) index_bytes: AtomicIsize,
    /// Searches for a victim so far.
    pub(crate) evictions: AtomicUsize,
    /// The shard that gives the next victim.
    pub(crate) hand: AtomicUsize,
    settings: RwLock<Settings>,
    pub(crate) purges: PurgeLog,
    pub(crate) bans: Bans,
    pub(crate) sweeper: Mutex<Sweeper>,
}

/// A request to be looked up.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Its fields, for `Vary`.
    pub fields: Fields<'a>,
    /// Its cache directives.
    pub directives: &'a RequestDirectives,
    /// The part of the representation it wants; `None` where that is all of it, or several ranges.
    pub part: Option<RangeSpec>,
    /// What it would do with a miss.
    pub intent: Intent,
}

/// What a request would do with a miss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Intent {
    /// Fetch, or wait for another's fetch.
    #[default]
    Fill,
    /// Nothing: it only wants to know what is there, as with `only-if-cached`.
    Peek,
}

/// What the store has for a request.
#[must_use]
pub enum Lookup {
    /// An object to serve: fresh, or as fresh as the request asks. Its body may be arriving.
    Hit(Arc<Object>),
    /// A stale object to serve at once. The first to find it gets the right to validate it in the background.
    Stale(Arc<Object>, Option<Flight>),
    /// Nothing to serve without asking the origin, and the right to ask.
    Miss(Flight),
    /// Another request is asking.
    Wait(Waiter),
    /// The key's responses are not shared: ask the origin without waiting for others, and, for [`Mark::HitForMiss`], store what
    /// turns out to be storable.
    Marked(Mark, Flight),
    /// For [`Intent::Peek`]: nothing to serve without asking the origin. The object, if any, would be validated.
    Absent(Option<Arc<Object>>),
}

impl Store {
    /// An empty store.
    pub fn new(settings: Settings) -> Store {
        let count = settings.shard_count();
        // Marks are hints for the flood of what cannot be cached: a hundredth of the store is plenty.
        let marks = settings.limit / 128 / count;
        Store {
            shards: (0..count).map(|_| Padded::new(marks)).collect(),
            budget: Budget::new(settings.limit),
            small_bytes: AtomicIsize::new(0),
            main_bytes: AtomicIsize::new(0),
            index_bytes: AtomicIsize::new(0),
            evictions: AtomicUsize::new(0),
            hand: AtomicUsize::new(0),
            settings: RwLock::new(settings),
            purges: PurgeLog::new(),
            bans: Bans::new(),
            sweeper: Mutex::new(Sweeper::default()),
        }
    }

    /// How it is set up.
    pub fn settings(&self) -> Settings {
        *self.settings.read()
    }

    /// Changes the settings, but for the number of shards. A lower limit is kept when this returns, as far as readers
    /// let go what they read; the next [sweeps](Store::sweep) move together what is left.
    pub fn configure(&self, settings: Settings) {
        let before = self.settings();
        *self.settings.write() = Settings { shards: before.shards, ..settings };
        self.budget.set_limit(settings.limit);
        self.fit();
        if settings.limit < before.limit {
            self.sweeper.lock().uncompacted = Some((0, 0));
        }
    }

    /// What there is for a request. On the way of a hit nothing is allocated, and one lock is taken and let go.
    pub fn lookup(self: &Arc<Store>, key: Key, query: &Query<'_>, now: Timestamp) -> Lookup {
        loop {
            let mut shard = self.lock(key);
            let (object, whole) = match shard.find(key, query.fields, query.part) {
                Found::Object(slot) => (shard.object(slot), true),
                Found::Partial(slot) => (shard.object(slot), false),
                Found::Nothing => (None, false),
            };
            let Some(object) = object.cloned() else {
                return self.miss(shard, key, query, None, now);
            };
            if !self.bans.are_tested(&object) {
                drop(shard);
                if self.bans.meet(&object) {
                    self.discard(&object, Removal::Banned);
                }
                continue;
            }
            let reuse = match object.lifetimes().reuse(query.directives, now) {
                Reuse::Gone => Reuse::Gone,
                _ if !whole => Reuse::Revalidate,
                reuse => reuse,
            };
            return match reuse {
                Reuse::Fresh | Reuse::MaxStale => {
                    object.hit();
                    shard.counters().hits += 1;
                    Lookup::Hit(object)
                }
                Reuse::StaleWhileRevalidate => {
                    object.hit();
                    shard.counters().stale += 1;
                    let flight = match query.intent {
                        Intent::Fill => self.take_off(&mut shard, key, query, Some(&object)).ok(),
                        Intent::Peek => None,
                    };
                    Lookup::Stale(object, flight)
                }
                Reuse::Revalidate => self.miss(shard, key, query, Some(object), now),
                Reuse::Gone => self.miss(shard, key, query, None, now),
            };
        }
    }

    /// Whether a purge or a ban since `begun` may be about the response to a request for a key, and for a target if it carries the
    /// tag of one. Its other tags are not known before its fields are edited.
    pub fn may_be_purged_since(&self, begun: Begun, key: Key, target: Option<Tag>) -> bool {
        self.bans.latest() != begun.bans || self.purges.may_meet(begun.purges, key, target)
    }

    /// The right to store a response for a key beside others who may hold it too: from another tier, or of a request that
    /// wasn't looked up.
    pub fn open(self: &Arc<Store>, key: Key) -> Flight {
        Flight::new(self.clone(), key, self.begun(), None)
    }

    /// The right to freshen a stored object with what the origin said of it otherwise than by a 304, as in a response to
    /// HEAD (RFC 9111 §4.3.5).
    pub fn open_for(self: &Arc<Store>, object: &Arc<Object>) -> Flight {
        Flight::new(self.clone(), object.key(), self.begun(), Some(object.clone()))
    }

    /// What it holds and has done. Takes every shard's lock in turn.
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
        stats
    }

    /// Bytes of objects that have left the store and cannot be freed, because somebody reads them. Takes no lock: while
    /// others store and evict, it is off by what they are about.
    pub fn held_bytes(&self) -> usize {
        self.used_beside(&[&self.small_bytes, &self.main_bytes, &self.index_bytes])
    }

    /// Bytes that are charged for other things than these.
    pub(crate) fn used_beside(&self, these: &[&AtomicIsize]) -> usize {
        let these: isize = these.iter().map(|bytes| bytes.load(Relaxed)).sum();
        self.budget.used().saturating_sub(usize::try_from(these).unwrap_or(0))
    }

    fn miss(
        self: &Arc<Store>,
        mut shard: Locked<'_>,
        key: Key,
        query: &Query<'_>,
        candidate: Option<Arc<Object>>,
        now: Timestamp,
    ) -> Lookup {
        if query.intent == Intent::Peek {
            return Lookup::Absent(candidate);
        }
        if let Some(mark) = self.marked(&shard, key, query, now) {
            shard.counters().marked += 1;
            return Lookup::Marked(mark, Flight::new(self.clone(), key, self.begun(), candidate));
        }
        let alone = candidate.as_ref().is_some_and(|object| !object.is_shareable());
        if alone {
            shard.counters().misses += 1;
            return Lookup::Miss(Flight::new(self.clone(), key, self.begun(), candidate));
        }
        match self.take_off(&mut shard, key, query, candidate.as_ref()) {
            Ok(flight) => {
                shard.counters().misses += 1;
                Lookup::Miss(flight)
            }
            Err(flying) => {
                shard.counters().waits += 1;
                Lookup::Wait(Waiter::new(self.clone(), flying))
            }
        }
    }

    fn marked(&self, shard: &Shard, key: Key, query: &Query<'_>, now: Timestamp) -> Option<Mark> {
        if !shard.marks.any() {
            return None;
        }
        shard.marks.get(key, now).or_else(|| {
            let variant = variant(shard, key, query.fields)?;
            shard.marks.get(key.variant(&variant), now)
        })
    }

    /// The flight for a request, or another's that is on its way for such requests.
    fn take_off(
        self: &Arc<Store>,
        shard: &mut Shard,
        key: Key,
        query: &Query<'_>,
        candidate: Option<&Arc<Object>>,
    ) -> Result<Flight, Arc<Flying>> {
        let whole = candidate.is_some_and(|object| object.range().is_none());
        let errand = Errand {
            variant: variant(shard, key, query.fields),
            part: query.part.filter(|part| !whole && !part.is_whole()),
            passed: query.fields.list(Name::Via).count().min(MOST_PASSED),
        };
        let begun = self.begun();
        let hash = u64::from(key.hash());
        let candidate = candidate.cloned();
        let eq = |flying: &Arc<Flying>| flying.key == key && flying.errand.serves(&errand);
        if let Some(flying) = shard.flights.find_mut(hash, eq) {
            // One that began before a purge or a ban may bring what that was to remove.
            let before = flying.begun();
            if before.bans == begun.bans && !self.purges.may_meet(before.purges, key, flying.target()) {
                return Err(flying.clone());
            }
            *flying = Flying::new(key, errand, begun, candidate.clone());
            return Ok(Flight::of(self.clone(), flying.clone(), begun, candidate));
        }
        let flying = Flying::new(key, errand, begun, candidate.clone());
        shard.flights.insert_unique(hash, flying.clone(), |flying| u64::from(flying.key.hash()));
        Ok(Flight::of(self.clone(), flying, begun, candidate))
    }

    /// Which purges and bans there have been by now.
    pub fn begun(&self) -> Begun {
        Begun { purges: self.purges.epoch(), bans: self.bans.latest() }
    }

    /// Takes a flight out of its shard.
    pub(crate) fn ground(&self, flying: &Arc<Flying>) {
        ground(&mut self.lock(flying.key), flying);
    }

    /// Gives an abandoned flight to one who waits.
    pub(crate) fn pass_on(&self, flying: &Arc<Flying>) {
        let mut shard = self.lock(flying.key);
        if let Some(wake) = flying.offer() {
            drop(shard);
            wake.wake();
            return;
        }
        ground(&mut shard, flying);
        drop(shard);
        flying.over();
    }

    /// Whether this very object is in the index.
    pub(crate) fn holds(&self, object: &Arc<Object>) -> bool {
        self.lock(object.key()).slot_of(object).is_some() && !object.is_condemned()
    }

    pub(crate) fn count_hit(&self, object: &Object) {
        let mut shard = self.lock(object.key());
        object.hit();
        shard.counters().hits += 1;
    }

    /// Removes this very object, if it is in the index.
    pub(crate) fn discard(&self, object: &Arc<Object>, removal: Removal) -> bool {
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

/// Which variant of a key a request asks for, where the newest object of the key tells what it varies on.
fn variant(shard: &Shard, key: Key, request: Fields<'_>) -> Option<VaryKey> {
    let (_, newest) = shard.variants(key).find(|(_, object)| !object.vary().is_empty())?;
    Some(spec(newest.vary()).key(request))
}

/// The names in a key: before the first colon of each line.
fn spec(key: &VaryKey) -> VarySpec {
    let lines = key.as_bytes().split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    VarySpec::Names(
        lines.map(|line| line.split(|&byte| byte == b':').next().unwrap_or(line).into()).collect(),
    )
}
