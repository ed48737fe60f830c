//! Checks: whether the tier still has the entry of an object in RAM.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use sandarac_cache::{Object, Removal};
use sandarac_message::Timestamp;
use sandarac_message::vary::VaryKey;
use sandarac_net::{PanicPart, wall, within};
use sandarac_policy::Route;
use sandarac_tier::{Check, CheckResult, CheckStep, Command, Condition, Hit, Outcome, Reply, SharedCopy};

use super::clock::now;
use super::entry::{Stored, item, ttl, with_subject};
use super::fill::index_item;
use super::{Place, TierCount, chunks};
use crate::core::Core;
use crate::exchange::state::Exchange;
use crate::request::received::Received;
use crate::site::LocalSite;

/// Whether an object may be served without asking the tier. Costs one comparison for most hits.
pub(crate) fn is_trusted(object: &Object, now: impl FnOnce() -> Timestamp) -> bool {
    object.copy().is_none_or(|copy| copy.is_trusted(now()))
}

/// Asks whether an object may be served, and waits for the answer if that has to come first. False if the
/// request must be looked up again.
pub(crate) async fn may_serve(
    exchange: &Exchange<'_>,
    received: &Received<'_>,
    object: &Arc<Object>,
) -> bool {
    let (core, site, route) = (&exchange.core.handle(), exchange.site, received.route);
    let Some(copy) = object.copy() else { return true };
    // Without a tier, or outside of it, the object is one like any other.
    let Some(place) = Place::of_object(site, route, object) else { return true };
    let now = now();
    if copy.is_trusted(now) {
        return true;
    }
    match place.server.ask(|server, is_reachable| copy.hit(now, server, is_reachable)) {
        Hit::Serve => return true,
        Hit::ServeAndCheck => {
            check(core, site, route, place, object.clone());
            return true;
        }
        Hit::CheckFirst => check(core, site, route, place.clone(), object.clone()),
        Hit::AwaitCheck => {}
    }
    // The check takes a deadline if it is not answered, and a few packets if the log has changed.
    _ = within(place.tier.timeout() * 4, poll_fn(|cx| copy.poll_checked(cx))).await;
    false
}

/// Starts a check.
fn check(core: &Rc<Core>, site: &LocalSite, route: &Route, place: Place, object: Arc<Object>) {
    let Some(rule) = route.cache_rule() else { return };
    let (core, rule) = (core.clone(), rule.key.clone());
    // Keeps the configuration until the check has ended.
    let site = site.clone();
    sandarac_net::spawn(PanicPart::Tier, move || async move {
        let Some(copy) = object.copy() else { return };
        let _end = EndOfCheck(copy);
        let key = place.variant(copy.index(), object.vary()).key;
        let server = &place.server;
        let mut check = server.ask(|server, _| Check::new(key, now(), server));
        server.count(TierCount::Checks);
        let index = index_of(&core, &place, copy).await;
        let result = loop {
            if index == IndexState::Other {
                break CheckResult::Replaced;
            }
            let step = with_subject(&object, &rule, |subject| {
                server
                    .with(&*core.shared, |server| copy.with(|copy| check.next(now(), copy, server, subject)))
            });
            let commands = match step {
                CheckStep::Done(result) => break result,
                CheckStep::Send(commands) => commands,
                CheckStep::Offer(position) => {
                    let of = ttl(&object, place.tier.max_object, wall()).ok().filter(|_| place.may_write());
                    let stored = match of {
                        Some(ttl) => {
                            let of = (copy.token(), position, ttl);
                            item(&core.tier_links, &place, &object, &rule, &key, of)
                                .await
                                .map(|stored| (ttl, stored))
                        }
                        None => None,
                    };
                    let Some((ttl, Stored { chunks, value })) = stored else {
                        check.keep();
                        continue;
                    };
                    if !chunks::put(&core.tier_links, &place.tier, server, chunks, ttl).await {
                        check.keep();
                        continue;
                    }
                    server.count(TierCount::Restored);
                    vec![copy.with(|copy| check.write_back(copy, ttl, value))]
                }
            };
            let replies = core.tier_links.send(&place.tier, server, commands).await;
            server.with(&*core.shared, |server| check.reply(now(), replies, server));
        };
        let is_restored = result != CheckResult::Agreed
            || index != IndexState::Lost
            || !place.may_write()
            || restore_index(&core, &place, copy, object.vary()).await;
        let result = if is_restored { result } else { CheckResult::Replaced };
        let store = &core.shared.store;
        match result {
            CheckResult::Agreed | CheckResult::Unanswered => {}
            CheckResult::Softened => store.soften(&object, wall()),
            CheckResult::Replaced | CheckResult::Dropped(_) => {
                server.count(TierCount::Dropped);
                let removal =
                    if result == CheckResult::Replaced { Removal::Replaced } else { Removal::Purged };
                store.discard(&object, removal);
            }
        }
        drop(site);
    });
}

/// The index that a variant belongs to, as the server has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IndexState {
    /// It is there; or the copy is no variant, or the server does not answer.
    Stands,
    /// Another item is in its place: its variants were replaced or purged.
    Other,
    /// The server has lost it.
    Lost,
}

async fn index_of(core: &Core, place: &Place, copy: &SharedCopy) -> IndexState {
    let Some(index) = copy.index() else { return IndexState::Stands };
    let get = Command::Get { key: place.entry().key, value: false };
    match &core.tier_links.send(&place.tier, &place.server, vec![get]).await[..] {
        [Reply::Item(item)] if item.flags != index.flags() => IndexState::Other,
        [Reply::Absent] => IndexState::Lost,
        _ => IndexState::Stands,
    }
}

/// Writes a lost index back, whose variant stands under the end of the log. Returns whether it is there now.
async fn restore_index(core: &Core, place: &Place, copy: &SharedCopy, vary: &VaryKey) -> bool {
    let (server, key) = (&place.server, place.entry().key);
    let (position, sealer) = server.ask(|server, _| (server.position(), server.sealer().clone()));
    let (Some(token), Some(position)) = (copy.index(), position) else { return false };
    let index = index_item(place, token, position, vary, &sealer);
    let Some(Outcome::Fill { token, ttl, value }) = index else { return false };
    let (condition, flags) = (Condition::Absent, token.flags());
    let add = Command::Set { key, condition, ttl: Some(ttl), flags, value };
    matches!(core.tier_links.send(&place.tier, server, vec![add]).await[..], [Reply::Stored(_)])
}

/// Wakes the requests that wait for a check, however it ends.
struct EndOfCheck<'a>(&'a SharedCopy);

impl Drop for EndOfCheck<'_> {
    fn drop(&mut self) {
        self.0.end_check();
    }
}
