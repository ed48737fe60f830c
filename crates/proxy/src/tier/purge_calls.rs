//! Calls of purges: they go into the logs of all servers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sandarac_message::Timestamp;
use sandarac_net::wall;
use sandarac_policy::Routes;
use sandarac_tier::PurgeCall;
use sandarac_wire::entry::{Effect, Purge, Record, RecordId};

use super::SharedTier;
use super::clock::{now, random};
use crate::request::hash;
use crate::request::purge_target::route_of_get;

/// How often a purge call looks whether the servers have been told.
const PAUSE: Duration = Duration::from_millis(2);

/// Purges that all servers are told of.
pub(crate) struct PurgeCalls {
    tier: Arc<SharedTier>,
    calls: Vec<PurgeCall>,
}

impl PurgeCalls {
    /// Notes purges, so that every server of a tier is told of them.
    pub(crate) fn note(
        tier: Arc<SharedTier>,
        purges: impl IntoIterator<Item = Purge>,
        effect: Effect,
        patience: Duration,
    ) -> PurgeCalls {
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
        PurgeCalls { tier, calls }
    }

    /// Blocks the thread until all servers have the purges, or the time is up. Returns the names of those
    /// that were not reached. They are told before this node reads from them again.
    pub(crate) fn wait(&self) -> Vec<String> {
        loop {
            if let Some(missing) = self.outcome() {
                return missing;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// The same without blocking.
    pub(crate) async fn reached(&self) -> Vec<String> {
        loop {
            if let Some(missing) = self.outcome() {
                return missing;
            }
            sandarac_net::sleep(PAUSE).await;
        }
    }

    /// The names of the servers that were not reached, once all have the purges or the time is up. They are
    /// told before this node reads from them again.
    fn outcome(&self) -> Option<Vec<String>> {
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
