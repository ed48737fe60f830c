//! Admission of responses to the store.

use std::sync::Arc;

use bytes::Bytes;
use sandarac_message::caching::Lifetimes;
use sandarac_message::{FieldsBuf, StoredHead, Timestamp};

use crate::arriving::{Arriving, Mode};
use crate::atomic::Ordering::Relaxed;
use crate::body::Content;
use crate::body_writer::BodyWriter;
use crate::budget::Charge;
use crate::buffer::{Buffer, LARGE};
use crate::combination::Combination;
use crate::flight_state::LandedFlight;
use crate::memory_file::{MemoryFiles, SLOT};
use crate::new_object::NewObject;
use crate::object::{Extras, Parts};
use crate::queue::Queue;
use crate::shards::Locked;
use crate::stats::Removal;
use crate::store::Store;
use crate::whole_body::{SHARES_PAGES, Segment, Whole};
use crate::{Mark, Object, Tag};

/// A body keeps the memory it came in if what that holds beside it is at most this part of it.
const MOST_BESIDE: usize = 16;

/// When the objects that the new one replaces leave the store.
#[derive(Clone, Copy)]
enum Superseded<'a> {
    /// When the new object enters it.
    Now,
    /// A whole one when the new object is whole, so that it stands in if the body breaks off; others at once.
    WhenWhole,
    /// When the new object is whole. It is combined with this stored part, which must survive if the rest does
    /// not arrive.
    WhenCombined(&'a Arc<Object>),
}

impl Store {
    /// Stores a head whose body is to follow. The body may be combined with a stored part.
    pub(crate) fn admit(
        self: &Arc<Store>,
        landing: LandedFlight,
        new: NewObject<'_>,
        combination: Option<Combination>,
    ) -> BodyWriter {
        let limit = self.limit(new.limit);
        let text = text(&new);
        let part = combination.as_ref().and_then(Combination::part);
        // The bytes of the part can be purged by its tags, too.
        let tags = with(tags(&new), part.map_or_else(Vec::new, |part| self.tags_of(part)));
        let (expected, resumable) = (new.len, new.resumable);
        let mut parts = parts(&landing, new);
        parts.extras.joined = part.is_some();
        let base = Arriving::base_bytes(text.len());
        let fits = expected.is_none_or(|len| len <= limit);
        let charge = parts.base_bytes() + base;
        let stored = fits && self.reserve(charge);
        let (mode, own) = if stored { (Mode::Storing, base) } else { (Mode::Streaming, 0) };
        let arriving = Arriving::new(text, expected, mode, Charge::of(&self.budget, own));
        let object =
            Arc::new(parts.build(Content::Arriving(Arc::new(arriving)), stored.then(|| self.budget.clone())));
        let expected = expected.and_then(|len| usize::try_from(len).ok()).unwrap_or(0);
        let superseded = part.map_or(Superseded::WhenWhole, Superseded::WhenCombined);
        self.land(landing, &object, stored, &tags, expected, superseded);
        BodyWriter::new(self.clone(), object, limit, resumable, combination)
    }

    /// Stores a response with its whole body.
    pub(crate) fn admit_whole(
        self: &Arc<Store>,
        landing: LandedFlight,
        new: NewObject<'_>,
        body: &[&[u8]],
        trailers: Option<&FieldsBuf>,
    ) -> Arc<Object> {
        let limit = self.limit(new.limit);
        let (text, tags) = (text(&new), tags(&new));
        let mut parts = parts(&landing, new);
        parts.extras.trailers = trailers.map(|trailers| FieldsBuf::copy_of(trailers.view()));
        let len = body.iter().map(|piece| piece.len()).sum::<usize>();
        let fits = len as u64 <= limit;
        let (stored, content) = if (len as u64) < LARGE {
            let charge = parts.base_bytes() + Whole::one_bytes(len + text.len());
            let stored = fits && self.reserve(charge);
            let mut buffer = Vec::with_capacity(len + text.len());
            body.iter().for_each(|piece| buffer.extend_from_slice(piece));
            buffer.extend_from_slice(&text);
            (stored, Whole::one(buffer))
        } else {
            let count = len.div_ceil(SLOT);
            let last = len - (count - 1) * SLOT;
            let list = Whole::list_bytes(count, text.len());
            let own = (count - 1) * Whole::large_segment_bytes(SLOT) + Whole::large_segment_bytes(last);
            let stored = fits && self.reserve(own + list + parts.base_bytes());
            let charge = |bytes| Charge::of(&self.budget, if stored { bytes } else { 0 });
            let files = stored.then_some(&self.files);
            let segments = segments(body, len, files, |len| charge(Whole::large_segment_bytes(len)));
            (stored, Whole::many(segments, &text, charge(list)))
        };
        self.land_whole(landing, parts, &tags, content, len, stored)
    }

    /// The same with a body that is a part of `memory` bytes, which nothing else will keep in use. They are
    /// shared if that is better than a copy.
    pub(crate) fn admit_shared(
        self: &Arc<Store>,
        landing: LandedFlight,
        new: NewObject<'_>,
        (body, memory): (Bytes, usize),
    ) -> Arc<Object> {
        let len = body.len();
        if len <= SHARES_PAGES || len as u64 >= LARGE || memory.saturating_sub(len) > len / MOST_BESIDE {
            return self.admit_whole(landing, new, &[&body], None);
        }
        let fits = len as u64 <= self.limit(new.limit);
        let (text, tags) = (text(&new), tags(&new));
        let parts = parts(&landing, new);
        let list = Whole::list_bytes(1, text.len());
        let share = Segment::share_bytes(memory);
        let stored = fits && self.reserve(share + list + parts.base_bytes());
        let charge = |bytes| Charge::of(&self.budget, if stored { bytes } else { 0 });
        let segment = match stored {
            true => Segment::sharing(body, memory, charge(share)),
            false => Segment::passing(0, body, &self.budget),
        };
        let content = Whole::many(vec![segment], &text, charge(list));
        self.land_whole(landing, parts, &tags, content, len, stored)
    }

    fn land_whole(
        &self,
        landing: LandedFlight,
        parts: Parts,
        tags: &[Tag],
        content: Whole,
        len: usize,
        stored: bool,
    ) -> Arc<Object> {
        let budget = stored.then(|| self.budget.clone());
        let object = Arc::new(parts.build(Content::Whole(content), budget));
        self.land(landing, &object, stored, tags, len, Superseded::Now);
        object
    }

    /// Gives the candidate a new head.
    pub(crate) fn refresh(
        self: &Arc<Store>,
        landing: LandedFlight,
        candidate: Arc<Object>,
        new: NewObject<'_>,
    ) -> Arc<Object> {
        let tags = tags(&new);
        let before = candidate.parts();
        let mut parts = parts(&landing, new);
        parts.extras = Extras { copy: parts.extras.copy, ..before.extras };
        (parts.host_len, parts.path_len) = (before.host_len, before.path_len);
        let content = candidate.content.clone();
        let stored = self.reserve(parts.base_bytes() + content.own_bytes());
        let object = Arc::new(parts.build(content, stored.then(|| self.budget.clone())));
        let banned = !self.bans.are_tested(&candidate) && self.bans.meet(&candidate);
        let shard = if stored && !banned { self.lock_tested(&object) } else { None };
        let removed = shard.and_then(|mut shard| {
            let slot = shard.slot_of(&candidate)?;
            // A purge of its old tags meanwhile is one of its bytes.
            let all = with(tags.clone(), shard.tags.of(candidate.tags.load(Relaxed)));
            if candidate.is_condemned() || self.purges.meets(landing.begun.purges, landing.key, &all) {
                return None;
            }
            shard.counters().refreshed += 1;
            // It answers the request that led to this.
            candidate.count();
            if candidate.vary() == object.vary() {
                return shard.exchange(slot, object.clone(), Some(&tags));
            }
            let removed = shard.remove(slot, Removal::Replaced);
            shard.insert(object.clone(), &tags, 0, self.judge());
            removed
        });
        if removed.is_none() {
            self.lock(landing.key).counters().unstored += 1;
        }
        self.arrive(landing, &object);
        drop(removed);
        self.fit();
        object
    }

    /// The body of a stored object under another head, for one client. The new object is charged to the store
    /// while it lives, but is not in it.
    pub fn under(&self, object: &Object, head: StoredHead, lifetimes: Lifetimes) -> Arc<Object> {
        let parts = Parts { head, lifetimes, ..object.parts() };
        let charged = self.reserve(parts.base_bytes() + object.content.own_bytes());
        Arc::new(parts.build(object.content.clone(), charged.then(|| self.budget.clone())))
    }

    /// Whether a body of `len` bytes may be stored under the route's limit, if it sets one.
    pub fn takes(&self, len: u64, route: Option<u64>) -> bool {
        len <= self.limit(route)
    }

    /// Marks a key.
    pub(crate) fn mark(
        &self,
        landing: LandedFlight,
        candidate: Option<Arc<Object>>,
        mark: Mark,
        until: Timestamp,
        now: Timestamp,
    ) {
        let key = match landing.flying.as_ref().and_then(|flying| flying.errand.variant.as_ref()) {
            Some(variant) => landing.key.variant(variant),
            None => landing.key,
        };
        let mut shard = self.lock(landing.key);
        let removed = candidate
            .and_then(|candidate| shard.slot_of(&candidate))
            .and_then(|slot| shard.remove(slot, Removal::Replaced));
        shard.marks.set(key, mark, until, now);
        drop(shard);
        if let Some(flying) = landing.flying {
            self.ground(&flying);
            flying.over();
        }
        drop(removed);
        self.fit();
    }

    /// The tags of an object in the index.
    fn tags_of(&self, object: &Arc<Object>) -> Vec<Tag> {
        let shard = self.lock(object.key());
        match shard.slot_of(object) {
            Some(_) => shard.tags.of(object.tags.load(Relaxed)).collect(),
            None => Vec::new(),
        }
    }

    /// Puts an object into the index, unless a purge or a ban made since its fetch began matches it, and
    /// hands it to the waiters.
    fn land(
        &self,
        landing: LandedFlight,
        object: &Arc<Object>,
        stored: bool,
        tags: &[Tag],
        expected: usize,
        superseded: Superseded<'_>,
    ) {
        let mut removed = Vec::new();
        let shard = if stored { self.lock_tested(object) } else { None };
        let entered = shard.is_some_and(|mut shard| {
            if self.purges.meets(landing.begun.purges, landing.key, tags) {
                return false;
            }
            let is_same = |other: &Object| other.vary() == object.vary();
            if let Some(standing) = landing.standing {
                let is_known = shard.variants(landing.key).any(|(_, other)| is_same(other))
                    || shard.marks.any() && shard.marks.get(landing.key, Timestamp::default()).is_some();
                if is_known {
                    return false;
                }
                let queue = if standing.is_proven { Queue::Main } else { Queue::Small };
                object.queue.store(queue as u8, Relaxed);
                object.stand(standing);
            }
            match superseded {
                // A purge of the part is one of its bytes, whatever tags the new response has.
                Superseded::WhenCombined(part) if shard.slot_of(part).is_none() || part.is_condemned() => {
                    return false;
                }
                Superseded::WhenCombined(_) => {}
                Superseded::Now | Superseded::WhenWhole => {
                    let before = shard.variants(landing.key).find(|(_, other)| is_same(other));
                    before.into_iter().for_each(|(_, before)| object.inherit(before));
                }
            }
            let stays = |other: &Object| match superseded {
                Superseded::Now => false,
                Superseded::WhenWhole => other.is_complete(),
                Superseded::WhenCombined(_) => true,
            };
            let most = self.settings().max_variants;
            let goes = |(at, (slot, other)): (usize, (u32, &Arc<Object>))| {
                (is_same(other) && !stays(other) || at + 1 >= most).then_some(slot)
            };
            let slots: Vec<u32> = shard.variants(landing.key).enumerate().filter_map(goes).collect();
            removed.extend(slots.into_iter().filter_map(|slot| shard.remove(slot, Removal::Replaced)));
            if shard.marks.any() {
                shard.marks.remove(landing.key);
                if !object.vary().is_empty() {
                    shard.marks.remove(landing.key.variant(object.vary()));
                }
            }
            shard.insert(object.clone(), tags, expected, self.judge());
            shard.counters().stored += 1;
            true
        });
        if !entered {
            self.lock(landing.key).counters().unstored += 1;
        }
        self.arrive(landing, object);
        drop(removed);
        self.fit();
    }

    /// Hands an object to the waiters.
    fn arrive(&self, landing: LandedFlight, object: &Arc<Object>) {
        if let Some(flying) = landing.flying {
            self.ground(&flying);
            flying.land(object.clone());
        }
    }

    /// Locks the shard of an object after testing it against every ban. `None` if a ban matches.
    fn lock_tested(&self, object: &Object) -> Option<Locked<'_>> {
        loop {
            let shard = self.lock(object.key());
            if self.bans.are_tested(object) {
                return Some(shard);
            }
            drop(shard);
            if self.bans.meet(object) {
                return None;
            }
        }
    }

    /// The longest body that may be stored under the route's limit, if it sets one.
    fn limit(&self, route: Option<u64>) -> u64 {
        let route = route.unwrap_or(u64::MAX);
        route.min(self.settings().max_object.unwrap_or(u64::MAX)).min(self.budget.limit() as u64)
    }
}

fn parts(landing: &LandedFlight, new: NewObject<'_>) -> Parts {
    Parts {
        lifetimes: new.lifetimes,
        key: landing.key,
        vary: new.vary,
        extras: Extras { range: new.range, copy: new.copy, ..Extras::default() },
        transaction: new.transaction,
        bans: landing.begun.bans,
        host_len: short(new.host).len() as u16,
        path_len: short(new.path).len() as u16,
        head: new.head,
    }
}

/// Host and path, one after the other.
fn text(new: &NewObject<'_>) -> Box<[u8]> {
    [short(new.host), short(new.path)].concat().into()
}

/// The start of a text, as much as is kept for bans.
fn short(text: &[u8]) -> &[u8] {
    &text[..text.len().min(u16::MAX as usize)]
}

/// The tags, each once.
fn tags(new: &NewObject<'_>) -> Vec<Tag> {
    with(new.tags.to_vec(), [])
}

/// The tags and `others`, each once.
fn with(mut tags: Vec<Tag>, others: impl IntoIterator<Item = Tag>) -> Vec<Tag> {
    tags.extend(others);
    tags.sort_unstable();
    tags.dedup();
    tags
}

/// A body in segments of [`SLOT`] bytes, each with the charge for its length: in memory files, or on the heap
/// without.
fn segments(
    body: &[&[u8]],
    len: usize,
    files: Option<&Arc<MemoryFiles>>,
    charge: impl Fn(usize) -> Charge,
) -> Vec<Segment> {
    let mut pieces = body.iter().copied();
    let mut rest: &[u8] = &[];
    let segment = |at: usize| {
        let capacity = (len - at).min(SLOT);
        let mut buffer = files.map_or_else(Buffer::default, |files| Buffer::large(files, capacity));
        buffer.reserve(capacity);
        let mut filled = 0;
        while filled < capacity {
            if rest.is_empty() {
                rest = pieces.next().expect("the pieces have the length of the body");
            }
            let (now, later) = rest.split_at(rest.len().min(capacity - filled));
            buffer.put(filled, now);
            filled += now.len();
            rest = later;
        }
        Segment::new(at as u64, buffer, charge(capacity))
    };
    (0..len).step_by(SLOT).map(segment).collect()
}
