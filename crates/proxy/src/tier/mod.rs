//! The shared tier, driven: the machines of the crate `tier` over connections to memcached servers.
//!
//! The knowledge about a server belongs to the process ([`TierServer`]); the connections belong to a core
//! ([`Links`]). Every machine asks its server under that server's lock, and is passed the replies under it.
//! Purges that are read on the way are applied to RAM before the lock is left.

mod asking;
mod check;
mod chunks;
mod clock;
mod entry;
mod fill;
mod inspect;
mod links;
mod lookup;
mod place;
mod purge;
mod purge_calls;
mod server;
mod sync;

pub(crate) use check::{is_trusted, may_serve};
pub(crate) use clock::now;
pub(crate) use fill::Fill;
pub(crate) use inspect::Inspection;
pub use inspect::{Inspected, InspectedResponse};
pub(crate) use links::Links;
pub(crate) use lookup::{Asked, FoundObject, ask};
pub(crate) use place::Place;
pub(crate) use purge::{entomb, may_have};
pub(crate) use purge_calls::{PurgeCalls, of_target};
pub(crate) use server::TierServer;
pub use server::{TierCount, TierServerState};
pub(crate) use sync::sync;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use sandarac_balance::Backoff;
use sandarac_config::{Credentials, SharedConfig, SharedServer, SharedServers};
use sandarac_tier::{Ejection, Placement, Settings};
use sandarac_wire::entry::EntryKeys;

use clock::random;

/// The shared tier of a configuration.
pub(crate) struct SharedTier {
    keys: Arc<EntryKeys>,
    credentials: Credentials,
    /// The random number of this node, for its claims.
    node: u64,
    /// The deadline of an operation.
    timeout: Duration,
    /// The most bytes of a body that is stored.
    max_object: u64,
    /// Whether bodies are compressed at rest.
    compression: bool,
    settings: Settings,
    ejection: Ejection,
    servers: ArcSwap<Servers>,
}

/// The servers, and which one has which keys.
#[derive(Default)]
pub(crate) struct Servers {
    placement: Option<Placement>,
    pub(crate) list: Vec<Arc<TierServer>>,
}

impl SharedTier {
    /// The tier that is configured. Servers keep what is known of them `before`.
    pub(crate) fn new(
        config: &SharedConfig,
        credentials: Credentials,
        before: Option<&SharedTier>,
    ) -> SharedTier {
        let settings = Settings {
            local_ttl: config.local_ttl,
            check_ahead: config.local_ttl * 4 / 5,
            purge_memory: config.purge_memory,
            shared_wait: config.wait,
            ..Settings::default()
        };
        let pauses = Backoff { first: config.ejection.first, longest: config.ejection.longest };
        let tier = SharedTier {
            keys: Arc::new(EntryKeys::new(config.namespace.as_bytes(), &credentials.sealer)),
            credentials,
            node: before.map_or_else(random, |before| before.node),
            timeout: config.timeout,
            max_object: config.max_object.0,
            compression: config.compression,
            settings,
            ejection: Ejection { failures: config.ejection.failures, pauses },
            servers: ArcSwap::default(),
        };
        let known = before.map(SharedTier::servers);
        let known = known.as_ref().map_or(&[][..], |servers| &servers.list);
        match &config.servers {
            SharedServers::Listed(servers) => tier.use_servers(servers, known),
            SharedServers::Discovered(_) => {
                let servers: Vec<_> = known.iter().map(|server| server.server().clone()).collect();
                tier.use_servers(&servers, known);
            }
        }
        tier
    }

    /// Uses these servers from now on. Those that are `known` keep what is known of them.
    pub(crate) fn use_servers(&self, servers: &[SharedServer], known: &[Arc<TierServer>]) {
        let log_key = self.keys.purge_log();
        let of = |server: &SharedServer| {
            if let Some(known) = known.iter().find(|known| known.server() == server) {
                known.configure(&self.settings, &self.credentials.sealer, log_key, self.ejection);
                return known.clone();
            }
            let (settings, sealer) = (self.settings.clone(), self.credentials.sealer.clone());
            let state = sandarac_tier::Server::new(settings, sealer, log_key, random());
            Arc::new(TierServer::new(server.clone(), state, self.ejection))
        };
        let list: Vec<Arc<TierServer>> = servers.iter().map(of).collect();
        let placement = Some(Placement::new(list.iter().map(|server| server.name())));
        self.servers.store(Arc::new(Servers { placement, list }));
    }

    /// The servers in use.
    pub(crate) fn servers(&self) -> Arc<Servers> {
        self.servers.load_full()
    }

    /// How long RAM serves a copy before it is compared with the tier.
    pub(crate) fn local_ttl(&self) -> Duration {
        self.settings.local_ttl
    }

    /// The deadline of an operation.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }
}
