//! One shard: an index, two queues and their ghost, tags, marks and flights, under one lock that is held
//! briefly.
//!
//! Eviction is S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023). New
//! objects enter a small queue; those that are requested again while in it move on to the main queue. Keys
//! that left the small queue without a hit are remembered, so that they enter the main queue if they come
//! back, and so are those that expired after hits. Unlike there, sizes count: an object above the mean weight
//! needs more hits to stay, and one below it uses them up more slowly; the small queue's share follows the
//! keys that come back soon after they left either queue; and hits that follow an object's arrival at once
//! count a quarter (docs/decisions/0008).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use hashbrown::HashTable;
use sandarac_message::range::RangeSpec;
use sandarac_message::{Fields, Timestamp};

use crate::flight_state::Flying;
use crate::ghost::{Ghost, LIFE, MOST_REQUESTS, Remembered};
use crate::judge::{Judge, MUCH_HEAVIER};
use crate::marks::Marks;
use crate::object::{FREQUENT, HIT};
use crate::place::Place;
use crate::queue::{ARRIVALS, Line, Queue};
use crate::slab::{NONE, Slab};
use crate::stats::{Counters, Removal};
use crate::tags::TagIndex;
use crate::{Key, Object, PageMarkup, Tag};

/// Objects that one search for a victim examines before it releases the lock.
const STEPS: usize = 16;

/// A key has only just left a queue while the queue's evictions since are fewer than this part of all
/// objects.
const JUST_LEFT: usize = 32;

/// A key that comes back to the main queue counts for as many that come back to the small one: it was wanted
/// before.
const MAIN_PULL: isize = 3;

/// The outcome of a search for a victim.
pub(crate) enum Victim {
    Evicted(Arc<Object>),
    /// None yet, but some objects have used up some of their hits.
    Passed,
    /// The queue is empty, or all objects examined are being read.
    None,
}

/// The result of a search in the index.
pub(crate) enum Found {
    /// The newest object that answers such requests and holds the requested part.
    Object(u32),
    /// Only an object that holds another part.
    Partial(u32),
    Nothing,
}

pub(crate) struct Shard {
    table: HashTable<u32>,
    places: Slab<Place>,
    /// Of each [`Queue`].
    lines: [Line; 3],
    /// Bytes of the objects in the small queue, arrivals included, and in the main queue.
    bytes: [usize; 2],
    /// Keys that left the small queue without a hit, or expired after hits.
    ghost: Ghost,
    /// Keys that left the main queue a short time ago.
    main_ghost: Ghost,
    pub(crate) tags: TagIndex,
    pub(crate) marks: Marks,
    pub(crate) flights: HashTable<Arc<Flying>>,
    pub(crate) counters: Counters,
    /// Slots whose objects were condemned, though some may have been reused since. The number below is exact.
    condemned: Vec<u32>,
    condemned_objects: usize,
    /// Bytes last charged for the index.
    charged: usize,
    /// Bytes by which the small queue's share should grow.
    pull: isize,
    /// How often the index was rebuilt, which gives objects other slots.
    rebuilt: u32,
}

impl Shard {
    /// A shard whose marks take at most `marks` bytes.
    pub(crate) fn new(marks: usize) -> Shard {
        Shard {
            table: HashTable::new(),
            places: Slab::new(),
            lines: [Line::EMPTY; 3],
            bytes: [0; 2],
            ghost: Ghost::new(),
            main_ghost: Ghost::new(),
            tags: TagIndex::new(),
            marks: Marks::new(marks),
            flights: HashTable::new(),
            counters: Counters::default(),
            condemned: Vec::new(),
            condemned_objects: 0,
            charged: 0,
            pull: 0,
            rebuilt: 0,
        }
    }

    /// Objects that are not condemned.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.condemned_objects
    }

    /// Changes when the index is rebuilt: a slot that was noted before then may be another object's.
    pub(crate) fn rebuilt(&self) -> u32 {
        self.rebuilt
    }

    /// One past the last slot.
    pub(crate) fn end(&self) -> u32 {
        self.places.end()
    }

    /// Bytes of the objects in a queue.
    pub(crate) fn queued(&self, queue: Queue) -> usize {
        self.bytes[queue.whole() as usize]
    }

    /// Objects in a queue, arrivals included.
    pub(crate) fn queue_len(&self, queue: Queue) -> usize {
        let arrivals = if queue == Queue::Small { self.lines[Queue::Arrivals as usize].len } else { 0 };
        self.lines[queue as usize].len + arrivals
    }

    /// Bytes by which the index has grown since the last call.
    pub(crate) fn growth(&mut self) -> isize {
        let before = self.charged;
        self.charged = self.index_bytes();
        self.charged as isize - before as isize
    }

    /// Bytes by which the small queue's share should grow, since the last call.
    pub(crate) fn pull(&mut self) -> isize {
        std::mem::take(&mut self.pull)
    }

    /// Bytes of the index.
    pub(crate) fn index_bytes(&self) -> usize {
        crate::budget::held(self.table.allocation_size())
            + self.places.bytes()
            + self.ghost.bytes()
            + self.main_ghost.bytes()
            + self.tags.bytes()
            + self.marks.bytes()
            + crate::budget::held(self.condemned.capacity() * size_of::<u32>())
    }

    /// The object in a slot, if there is one.
    pub(crate) fn object(&self, slot: u32) -> Option<&Arc<Object>> {
        if slot < self.places.end() { self.places.get(slot).object.as_ref() } else { None }
    }

    /// The slots of the oldest objects in a queue that go, `most` at most.
    pub(crate) fn oldest(&self, queue: Queue, most: usize, goes: impl Fn(&Object) -> bool) -> Vec<u32> {
        let mut at = self.lines[queue as usize].head;
        let slots = std::iter::from_fn(|| {
            let place = (at != NONE).then(|| self.places.get(at))?;
            Some((std::mem::replace(&mut at, place.next), place.object.as_ref()?))
        });
        slots.filter(|(_, object)| goes(object)).take(most).map(|(slot, _)| slot).collect()
    }

    /// The objects of a key, the newest first, with their slots.
    pub(crate) fn variants(&self, key: Key) -> impl Iterator<Item = (u32, &Arc<Object>)> {
        let mut at = self.head(key);
        std::iter::from_fn(move || {
            let place = (at != NONE).then(|| self.places.get(at))?;
            let slot = std::mem::replace(&mut at, place.variant);
            Some((slot, place.object.as_ref()?))
        })
    }

    /// The object that answers a request.
    pub(crate) fn find(&self, key: Key, fields: Fields<'_>, part: Option<RangeSpec>) -> Found {
        let mut found = Found::Nothing;
        for (slot, object) in self.variants(key) {
            if object.is_condemned() || !object.vary().matches(fields) {
                continue;
            }
            if object.answers(part) {
                return Found::Object(slot);
            }
            if matches!(found, Found::Nothing) {
                found = Found::Partial(slot);
            }
        }
        found
    }

    /// The slot of this very object.
    pub(crate) fn slot_of(&self, object: &Arc<Object>) -> Option<u32> {
        self.variants(object.key()).find(|(_, other)| Arc::ptr_eq(object, other)).map(|(slot, _)| slot)
    }

    /// The slot of the object that was stored for the same requests before this one.
    pub(crate) fn before(&self, object: &Arc<Object>) -> Option<u32> {
        let older = self.variants(object.key()).skip_while(|(_, other)| !Arc::ptr_eq(object, other)).skip(1);
        older.filter(|(_, other)| other.vary() == object.vary()).map(|(slot, _)| slot).next()
    }

    /// Adds an object as the newest of its key. It enters the main queue if it inherited that, or its key has
    /// left the store recently, unless `expected` bytes are a large part of the store. Then it has to earn
    /// its place, and the remembered requests for its key count. An object that has hits already is not an
    /// arrival.
    pub(crate) fn insert(&mut self, object: Arc<Object>, tags: &[Tag], expected: usize, judge: Judge) {
        let key = object.key();
        let requests_before = self.recall(key, expected);
        object.requests_before.fetch_max(requests_before, Relaxed);
        let is_large = judge.is_large(expected);
        let returns = requests_before > 0 || Queue::of(&object) == Queue::Main;
        if is_large {
            credit(&object);
        }
        let queue = match object.frequency.load(Relaxed) {
            _ if returns && !is_large => Queue::Main,
            0 => Queue::Arrivals,
            _ => Queue::Small,
        };
        let variant = self.head(key);
        let place = Place { object: Some(object), hash: key.hash(), prev: NONE, next: NONE, variant };
        let slot = self.places.insert(place);
        if variant == NONE {
            let places = &self.places;
            self.table.insert_unique(spread(key.hash()), slot, |&at| spread(places.get(at).hash));
        } else {
            let places = &self.places;
            let eq = |&at: &u32| places.get(at).object.as_ref().is_some_and(|object| object.key() == key);
            if let Some(head) = self.table.find_mut(spread(key.hash()), eq) {
                *head = slot;
            }
        }
        let first_tag = self.tags.insert(slot, tags);
        self.enqueue(slot, queue);
        self.age_arrivals();
        if let Some(object) = self.object(slot) {
            object.tags.store(first_tag, Relaxed);
        }
    }

    /// The requests for a key that left the small queue recently, this one included; 0 if none is remembered.
    /// If it left either queue only just, a larger share would have kept it, so the share is pulled that way,
    /// unless the object is so large that it would have taken the place of several.
    fn recall(&mut self, key: Key, expected: usize) -> u8 {
        let mean = self.mean_weight();
        let pull = if expected > MUCH_HEAVIER * mean { 0 } else { mean as isize };
        if let Some(Remembered { age, requests }) = self.ghost.take(key.hash()) {
            if usize::from(age) < usize::from(LIFE) / JUST_LEFT {
                self.pull += pull;
            }
            return requests + 1;
        }
        if self.main_ghost.take(key.hash()).is_some() {
            self.pull -= MAIN_PULL * pull;
        }
        0
    }

    fn mean_weight(&self) -> usize {
        self.bytes.iter().sum::<usize>() / self.places.len().max(1)
    }

    /// Removes the object in a slot.
    pub(crate) fn remove(&mut self, slot: u32, removal: Removal) -> Option<Arc<Object>> {
        let key = self.object(slot)?.key();
        self.dequeue(slot);
        self.unlink(slot, key);
        let object = self.places.remove(slot).object?;
        self.tags.remove(object.tags.swap(NONE, Relaxed));
        let condemned = object.is_condemned();
        self.condemned_objects -= usize::from(condemned);
        self.counters.removed[if condemned { Removal::Purged } else { removal } as usize] += 1;
        Some(object)
    }

    /// Removes an object that is past every use. If it had hits, its key is remembered: the response that
    /// follows it is wanted as much.
    pub(crate) fn expire(&mut self, slot: u32) -> Option<Arc<Object>> {
        let object = self.object(slot)?;
        if Queue::of(object) == Queue::Main || object.frequency.load(Relaxed) > 0 {
            let hash = object.key().hash();
            self.ghost.insert(hash, MOST_REQUESTS, self.places.len());
        }
        self.remove(slot, Removal::Expired)
    }

    /// Condemns the objects in these slots that carry a tag: they answer no later request and are freed
    /// gradually. Returns how many were usable until now.
    pub(crate) fn condemn(&mut self, slots: &[u32], tag: Tag) -> usize {
        let before = self.condemned_objects;
        for &slot in slots {
            if let Some(object) = self.object(slot)
                && self.carries(object, tag)
                && object.condemn()
            {
                self.condemned_objects += 1;
                self.condemned.push(slot);
            }
        }
        self.condemned_objects - before
    }

    /// Removes a condemned object.
    pub(crate) fn reclaim(&mut self) -> Option<Arc<Object>> {
        while let Some(slot) = self.condemned.pop() {
            if self.object(slot).is_some_and(|object| object.is_condemned()) {
                return self.remove(slot, Removal::Purged);
            }
        }
        self.condemned = Vec::new();
        None
    }

    /// Takes everything out of the shard.
    pub(crate) fn clear(&mut self) -> Shard {
        let mut before = std::mem::replace(self, Shard::new(0));
        self.counters = before.counters;
        self.counters.removed[Removal::Purged as usize] += before.places.len() as u64;
        self.charged = before.charged;
        self.rebuilt = before.rebuilt.wrapping_add(1);
        std::mem::swap(&mut self.marks, &mut before.marks);
        std::mem::swap(&mut self.flights, &mut before.flights);
        self.marks.clear();
        before
    }

    /// Replaces the object in a slot by `after`. Without `tags`, it is the same response, whose body is now
    /// whole. With them, it is that response freshened.
    pub(crate) fn exchange(
        &mut self,
        slot: u32,
        after: Arc<Object>,
        tags: Option<&[Tag]>,
    ) -> Option<Arc<Object>> {
        let before = self.object(slot)?.clone();
        after.succeed(&before);
        let bytes = &mut self.bytes[Queue::of(&before).whole() as usize];
        *bytes = *bytes - before.weight() + after.weight();
        let mut node = before.tags.swap(NONE, Relaxed);
        match tags {
            None => after.inherit_removals(&before),
            Some(tags) => {
                self.tags.remove(node);
                node = self.tags.insert(slot, tags);
            }
        }
        after.tags.store(node, Relaxed);
        self.places.get_mut(slot).object.replace(after)
    }

    /// Keeps a header block, which is charged already, beside the head of `object`: that in `slot`, or a recoding of it.
    /// Returns the bytes that the block takes; none if there is one.
    pub(crate) fn keep_block_of(&mut self, slot: u32, object: &Object, block: Box<[u8]>) -> usize {
        let Some(original) = self.object(slot).cloned() else { return 0 };
        let bytes = object.block_bytes(&block);
        if !object.set_block(block) {
            return 0;
        }
        self.add_bytes(&original, bytes);
        bytes
    }

    /// Keeps the markup of an object, and returns the bytes that it takes.
    pub(crate) fn keep_markup(&mut self, slot: u32, markup: PageMarkup) -> usize {
        let Some(object) = self.object(slot).cloned() else { return 0 };
        let bytes = object.markup_bytes(&markup);
        if !object.set_markup(markup) {
            return 0;
        }
        self.add_bytes(&object, bytes);
        bytes
    }

    /// Counts bytes that were added to an object.
    pub(crate) fn add_bytes(&mut self, object: &Object, bytes: usize) {
        self.bytes[Queue::of(object).whole() as usize] += bytes;
    }

    /// Records that an arriving object has grown by `bytes`. If it entered the main queue because it came
    /// back after an eviction, and turns out to be large without having announced it, it leaves that queue
    /// again.
    pub(crate) fn grown(&mut self, slot: u32, bytes: usize, judge: Judge) {
        let Some(object) = self.object(slot) else { return };
        let queue = Queue::of(object);
        object.add_weight(bytes);
        let misplaced = queue == Queue::Main && object.hits() == 0 && judge.is_large(object.weight());
        if misplaced {
            credit(object);
        }
        self.bytes[queue.whole() as usize] += bytes;
        if misplaced {
            self.dequeue(slot);
            self.enqueue(slot, Queue::Small);
        }
    }

    /// Makes the objects in these slots that carry a tag stale. Returns their number.
    pub(crate) fn purge_softly(&self, slots: &[u32], tag: Tag, now: Timestamp) -> usize {
        let objects = slots.iter().filter_map(|&slot| self.object(slot));
        let tagged = objects.filter(|object| !object.is_condemned() && self.carries(object, tag));
        tagged.map(|object| object.purge_softly(now)).count()
    }

    /// Whether an object of this shard carries a tag.
    fn carries(&self, object: &Object, tag: Tag) -> bool {
        self.tags.of(object.tags.load(Relaxed)).any(|other| other == tag)
    }

    /// Looks for a victim in one queue. A whole object that is being read is passed over: evicting it would
    /// free nothing, and it would be fetched again beside the copy that is still held.
    pub(crate) fn evict(&mut self, queue: Queue, judge: Judge) -> Victim {
        if let Some(object) = self.reclaim() {
            return Victim::Evicted(object);
        }
        self.age_arrivals();
        let mut passed = Victim::None;
        let mean = self.mean_weight();
        for _ in 0..STEPS {
            let slot = self.lines[queue as usize].head;
            let Some(object) = self.object(slot) else {
                return passed;
            };
            let (earned, held) = (judge.earned(object, mean), judge.is_held(object));
            if earned {
                if queue == Queue::Main {
                    object.frequency.fetch_sub(judge.cost(object, mean), Relaxed);
                } else {
                    object.frequency.store(0, Relaxed);
                }
                passed = Victim::Passed;
            }
            if earned || held {
                self.dequeue(slot);
                self.enqueue(slot, if earned { Queue::Main } else { queue });
                continue;
            }
            let hash = object.key().hash();
            let requests = object.frequency.load(Relaxed) / HIT;
            if queue == Queue::Main {
                self.main_ghost.insert(hash, 0, self.places.len() / JUST_LEFT);
            } else {
                self.ghost.insert(hash, requests, self.places.len());
            }
            return self.remove(slot, Removal::Evicted).map_or(Victim::None, Victim::Evicted);
        }
        passed
    }

    /// Lets the oldest arrivals go on to the rest of the small queue, until few enough are left.
    fn age_arrivals(&mut self) {
        while self.lines[Queue::Arrivals as usize].len > self.queue_len(Queue::Small) / ARRIVALS {
            let slot = self.lines[Queue::Arrivals as usize].head;
            self.dequeue(slot);
            if let Some(object) = self.object(slot) {
                object.frequency.store(object.frequency.load(Relaxed) / (FREQUENT / HIT), Relaxed);
            }
            self.enqueue(slot, Queue::Small);
        }
    }

    /// Rebuilds the index as small as possible.
    pub(crate) fn shrink(&mut self) {
        if self.places.len() * 4 > self.places.end() as usize && !self.tags.is_slack() {
            return;
        }
        while let Some(object) = self.reclaim() {
            drop(object);
        }
        (self.ghost, self.main_ghost) = (Ghost::new(), Ghost::new());
        self.marks.clear();
        let mut objects = Vec::with_capacity(self.places.len());
        for queue in [Queue::Small, Queue::Arrivals, Queue::Main] {
            let mut at = self.lines[queue as usize].head;
            while at != NONE {
                let place = self.places.get_mut(at);
                at = place.next;
                objects.extend(place.object.take());
            }
            self.lines[queue as usize] = Line::EMPTY;
        }
        self.rebuilt = self.rebuilt.wrapping_add(1);
        self.bytes = [0; 2];
        self.table = HashTable::new();
        self.places = Slab::new();
        let before = std::mem::replace(&mut self.tags, TagIndex::new());
        // Oldest first, so that the newest of each key comes first again.
        objects.sort_by_key(|object| object.received());
        let judge = Judge { limit: 0, desperate: false };
        for object in objects {
            let tags: Vec<Tag> = before.of(object.tags.load(Relaxed)).collect();
            self.insert(object, &tags, 0, judge);
        }
    }

    /// The slot of the newest object of a key.
    fn head(&self, key: Key) -> u32 {
        let eq = |&at: &u32| {
            let place = self.places.get(at);
            place.hash == key.hash() && place.object.as_ref().is_some_and(|object| object.key() == key)
        };
        self.table.find(spread(key.hash()), eq).copied().unwrap_or(NONE)
    }

    /// Removes a slot from the list of its key.
    fn unlink(&mut self, slot: u32, key: Key) {
        let after = self.places.get(slot).variant;
        let mut at = self.head(key);
        if at == slot {
            if let Ok(mut entry) = self.table.find_entry(spread(key.hash()), |&other| other == slot) {
                if after == NONE {
                    entry.remove();
                } else {
                    *entry.get_mut() = after;
                }
            }
            return;
        }
        while at != NONE {
            let place = self.places.get_mut(at);
            if place.variant == slot {
                place.variant = after;
                return;
            }
            at = place.variant;
        }
    }

    fn enqueue(&mut self, slot: u32, queue: Queue) {
        let line = &mut self.lines[queue as usize];
        let last = std::mem::replace(&mut line.tail, slot);
        if last == NONE {
            line.head = slot;
        }
        let place = self.places.get_mut(slot);
        (place.prev, place.next) = (last, NONE);
        if let Some(object) = &place.object {
            object.queue.store(queue as u8, Relaxed);
            self.bytes[queue.whole() as usize] += object.weight();
            line.len += 1;
        }
        if last != NONE {
            self.places.get_mut(last).next = slot;
        }
    }

    fn dequeue(&mut self, slot: u32) {
        let place = self.places.get(slot);
        let (prev, next) = (place.prev, place.next);
        let Some(object) = &place.object else { return };
        let (queue, weight) = (Queue::of(object), object.weight());
        if prev != NONE {
            self.places.get_mut(prev).next = next;
        }
        if next != NONE {
            self.places.get_mut(next).prev = prev;
        }
        let line = &mut self.lines[queue as usize];
        self.bytes[queue.whole() as usize] -= weight;
        line.len -= 1;
        if prev == NONE {
            line.head = next;
        }
        if next == NONE {
            line.tail = prev;
        }
    }
}

/// Counts the remembered requests for an object's key as hits: a large object earns its place in the main
/// queue, and may do so in several rounds.
fn credit(object: &Object) {
    object.frequency.fetch_max(object.requests_before.load(Relaxed) * HIT, Relaxed);
}

/// A 64-bit hash from a 32-bit one: the table takes the place from the low end and its tag from the high end.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}
