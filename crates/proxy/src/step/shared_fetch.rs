//! Shared fetch: a fetch whose response may be stored and serve others. It owns what it needs, so that it
//! continues after its client has left. A background revalidation has no client from the beginning.

use crate::core::Core;
use crate::forward::Purpose;
use crate::report::handling::{Course, Detail, Handling};
use crate::report::tally::MissReason;
use crate::request::received::{Received, RequestFacts};
use crate::request::unkeyed::lost_session;
use crate::request::{hash, query};
use crate::site::LocalSite;
use crate::step::combine;
use crate::step::fetch::{Audience, Fetch, FetchTrace, OriginResponse, Recipient};
use crate::step::store::{Landed, Landing, RELEASED};
use crate::tier::{self, Asked, Fill, FoundObject, Place};
use crate::{Counter, Fault};
use sandarac_cache::{Flight, Lookup, Object, Store};
use sandarac_message::caching::{RequestDirectives, Reuse};
use sandarac_message::status_fields::Forward;
use sandarac_message::{Method, Name, RequestHead, RequestHeadBuf};
use sandarac_net::{LeasedHead, PanicPart, boxed, wall};
use sandarac_policy::{CacheRule, PoolId};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// A fetch whose response may be stored.
pub(crate) struct SharedFetch {
    pub(crate) core: Rc<Core>,
    pub(crate) site: LocalSite,
    /// The request as it was received. It has no body.
    pub(crate) head: Rc<LeasedHead>,
    pub(crate) facts: RequestFacts,
    pub(crate) pool: PoolId,
    pub(crate) flight: Flight,
    /// The request's directives for stored responses.
    pub(crate) directives: RequestDirectives,
    pub(crate) audience: Rc<Audience>,
    /// How the request was handled so far.
    pub(crate) handling: Handling,
    /// The transaction number of the request.
    pub(crate) transaction: u64,
}

/// The result of a shared fetch.
pub(crate) struct Fetched {
    pub(crate) result: Result<FetchAnswer, Fault>,
    pub(crate) handling: Handling,
    pub(crate) trace: FetchTrace,
}

/// The answer to the request that a shared fetch was begun for.
pub(crate) enum FetchAnswer {
    /// The response of the origin.
    Landed(Landed),
    /// A stale response, because the origin failed with this fault.
    StandIn(Arc<Object>, Fault),
}

/// Starts a task that revalidates the flight's candidate.
pub(crate) fn revalidate(
    core: &Core,
    site: &LocalSite,
    request: &RequestHead<'_>,
    received: &Received<'_>,
    pool: PoolId,
    flight: Flight,
) {
    core.counters.one(Counter::FetchesBackground);
    let fetch = SharedFetch {
        core: core.handle(),
        site: site.clone(),
        head: Rc::new(LeasedHead::made(RequestHeadBuf::copy_of(request), &core.shared.account.process())),
        facts: RequestFacts::of(received),
        pool,
        flight,
        directives: RequestDirectives::default(),
        audience: Rc::new(Audience::background()),
        handling: Handling::new(Course::Miss(MissReason::Forward(Forward::Stale))),
        transaction: core.transaction(),
    };
    sandarac_net::spawn(PanicPart::Fetch, || async { fetch.run().await.leave() });
}

impl SharedFetch {
    /// Fetches, and stores the response if that is allowed.
    pub(crate) async fn run(self) -> Fetched {
        let (mut handling, mut trace) = (self.handling, FetchTrace::default());
        let result = self.fetch(&mut handling, &mut trace).await;
        Fetched { result, handling, trace }
    }

    async fn fetch(self, handling: &mut Handling, trace: &mut FetchTrace) -> Result<FetchAnswer, Fault> {
        let SharedFetch { core, site, head, facts, pool, flight, directives, audience, transaction, .. } =
            self;
        let (local, site, head) = (&core, &site, head.view());
        let core = &*core;
        let received = facts.received(&site.config.routes, &head, None)?;
        let rule = received.route.cache_rule().expect("a flight belongs to a route with a cache rule");
        if let Some(name) = lost_session(rule, head.fields) {
            core.shared.lost_session(name);
        }
        let wanted = query::single_range(&head);
        let request = match head.method {
            Method::Head => RequestHead { method: Method::Get, method_text: b"GET", ..head },
            _ => head,
        };
        let target = hash::target(&rule.key, received.target.path_and_query);
        flight.aim(hash::target_tag(&rule.key, &received.host, &target));
        let store = &core.shared.store;
        // In the background the whole stored response is revalidated, whatever part of it was served.
        let background = audience.is_background();
        // A response that was not shared last time is not waited for.
        let is_marked = flight.is_marked();
        let place = Place::of(site, received.route, flight.key(), &received.host, &target);
        let question =
            TierQuestion { core: local, site, head: &head, request: &request, received: &received };
        let (flight, mut tier) = match place.filter(|_| !is_marked) {
            None => (flight, None),
            Some(place) => {
                let asked = question.ask(
                    place,
                    &target,
                    rule,
                    (flight, pool),
                    (&directives, background, transaction),
                );
                match boxed(|| asked).await {
                    Ok((object, course, ttl)) => {
                        (handling.course, handling.ttl, handling.forward) = (course, Some(ttl), None);
                        handling.detail = Some(Detail::SharedTier);
                        return Ok(FetchAnswer::Landed(Landed::Object(object, None, None)));
                    }
                    Err((flight, tier)) => (flight, Some(tier)),
                }
            }
        };
        let candidate = flight.candidate().cloned();
        let mut asked = wanted.filter(|_| !background);
        let mut rest = candidate
            .as_deref()
            .filter(|_| !background)
            .and_then(|stored| combine::rest_to_fetch(wanted, stored, store, rule));
        loop {
            let part = rest.or_else(|| query::part_to_fetch(asked, candidate.as_deref()));
            let usable = |object: &&Object| {
                rest.is_some() || background || (part.is_none() && object.range().is_none())
            };
            let fetch = Fetch {
                core,
                site,
                request,
                received: &received,
                pool,
                target: &target,
                purpose: Purpose::Fill { rule, candidate: candidate.as_deref().filter(usable), part },
                expect_continue: false,
                transaction,
            };
            let arrived = match fetch.run(&mut Recipient::Audience(&audience), trace).await {
                Ok(arrived) => arrived,
                Err(fault) => return failed(flight, candidate, directives, &audience, fault),
            };
            let is_recoded = rule.accept_encoding.is_some() || received.route.compress.is_some();
            if part.is_some() && is_recoded && is_coded_part(&arrived) {
                // Only a whole body can be inflated for clients that do not accept the coding.
                arrived.link.close();
                (rest, asked) = (None, None);
                continue;
            }
            let landing = Landing {
                wanted,
                directives,
                ..Landing::of(core, site, &request, &received, &target, rule, pool, trace.number)
            };
            let landing = landing.shared(tier.take());
            match candidate.as_ref().and_then(|stored| landing.combined(stored, &arrived)) {
                Some(combined) => {
                    return Ok(FetchAnswer::Landed(landing.combine(flight, *arrived, combined, handling)));
                }
                None if rest.is_some() && matches!(arrived.head.status, 206 | 304 | 416) => {
                    // The response is useless without the stored part: request everything that is wanted.
                    arrived.link.close();
                    tier = landing.tier.take();
                    rest = None;
                }
                None => return landing.land(flight, arrived, handling).map(FetchAnswer::Landed),
            }
        }
    }
}

/// Whether a part came in a coding.
fn is_coded_part(arrived: &OriginResponse) -> bool {
    arrived.head.status == 206 && arrived.head.fields.view().has(Name::ContentEncoding)
}

/// A question to the shared tier, before a fetch.
struct TierQuestion<'a> {
    core: &'a Rc<Core>,
    site: &'a LocalSite,
    /// The request as received, and as it would be fetched.
    head: &'a RequestHead<'a>,
    request: &'a RequestHead<'a>,
    received: &'a Received<'a>,
}

impl TierQuestion<'_> {
    /// The object, now in RAM, how it answers the request, and its freshness left in seconds; or the right to
    /// fetch, and to tell the tier of it.
    async fn ask(
        &self,
        place: Place,
        target: &[u8],
        rule: &CacheRule,
        (flight, pool): (Flight, PoolId),
        (directives, background, transaction): (&RequestDirectives, bool, u64),
    ) -> Result<(Arc<Object>, Course, i64), (Flight, Fill)> {
        let TierQuestion { core, site, head, request, received } = *self;
        let (store, limit) = (&core.shared.store, rule.max_object.0);
        let max_body = limit.min(store.settings().limit as u64);
        let store_found = |found: FoundObject, flight: Flight| {
            found.store(flight, request, received, target, limit, transaction)
        };
        // One moment counts: the object may become stale in the next.
        let judged_at = Cell::new(wall());
        let reuse = |found: &FoundObject| found.lifetimes().reuse(directives, judged_at.get());
        let accepts = |found: &FoundObject| {
            judged_at.set(wall());
            match reuse(found) {
                Reuse::Fresh | Reuse::MaxStale => true,
                Reuse::StaleWhileRevalidate => !background,
                Reuse::Revalidate | Reuse::Gone => false,
            }
        };
        match tier::ask(core, place, request.fields, max_body, accepts).await {
            Asked::Found(found) => {
                let is_stale = reuse(&found) == Reuse::StaleWhileRevalidate;
                let ttl = found.lifetimes().ttl(judged_at.get());
                let key = flight.key();
                let object = store_found(*found, flight);
                let asked = query::query(head, rule, directives);
                if is_stale && let Lookup::Stale(_, Some(flight)) = store.lookup(key, &asked, wall()) {
                    revalidate(core, site, head, received, pool, flight);
                }
                Ok((object, if is_stale { Course::Stale } else { Course::Hit }, ttl))
            }
            Asked::Fetch { fill, stale, begun } => {
                let flight = flight.begun(begun);
                let flight = if fill.is_unstorable() { apart(store, flight) } else { flight };
                judged_at.set(wall());
                let stale = stale.filter(|found| flight.candidate().is_none() && reuse(found) != Reuse::Gone);
                let flight = match stale {
                    Some(stale) => {
                        let object = store_found(*stale, store.open(flight.key()));
                        flight.adopt(object)
                    }
                    None => flight,
                };
                Err((flight, fill))
            }
        }
    }
}

/// The same right, for which no request waits: those that do try by themselves.
fn apart(store: &Arc<Store>, flight: Flight) -> Flight {
    let (apart, candidate) = (store.open(flight.key()), flight.candidate().cloned());
    flight.scatter();
    match candidate {
        Some(candidate) => apart.adopt(candidate),
        None => apart,
    }
}

/// Handles a failure of the origin: a stale response stands in if it may, also for the waiters.
fn failed(
    flight: Flight,
    candidate: Option<Arc<Object>>,
    directives: RequestDirectives,
    audience: &Audience,
    fault: Fault,
) -> Result<FetchAnswer, Fault> {
    if audience.is_background() {
        if fault.is_origins() {
            // The stale response continues to be served while its lifetimes allow it.
            flight.fail();
        }
        return Err(fault);
    }
    let stale = candidate.filter(|object| {
        fault.is_origins()
            && object.range().is_none()
            && object.lifetimes().usable_on_error(&directives, wall())
    });
    match stale {
        Some(object) => {
            flight.fail();
            Ok(FetchAnswer::StandIn(object, fault))
        }
        None => {
            if fault.is_origins() {
                flight.release(RELEASED);
            }
            // If this client alone is to blame, dropping the flight lets a waiter take over.
            Err(fault)
        }
    }
}

impl Fetched {
    /// Abandons a response that no client waits for. One that is being stored continues.
    pub(crate) fn leave(self) {
        if let Ok(FetchAnswer::Landed(Landed::Relay(response))) = self.result {
            response.link.close();
        }
    }
}
