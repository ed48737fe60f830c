//! Lookup: the query to the store, and the ways on where it cannot answer.

use crate::Fault;
use crate::downstream::Downstream;
use crate::exchange::Exchange;
use crate::step::fetch::OriginResponse;
use crate::step::receive::Received;
use crate::step::store::{add_date, tags_of};
use sandarac_cache::{Flight, Intent, Key, NewObject, Object, Purge, Query, Store, Waited, Waiter};
use sandarac_config::CacheRule;
use sandarac_message::caching::{Profile, RequestDirectives, Storability, freshen, head_agrees, storability};
use sandarac_message::range::{self, RangeSpec};
use sandarac_message::status_fields::Forward;
use sandarac_message::vary::VarySpec;
use sandarac_message::{Fields, Method, Name, RequestHead, ResponseHead};
use sandarac_net::wall;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

/// The question that a request puts to the store.
pub(crate) fn query<'a>(
    request: &RequestHead<'a>,
    rule: &CacheRule,
    directives: &'a RequestDirectives,
) -> Query<'a> {
    let fills = fills(request, rule) && !directives.only_if_cached;
    Query {
        fields: request.fields,
        directives,
        part: single_range(request),
        intent: if fills { Intent::Fill } else { Intent::Peek },
    }
}

/// Whether a request that finds nothing fetches for the store. Under the profile safe a HEAD does, by GET, as in Varnish
/// and nginx: some origins send a body in response to HEAD, which would be read as the response to the next request. Under
/// rfc it goes on as it is, and brings nothing to store.
pub(crate) fn fills(request: &RequestHead<'_>, rule: &CacheRule) -> bool {
    request.method != Method::Head || rule.policy.profile == Profile::Safe
}

/// The part of the representation that a request wants, where it is one range.
pub(crate) fn single_range(request: &RequestHead<'_>) -> Option<RangeSpec> {
    if request.method != Method::Get || request.fields.has(Name::IfRange) {
        return None;
    }
    let specs = range::parse(request.fields.get(Name::Range)?)?;
    match specs[..] {
        [spec] => Some(spec),
        _ => None,
    }
}

/// The range to ask the origin for. One that begins at the start is a client that will want all of it, or a player that
/// says so by habit: the whole is fetched, and serves both. Any other is fetched as it is, since the whole may be large.
pub(crate) fn part_to_fetch(wanted: Option<RangeSpec>, candidate: Option<&Object>) -> Option<RangeSpec> {
    let whole = candidate.is_some_and(|object| object.range().is_none());
    wanted.filter(|spec| !whole && !spec.is_whole())
}

/// Why a request is forwarded, where `candidate` is what is stored for it.
pub(crate) fn forward(
    store: &Store,
    key: Key,
    request: Fields<'_>,
    candidate: Option<&Object>,
    directives: &RequestDirectives,
) -> Forward {
    let Some(candidate) = candidate else {
        // What answers the request was stored since it was looked for, as by the fetch that it has waited for.
        let variants = store.variants(key);
        let others = !variants.is_empty() && variants.iter().all(|object| !object.vary().matches(request));
        return if others { Forward::VaryMiss } else { Forward::UriMiss };
    };
    if candidate.range().is_some() {
        Forward::Partial
    } else if candidate.lifetimes().is_fresh(wall()) && *directives != RequestDirectives::default() {
        Forward::Request
    } else {
        Forward::Stale
    }
}

/// Waits for another's fetch; `None` where that takes longer than `patience`. A client that is gone does not wait: it would hold its
/// place among the connections for as long.
pub(crate) async fn wait(
    mut waiter: Waiter,
    query: &Query<'_>,
    down: &mut Downstream<'_>,
    patience: Duration,
) -> Result<Option<Waited>, Fault> {
    down.client.timer.set(patience);
    poll_fn(|cx| {
        if let Poll::Ready(waited) = waiter.poll(cx, query, wall()) {
            return Poll::Ready(Ok(Some(waited)));
        }
        if down.poll_gone(cx).is_ready() {
            return Poll::Ready(Err(Fault::ClientGone));
        }
        down.client.timer.poll(cx).map(|()| Ok(None))
    })
    .await
}

/// What a response to HEAD says of the stored response to GET (RFC 9111 §4.3.5): where it is of the same
/// representation it freshens it, else the stored one is invalid. `flight` is that of the stored one, from before the request.
pub(crate) fn learn_from_head(
    exchange: &Exchange<'_>,
    received: &Received<'_>,
    rule: &CacheRule,
    flight: Flight,
    arrived: &OriginResponse,
) {
    let store = &exchange.worker.shared.store;
    let Some(stored) = flight.candidate() else { return };
    let key = flight.key();
    let now = arrived.received;
    let fresh = arrived.head.fields.view();
    if arrived.head.status != 200 || stored.head().status() != 200 {
        return;
    }
    match head_agrees(stored.fields(), fresh) {
        Some(true) => {}
        Some(false) => {
            store.purge(key, Purge::Hard, now);
            return;
        }
        None => return,
    }
    let Ok(mut fields) = freshen(stored.fields(), fresh) else { return };
    let path = received.target.path_and_query;
    let edits = received.edits(path);
    if edits.take_cookies() {
        fields.remove(Name::SetCookie);
    }
    let head = ResponseHead { fields: fields.view(), ..stored.head().view() };
    let get = RequestHead { method: Method::Get, method_text: b"GET", ..exchange.request };
    let storable = storability(&get, &head, None, &rule.policy, arrived.requested, now);
    let lifetimes = match storable {
        Storability::Store(lifetimes) => lifetimes,
        Storability::NoStore(reason) if reason.is_of_request() => return,
        Storability::NoStore(_) => {
            store.purge(key, Purge::Hard, now);
            return;
        }
    };
    let (status, reason) = (stored.head().status(), stored.head().reason());
    // It is in the lifetimes now.
    fields.remove(Name::Age);
    add_date(&mut fields, now);
    let Ok(head) = edits.stored_head(status, reason, &fields) else { return };
    let vary = VarySpec::of(fields.view(), &rule.policy.vary);
    let tags = tags_of(fields.view(), &received.host, path, &rule.key);
    let arrival = NewObject {
        head,
        lifetimes,
        vary: &vary,
        request: exchange.request.fields,
        host: &received.host,
        path,
        tags: &tags,
        range: None,
        len: None,
        limit: None,
        resumable: false,
        transaction: exchange.transaction,
    };
    flight.refresh(arrival);
}
