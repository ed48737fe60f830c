//! Stale responses that stand in for an origin that fails, does not respond or is slow.

use super::deliver::{deliver, reader};
use crate::Fault;
use crate::downstream::Downstream;
use crate::exchange::state::{Exchange, Sent};
use crate::report::handling::{Course, Detail, StandIn};
use sandarac_balance::Outlook;
use sandarac_cache::{Intent, Key, Lookup, Object, Query};
use sandarac_message::caching::RequestDirectives;
use sandarac_net::wall;
use sandarac_policy::{CacheRule, PoolId};
use std::sync::Arc;
use std::time::Duration;

/// The whole stored response for a request, fresh or not.
pub(crate) fn stored(exchange: &Exchange<'_>, key: Key, query: &Query<'_>) -> Option<Arc<Object>> {
    let peek = Query { intent: Intent::Peek, ..*query };
    let object = match exchange.core.shared.store.lookup(key, &peek, wall()) {
        Lookup::Hit(object) | Lookup::Stale(object, _) | Lookup::Absent(Some(object)) => object,
        _ => return None,
    };
    object.range().is_none().then_some(object)
}

/// How long to wait for a fetch before `object`, which is stale, stands in for it; `None` if it must not do
/// so before the fetch has failed.
pub(crate) fn stands_in_after(
    exchange: &Exchange<'_>,
    pool: PoolId,
    rule: &CacheRule,
    object: &Object,
    directives: &RequestDirectives,
) -> Option<Duration> {
    let (lifetimes, now) = (object.lifetimes(), wall());
    if object.range().is_some() || !lifetimes.usable_on_error(directives, now) {
        return None;
    }
    let while_slow = rule.stale_after.filter(|_| lifetimes.usable_while_slow(directives, now));
    match exchange.site.pool_by_id(pool).live().outlook() {
        Outlook::Answers => while_slow,
        Outlook::Silent => while_slow.map(|_| Duration::ZERO),
        // Without `stale_after`, as under the profile rfc, the origin is tried unless a check reports it
        // down.
        Outlook::Failing => rule.stale_after.map(|_| Duration::ZERO),
        Outlook::Down => Some(Duration::ZERO),
    }
}

/// Answers a request whose awaited fetch failed or takes too long: with a response stored since, or with a
/// stale one that may stand in.
pub(crate) async fn instead(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    key: Key,
    query: &Query<'_>,
    fault: Fault,
    why: StandIn,
) -> Result<Sent, Fault> {
    match stored(exchange, key, query) {
        Some(object) if object.lifetimes().usable_on_error(query.directives, wall()) => {
            stand_in(exchange, down, &object, fault, why).await
        }
        _ => Err(fault),
    }
}

/// Answers with `object` in place of the origin. It may have become fresh meanwhile.
pub(crate) async fn stand_in(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    object: &Arc<Object>,
    fault: Fault,
    why: StandIn,
) -> Result<Sent, Fault> {
    let Some(reader) = reader(object) else { return Err(fault) };
    let (lifetimes, now) = (object.lifetimes(), wall());
    exchange.handling.course = Course::Hit;
    if !lifetimes.is_fresh(now) {
        exchange.handling.course = Course::Stale;
        exchange.handling.detail = Some(Detail::StandIn(why));
    }
    exchange.handling.ttl = Some(lifetimes.ttl(now));
    deliver(exchange, down, object.clone(), reader, None).await
}
