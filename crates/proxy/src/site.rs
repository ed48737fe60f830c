//! The configuration in force: a snapshot that every exchange keeps from its beginning to its end.

use crate::forward::Introduction;
use crate::pool::{PoolChanges, SitePool};
use sandarac_config::{Config, Network};
use sandarac_message::Fields;
use sandarac_message::hop::{Forwarding, client_address};
use sandarac_message::target::Scheme;
use sandarac_net::{LeastRate, ListenAddress, Peer, SessionLimits};
use sandarac_policy::PoolId;
use sandarac_wire::h1::Limits;
use std::net::IpAddr;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// What a client must take of a response while clients are to hurry: as much as a line of a quarter of a megabit brings, and
/// time for one that stalls. Who takes less keeps for half a minute what is a sixty-fourth of 64 MiB.
const HURRIED: LeastRate = LeastRate { bytes: 32 << 10, after: Duration::from_secs(2) };

/// A configuration made ready for use.
pub struct Site {
    /// What was configured.
    pub config: Config,
    pub(crate) pools: Vec<SitePool>,
    pool_changes: Arc<PoolChanges>,
    pub(crate) session: SessionLimits,
    /// What a response head may hold.
    pub(crate) response_head: Limits,
    pub(crate) introduction: Introduction,
    /// Bytes of a request body.
    pub(crate) body_limit: u64,
    /// Whose forwarding fields are believed, by listener; only those listeners that believe anyone.
    trusted: Vec<(ListenAddress, Vec<Network>)>,
    /// The listeners that clients reach by https, before something that ends TLS.
    secure: Vec<ListenAddress>,
}

/// A worker's own hold on a [`Site`]: taking and dropping it touches no memory that other cores write.
#[derive(Clone)]
#[expect(
    clippy::redundant_allocation,
    reason = "the inner count is shared by all cores, the outer one by none"
)]
pub(crate) struct LocalSite(Rc<Arc<Site>>);

impl LocalSite {
    pub(crate) fn new(site: Arc<Site>) -> LocalSite {
        LocalSite(Rc::new(site))
    }
}

impl Deref for LocalSite {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.0
    }
}

impl Site {
    /// Makes `config` ready. `bound` are the addresses really bound, in the order of the listeners; pools go on with
    /// what `before` knew of the same backends. `seed` decides between equal backends.
    pub fn new(config: Config, bound: &[ListenAddress], before: Option<&Site>, seed: u64) -> Site {
        let pool_changes = before.map_or_else(Arc::default, |site| site.pool_changes.clone());
        let pools = config.pools.iter().enumerate().map(|(at, settings)| {
            let known = before.and_then(|site| site.pool(&settings.name));
            SitePool::new(settings, known, seed.wrapping_add(at as u64), pool_changes.clone())
        });
        let limits = &config.limits;
        let request_head = Limits {
            head: limits.head.get(),
            fields: limits.fields.get() as usize,
            target: limits.target.get(),
        };
        let trusted = config
            .listeners
            .iter()
            .zip(bound)
            .filter(|(listener, _)| !listener.trusted_proxies.is_empty())
            .map(|(listener, address)| (address.clone(), listener.trusted_proxies.clone()))
            .collect();
        let secure = config
            .listeners
            .iter()
            .zip(bound)
            .filter(|(listener, _)| listener.scheme == Scheme::Https)
            .map(|(_, address)| address.clone())
            .collect();
        let name = config.forwarded.name.as_str();
        Site {
            pools: pools.collect(),
            pool_changes,
            session: SessionLimits {
                head: request_head,
                idle_timeout: *config.timeouts.idle,
                head_timeout: *config.timeouts.head,
                body_timeout: *config.timeouts.body,
                send_timeout: *config.timeouts.write,
                least_in: LeastRate { bytes: limits.min_rate_in.0, after: *limits.min_rate_after },
                least_out: LeastRate { bytes: limits.min_rate_out.0, after: *limits.min_rate_after },
                least_hurried: HURRIED,
                max_requests: limits.requests_per_connection.map_or(u32::MAX, |most| most.get()),
            },
            response_head: Limits { head: limits.response_head.get(), ..request_head },
            introduction: Introduction {
                forwarding: Forwarding {
                    x_forwarded: config.forwarded.x_forwarded,
                    forwarded: config.forwarded.forwarded,
                },
                underscores: config.forwarded.underscores,
                name: name.into(),
            },
            body_limit: limits.body.map_or(u64::MAX, |most| most.0),
            trusted,
            secure,
            config,
        }
    }

    /// The pools, in the order of the configuration.
    pub fn pools(&self) -> &[SitePool] {
        &self.pools
    }

    /// The pool of that name.
    pub fn pool(&self, name: &str) -> Option<&SitePool> {
        let place = self.config.pools.iter().position(|pool| pool.name == name)?;
        Some(&self.pools[place])
    }

    /// The pool that a route names.
    pub(crate) fn pool_by_id(&self, pool: PoolId) -> &SitePool {
        &self.pools[pool.place()]
    }

    /// Waits until the backends of a pool have changed.
    pub(crate) async fn members_changed(&self) {
        self.pool_changes.backends().await;
    }

    /// Blocks the thread until every pool has what it should have before it serves, at most for `patience`.
    pub(crate) fn wait_until_ready(&self, patience: Duration) {
        let is_ready = || self.pools.iter().all(|pool| pool.awaits().is_none());
        self.pool_changes.wait_until(is_ready, patience);
    }

    /// The name of this proxy in Via, Cache-Status and Proxy-Status.
    pub(crate) fn name(&self) -> &str {
        self.config.forwarded.name.as_str()
    }

    /// Whether what `peer` says in forwarding fields is believed on a listener.
    pub(crate) fn trusts(&self, listener: &ListenAddress, peer: Option<IpAddr>) -> bool {
        self.trusted
            .iter()
            .any(|(address, networks)| address == listener && sandarac_config::contains(networks, peer))
    }

    /// The scheme by which clients reach a listener, where nobody who is believed says otherwise.
    pub(crate) fn scheme(&self, listener: &ListenAddress) -> Scheme {
        if self.secure.contains(listener) { Scheme::Https } else { Scheme::Http }
    }

    /// The address of whoever made the request that came over the connection of `peer`: the connection's, or what proxies
    /// that are believed say was theirs. `None` for a peer on a Unix socket. For logs: a decision about who may do what
    /// goes by the connection alone.
    pub(crate) fn visitor(&self, peer: &Peer, request: Fields<'_>) -> Option<IpAddr> {
        let address = peer.client.map(|address| address.ip());
        let listener = &peer.entrance.address;
        match self.trusted.iter().find(|(trusting, _)| trusting == listener) {
            None => address,
            Some((_, networks)) => {
                client_address(request, address, |peer| sandarac_config::contains(networks, peer))
            }
        }
    }
}
