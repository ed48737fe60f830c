//! Purge: what is stored is removed, on request and because an unsafe request changed it.

use crate::exchange::Exchange;
use crate::respond::Synthetic;
use crate::step::fetch::Arrived;
use crate::step::hash;
use crate::step::receive::Received;
use crate::step::store::{Landed, Landing};
use sandarac_cache::{Expression, Purge, Store, Tag};
use sandarac_config::{Action, CacheRule, KeyRule};
use sandarac_message::caching::{Storability, invalidates, storability};
use sandarac_message::target::{Scheme, content_location_is_target, invalidated};
use sandarac_message::{Fields, Method, Name, ResponseHead, tags};
use sandarac_net::wall;

/// Answers a PURGE request: the target's stored responses, all variants, under either scheme.
pub(crate) fn purge(exchange: &Exchange<'_>, received: &Received<'_>) -> Synthetic {
    let store = &exchange.worker.shared.store;
    let plain = KeyRule::default();
    let key_rule = rule(received).map_or(&plain, |(_, rule)| &rule.key);
    let path = received.target.path_and_query;
    let purged = purge_target(store, key_rule, &received.host, path, Purge::Hard);
    Synthetic::done(if purged > 0 { "purged" } else { "nothing was stored" })
}

/// Purges everything that is stored for a target, under either scheme. Returns how many objects there were.
pub(crate) fn purge_target(store: &Store, rule: &KeyRule, host: &[u8], path: &[u8], purge: Purge) -> usize {
    let now = wall();
    let by_key: usize = [Scheme::Http, Scheme::Https]
        .into_iter()
        .map(|scheme| store.purge(hash::key(rule, scheme, host, path, Fields::default()), purge, now))
        .sum();
    if rule.fields.is_empty() && rule.cookies.is_empty() {
        return by_key;
    }
    // What else is in the key cannot be listed, so what is stored is asked for its host and path instead.
    let kept = hash::target(rule, path);
    let quote = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let same = format!("host == \"{}\" && path == \"{}\"", quote(host), quote(&kept));
    if let Ok(expression) = same.parse::<Expression>() {
        store.ban(expression, now);
    }
    by_key.max(1)
}

/// Removes what a successful unsafe request made invalid: its target, what Location and Content-Location name on the
/// same origin (RFC 9111 §4.4), and the groups that the response names (RFC 9875 §3).
pub(crate) fn invalidate(exchange: &Exchange<'_>, received: &Received<'_>, response: &ResponseHead<'_>) {
    if !invalidates(exchange.request.method, response.status) {
        return;
    }
    let store = &exchange.worker.shared.store;
    let now = wall();
    let scheme = received.asker.scheme;
    let plain = KeyRule::default();
    let key_rule = rule(received).map_or(&plain, |(_, rule)| &rule.key);
    let others = invalidated(&received.target, scheme, response.fields);
    let targets = std::iter::once(received.target.path_and_query).chain(others.iter().map(Vec::as_slice));
    for target in targets {
        let key = hash::key(key_rule, scheme, &received.host, target, exchange.request.fields);
        store.purge(key, Purge::Hard, now);
    }
    let groups = tags::groups(response.fields, Name::CacheGroupInvalidation);
    if !groups.is_empty() {
        let groups: Vec<Tag> =
            groups.iter().map(|group| Tag::group(&received.host, group.as_bytes())).collect();
        store.purge_tags(&groups, Purge::Hard, now);
    }
}

/// Stores the response to a POST that says it is also what a GET of the target would bring (RFC 9110 §9.3.3); gives it
/// back where it is not of that kind.
pub(crate) fn storable_post(
    exchange: &mut Exchange<'_>,
    received: &Received<'_>,
    pool: usize,
    arrived: Box<Arrived>,
) -> Landed {
    let request = exchange.request;
    let Some((_, rule)) = rule(received).filter(|_| request.method == Method::Post) else {
        return Landed::Relay(arrived);
    };
    let view = arrived.head.view();
    let storable = storability(&request, &view, None, &rule.policy, arrived.requested, arrived.received);
    if !matches!(storable, Storability::Store(_)) || !content_location_is_target(&request, view.fields) {
        return Landed::Relay(arrived);
    }
    let store = &exchange.worker.shared.store;
    let fields: Fields<'_> = request.fields;
    let path = received.target.path_and_query;
    let key = hash::key(&rule.key, received.asker.scheme, &received.host, path, fields);
    let landing = Landing {
        store,
        site: exchange.site,
        counters: &exchange.worker.counters,
        request: &request,
        host: &received.host,
        path,
        rule,
        edits: &received.route.response,
        directives: rule.policy.directives(fields),
        between_bytes: exchange.site.pools[pool].timeouts.between_bytes,
        transaction: exchange.fetched.unwrap_or_default(),
    };
    landing.land(store.open(key), arrived, &mut exchange.handling)
}

/// The pool and the cache rule of the route.
pub(crate) fn rule<'a>(received: &Received<'a>) -> Option<(usize, &'a CacheRule)> {
    match &received.route.action {
        Action::Forward { pool, cache: Some(rule), .. } => Some((*pool, rule)),
        _ => None,
    }
}
