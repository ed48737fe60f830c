//! The writing end of an arriving object.

use std::sync::Arc;
use std::task::{Context, Poll};

use sandarac_message::caching::{RequestDirectives, part_fields};
use sandarac_message::range::{ByteRange, ContentRange};
use sandarac_message::{FieldsBuf, Piece, Timestamp};

use crate::arriving::{Arriving, Mode};
use crate::body::Content;
use crate::budget::Charge;
use crate::buffer::{Buffer, LARGE};
use crate::combination::Combination;
use crate::growth::{FullTail, Growth, SEGMENT};
use crate::loan::NextMemory;
use crate::memory_file::SLOT;
use crate::object::Parts;
use crate::stats::Removal;
use crate::store::Store;
use crate::whole_body::{Segment, Whole};
use crate::{Object, Reader};

/// A body that broke off is kept from this length on. An origin sends as much in the first round trip of a
/// connection (RFC 6928), and asking for the rest takes one round trip.
const WORTHWHILE: u64 = 16 << 10;

/// Why an object is not kept whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unstored {
    /// It is larger than its route, or the store, allows.
    TooLarge,
    /// The store has no room for it.
    NoRoom,
}

impl Unstored {
    /// Every reason.
    pub const ALL: [Unstored; 2] = [Unstored::TooLarge, Unstored::NoRoom];

    /// The reason as written in the Cache-Status `detail`, logs and counters.
    pub const fn text(self) -> &'static str {
        match self {
            Unstored::TooLarge => "too-large",
            Unstored::NoRoom => "no-room",
        }
    }
}

/// Fills the body of an object. If it is dropped before [`BodyWriter::finish`] or [`BodyWriter::break_off`],
/// the object is spoiled: readers get an error after the bytes that have arrived, and the object leaves the
/// store together with the part that it was combined with.
#[must_use = "a dropped writer spoils its object"]
pub struct BodyWriter {
    store: Arc<Store>,
    object: Arc<Object>,
    /// The longest body that may be stored.
    limit: u64,
    /// Whether an incomplete body may be kept when the origin breaks off.
    resumable: bool,
    /// How the body is combined with a stored part.
    combination: Option<Combination>,
    /// Whether the body has its end. Set last, so that a panic on the way there spoils the object.
    finished: bool,
}

impl BodyWriter {
    pub(crate) fn new(
        store: Arc<Store>,
        object: Arc<Object>,
        limit: u64,
        resumable: bool,
        combination: Option<Combination>,
    ) -> BodyWriter {
        BodyWriter { store, object, limit, resumable, combination, finished: false }
    }

    /// The object, for the request that fetches it.
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// The reader of the request that fetches it. MUST be made before the first byte is appended. The bytes
    /// of a stored part that comes first can be read at once.
    pub fn reader(&mut self) -> Option<Reader> {
        let reader = self.object.reader();
        self.begin();
        reader
    }

    /// Whether the body is kept whole. If not (it was too large, there is no room, or it was evicted), it
    /// streams to its readers.
    pub fn is_stored(&self) -> bool {
        self.arriving().is_some_and(|arriving| arriving.mode() == Mode::Storing)
    }

    /// Why the body is not kept whole, if it isn't.
    pub fn unstored(&self) -> Option<Unstored> {
        let arriving = self.arriving().filter(|arriving| arriving.mode() != Mode::Storing)?;
        let known = arriving.expected().unwrap_or(0).max(arriving.len());
        Some(if known > self.limit { Unstored::TooLarge } else { Unstored::NoRoom })
    }

    /// Whether the object can still be used: it is in the store or has readers. If not, it gets no reader any more, and the
    /// fetch may be broken off.
    pub fn is_wanted(&self) -> bool {
        let Some(arriving) = self.arriving() else { return false };
        arriving.has_readers() || self.store.holds(&self.object) || !arriving.close_if_unread()
    }

    /// Bytes appended so far.
    pub fn len(&self) -> u64 {
        self.arriving().map_or(0, Arriving::len)
    }

    /// Whether no byte has been appended.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ready when more may be appended. Pending only if the object streams and a reader is a window behind.
    /// The task of `cx` is woken when that reader has caught up. A poll after [`BodyWriter::deadline`] cuts
    /// the reader off.
    pub fn poll_room(&mut self, cx: &mut Context<'_>, now: Timestamp) -> Poll<()> {
        let (window, patience) = (self.store.window() as u64, self.store.settings().patience);
        match self.arriving() {
            Some(arriving) => arriving.poll_room(cx, window, patience, now),
            None => Poll::Ready(()),
        }
    }

    /// Bytes that should be [appended](BodyWriter::append) at a time, at most.
    pub fn read_limit(&self) -> usize {
        self.store.read_limit()
    }

    /// When a reader that holds up the others will be cut off.
    pub fn deadline(&self) -> Option<Timestamp> {
        Some(self.arriving()?.full_since()?.plus(self.store.settings().patience))
    }

    /// Appends a copy of `bytes`. While the object streams, call this only when there is
    /// [room](BodyWriter::poll_room).
    pub fn append(&mut self, bytes: &[u8]) {
        self.begin();
        let wanted = match &mut self.combination {
            Some(combination) => combination.select(bytes),
            None => bytes,
        };
        self.copy(wanted);
    }

    fn copy(&self, mut bytes: &[u8]) {
        let Some(arriving) = self.arriving() else { return };
        while !bytes.is_empty() {
            match arriving.append(bytes) {
                Ok(added) => bytes = &bytes[added..],
                Err(full) => self.grow(arriving, &full, bytes.len()),
            }
        }
    }

    /// Lets `read` fill memory of the object itself, up to the announced length or the end of a segment, and
    /// return the number of bytes read. No lock is held meanwhile. `None` if the object streams, has its
    /// announced length already, or does not need the next bytes: use [`BodyWriter::append`] then.
    pub fn read_with<T>(&mut self, read: impl FnOnce(&mut [u8]) -> (usize, T)) -> Option<T> {
        self.begin();
        let arriving = self.arriving()?;
        let left = match &self.combination {
            Some(combination) => Some(combination.left()),
            None => arriving.expected().map(|expected| expected.saturating_sub(arriving.len())),
        };
        if left == Some(0) {
            return None;
        }
        let mut loan = loop {
            match arriving.lend()? {
                NextMemory::Loan(loan) => break loan,
                NextMemory::Full(full) => self.grow(arriving, &full, 1),
            }
        };
        let memory = loan.memory();
        let most = left.and_then(|left| usize::try_from(left).ok()).unwrap_or(usize::MAX).min(memory.len());
        let (read, result) = read(&mut memory[..most]);
        let read = loan.end(read.min(most));
        if let Some(combination) = &mut self.combination {
            combination.received(read as u64);
        }
        Some(result)
    }

    /// Ends the body where the origin broke off: readers get an error after the bytes that have arrived. If
    /// the response allows it and they are many enough, these bytes are kept as a part, in place of the
    /// object. Otherwise the object leaves the store: also if it was to replace a whole one that still may stand in
    /// for an origin that fails. The part that it was combined with stays, unless this is the second time.
    pub fn break_off(mut self, now: Timestamp) {
        let before = self.store.before(&self.object);
        let stands_in = before.is_some_and(|before| {
            before.is_complete() && before.lifetimes().usable_on_error(&RequestDirectives::default(), now)
        });
        if !stands_in && let Some(kept) = self.keep() {
            self.store.lock(kept.key()).counters().kept += 1;
        }
        self.abort(false);
        self.finished = true;
    }

    /// Stores the bytes that have arrived as a part.
    fn keep(&self) -> Option<Arc<Object>> {
        let held = self.held().filter(|_| self.resumable)?;
        let mut parts = self.object.parts();
        let head = self.object.head();
        parts.head = head.changed(206, b"Partial Content", |fields| part_fields(fields, &held)).ok()?;
        parts.extras.range = Some(held);
        let whole = self.many(self.arriving()?.seal()?);
        self.store.complete(&self.object, &whole, parts)
    }

    /// The range of the representation that has arrived, if it is worth keeping. It starts where the object
    /// does and has no gap.
    fn held(&self) -> Option<ContentRange> {
        let (first, complete) = match self.object.range() {
            Some(announced) => (announced.range.first, announced.complete),
            None => (0, self.arriving()?.expected()),
        };
        let len = self.len();
        let least = self.combination.as_ref().map_or(WORTHWHILE, |combination| combination.held() + 1);
        let last = first.checked_add(len)?.checked_sub(1)?;
        let held = ContentRange { range: ByteRange { first, last }, complete };
        let within = match self.object.range() {
            Some(announced) => announced.range.covers(&held.range),
            None => complete.is_none_or(|complete| len < complete),
        };
        (len >= least && within).then_some(held)
    }

    /// Ends the body. Returns the object as it is stored now. If the length differs from the announced one,
    /// the object is spoiled instead.
    pub fn finish(mut self, trailers: Option<&FieldsBuf>) -> Arc<Object> {
        self.begin();
        let object = self.object.clone();
        let mut trailers = trailers;
        if let Some(combination) = self.combination.take() {
            // The trailers describe a part only.
            trailers = None;
            let Some(after) = combination.end() else { return object };
            after.iter().for_each(|part| self.lay_in(part));
        }
        let Some(arriving) = self.arriving() else { return object };
        if arriving.expected().is_some_and(|expected| expected != arriving.len()) {
            return object;
        }
        let Some((segments, tail)) = arriving.take_whole() else {
            arriving.end(None, None);
            self.finished = true;
            return object;
        };
        let trailers = trailers.map(|trailers| FieldsBuf::copy_of(trailers.view()));
        let whole = self.whole(arriving, segments, tail);
        let mut parts = self.object.parts();
        parts.extras.trailers.clone_from(&trailers);
        let after = self.store.complete(&self.object, &whole, parts);
        arriving.end(Some(whole), trailers);
        self.finished = true;
        after.unwrap_or(object)
    }

    /// The whole body made of what has arrived. If that is one segment, its charge stays with the readers of
    /// the arriving object, because they might outlive the stored one.
    fn whole(&self, arriving: &Arriving, mut segments: Vec<Segment>, tail: Buffer) -> Whole {
        let text = arriving.text();
        let tail = match tail {
            Buffer::Heap(mut tail) if segments.is_empty() => {
                tail.reserve_exact(text.len());
                tail.extend_from_slice(text);
                return Whole::one(tail);
            }
            tail => tail,
        };
        if !tail.bytes().is_empty() {
            let at = segments.last().map_or(0, Segment::end);
            segments.push(Segment::new(at, tail, arriving.take_charge()));
        }
        self.gather(&mut segments);
        self.many(segments)
    }

    /// Moves what arrived before the body was known to be large from the heap to a memory file.
    fn gather(&self, segments: &mut Vec<Segment>) {
        let on_heap = |segment: &&Segment| matches!(segment.piece, Piece::Bytes(_));
        let count = segments.iter().take_while(on_heap).count();
        let len = segments[..count].last().map_or(0, Segment::end) as usize;
        let is_large = segments.last().map_or(0, Segment::end) >= LARGE;
        let cost = Whole::large_segment_bytes(len);
        if !is_large || !(1..=SLOT).contains(&len) || !self.store.reserve(cost) {
            return;
        }
        let charge = Charge::of(&self.store.budget, cost);
        let Some(mut slot) = self.store.files.take(len) else { return };
        let mut room = slot.bytes_mut();
        for bytes in segments[..count].iter().filter_map(|segment| segment.piece.bytes()) {
            let (now, later) = room.split_at_mut(bytes.len());
            now.copy_from_slice(bytes);
            room = later;
        }
        segments.splice(..count, [Segment::new(0, Buffer::Slot(slot), charge)]);
    }

    fn many(&self, segments: Vec<Segment>) -> Whole {
        let text = self.arriving().map_or(&[][..], Arriving::text);
        // These bytes are few, so they may be added before there is room for them.
        let list = Whole::list_bytes(segments.len(), text.len());
        self.store.budget.add(list);
        self.store.fit();
        Whole::many(segments, text, Charge::of(&self.store.budget, list))
    }

    /// Adds the stored part that comes first, if that has not been done.
    fn begin(&mut self) {
        if let Some(part) = self.combination.as_mut().and_then(Combination::take_before) {
            self.lay_in(&part);
        }
    }

    /// Adds the body of a stored part. Its long segments are shared. Short ones are copied, so that a body
    /// combined from many small parts does not stay fragmented.
    fn lay_in(&mut self, part: &Object) {
        let Some(whole) = part.body().whole() else { return };
        if whole.segments().is_empty() {
            part.body()
                .segments()
                .for_each(|piece| self.copy(piece.bytes().expect("a short body is in memory")));
        }
        for segment in whole.segments() {
            if let Some(bytes) = segment.piece.bytes().filter(|bytes| bytes.len() < SEGMENT) {
                self.copy(bytes);
            } else if let Some(arriving) = self.arriving() {
                self.store.weigh(&self.object, segment.charged as usize);
                arriving.share(segment);
            }
        }
    }

    /// Makes room for `wanted` bytes, or some of them, behind a full tail. If there is none, the object streams from now on.
    fn grow(&self, arriving: &Arriving, tail: &FullTail, wanted: usize) {
        let left = usize::try_from(self.limit.saturating_sub(tail.len)).unwrap_or(usize::MAX);
        let expected = match &self.combination {
            Some(combination) if combination.precedes() => Some(tail.len + combination.left()),
            _ => arriving.expected(),
        };
        let large = arriving.expected().unwrap_or(0).max(tail.len) >= LARGE;
        let growth = Growth::of(tail, expected, wanted, left, large);
        if left == 0 || !self.store.grow(&self.object, growth.cost) {
            self.store.discard(&self.object, Removal::Oversize);
            arriving.detach();
            return;
        }
        let buffer = match large {
            true => Buffer::large(&self.store.files, growth.capacity),
            false => Buffer::default(),
        };
        if !arriving.extend(&growth, buffer) {
            self.store.release(growth.cost);
        }
    }

    fn arriving(&self) -> Option<&Arriving> {
        match &self.object.content {
            Content::Arriving(arriving) => Some(arriving),
            Content::Whole(_) => None,
        }
    }

    /// Takes the object out of the store, and ends its readers.
    fn abort(&self, spoiled: bool) {
        self.store.give_up(&self.object, spoiled);
        if let Some(arriving) = self.arriving() {
            arriving.abort();
        }
    }
}

#[cfg(test)]
impl BodyWriter {
    /// The objects that the writer keeps alive: its own, and the stored part until it has been added.
    pub(crate) fn holds(&self) -> impl Iterator<Item = &Arc<Object>> {
        std::iter::once(&self.object).chain(self.combination.iter().filter_map(Combination::part))
    }
}

impl Store {
    /// Replaces an arriving object by one made of `parts` and its final body, and removes the part that it
    /// was combined with. `None` if the object has left the store, or leaves it now for lack of room.
    fn complete(&self, before: &Arc<Object>, whole: &Whole, parts: Parts) -> Option<Arc<Object>> {
        let content = Content::Whole(whole.clone());
        if !self.reserve(parts.base_bytes() + content.own_bytes()) {
            self.discard(before, Removal::Oversize);
            return None;
        }
        let after = Arc::new(parts.build(content, Some(self.budget.clone())));
        let mut shard = self.lock(before.key());
        let slot = shard.slot_of(before)?;
        if before.is_condemned() {
            let removed = shard.remove(slot, Removal::Purged);
            drop(shard);
            drop(removed);
            return None;
        }
        let exchanged = shard.exchange(slot, after.clone(), None);
        let removed = shard.before(&after).and_then(|slot| shard.remove(slot, Removal::Replaced));
        drop(shard);
        drop(removed);
        exchanged.map(|_| after)
    }

    /// The usable object that an arriving one is to replace.
    fn before(&self, object: &Arc<Object>) -> Option<Arc<Object>> {
        let shard = self.lock(object.key());
        let before = shard.before(object).and_then(|slot| shard.object(slot));
        before.filter(|before| !before.is_condemned()).cloned()
    }

    /// Removes an arriving object that failed. A whole one that it was to replace stays. The part that it was combined
    /// with stays, unless its rest can never come: if the rest is `spoiled`, or has broken off twice without adding
    /// anything, the part is removed too, and the origin is asked for the whole.
    fn give_up(&self, object: &Arc<Object>, spoiled: bool) {
        let mut shard = self.lock(object.key());
        let Some(slot) = shard.slot_of(object) else { return };
        let part = shard.before(object).filter(|_| object.is_joined());
        let lost = part.filter(|&part| spoiled || shard.object(part).is_some_and(|part| part.stall()));
        let removed = [Some(slot), lost].map(|slot| shard.remove(slot?, Removal::Broken));
        drop(shard);
        drop(removed);
    }

    /// Charges `bytes` for the body of an arriving object.
    fn grow(&self, object: &Arc<Object>, bytes: usize) -> bool {
        let reserved = self.reserve_arriving(bytes, object.weight());
        if reserved {
            self.weigh(object, bytes);
        }
        reserved
    }

    /// Adds `bytes` that are already charged to the weight of an arriving object.
    fn weigh(&self, object: &Arc<Object>, bytes: usize) {
        let mut shard = self.lock(object.key());
        if let Some(slot) = shard.slot_of(object) {
            shard.grown(slot, bytes, self.judge());
        }
    }
}

impl Drop for BodyWriter {
    fn drop(&mut self) {
        if !self.finished {
            self.abort(true);
        }
    }
}
