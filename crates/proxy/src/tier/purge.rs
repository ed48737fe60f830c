//! Purges: from the logs of the servers into RAM, and tombstones beside them.

use std::rc::Rc;

use sandarac_cache::Purge;
use sandarac_message::Fields;
use sandarac_message::target::Scheme;
use sandarac_policy::{Route, SharedUse};
use sandarac_tier::{Command, Reply, tombstone};
use sandarac_wire::entry::{Effect, Record, Token};

use super::Place;
use super::clock::random;
use super::server::Memory;
use crate::core::Core;
use crate::purger::{Purger, Selection};
use crate::request::hash;
use crate::request::purge_target::route_of_get;
use crate::shared::Shared;
use crate::site::Site;

/// Whether nodes may have responses to a GET of this target, by the rules of this one. Other nodes may have
/// other keys.
pub(crate) fn may_have(site: &Site, host: &[u8], target: &[u8]) -> bool {
    let routes = &site.config.routes;
    let uses_tier = |route: &Route| route.cache_rule().is_some_and(|rule| rule.shared != SharedUse::Off);
    site.tier.is_some()
        && routes.all().iter().any(uses_tier)
        && route_of_get(routes, host, target).is_some_and(|route| routes[route].cache_rule().is_some())
}

/// Puts tombstones in the place of the entries that these targets have by the rules of this node, only to be
/// quicker than the records in the logs.
pub(crate) async fn entomb(core: &Rc<Core>, site: &Site, host: &[u8], targets: &[Vec<u8>]) {
    let routes = &site.config.routes;
    let mut places = Vec::new();
    for target in targets {
        let Some(route) = route_of_get(routes, host, target).map(|route| &routes[route]) else { continue };
        let Some(rule) = route.cache_rule() else { continue };
        if hash::target_tag(&rule.key, host, target).is_some() {
            // Its keys are not known.
            continue;
        }
        let keyed = hash::target(&rule.key, target);
        places.extend([Scheme::Http, Scheme::Https].into_iter().filter_map(|scheme| {
            let key = hash::key(&rule.key, scheme, host, target, Fields::default());
            Place::of(site, route, key, host, &keyed)
        }));
    }
    for place in places {
        if has_entry(core, &place).await {
            put_tombstone(core, &place).await;
        }
    }
}

/// Whether there is an entry. Where there is none, a tombstone would only take memory.
async fn has_entry(core: &Core, place: &Place) -> bool {
    /// Bytes of a tombstone, which is shorter than any other item.
    const TOMBSTONE: u64 = 39;
    let get = Command::Get { key: place.entry().key, value: false };
    let replies = core.tier_links.send(&place.tier, &place.server, vec![get]).await;
    matches!(&replies[..], [Reply::Item(item)] if item.size > TOMBSTONE)
}

/// Puts a tombstone in the place of an entry.
async fn put_tombstone(core: &Core, place: &Place) {
    let (key, server) = (place.entry().key, &place.server);
    let sealer = server.ask(|server, _| server.sealer().clone());
    let command = tombstone(key, Token(random()), &sealer);
    core.tier_links.send(&place.tier, server, vec![command]).await;
}

impl Memory for Shared {
    /// Applies a purge of another node to RAM.
    fn apply(&self, record: &Record) {
        let purge = match record.effect {
            Effect::Hard => Purge::Hard,
            Effect::Soft => Purge::Soft,
        };
        Purger::of(self).purge_here(&Selection::of_record(&record.purge), purge);
    }
}
