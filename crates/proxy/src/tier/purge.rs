//! Purges: from RAM into the logs of all servers, and from the logs into RAM.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sandarac_cache::{Expression, Purge as RamPurge, Tag};
use sandarac_message::target::Scheme;
use sandarac_message::{Fields, Timestamp};
use sandarac_net::wall;
use sandarac_policy::{Routes, SharedUse};
use sandarac_tier::{PurgeCall, Reply, tombstone};
use sandarac_wire::entry::{Effect, Purge, Record, RecordId, Token};

use super::{Place, SharedTier, now, random};
use crate::core::Core;
use crate::purge_target::{purge_target, route_of_get};
use crate::shared::Shared;
use crate::site::Site;
use crate::step::hash;

/// A purge that all servers are told of.
pub(crate) struct PurgeCalls {
    tier: Arc<SharedTier>,
    calls: Vec<PurgeCall>,
}

impl PurgeCalls {
    /// Notes purges that have been applied to RAM, so that every server is told of them. `None` if there is
    /// no tier, or nothing to tell.
    pub(crate) fn note(
        shared: &Shared,
        purges: impl IntoIterator<Item = Purge>,
        effect: Effect,
        patience: Duration,
    ) -> Option<PurgeCalls> {
        let tier = shared.site().tier.clone()?;
        let made = Timestamp::from_secs(wall().as_secs());
        let deadline = now().plus(patience);
        let mut calls = Vec::new();
        for purge in purges {
            let (low, high) = (random().to_le_bytes(), random().to_le_bytes());
            let id = RecordId(std::array::from_fn(|at| if at < 8 { low[at] } else { high[at - 8] }));
            let record = Record { id, made, effect, purge };
            tier.servers().list.iter().for_each(|server| server.owe(record.clone(), now()));
            calls.push(PurgeCall::new(id, deadline));
        }
        shared.upkeep_mailbox.tier_is_owed();
        Some(PurgeCalls { tier, calls }).filter(|calls| !calls.calls.is_empty())
    }

    /// The names of the servers that were not reached, once all have the purges or the time is up. They are
    /// told before this node reads from them again.
    pub(crate) fn outcome(&self) -> Option<Vec<String>> {
        let servers = self.tier.servers();
        let mut missing = Vec::new();
        for call in &self.calls {
            for server in &servers.list {
                let is_missing =
                    server.ask(|server, _| Some(!call.outcome(now(), [&*server])?.is_empty()))?;
                if is_missing && !missing.iter().any(|name| name == server.name()) {
                    missing.push(server.name().to_owned());
                }
            }
        }
        Some(missing)
    }
}

/// Tells all servers of purges, and waits until they have them; for two deadlines at most. Returns the names
/// of those that were not reached.
pub(crate) async fn share(core: &Rc<Core>, purges: Vec<Purge>, effect: Effect) -> Vec<String> {
    let Some(tier) = core.shared.site().tier.clone() else { return Vec::new() };
    let patience = tier.timeout() * 4;
    let Some(calls) = PurgeCalls::note(&core.shared, purges, effect, patience) else { return Vec::new() };
    loop {
        if let Some(missing) = calls.outcome() {
            return missing;
        }
        sandarac_net::sleep(Duration::from_millis(2)).await;
    }
}

/// Removes the entries of targets that an unsafe request has invalidated: the next lookup of this node finds
/// none. A server that does not answer is owed a purge.
pub(crate) async fn invalidate(core: &Rc<Core>, site: &Site, host: &[u8], targets: &[Vec<u8>]) {
    let routes = &site.config.routes;
    let mut purges = Vec::new();
    for target in targets {
        let Some(route) = route_of_get(routes, host, target) else { continue };
        let route = &routes[route];
        let Some(rule) = route.cache_rule().filter(|rule| rule.shared != SharedUse::Off) else { continue };
        let keyed = hash::target(&rule.key, target);
        if hash::target_tag(&rule.key, host, target).is_some() {
            // Its keys are not known.
            purges.extend(of_target(routes, host, target));
            continue;
        }
        for scheme in [Scheme::Http, Scheme::Https] {
            let key = hash::key(&rule.key, scheme, host, target, Fields::default());
            let Some(place) = Place::of(site, route, key, host, &keyed) else { continue };
            if !entomb(core, &place).await {
                purges.extend(of_target(routes, host, target));
                break;
            }
        }
    }
    if !purges.is_empty() {
        PurgeCalls::note(&core.shared, purges, Effect::Hard, Duration::ZERO);
    }
}

/// Puts a tombstone in the place of an entry. Returns whether the server took it.
async fn entomb(core: &Core, place: &Place) -> bool {
    let (key, server) = (place.entry().key, &place.server);
    let sealer = server.ask(|server, _| server.sealer().clone());
    let command = tombstone(key, Token(random()), &sealer);
    let replies = core.tier_links.send(&place.tier, server, vec![command]).await;
    matches!(replies[..], [Reply::Stored(_)])
}

/// Applies a purge of another node to RAM.
pub(super) fn apply(shared: &Shared, record: &Record) {
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

/// A purge of one target, as it is keyed here and as it was asked for.
pub(crate) fn of_target(routes: &Routes, host: &[u8], asked: &[u8]) -> Vec<Purge> {
    let of = |path: &[u8]| {
        let (host, path) = (Bytes::copy_from_slice(host), Bytes::copy_from_slice(path));
        Purge::Target { host, path }
    };
    let rule = route_of_get(routes, host, asked).and_then(|route| routes[route].cache_rule());
    let keyed = rule.map(|rule| hash::target(&rule.key, asked)).filter(|keyed| keyed != asked);
    std::iter::once(of(asked)).chain(keyed.as_deref().map(of)).collect()
}
