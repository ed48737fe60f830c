//! Stored responses.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use once_cell::race::OnceBox;
use sandarac_message::caching::Lifetimes;
use sandarac_message::codings::Coding;
use sandarac_message::range::{ContentRange, RangeSpec};
use sandarac_message::recoding::Uncompressed;
use sandarac_message::vary::VaryKey;
use sandarac_message::{Fields, FieldsBuf, Span, StoredHead, Timestamp};
use sandarac_tier::SharedCopy;

use crate::Key;
use crate::PageMarkup;
use crate::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};
use crate::body::{Body, Content};
use crate::budget::{Budget, held};
use crate::slab::NONE;
use crate::standing::Standing;

/// A stored response: immutable but for counters, shared by the store and its readers. Its bytes are charged
/// to the store until the last reference is dropped.
///
/// A fill in progress is an object too, whose [`Body`] is arriving. When the fill ends, the store replaces it
/// by an object whose body is whole; the old one reads the same.
pub struct Object {
    head: StoredHead,
    lifetimes: Lifetimes,
    key: Key,
    vary: VaryKey,
    pub(crate) content: Content,
    extras: OnceBox<Extras>,
    /// None if it was never stored, and so never charged.
    budget: Option<Arc<Budget>>,
    transaction: u64,
    hits: AtomicU32,
    /// Seconds from receipt to a soft purge, plus one; zero if there was none. A hard purge adds
    /// [`CONDEMNED`].
    purged: AtomicU32,
    /// The last ban it was tested against.
    pub(crate) bans: AtomicU32,
    /// The first of its tags in its shard's index. Protected by the shard's lock.
    pub(crate) tags: AtomicU32,
    host_len: u16,
    path_len: u16,
    /// Whether the rest of this part was fetched once already and did not arrive.
    stalled: AtomicBool,
    /// Requests for its key before it was stored, as far as they are remembered. Protected by the shard's lock.
    pub(crate) requests_before: AtomicU8,
    /// Hits that eviction has not used up yet, in parts of a [`HIT`] and up to [`FREQUENT`], and its queue.
    /// Both are protected by the shard's lock.
    pub(crate) frequency: AtomicU8,
    pub(crate) queue: AtomicU8,
}

/// The bit of an object that was purged and only waits to be freed. Requests that found it before may still
/// use it, so an earlier soft purge stays in effect.
const CONDEMNED: u32 = 1 << 31;

/// A hit. Eviction takes a part of one from an object that is small.
pub(crate) const HIT: u8 = 4;

/// The frequency at which counting stops.
pub(crate) const FREQUENT: u8 = 4 * HIT;

/// Properties that many objects do not have, in an allocation of their own.
#[derive(Default)]
pub(crate) struct Extras {
    pub(crate) range: Option<ContentRange>,
    /// Whether its bytes came in parts, each with a head of its own. Only the last head is kept.
    pub(crate) joined: bool,
    pub(crate) trailers: Option<FieldsBuf>,
    pub(crate) copy: Option<Arc<SharedCopy>>,
    /// The head as a header block of HTTP/2, once it was needed.
    pub(crate) block: OnceLock<Box<[u8]>>,
    /// The body in other codings, once one was needed.
    pub(crate) recodings: OnceBox<Recodings>,
    /// The ESI markup of its body, once that was needed.
    pub(crate) markup: OnceBox<PageMarkup>,
}

/// The body of an object in another coding.
#[derive(Clone, Debug)]
pub enum Recoding {
    /// An object with that body.
    Made(Arc<Object>),
    /// None is kept, because it would be too long.
    TooLong,
    /// There is none, for this reason.
    Useless(Uncompressed),
}

/// One place for each coding, and one for no coding.
#[derive(Default)]
pub(crate) struct Recodings([OnceLock<Recoding>; Coding::ALL.len() + 1]);

fn place(coding: Option<Coding>) -> usize {
    coding.map_or(Coding::ALL.len(), Coding::index)
}

impl Recodings {
    /// Bytes charged for the places. Each object charges itself.
    pub(crate) const BYTES: usize = held(size_of::<Recodings>());

    /// The objects.
    pub(crate) fn made(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.0.iter().filter_map(|place| match place.get()? {
            Recoding::Made(object) => Some(object),
            Recoding::TooLong | Recoding::Useless(_) => None,
        })
    }
}

/// The parts of an object, besides its body.
pub(crate) struct Parts {
    pub(crate) head: StoredHead,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) key: Key,
    pub(crate) vary: VaryKey,
    pub(crate) extras: Extras,
    pub(crate) transaction: u64,
    pub(crate) bans: u32,
    pub(crate) host_len: u16,
    pub(crate) path_len: u16,
}

impl Parts {
    /// Bytes charged for the object without its body.
    pub(crate) fn base_bytes(&self) -> usize {
        let extras = Some(&self.extras).filter(|extras| !extras.is_empty());
        Object::base_bytes(&self.head, &self.vary, extras)
    }

    /// The object. `budget` is present if the object was charged to it.
    pub(crate) fn build(self, content: Content, budget: Option<Arc<Budget>>) -> Object {
        Object {
            head: self.head,
            lifetimes: self.lifetimes,
            key: self.key,
            vary: self.vary,
            content,
            extras: match self.extras.is_empty() {
                true => OnceBox::new(),
                false => OnceBox::with_value(Box::new(self.extras)),
            },
            budget,
            transaction: self.transaction,
            hits: AtomicU32::new(0),
            purged: AtomicU32::new(0),
            bans: AtomicU32::new(self.bans),
            tags: AtomicU32::new(NONE),
            host_len: self.host_len,
            path_len: self.path_len,
            stalled: AtomicBool::new(false),
            requests_before: AtomicU8::new(0),
            frequency: AtomicU8::new(0),
            queue: AtomicU8::new(0),
        }
    }
}

impl Extras {
    /// Bytes charged for them.
    fn bytes(&self) -> usize {
        let trailers =
            |fields: &FieldsBuf| held(fields.encoded_len()) + held(fields.view().len() * size_of::<Span>());
        let copy = |_| held(size_of::<SharedCopy>() + 2 * size_of::<usize>());
        held(size_of::<Extras>())
            + self.block.get().map_or(0, |block| held(block.len()))
            + self.recodings.get().map_or(0, |_| Recodings::BYTES)
            + self.markup.get().map_or(0, PageMarkup::bytes)
            + self.trailers.as_ref().map_or(0, trailers)
            + self.copy.as_ref().map_or(0, copy)
    }

    /// The same for an object that replaces this one; the block, recodings and the markup are made anew.
    fn for_successor(&self) -> Extras {
        let Extras { range, joined, trailers, copy, block: _, recodings: _, markup: _ } = self;
        let (trailers, copy) = (trailers.clone(), copy.clone());
        Extras { range: *range, joined: *joined, trailers, copy, ..Extras::default() }
    }

    fn is_empty(&self) -> bool {
        self.range.is_none() && !self.joined && self.trailers.is_none() && self.copy.is_none()
    }
}

impl Object {
    /// The head, as it goes on the wire.
    pub fn head(&self) -> &StoredHead {
        &self.head
    }

    /// The head as a header block of HTTP/2, if [`Store::keep_block`](crate::Store::keep_block) has kept one.
    pub fn block(&self) -> Option<&[u8]> {
        self.extras.get()?.block.get().map(|block| &**block)
    }

    /// Keeps a block, which the caller has charged by [`Object::block_bytes`]. False if there is one. The shard's lock is held.
    pub(crate) fn set_block(&self, block: Box<[u8]>) -> bool {
        self.extras_or_new().block.set(block).is_ok()
    }

    /// Bytes to be charged for a block that the object gets.
    pub(crate) fn block_bytes(&self, block: &[u8]) -> usize {
        let place = if self.extras.get().is_none() { held(size_of::<Extras>()) } else { 0 };
        place + held(block.len())
    }

    pub(crate) fn extras(&self) -> Option<&Extras> {
        self.extras.get()
    }

    /// The extras; empty ones are made if there are none. The shard's lock is held.
    pub(crate) fn extras_or_new(&self) -> &Extras {
        self.extras.get_or_init(Box::default)
    }

    /// The ESI markup of its body, if [`Store::keep_markup`](crate::Store::keep_markup) has kept it.
    pub fn markup(&self) -> Option<&PageMarkup> {
        self.extras()?.markup.get()
    }

    /// Keeps the markup, which the caller has charged by [`Object::markup_bytes`]. False if there is one. The shard's lock is
    /// held.
    pub(crate) fn set_markup(&self, markup: PageMarkup) -> bool {
        self.extras_or_new().markup.set(Box::new(markup)).is_ok()
    }

    /// Bytes to be charged for the markup that the object gets.
    pub(crate) fn markup_bytes(&self, markup: &PageMarkup) -> usize {
        let place = if self.extras.get().is_none() { held(size_of::<Extras>()) } else { 0 };
        place + markup.bytes()
    }

    /// Whether its bytes are charged.
    pub(crate) fn is_charged(&self) -> bool {
        self.budget.is_some()
    }

    /// The body in `coding`, or in none, if that was tried before.
    pub fn recoding(&self, coding: Option<Coding>) -> Option<&Recoding> {
        self.extras()?.recodings.get()?.0[place(coding)].get()
    }

    /// Puts a recoding into its place; the places and it are charged. False if there is one. The shard's lock is held.
    pub(crate) fn set_recoding(&self, coding: Option<Coding>, recoding: Recoding) -> bool {
        self.extras_or_new().recodings.get_or_init(Box::default).0[place(coding)].set(recoding).is_ok()
    }

    /// Bytes to be charged for places that the object gets.
    pub(crate) fn recodings_bytes(&self) -> usize {
        match self.extras() {
            None => held(size_of::<Extras>()) + Recodings::BYTES,
            Some(extras) if extras.recodings.get().is_none() => Recodings::BYTES,
            Some(_) => 0,
        }
    }

    /// The bytes of the recodings, their places aside.
    pub(crate) fn recoded_weight(&self) -> usize {
        let recodings = self.extras().and_then(|extras| extras.recodings.get());
        recodings.map_or(0, |recodings| recodings.made().map(|object| object.weight()).sum())
    }

    /// The fields of the head that rules are applied to.
    pub fn fields(&self) -> Fields<'_> {
        self.head.fields()
    }

    /// The lifetimes, a soft purge taken into account.
    pub fn lifetimes(&self) -> Lifetimes {
        match self.purged.load(Relaxed) & !CONDEMNED {
            0 => self.lifetimes,
            seconds => {
                let since = Duration::from_secs(u64::from(seconds - 1));
                self.lifetimes.soft_purged(self.lifetimes.received().plus(since))
            }
        }
    }

    /// When the response was received.
    pub fn received(&self) -> Timestamp {
        self.lifetimes.received()
    }

    /// The key it is stored under.
    pub fn key(&self) -> Key {
        self.key
    }

    /// The requests for its key that it answers.
    pub fn vary(&self) -> &VaryKey {
        &self.vary
    }

    /// The host it was requested from.
    pub fn host(&self) -> &[u8] {
        &self.text()[..self.host_len as usize]
    }

    /// The path and query it was requested by.
    pub fn path(&self) -> &[u8] {
        &self.text()[self.host_len as usize..]
    }

    /// The body.
    pub fn body(&self) -> Body<'_> {
        Body::new(&self.content, self.text_len())
    }

    /// The trailer fields, once the body is whole.
    pub fn trailers(&self) -> Option<&FieldsBuf> {
        match (self.extras.get(), &self.content) {
            (Some(extras), _) if extras.trailers.is_some() => extras.trailers.as_ref(),
            (_, Content::Arriving(arriving)) => arriving.trailers(),
            _ => None,
        }
    }

    /// The state of its entry in the shared tier, if it has or had one.
    pub fn copy(&self) -> Option<&Arc<SharedCopy>> {
        self.extras.get()?.copy.as_ref()
    }

    /// The part of the representation that it holds, if not all of it.
    pub fn range(&self) -> Option<ContentRange> {
        self.extras.get().and_then(|extras| extras.range)
    }

    /// Whether it holds the whole representation, and all of that has arrived.
    pub(crate) fn is_complete(&self) -> bool {
        self.range().is_none() && self.body().is_whole()
    }

    /// Whether its bytes came in parts, each with a head of its own. Only the last head is kept.
    pub fn is_joined(&self) -> bool {
        self.extras.get().is_some_and(|extras| extras.joined)
    }

    /// Whether it answers a request for `part`, or for the whole if that is `None`.
    pub fn answers(&self, part: Option<RangeSpec>) -> bool {
        self.range().is_none_or(|range| range.answers(part))
    }

    /// The transaction number of the fetch that brought it.
    pub fn transaction(&self) -> u64 {
        self.transaction
    }

    /// The requests it has answered.
    pub fn hits(&self) -> u32 {
        self.hits.load(Relaxed)
    }

    /// Whether the response that replaces it may serve waiters. False if the origin requires validation for
    /// every request. A response that was too old on arrival may be followed by one that is not.
    pub(crate) fn is_shareable(&self) -> bool {
        !self.lifetimes.no_cache() && self.lifetimes.is_ever_fresh()
    }

    /// Counts a hit. The shard's lock is held, so this needs no atomic read-modify-write.
    pub(crate) fn hit(&self) {
        self.hits.store(self.hits.load(Relaxed).wrapping_add(1), Relaxed);
        self.count();
    }

    /// Counts a request for eviction. The shard's lock is held.
    pub(crate) fn count(&self) {
        self.frequency.store((self.frequency.load(Relaxed) + HIT).min(FREQUENT), Relaxed);
    }

    /// Takes over from `before`, which it replaces, how eviction judges it. The shard's lock is held.
    pub(crate) fn inherit(&self, before: &Object) {
        self.frequency.store(before.frequency.load(Relaxed), Relaxed);
        self.queue.store(before.queue.load(Relaxed), Relaxed);
        self.requests_before.store(before.requests_before.load(Relaxed), Relaxed);
    }

    /// Takes over what another store knew of it, beside its queue.
    pub(crate) fn stand(&self, standing: Standing) {
        self.frequency.store(standing.frequency.min(FREQUENT), Relaxed);
        self.hits.store(standing.hits, Relaxed);
    }

    /// Makes it stale from `now` on; only the first soft purge counts.
    pub(crate) fn purge_softly(&self, now: Timestamp) {
        let since = u32::try_from(now.since(self.received()).as_secs()).unwrap_or(u32::MAX);
        _ = self.purged.compare_exchange(0, since.min(CONDEMNED - 2) + 1, Relaxed, Relaxed);
    }

    /// Makes it unusable for any later request, wherever it is. Returns whether it was usable until now. The
    /// shard's lock is held.
    pub(crate) fn condemn(&self) -> bool {
        self.purged.fetch_or(CONDEMNED, Relaxed) & CONDEMNED == 0
    }

    pub(crate) fn is_condemned(&self) -> bool {
        self.purged.load(Relaxed) & CONDEMNED != 0
    }

    /// Bytes freed with it, as far as it can tell: its weight in a queue.
    pub(crate) fn weight(&self) -> usize {
        let base = if self.budget.is_some() { self.base() } else { 0 };
        base + self.recoded_weight()
            + match &self.content {
                Content::Whole(whole) => whole.bytes(),
                Content::Arriving(arriving) => arriving.weight(),
            }
    }

    /// Counts growth of an arriving body. The shard's lock is held.
    pub(crate) fn add_weight(&self, bytes: usize) {
        if let Content::Arriving(arriving) = &self.content {
            arriving.add_weight(bytes);
        }
    }

    /// The parts for another object of the same response, with another body.
    pub(crate) fn parts(&self) -> Parts {
        Parts {
            head: self.head.clone(),
            lifetimes: self.lifetimes,
            key: self.key,
            vary: self.vary.clone(),
            extras: self.extras.get().map_or_else(Extras::default, Extras::for_successor),
            transaction: self.transaction,
            bans: self.bans.load(Relaxed),
            host_len: self.host_len,
            path_len: self.path_len,
        }
    }

    /// Takes over the counts of `before`, which it replaces. The shard's lock is held.
    pub(crate) fn succeed(&self, before: &Object) {
        self.hits.store(before.hits.load(Relaxed), Relaxed);
        self.inherit(before);
    }

    /// Takes over the soft purge of `before`, and the bans that it was tested against: both have the same head. The shard's lock is
    /// held.
    pub(crate) fn inherit_removals(&self, before: &Object) {
        self.purged.store(before.purged.load(Relaxed), Relaxed);
        self.bans.fetch_max(before.bans.load(Relaxed), Relaxed);
    }

    /// Records that the rest of this part did not arrive. Returns whether that has happened before.
    pub(crate) fn stall(&self) -> bool {
        self.stalled.swap(true, Relaxed)
    }

    /// Makes an arriving body stream, because the object was evicted.
    pub(crate) fn evicted(&self) {
        if let Content::Arriving(arriving) = &self.content {
            arriving.detach();
        }
    }

    pub(crate) fn text_len(&self) -> usize {
        self.host_len as usize + self.path_len as usize
    }

    fn text(&self) -> &[u8] {
        match &self.content {
            Content::Whole(whole) => whole.text(self.text_len()),
            Content::Arriving(arriving) => arriving.text(),
        }
    }

    fn base(&self) -> usize {
        Object::base_bytes(&self.head, &self.vary, self.extras.get())
    }

    fn base_bytes(head: &StoredHead, vary: &VaryKey, extras: Option<&Extras>) -> usize {
        let counts = 2 * size_of::<usize>();
        let spans = head.heap_size() - head.encoded().len();
        held(size_of::<Object>() + counts)
            + held(head.encoded().len())
            + held(spans)
            + held(vary.heap_size())
            + extras.map_or(0, Extras::bytes)
    }
}

#[cfg(test)]
impl Object {
    /// The bytes that should be charged for it alone.
    pub(crate) fn recount_own(&self) -> usize {
        if self.budget.is_some() { self.base() + self.content.own_bytes() } else { 0 }
    }

    /// The bytes that should be charged for what it may share with others, each with an address that
    /// identifies it.
    pub(crate) fn recount_shared(&self) -> Vec<(usize, usize)> {
        let (arriving, whole) = match &self.content {
            Content::Whole(whole) => (None, Some(whole)),
            Content::Arriving(arriving) => (Some(arriving), arriving.whole()),
        };
        let arriving = arriving.into_iter().flat_map(|arriving| arriving.recount());
        let many = match whole {
            Some(crate::whole_body::Whole::Many(many)) => Some(many.recount()),
            _ => None,
        };
        let recodings = self.extras().and_then(|extras| extras.recodings.get());
        let recoded = recodings.into_iter().flat_map(Recodings::made);
        let recoded = recoded.map(|object| (Arc::as_ptr(object) as usize, object.recount_own()));
        arriving.chain(many.into_iter().flatten()).chain(recoded).collect()
    }

    /// The bytes that should be charged for it in total.
    pub(crate) fn recount(&self) -> usize {
        self.recount_own() + self.recount_shared().iter().map(|(_, bytes)| bytes).sum::<usize>()
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.sub(self.base() + self.content.own_bytes());
        }
    }
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object")
            .field("host", &self.host().escape_ascii().to_string())
            .field("path", &self.path().escape_ascii().to_string())
            .field("status", &self.head.status())
            .field("len", &self.body().len())
            .finish_non_exhaustive()
    }
}
