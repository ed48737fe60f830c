//! Apart: a request with a field that may say who asks, or that selects a form of the page. What is stored
//! for everybody answers it while it is fresh. Otherwise it is fetched for its client alone: nobody waits for
//! it, it leaves no mark, and its response is stored only if that is for everybody too (RFC 9111 §3.5 has
//! this rule for Authorization).

use super::deliver::hit;
use super::miss::fetch_for_store;
use super::pass::pass;
use super::stand_in::stand_in;
use crate::downstream::Downstream;
use crate::exchange::state::{Exchange, Sent};
use crate::forward::is_for_all;
use crate::report::handling::StandIn;
use crate::report::pass_reason::PassReason;
use crate::request::hash;
use crate::request::query::query;
use crate::request::received::Received;
use crate::{Fault, tier};
use sandarac_cache::{Intent, Key, Lookup, Object, Query};
use sandarac_message::caching::{BypassReason, bar};
use sandarac_message::{Fields, Method, Name, RequestHead, media_type};
use sandarac_net::{boxed, wall};
use sandarac_policy::{CacheRule, PoolId, SharedUse};

/// Answers a request that may share only what is for everybody; `why` is the reason.
pub(crate) async fn apart(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    received: &Received<'_>,
    pool: PoolId,
    why: BypassReason,
    found: Option<(Key, Lookup)>,
) -> Result<Sent, Fault> {
    let Some(rule) = received.route.cache_rule() else { return pass(exchange, down, received, pool).await };
    let store = exchange.core.shared.store.clone();
    let directives = rule.policy.directives(exchange.request.fields);
    let asked = Query { intent: Intent::Peek, ..query(&exchange.request, rule, &directives) };
    let (key, lookup) = found.unwrap_or_else(|| {
        let path = received.target.path_and_query;
        let fields = exchange.request.fields;
        let key = hash::key(&rule.key, received.requester.scheme, &received.host, path, fields);
        (key, store.lookup(key, &asked, wall()))
    });
    let stored = match lookup {
        Lookup::Hit(object) | Lookup::Stale(object, _) | Lookup::Absent(Some(object)) => Some(object),
        _ => None,
    };
    let stored = stored.filter(|object| object.range().is_none());
    let stored = stored.and_then(|object| match fitness(&object, exchange.request.fields, rule, true) {
        Fitness::Barred(_) => None,
        fitness => Some((object, fitness == Fitness::Fits)),
    });
    // In its grace it would stay as it is, because nothing is fetched in the background.
    if let Some((object, fits)) = stored.as_ref().filter(|(object, _)| object.lifetimes().is_fresh(wall()))
        && (*fits || boxed(|| tier::may_serve(exchange, received, object)).await)
        && let Some(sent) = hit(exchange, down, object, &directives).await
    {
        return sent;
    }
    if directives.only_if_cached {
        return Err(Fault::NotCached);
    }
    note(exchange, rule);
    exchange.passing(PassReason::Bypass(why));
    let sent = match may_store(&exchange.request, received, rule) {
        true => {
            let flight = store.open(key);
            fetch_for_store(exchange, down, received, pool, directives, flight, true).await
        }
        false => pass(exchange, down, received, pool).await,
    };
    match (sent, stored) {
        (Err(fault), Some((object, _)))
            if fault.is_origins()
                && down.answer.at.is_none()
                && object.lifetimes().usable_on_error(&directives, wall()) =>
        {
            exchange.origin_fault = Some(fault.log_text());
            stand_in(exchange, down, &object, fault, StandIn::Failed).await
        }
        (sent, _) => sent,
    }
}

/// Whether a stored object that is the right variant, and usable, may answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fitness {
    Fits,
    /// A field of the request keeps it from that, or a media type that its client does not accept.
    Barred(BypassReason),
    /// The shared tier has to be asked first.
    Unverified,
}

/// Whether a stored object may answer a request; less of what is stored answers one that is served apart.
pub(crate) fn fitness(object: &Object, request: Fields<'_>, rule: &CacheRule, is_apart: bool) -> Fitness {
    let barred = match is_apart {
        true => barred(object, request, rule),
        false => unaccepted(object, request),
    };
    match barred {
        Some(why) => Fitness::Barred(why),
        None if tier::is_trusted(object, tier::now) => Fitness::Fits,
        None => Fitness::Unverified,
    }
}

/// The reason for which a stored object does not answer a request, although it is the right variant and
/// fresh: a field of the request, or a media type that its client does not accept, where nobody said how long
/// the object is fresh.
fn barred(object: &Object, request: Fields<'_>, rule: &CacheRule) -> Option<BypassReason> {
    let lifetimes = object.lifetimes();
    let of_field = bar(request, &rule.policy, lifetimes.is_for_all(), |name| object.vary().has_name(name));
    of_field.map(|(_, why)| why).or_else(|| unaccepted(object, request))
}

/// The same for a request without such a field.
pub(crate) fn unaccepted(object: &Object, request: Fields<'_>) -> Option<BypassReason> {
    if !object.lifetimes().is_guessed() {
        return None;
    }
    let content_type = object.fields().get(Name::ContentType)?;
    (!media_type::is_accepted(request, content_type)).then_some(BypassReason::Accept)
}

/// Whether the response may be stored if it turns out to be for everybody. A request for a part or with a
/// condition, and one from which something would have to be withheld, is sent as it came instead. In the
/// shared tier, a fetch speaks for all nodes.
fn may_store(request: &RequestHead<'_>, received: &Received<'_>, rule: &CacheRule) -> bool {
    let is_partial = |name: Name| {
        matches!(
            name,
            Name::Range
                | Name::IfMatch
                | Name::IfModifiedSince
                | Name::IfNoneMatch
                | Name::IfRange
                | Name::IfUnmodifiedSince
        )
    };
    request.method == Method::Get
        && rule.shared == SharedUse::Off
        && is_for_all(request, received, rule)
        && !request.fields.iter().any(|field| is_partial(field.id))
}

/// Counts the first field that keeps the request from sharing, notes it for the log, and tells the operator
/// of a new one.
fn note(exchange: &mut Exchange<'_>, rule: &CacheRule) {
    if let Some((field, why)) = bar(exchange.request.fields, &rule.policy, false, |_| false) {
        exchange.core.shared.bypassed_for(field.name, why);
        exchange.telling = Some(field.name);
    }
}
