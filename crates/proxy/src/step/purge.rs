//! Purge: stored responses are removed, on request and because an unsafe request changed them.

use crate::Fault;
use crate::downstream::Upload;
use crate::exchange::Exchange;
use crate::forward::{fits_variant, is_for_all};
use crate::respond::Synthetic;
use crate::step::fetch::OriginResponse;
use crate::step::hash;
use crate::step::receive::Received;
use crate::step::store::{Landed, Landing};
use sandarac_cache::{Begun, Expression, Purge, Store, Tag};
use sandarac_message::caching::{Storability, invalidates, is_personal, storability};
use sandarac_message::target::{Scheme, content_location_is_target, invalidated, route_path};
use sandarac_message::{Fields, Method, Name, ResponseHead, tags};
use sandarac_net::wall;
use sandarac_policy::{CacheRule, KeyRule, PoolId, RouteId, Routes};

/// Answers a PURGE request: the target's stored responses, all variants, under either scheme; or what the plugins of content
/// management systems mean by fields of theirs (docs/how-to/purge-on-edit.md).
pub(crate) fn purge(exchange: &Exchange<'_>, received: &Received<'_>) -> Synthetic {
    if exchange.request.method != Method::Purge {
        let method = String::from_utf8_lossy(exchange.request.method_text);
        let what = "nothing was removed; have the application send PURGE (docs/how-to/purge-on-edit.md)";
        return Synthetic::bad(&format!("the method {method} is that of a VCL: {what}"));
    }
    let store = &exchange.worker.shared.store;
    let fields = exchange.request.fields;
    let tags: Vec<Tag> = tags::tags(fields).map(Tag::new).collect();
    if !tags.is_empty() {
        return purged(store.purge_tags(&tags, Purge::Hard, wall()));
    }
    if let Some(pattern) = fields.all_named(MAGENTO).next() {
        return ban(store, &format!("field.X-Magento-Tags ~ {}", quoted(pattern)));
    }
    let path = received.target.path_and_query;
    match fields.all_named(METHOD).next() {
        Some(method) if method.eq_ignore_ascii_case(b"regex") => {
            ban(store, &format!("host == {} && path ~ {}", quoted(&received.host), quoted(path)))
        }
        Some(method)
            if !method.eq_ignore_ascii_case(b"default") && !method.eq_ignore_ascii_case(b"exact") =>
        {
            Synthetic::bad("`X-Purge-Method` is `regex`, `exact` or `default`")
        }
        _ => {
            let routes = &exchange.site.config.routes;
            purged(purge_target(store, routes, &received.host, path, Purge::Hard))
        }
    }
}

/// Whether a method is one by which applications ask Varnish to remove responses, as a VCL of theirs has it. An application behind
/// this proxy might answer 200 to it, and the other would take its pages for removed.
pub(crate) fn is_of_varnish(method: &[u8]) -> bool {
    [&b"BAN"[..], b"FULLBAN", b"URIBAN", b"PURGEKEYS"].contains(&method)
}

/// How the target of a purge is meant, by the purge plugins of WordPress.
const METHOD: &[u8] = b"x-purge-method";

/// A pattern of tags, by Magento 2.
const MAGENTO: &[u8] = b"x-magento-tags-pattern";

fn purged(objects: usize) -> Synthetic {
    Synthetic::done(if objects > 0 { "purged" } else { "nothing was stored" })
}

/// Bans what an expression describes.
fn ban(store: &Store, expression: &str) -> Synthetic {
    match Expression::parse(expression) {
        Ok(expression) => {
            store.ban(expression, wall());
            Synthetic::done("banned")
        }
        Err(error) => Synthetic::bad(&format!("the pattern is wrong: {}; {}", error.what, error.instead)),
    }
}

/// A text in an expression.
fn quoted(text: &[u8]) -> String {
    format!("\"{}\"", String::from_utf8_lossy(text).replace('\\', "\\\\").replace('"', "\\\""))
}

/// Purges everything that is stored for a target of a host, under either scheme and as the route keys it that GETs take.
/// Returns how many objects there were.
pub(crate) fn purge_target(
    store: &Store,
    routes: &Routes,
    host: &[u8],
    path_and_query: &[u8],
    purge: Purge,
) -> usize {
    let now = wall();
    let plain = KeyRule::default();
    let route = route_of_get(routes, host, path_and_query);
    let rule = route.and_then(|route| routes[route].cache_rule()).map_or(&plain, |rule| &rule.key);
    if let Some(tag) = hash::target_tag(rule, host, path_and_query) {
        return store.purge_target(tag, purge, now);
    }
    let key = |scheme| hash::key(rule, scheme, host, path_and_query, Fields::default());
    [Scheme::Http, Scheme::Https].into_iter().map(|scheme| store.purge(key(scheme), purge, now)).sum()
}

/// Removes what a successful unsafe request made invalid: its target, what Location and Content-Location name on the
/// same origin (RFC 9111 §4.4), and the groups that the response names (RFC 9875 §3).
fn invalidate(exchange: &Exchange<'_>, received: &Received<'_>, response: &ResponseHead<'_>) {
    if !invalidates(exchange.request.method, response.status) {
        return;
    }
    let store = &exchange.worker.shared.store;
    let routes = &exchange.site.config.routes;
    let others = invalidated(&received.target, received.asker.scheme, response.fields);
    let targets = std::iter::once(received.target.path_and_query).chain(others.iter().map(Vec::as_slice));
    for target in targets {
        purge_target(store, routes, &received.host, target, Purge::Hard);
    }
    let groups = tags::groups(response.fields, Name::CacheGroupInvalidation);
    if !groups.is_empty() {
        let groups: Vec<Tag> =
            groups.iter().map(|group| Tag::group(&received.host, group.as_bytes())).collect();
        store.purge_tags(&groups, Purge::Hard, wall());
    }
}

/// Takes the response to a request that went past the store: removes what it made invalid, and stores it where it answers a
/// POST and says that it is also what a GET of the target would bring (RFC 9110 §9.3.3), if a GET with the same fields would
/// have been for all. Gives it back where it is not of that kind, and where the request is still on its way: only a relay sees to
/// the end of that. `begun` is from before the request.
pub(crate) fn passed(
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
        // What edits are made, and what is keyed, is for the route to say that GETs take.
        let route = route_of_get(&exchange.site.config.routes, &received.host, path)?;
        received.route.cache_rule().filter(|_| route == received.route_id).filter(shares)
    };
    let Some(rule) = is_page.then(rule_of_page).flatten() else {
        invalidate(exchange, received, &arrived.head.view());
        return Ok(Landed::Relay(arrived));
    };
    let store = &exchange.worker.shared.store;
    let key = hash::key(&rule.key, received.asker.scheme, &received.host, path, request.fields);
    let (worker, site, number) = (exchange.worker, exchange.site, exchange.trace.number);
    let landing = Landing {
        directives: rule.policy.directives(request.fields),
        ..Landing::of(worker, site, &request, received, path, rule, pool, number)
    };
    let target = hash::target_tag(&rule.key, &received.host, path);
    let purged = store.may_be_purged_since(begun, key, target);
    invalidate(exchange, received, &arrived.head.view());
    let view = arrived.head.view();
    let storable = storability(&request, &view, None, &rule.policy, arrived.requested, arrived.received);
    if purged || !matches!(storable, Storability::Store(_)) {
        return Ok(Landed::Relay(arrived));
    }
    landing.land(store.open(key), arrived, &mut exchange.handling)
}

/// The route that a GET of this target takes.
fn route_of_get(routes: &Routes, host: &[u8], path_and_query: &[u8]) -> Option<RouteId> {
    let path = path_and_query.split(|&byte| byte == b'?').next().unwrap_or_default();
    routes.find(host, &route_path(path).ok()?, b"GET")
}
