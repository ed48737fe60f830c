//! Miss: a request leads a fetch for the store and for all waiters.

use super::deliver::deliver;
use super::fetch::{Audience, address};
use super::relay::relay;
use super::shared_fetch::{FetchAnswer, Fetched, SharedFetch, revalidate};
use super::stand_in::{stand_in, stands_in_after};
use super::store::Landed;
use crate::downstream::Downstream;
use crate::exchange::state::{Exchange, Sent};
use crate::report::handling::{Detail, StandIn};
use crate::report::tally::MissReason;
use crate::request::query::forward;
use crate::request::received::{Received, RequestFacts};
use crate::{Counter, Fault};
use sandarac_cache::Flight;
use sandarac_message::caching::RequestDirectives;
use sandarac_net::{PanicPart, boxed};
use sandarac_policy::{CacheRule, PoolId};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// Fetches for the store and for all waiters.
pub(crate) async fn miss(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    received: &Received<'_>,
    pool: PoolId,
    rule: &CacheRule,
    directives: RequestDirectives,
    flight: Flight,
) -> Result<Sent, Fault> {
    if let Some(object) = flight.candidate().cloned()
        && stands_in_after(exchange, pool, rule, &object, &directives) == Some(Duration::ZERO)
    {
        revalidate(exchange.core, exchange.site, &exchange.request, received, pool, flight);
        return stand_in(exchange, down, &object, Fault::NoResponse, StandIn::Silent).await;
    }
    let (store, candidate) = (&exchange.core.shared.store, flight.candidate());
    let fields = exchange.request.fields;
    let why = forward(store, flight.key(), fields, candidate.map(|object| &**object), &directives);
    if flight.is_marked() {
        exchange.missing(MissReason::HitForMiss, why);
        exchange.handling.detail = Some(Detail::HitForMiss);
    } else {
        exchange.missing(MissReason::Forward(why), why);
    }
    fetch_for_store(exchange, down, received, pool, directives, flight, false).await
}

/// Fetches, and answers with what is stored of it or, if nothing may be, with the response. If the request
/// `is_alone`, nobody waits for the fetch, and what it brings may be of no use to others.
pub(super) async fn fetch_for_store(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    received: &Received<'_>,
    pool: PoolId,
    directives: RequestDirectives,
    flight: Flight,
    is_alone: bool,
) -> Result<Sent, Fault> {
    match attend(exchange, down, received, pool, directives, flight, is_alone).await? {
        FetchAnswer::Landed(Landed::Object(object, reader, own)) => {
            deliver(exchange, down, object, reader, own.as_ref()).await
        }
        FetchAnswer::Landed(Landed::Relay(arrived)) => relay(exchange, down, arrived, pool).await,
        FetchAnswer::StandIn(object, fault) => {
            exchange.origin_fault = Some(fault.log_text());
            stand_in(exchange, down, &object, fault, StandIn::Failed).await
        }
    }
}

/// Fetches for the store while the client stays. If it leaves, the fetch continues for the waiters and for
/// later requests. If too many fetches continue like this, it is given up and a waiter takes over.
async fn attend(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    received: &Received<'_>,
    pool: PoolId,
    directives: RequestDirectives,
    flight: Flight,
    is_alone: bool,
) -> Result<FetchAnswer, Fault> {
    let audience = Rc::new(Audience::attended(down.client.read_limit()));
    let fetch = SharedFetch {
        core: exchange.core.handle(),
        site: exchange.site.clone(),
        head: exchange.head.clone(),
        facts: RequestFacts::of(received),
        pool,
        flight,
        directives,
        audience: audience.clone(),
        handling: exchange.handling,
        transaction: exchange.transaction,
    };
    audience.lend_timer(std::mem::take(down.client.timer()));
    let mut fetch = boxed(|| fetch.run());
    let fetched = poll_fn(|cx| {
        let fetched = fetch.as_mut().poll(cx);
        audience.drain_interims(|status, reason, fields| down.interim(cx, status, reason, fields));
        match fetched {
            Poll::Ready(fetched) => Poll::Ready(Some(fetched)),
            Poll::Pending => down.poll_left(cx).map(|()| None),
        }
    })
    .await;
    let Some(Fetched { result, handling, trace }) = fetched else {
        audience.leave();
        exchange.trace = audience.begun();
        let asked = audience.asked().filter(|_| exchange.core.recorder.wants());
        exchange.trace.backend = asked.and_then(|backend| address(exchange.site, pool, backend));
        if let Some(place) = (!is_alone).then(|| exchange.core.shared.detach()).flatten() {
            exchange.core.counters.one(Counter::FetchesDetached);
            sandarac_net::spawn(PanicPart::Fetch, move || async move {
                fetch.await.leave();
                drop(place);
            });
        }
        return Err(Fault::ClientGone);
    };
    *down.client.timer() = audience.return_timer();
    exchange.handling = handling;
    exchange.trace = trace;
    result
}
