//! Lookup: the store answers, or the request waits for a fetch or leads one.

use super::apart::{Fitness, fitness, unaccepted};
use super::deliver::hit;
use super::head::head;
use super::miss::miss;
use super::pass::pass;
use super::shared_fetch::revalidate;
use super::stand_in::{instead, stand_in, stands_in_after, stored};
use crate::downstream::Downstream;
use crate::exchange::state::{Exchange, Sent};
use crate::report::handling::{Detail, StandIn};
use crate::report::pass_reason::PassReason;
use crate::report::tally::MissReason;
use crate::request::hash;
use crate::request::query::{forward, query};
use crate::request::received::Received;
use crate::{Counter, Fault, tier};
use sandarac_cache::{Key, Lookup, Mark, Query, Waited, Waiter};
use sandarac_message::status_fields::Forward as Forwarded;
use sandarac_net::{boxed, wall};
use sandarac_policy::PoolId;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

/// How often a request is looked up. Each time after the first, the awaited response did not answer it.
const MAX_LOOKUPS: usize = 8;

/// Answers from the store, waits for another's fetch, or leads one.
pub(crate) async fn lookup(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    received: &Received<'_>,
    pool: PoolId,
    mut found: Option<(Key, Lookup)>,
) -> Result<Sent, Fault> {
    let Some(rule) = received.route.cache_rule() else { return pass(exchange, down, received, pool).await };
    let directives = rule.policy.directives(exchange.request.fields);
    let asked = query(&exchange.request, rule, &directives);
    let path = received.target.path_and_query;
    let store = &exchange.core.shared.store;
    for _ in 0..MAX_LOOKUPS {
        let (key, lookup) = found.take().unwrap_or_else(|| {
            let fields = exchange.request.fields;
            let key = hash::key(&rule.key, received.requester.scheme, &received.host, path, fields);
            (key, store.lookup(key, &asked, wall()))
        });
        if let Lookup::Hit(object) | Lookup::Stale(object, _) = &lookup {
            match fitness(object, exchange.request.fields, rule, false) {
                Fitness::Barred(why) => {
                    exchange.passing(PassReason::Bypass(why));
                    return pass(exchange, down, received, pool).await;
                }
                Fitness::Unverified if !boxed(|| tier::may_serve(exchange, received, object)).await => {
                    continue;
                }
                Fitness::Unverified | Fitness::Fits => {}
            }
        }
        match lookup {
            Lookup::Hit(object) => {
                if let Some(sent) = hit(exchange, down, &object, &directives).await {
                    return sent;
                }
            }
            Lookup::Stale(object, flight) => {
                if let Some(flight) = flight {
                    revalidate(exchange.core, exchange.site, &exchange.request, received, pool, flight);
                }
                if let Some(sent) = hit(exchange, down, &object, &directives).await {
                    return sent;
                }
            }
            Lookup::Miss(flight) => {
                return miss(exchange, down, received, pool, rule, directives, flight).await;
            }
            Lookup::Wait(waiter) => {
                let stored = stored(exchange, key, &asked);
                let stands_in_after = stored
                    .as_ref()
                    .and_then(|object| stands_in_after(exchange, pool, rule, object, &directives));
                if let (Some(object), Some(Duration::ZERO)) = (&stored, stands_in_after) {
                    return stand_in(exchange, down, object, Fault::NoResponse, StandIn::Silent).await;
                }
                exchange.core.counters.one(Counter::Coalesced);
                exchange.handling.collapsed = true;
                exchange.handling.forward =
                    Some(if waiter.validates() { Forwarded::Stale } else { Forwarded::Miss });
                let first_byte = exchange.site.pool_by_id(pool).timeouts.first_byte;
                let patience = stands_in_after.map_or(first_byte, |after| after.min(first_byte));
                match wait(waiter, &asked, down, patience).await? {
                    Some(Waited::Object(object)) => {
                        if let Some(why) = unaccepted(&object, exchange.request.fields) {
                            exchange.handling.collapsed = false;
                            exchange.passing(PassReason::Bypass(why));
                            return pass(exchange, down, received, pool).await;
                        }
                        let mut asked_of_it = directives.of_newer_response();
                        if object.copy().is_some_and(|copy| copy.is_found()) {
                            // Nobody asked the origin.
                            exchange.handling.collapsed = false;
                            exchange.handling.forward = None;
                            exchange.handling.detail = Some(Detail::SharedTier);
                            asked_of_it = directives;
                        }
                        if let Some(sent) = hit(exchange, down, &object, &asked_of_it).await {
                            return sent;
                        }
                    }
                    Some(Waited::Lead(flight)) => {
                        exchange.handling.collapsed = false;
                        return miss(exchange, down, received, pool, rule, directives, flight).await;
                    }
                    Some(Waited::Again) => {}
                    Some(Waited::Failed) => {
                        return instead(exchange, down, key, &asked, Fault::NoResponse, StandIn::Failed)
                            .await;
                    }
                    None => {
                        let reason = if stands_in_after.is_some() { StandIn::Slow } else { StandIn::Failed };
                        return instead(exchange, down, key, &asked, Fault::ResponseLate, reason).await;
                    }
                }
                // The next lookup reports for itself.
                exchange.handling.collapsed = false;
                (exchange.handling.forward, exchange.handling.detail) = (None, None);
            }
            Lookup::Marked(Mark::HitForMiss, flight) => {
                exchange.core.counters.one(Counter::MarkedPasses);
                return miss(exchange, down, received, pool, rule, directives, flight).await;
            }
            Lookup::Marked(Mark::HitForPass, _) => {
                exchange.core.counters.one(Counter::MarkedPasses);
                exchange.passing(PassReason::HitForPass);
                return pass(exchange, down, received, pool).await;
            }
            Lookup::Absent(_) if directives.only_if_cached => return Err(Fault::NotCached),
            Lookup::Absent(candidate) => {
                let why = forward(store, key, exchange.request.fields, candidate.as_deref(), &directives);
                exchange.missing(MissReason::Forward(why), why);
                return head(exchange, down, received, pool, rule, candidate).await;
            }
        }
    }
    exchange.passing(PassReason::NotWorthWaiting);
    pass(exchange, down, received, pool).await
}

/// Waits for another's fetch; `None` if that takes longer than `patience`. The wait ends if the client
/// leaves, because it would otherwise keep its connection for as long.
async fn wait(
    mut waiter: Waiter,
    query: &Query<'_>,
    down: &mut Downstream<'_>,
    patience: Duration,
) -> Result<Option<Waited>, Fault> {
    down.client.timer().set(patience);
    poll_fn(|cx| {
        if let Poll::Ready(waited) = waiter.poll(cx, query, wall()) {
            return Poll::Ready(Ok(Some(waited)));
        }
        if down.poll_left(cx).is_ready() {
            return Poll::Ready(Err(Fault::ClientGone));
        }
        down.client.timer().poll(cx).map(|()| Ok(None))
    })
    .await
}
