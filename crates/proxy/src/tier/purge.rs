//! Purges: from requests to the servers, and from their logs into RAM.

use std::rc::Rc;
use std::time::Duration;

use sandarac_cache::{Expression, Purge as RamPurge, Tag};
use sandarac_message::Fields;
use sandarac_message::target::Scheme;
use sandarac_net::wall;
use sandarac_policy::{Route, SharedUse};
use sandarac_tier::{Command, Reply, tombstone};
use sandarac_wire::entry::{Effect, Purge, Record, Token};

use super::Place;
use super::clock::random;
use super::purge_calls::{PAUSE, PurgeCalls, of_target};
use super::server::Memory;
use crate::core::Core;
use crate::purge_target::{purge_target, route_of_get};
use crate::shared::Shared;
use crate::site::Site;
use crate::step::hash;

/// Notes purges, for four deadlines. As for [`Shared::note_purges`], they MUST NOT have been applied to RAM yet.
pub(crate) fn note(core: &Core, purges: Vec<Purge>, effect: Effect) -> Option<PurgeCalls> {
    let patience = core.shared.site().tier.as_ref()?.timeout() * 4;
    core.shared.note_purges(purges, effect, patience)
}

/// Waits until all servers have the purges, or the time is up. Returns the names of those that were not
/// reached.
pub(crate) async fn reached(calls: &PurgeCalls) -> Vec<String> {
    loop {
        if let Some(missing) = calls.outcome() {
            return missing;
        }
        sandarac_net::sleep(PAUSE).await;
    }
}

/// Notes what an unsafe request has invalidated, for all servers. Other nodes may have copies by other rules, whose
/// keys are not known here, so each target is a record in the logs, like a purge. Targets that this node never
/// stores are left out. Entries by the rules of this node are replaced by tombstones, only to be quicker.
pub(crate) async fn invalidate(core: &Rc<Core>, site: &Site, host: &[u8], targets: &[Vec<u8>]) {
    let routes = &site.config.routes;
    let uses_tier = |route: &Route| route.cache_rule().is_some_and(|rule| rule.shared != SharedUse::Off);
    if !routes.all().iter().any(uses_tier) {
        return;
    }
    let (mut purges, mut places) = (Vec::new(), Vec::new());
    for (at, target) in targets.iter().enumerate() {
        let Some(route) = route_of_get(routes, host, target).map(|route| &routes[route]) else { continue };
        let Some(rule) = route.cache_rule().filter(|_| !targets[..at].contains(target)) else { continue };
        purges.extend(of_target(routes, host, target));
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
    if purges.is_empty() {
        return;
    }
    core.shared.note_purges(purges, Effect::Hard, Duration::ZERO);
    for place in places {
        if has_entry(core, &place).await {
            entomb(core, &place).await;
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
async fn entomb(core: &Core, place: &Place) {
    let (key, server) = (place.entry().key, &place.server);
    let sealer = server.ask(|server, _| server.sealer().clone());
    let command = tombstone(key, Token(random()), &sealer);
    core.tier_links.send(&place.tier, server, vec![command]).await;
}

impl Memory for Shared {
    fn apply(&self, record: &Record) {
        apply(self, record);
    }
}

/// Applies a purge of another node to RAM.
fn apply(shared: &Shared, record: &Record) {
    let (store, now) = (&shared.store, wall());
    let effect = match record.effect {
        Effect::Hard => RamPurge::Hard,
        Effect::Soft => RamPurge::Soft,
    };
    match &record.purge {
        Purge::Target { host, path } => {
            let site = shared.site();
            purge_target(store, &site.config.routes, host, path, effect);
        }
        Purge::Tag(tag) => _ = store.purge_tags(&[Tag::from_bits(*tag)], effect, now),
        Purge::All => _ = store.purge_all(effect, now),
        Purge::Ban(text) => ban(shared, text),
        Purge::Host(host) => ban(shared, &format!("host == {}", quoted(host))),
        Purge::Prefix { host, path } => {
            ban(shared, &format!("host == {} && path ~ {}", quoted(host), pattern(path, "")));
        }
        Purge::Glob { host, path } => {
            ban(shared, &format!("host ~ {} && path ~ {}", pattern(host, "$"), pattern(path, "$")));
        }
    }
}

/// Bans what an expression describes; everything, if it cannot be read.
fn ban(shared: &Shared, text: &str) {
    match Expression::parse(text) {
        Ok(expression) => shared.store.ban(expression, wall()),
        Err(_) => _ = shared.store.purge_all(RamPurge::Hard, wall()),
    }
}

/// A text of an expression.
fn quoted(text: &[u8]) -> String {
    format!("\"{}\"", String::from_utf8_lossy(text).replace('\\', "\\\\").replace('"', "\\\""))
}

/// A regular expression that matches like a glob from its beginning.
fn pattern(glob: &[u8], end: &str) -> String {
    let text = String::from_utf8_lossy(glob);
    let parts: Vec<String> = text.split('*').map(escaped).collect();
    quoted(format!("^{}{end}", parts.join(".*")).as_bytes())
}

fn escaped(text: &str) -> String {
    let special = |c: char| "\\.+*?()|[]{}^$#&-~".contains(c);
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}
