//! Responses to requests that bypass the store: they may invalidate stored responses, and one that is also
//! the response to a GET is stored.

use super::fetch::OriginResponse;
use super::invalidate::invalidate;
use super::store::{Landed, Landing};
use crate::Fault;
use crate::downstream::upload::Upload;
use crate::exchange::state::Exchange;
use crate::forward::{fits_variant, is_for_all};
use crate::request::hash;
use crate::request::purge_target::route_of_get;
use crate::request::received::Received;
use sandarac_cache::{Begun, Tag};
use sandarac_message::caching::{Storability, invalidates, is_personal};
use sandarac_message::target::{content_location_is_target, invalidated};
use sandarac_message::{Method, Name, ResponseHead, ResponseHeadBuf, tags};
use sandarac_net::boxed;
use sandarac_policy::{CacheRule, PoolId};

/// Removes what a successful unsafe request invalidates: its target, the targets of Location and
/// Content-Location on the same origin (RFC 9111 §4.4), and the groups that the response names (RFC 9875 §3).
async fn invalidate_for(exchange: &Exchange<'_>, received: &Received<'_>, response: &ResponseHeadBuf) {
    if invalidates(exchange.request.method, response.status) {
        let response = response.view();
        let targets = invalidated_targets(received, &response);
        let groups = invalidated_groups(received, &response);
        boxed(|| invalidate(exchange, received, targets, groups)).await;
    }
}

fn invalidated_targets(received: &Received<'_>, response: &ResponseHead<'_>) -> Vec<Vec<u8>> {
    let mut targets = invalidated(&received.target, received.requester.scheme, response.fields);
    targets.push(received.target.path_and_query.to_vec());
    targets.sort_unstable();
    targets.dedup();
    targets
}

fn invalidated_groups(received: &Received<'_>, response: &ResponseHead<'_>) -> Vec<Tag> {
    let groups = tags::groups(response.fields, Name::CacheGroupInvalidation);
    groups.iter().map(|group| Tag::group(&received.host, group.as_bytes())).collect()
}

/// Takes the response to a request that bypassed the store, and removes what it invalidates. The response to
/// a POST is stored if it declares that a GET of the target would bring the same (RFC 9110 §9.3.3), and if a
/// GET with the same fields would have been for all clients. Any other response is returned, as is one whose
/// request is still being sent: only a relay completes that. `begun` is the time before the request.
pub(crate) async fn passed(
    exchange: &mut Exchange<'_>,
    received: &Received<'_>,
    pool: PoolId,
    arrived: Box<OriginResponse>,
    begun: Begun,
) -> Result<Landed, Fault> {
    let request = exchange.request;
    let path = received.target.path_and_query;
    let is_page = request.method == Method::Post
        && arrived.upload == Upload::Done
        && content_location_is_target(&request, arrived.head.fields.view());
    let shares = |rule: &&CacheRule| {
        !is_personal(&request, &rule.policy)
            && is_for_all(&request, received, rule)
            && fits_variant(request.fields, arrived.head.fields.view(), rule)
    };
    let rule_of_page = || {
        // The route of a GET determines the edits and the key.
        let route = route_of_get(&exchange.site.config.routes, &received.host, path)?;
        received.route.cache_rule().filter(|_| route == received.route_id).filter(shares)
    };
    let Some(rule) = is_page.then(rule_of_page).flatten() else {
        invalidate_for(exchange, received, &arrived.head).await;
        return Ok(Landed::Relay(arrived));
    };
    let store = &exchange.core.shared.store;
    let key = hash::key(&rule.key, received.requester.scheme, &received.host, path, request.fields);
    let (core, site, number) = (exchange.core, exchange.site, exchange.trace.number);
    let landing = Landing {
        directives: rule.policy.directives(request.fields),
        ..Landing::of(core, site, &request, received, path, rule, pool, number)
    };
    let target = hash::target_tag(&rule.key, &received.host, path);
    let purged = store.may_be_purged_since(begun, key, target);
    invalidate_for(exchange, received, &arrived.head).await;
    let judged = landing.judge().response(&arrived, None, None);
    if purged || !matches!(judged, Storability::Store(_)) {
        return Ok(Landed::Relay(arrived));
    }
    landing.land(store.open(key), arrived, &mut exchange.handling)
}
