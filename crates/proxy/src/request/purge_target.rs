//! The purge of a target: by its keys under both schemes, or by its tag, as configured by the route of a GET.

use crate::request::hash;
use sandarac_cache::{Purge, Store};
use sandarac_message::Fields;
use sandarac_message::target::{Scheme, route_path};
use sandarac_net::wall;
use sandarac_policy::{KeyRule, RouteId, Routes};

/// Purges everything that is stored for a target of a host, under either scheme, keyed by the route of a GET.
/// Returns the number of objects.
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

/// The route of a GET for this target.
pub(crate) fn route_of_get(routes: &Routes, host: &[u8], path_and_query: &[u8]) -> Option<RouteId> {
    let path = path_and_query.split(|&byte| byte == b'?').next().unwrap_or_default();
    routes.find(host, &route_path(path).ok()?, b"GET")
}
