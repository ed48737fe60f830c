//! The question to the tier before a fetch.

use std::rc::Rc;
use std::sync::Arc;

use sandarac_cache::{Begun, Flight, NewObject, Object};
use sandarac_message::caching::Lifetimes;
use sandarac_message::vary::VarySpec;
use sandarac_message::{Fields, RequestHead};
use sandarac_tier::{FetchReason, Found, LocalCopy, LookupStep, SharedCopy};
use sandarac_wire::entry::Content;

use super::asking::{Asking, Index};
use super::clock::now;
use super::entry::TierObject;
use super::fill::Fill;
use super::{Place, TierCount, chunks};
use crate::core::Core;
use crate::request::received::Received;

/// The answer of the tier.
pub(crate) enum Asked {
    /// A response that may be used.
    Found(Box<FoundObject>),
    /// The response is to be fetched, and the tier to be told of it. There may be a stale one to validate.
    /// The purges and bans before `begun` cannot apply to what is fetched.
    Fetch { fill: Fill, stale: Option<Box<FoundObject>>, begun: Begun },
}

/// A response from the tier.
pub(crate) struct FoundObject {
    object: TierObject,
    copy: Arc<SharedCopy>,
    /// The purges and bans there had been before it was read. Later ones apply to it.
    begun: Begun,
}

impl FoundObject {
    /// Stores the response in RAM, for a request that it answers; not if it was purged since it was read.
    pub(crate) fn store(
        self,
        flight: Flight,
        request: &RequestHead<'_>,
        received: &Received<'_>,
        path: &[u8],
        limit: u64,
        transaction: u64,
    ) -> Arc<Object> {
        let TierObject { head, lifetimes, vary, tags, body, memory } = self.object;
        let new = NewObject {
            head,
            lifetimes,
            vary: vary.key(request.fields),
            host: &received.host,
            path,
            tags: &tags,
            range: None,
            len: Some(body.len() as u64),
            limit: Some(limit),
            resumable: false,
            copy: Some(self.copy),
            transaction,
        };
        flight.begun(self.begun).store_shared(new, body, memory)
    }

    pub(crate) fn lifetimes(&self) -> Lifetimes {
        self.object.lifetimes
    }
}

/// Asks the tier for the response to a request, and waits for other nodes that are fetching it. `accepts`
/// says whether a response may be used.
pub(crate) async fn ask(
    core: &Rc<Core>,
    place: Place,
    request: Fields<'_>,
    max_body: u64,
    accepts: impl Fn(&FoundObject) -> bool,
) -> Asked {
    // A forged entry may declare any size.
    let max_body = max_body.min(place.tier.max_object);
    let target = place.entry();
    let mut asking = Asking::new(core, place, target, None);
    let mut stale = None;
    loop {
        match asking.step(core).await {
            LookupStep::Wait(until) => {
                asking.place.server.count(TierCount::Waits);
                sandarac_net::sleep(until.since(now())).await;
            }
            LookupStep::Found(found) => match &found.item.content {
                // Variants have no index of their own.
                Content::Index { vary: names, .. } if asking.index.is_none() => {
                    let index = Index { token: found.item.token, names: names.clone() };
                    let place = asking.place.clone();
                    asking.accept(core);
                    let target = place.variant(Some(index.token), &index.names.key(request));
                    asking = Asking::new(core, place, target, Some(index));
                }
                _ => match usable(core, &asking, *found, request, max_body).await {
                    Some(object) if accepts(&object) => {
                        asking.place.server.count(TierCount::Hits);
                        asking.accept(core);
                        return Asked::Found(Box::new(object));
                    }
                    object => {
                        stale = object.map(Box::new);
                        asking.reject();
                    }
                },
            },
            LookupStep::Fetch(fetch) => {
                asking.place.server.count(TierCount::Misses);
                if fetch.reason == FetchReason::Refused {
                    asking.place.server.count(TierCount::Refused);
                }
                // The fetch begins now.
                let begun = core.shared.store.begun();
                return Asked::Fetch { fill: Fill::new(core, asking, fetch), stale, begun };
            }
            LookupStep::Send(_) | LookupStep::Done { .. } => {
                unreachable!("packets are exchanged by `step`, and the loop ends before the lookup")
            }
        }
    }
}

/// The object of an entry, if it answers the request.
async fn usable(
    core: &Core,
    asking: &Asking,
    found: Found,
    request: Fields<'_>,
    max_body: u64,
) -> Option<FoundObject> {
    let Found { item, body, memory, lain, softened, read } = found;
    let (Content::Representation(attributes) | Content::Manifest { attributes, .. }) = &item.content else {
        return None;
    };
    let vary = asking.index.as_ref().map_or(VarySpec::None, |index| index.names.clone());
    if attributes.vary != vary.key(request) {
        return None;
    }
    let body = match &item.content {
        Content::Manifest { .. } => {
            let (place, key) = (&asking.place, &asking.target.key);
            let body = chunks::get(&core.tier_links, place, &item, key, max_body).await?;
            let memory = body.len();
            (body, memory)
        }
        _ => (body, memory),
    };
    let token = item.token;
    let (Content::Representation(attributes) | Content::Manifest { attributes, .. }) = item.content else {
        return None;
    };
    let object = TierObject::of(attributes, (lain, softened), body, vary, max_body)?;
    let copy = asking.place.server.ask(|server, _| LocalCopy::found(token, read, server));
    Some(FoundObject {
        object,
        copy: Arc::new(SharedCopy::found(copy, asking.index.as_ref().map(|index| index.token))),
        begun: asking.begun,
    })
}
