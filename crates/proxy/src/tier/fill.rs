//! Fills: what becomes of a fetch, told to the tier in the background.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use sandarac_cache::Object;
use sandarac_message::caching::Reason;
use sandarac_message::vary::VaryKey;
use sandarac_net::{PanicPart, Timer, wall};
use sandarac_policy::KeyRule;
use sandarac_tier::{Fetch, FetchReason, LocalCopy, LookupStep, Outcome, SharedCopy, Target, Verdict};
use sandarac_wire::entry::{Content, MarkReason, Position, Sealer, Token};

use super::asking::Asking;
use super::clock::{now, random};
use super::entry::{self, Stored, Unshared};
use super::{Place, TierCount, chunks};
use crate::core::Core;

/// The longest time for which an index is kept.
const INDEX_TTL: u32 = 24 * 60 * 60;

/// The right and the duty to tell the tier what becomes of a fetch. While it exists, the claim is renewed.
/// Dropping it means that nothing came of it.
pub(crate) struct Fill {
    copy: Arc<SharedCopy>,
    /// The reason of the mark, if there is one.
    mark: Option<MarkReason>,
    told: Rc<Told>,
}

/// The way from the fetch to the task that holds the claim.
#[derive(Default)]
struct Told {
    news: RefCell<Option<News>>,
    waker: RefCell<Option<Waker>>,
}

enum News {
    Object(Made),
    /// The response is not shared, for this time and reason.
    Unshared(MarkReason, Duration),
    Nothing,
}

/// A stored response for the tier.
struct Made {
    object: Arc<Object>,
    /// The stored response that was validated, and whose body it has. A purge that matches either applies.
    before: Option<Arc<Object>>,
    /// The rule of its key.
    rule: KeyRule,
}

impl Fill {
    /// A fill for the fetch that a lookup has led to.
    pub(super) fn new(core: &Rc<Core>, asking: Asking, fetch: Fetch) -> Fill {
        let (token, began) = (Token(random()), now());
        let copy = Arc::new(SharedCopy::fetched(
            LocalCopy::fetched(token, began, fetch.position),
            asking.index.as_ref().map(|index| index.token),
        ));
        let told = Rc::new(Told::default());
        let mark = fetch.mark;
        let task = Task { core: core.clone(), asking, fetch, token, told: told.clone(), copy: copy.clone() };
        sandarac_net::spawn(PanicPart::Tier, || task.run());
        Fill { copy, mark, told }
    }

    /// The state that RAM keeps with the object.
    pub(crate) fn copy(&self) -> &Arc<SharedCopy> {
        &self.copy
    }

    /// Whether a mark says that the response may not be stored. Requests for it do not wait for each other.
    pub(crate) fn is_unstorable(&self) -> bool {
        matches!(self.mark, Some(MarkReason::NotStorable(_)))
    }

    /// The response is stored in RAM, whole.
    pub(crate) fn stored(self, object: Arc<Object>, rule: &KeyRule) {
        self.told.tell(News::Object(Made { object, before: None, rule: rule.clone() }));
    }

    /// The stored response `before` was validated, and became the object.
    pub(crate) fn validated(self, object: Arc<Object>, before: Arc<Object>, rule: &KeyRule) {
        self.told.tell(News::Object(Made { object, before: Some(before), rule: rule.clone() }));
    }

    /// The response is not stored, for this reason.
    pub(crate) fn unstored(self, reason: Reason) {
        if let Some(time) = reason.marked_for() {
            self.told.tell(News::Unshared(MarkReason::NotStorable(reason), time));
        }
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        if self.told.news.borrow().is_none() {
            self.told.tell(News::Nothing);
        }
    }
}

impl Told {
    fn tell(&self, news: News) {
        *self.news.borrow_mut() = Some(news);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The task that holds the claim.
struct Task {
    core: Rc<Core>,
    asking: Asking,
    fetch: Fetch,
    token: Token,
    told: Rc<Told>,
    copy: Arc<SharedCopy>,
}

impl Task {
    async fn run(mut self) {
        let mut timer = Timer::new();
        let news = loop {
            let LookupStep::Wait(until) = self.asking.step(&self.core).await else { return };
            timer.set(until.since(now()).min(Duration::from_secs(3600)));
            let news = poll_fn(|cx| {
                if let Some(news) = self.told.news.take() {
                    // The place is taken, so that the drop of the fill tells nothing.
                    *self.told.news.borrow_mut() = Some(News::Nothing);
                    return Poll::Ready(Some(news));
                }
                *self.told.waker.borrow_mut() = Some(cx.waker().clone());
                timer.poll(cx).map(|()| None)
            })
            .await;
            if let Some(news) = news {
                break news;
            }
        };
        match (self.fetch.position, news) {
            (Some(position), News::Object(made)) if self.asking.place.may_write() => {
                self.object(position, &made).await;
            }
            (Some(position), News::Unshared(reason, time)) if self.asking.place.may_write() => {
                self.mark(position, reason, time).await;
            }
            _ => _ = self.end(Outcome::Nothing).await,
        }
    }

    /// Ends the lookup. Returns when the fill was sent, if the server took it.
    async fn end(&mut self, outcome: Outcome) -> Option<sandarac_message::Timestamp> {
        let is_fill = matches!(outcome, Outcome::Fill { .. });
        self.asking.lookup.fetched(outcome);
        let filled = finish(&mut self.asking, &self.core).await;
        if is_fill {
            let count = if filled.is_some() { TierCount::Fills } else { TierCount::FillsRefused };
            self.asking.place.server.count(count);
        }
        filled
    }

    /// Stores an object; under the key of its variant, with an index after it, if it varies.
    async fn object(mut self, position: Position, Made { object, before, rule }: &Made) {
        let place = self.asking.place.clone();
        let max_object = place.tier.max_object;
        let ttl = match entry::ttl(object, max_object, wall()) {
            Ok(ttl) => ttl,
            Err(unshared) => return self.unshared(position, unshared).await,
        };
        let is_purged = |object: &Arc<Object>| {
            entry::with_subject(object, rule, |subject| {
                place.server.ask(|server, _| server.judge(&position, subject)) != Verdict::Use
            })
        };
        if std::iter::once(object).chain(before).any(is_purged) {
            _ = self.end(Outcome::Nothing).await;
            return;
        }
        // The index that was found, if the response varies on the same fields.
        let found = self.asking.index.as_ref().filter(|index| index.names == object.vary().names());
        let known = found.map(|index| index.token);
        let index = known.or((!object.vary().is_empty()).then(|| Token(random())));
        self.copy.belongs_to(index);
        let target = place.variant(index, object.vary());
        let sealer = place.server.ask(|server, _| server.sealer().clone());
        let (links, of) = (&self.core.tier_links, (self.token, position, ttl));
        let stored = entry::item(links, &place, object, rule, &target.key, of).await;
        let Some(Stored { chunks, value }) = stored else {
            return self.mark(position, MarkReason::TooLarge, Duration::from_secs(120)).await;
        };
        if !chunks::put(links, &place.tier, &place.server, chunks, ttl).await {
            place.server.count(TierCount::FillsRefused);
            _ = self.end(Outcome::Nothing).await;
            return;
        }
        let item = Outcome::Fill { token: self.token, ttl, value };
        let new_index = index.filter(|_| known.is_none());
        let new_index = new_index.map(|token| index_item(&place, token, position, object.vary(), &sealer));
        let entry = place.entry();
        let filled = match new_index {
            None if self.asking.target.key == target.key => self.end(item).await,
            None => {
                _ = self.end(Outcome::Nothing).await;
                put(&self.core, &place, target, Some(item)).await
            }
            Some(index) => {
                // The variant comes first, under the claim of the entry: a node that waits for the entry and finds
                // the index finds the variant too, and does not fetch it.
                let filled = put(&self.core, &place, target, Some(item)).await;
                let index = index.filter(|_| filled.is_some());
                let stored = if self.asking.target.key == entry.key {
                    self.end(index.unwrap_or(Outcome::Nothing)).await
                } else {
                    _ = self.end(Outcome::Nothing).await;
                    put(&self.core, &place, entry, index).await
                };
                // Without its index, nobody finds it.
                filled.filter(|_| stored.is_some())
            }
        };
        if let Some(filled) = filled {
            self.copy.with(|copy| copy.agreed = copy.agreed.max(filled));
        }
    }

    async fn unshared(mut self, position: Position, unshared: Unshared) {
        match unshared {
            Some((reason, time)) => self.mark(position, reason, time).await,
            None => _ = self.end(Outcome::Nothing).await,
        }
    }

    /// Leaves a mark, unless there is one.
    async fn mark(mut self, position: Position, reason: MarkReason, time: Duration) {
        let (place, key) = (&self.asking.place, self.asking.target.key);
        let sealer = place.server.ask(|server, _| server.sealer().clone());
        let token = Token(random());
        let value = entry::small_item(Content::Mark { position, reason }, &key, token, &sealer);
        let outcome = match value.filter(|_| self.fetch.reason != FetchReason::Marked) {
            Some(value) => {
                place.server.count(TierCount::Marks);
                Outcome::Fill { token, ttl: time.as_secs().clamp(1, 3600) as u32, value }
            }
            None => Outcome::Nothing,
        };
        self.asking.lookup.fetched(outcome);
        _ = finish(&mut self.asking, &self.core).await;
    }
}

/// Plays a lookup to its end.
async fn finish(asking: &mut Asking, core: &Core) -> Option<sandarac_message::Timestamp> {
    loop {
        match asking.step(core).await {
            LookupStep::Done { filled } => return filled,
            LookupStep::Wait(until) => sandarac_net::sleep(until.since(now())).await,
            LookupStep::Found(_) => asking.reject(),
            LookupStep::Fetch(_) | LookupStep::Send(_) => {}
        }
    }
}

/// The index of an entry whose response varies on the fields in `vary`.
pub(super) fn index_item(
    place: &Place,
    token: Token,
    position: Position,
    vary: &VaryKey,
    sealer: &Sealer,
) -> Option<Outcome> {
    let content = Content::Index { position, vary: vary.names() };
    let value: Vec<Bytes> = entry::small_item(content, &place.entry().key, token, sealer)?;
    Some(Outcome::Fill { token, ttl: INDEX_TTL, value })
}

/// Stores an item under a key that was not looked up.
async fn put(
    core: &Rc<Core>,
    place: &Place,
    target: Target,
    item: Option<Outcome>,
) -> Option<sandarac_message::Timestamp> {
    let item = item?;
    let mut asking = Asking::new(core, place.clone(), target, None);
    loop {
        match asking.step(core).await {
            LookupStep::Fetch(_) => break,
            LookupStep::Wait(until) => sandarac_net::sleep(until.since(now())).await,
            LookupStep::Found(_) => asking.reject(),
            LookupStep::Done { .. } | LookupStep::Send(_) => return None,
        }
    }
    asking.lookup.fetched(item);
    let filled = finish(&mut asking, core).await;
    let count = if filled.is_some() { TierCount::Fills } else { TierCount::FillsRefused };
    place.server.count(count);
    filled
}
