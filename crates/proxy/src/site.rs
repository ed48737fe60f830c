//! The configuration in force: a snapshot that every exchange keeps from its beginning to its end.

use crate::forward::Introduction;
use crate::pool::{PoolChanges, SitePool};
use sandarac_config::{Config, Network};
use sandarac_message::Fields;
use sandarac_message::hop::{Forwarding, client_address};
use sandarac_message::target::Scheme;
use sandarac_net::{Listener, ListenerId, MinimumRate, Peer, SessionLimits};
use sandarac_policy::PoolId;
use sandarac_wire::h1::Limits;
use std::net::IpAddr;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// What a client must take of a response under memory pressure: as much as a line of a quarter of a megabit brings, and
/// time for one that stalls. Who takes less keeps for half a minute what is a sixty-fourth of 64 MiB.
const UNDER_PRESSURE: MinimumRate = MinimumRate { bytes: 32 << 10, after: Duration::from_secs(2) };

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
    listeners: Vec<(ListenerId, SiteListener)>,
}

/// A listener, as it is configured.
pub(crate) struct SiteListener {
    /// Whose forwarding fields are believed.
    trusted: Vec<Network>,
    /// How clients reach it: by https before something that ends TLS.
    scheme: Scheme,
    /// Whether every connection begins with a PROXY protocol header.
    pub(crate) proxy_protocol: bool,
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
    /// Makes `config` ready. `bound` are the listeners, in the order of the configuration; pools go on with
    /// what `before` knew of the same backends. `seed` decides between equal backends.
    pub fn new(config: Config, bound: &[Listener], before: Option<&Site>, seed: u64) -> Site {
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
        let listeners = config.listeners.iter().zip(bound).map(|(listener, bound)| {
            let listener = SiteListener {
                trusted: listener.trusted_proxies.clone(),
                scheme: listener.scheme,
                proxy_protocol: listener.proxy_protocol,
            };
            (bound.id, listener)
        });
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
                min_rate_in: MinimumRate { bytes: limits.min_rate_in.0, after: *limits.min_rate_after },
                min_rate_out: MinimumRate { bytes: limits.min_rate_out.0, after: *limits.min_rate_after },
                min_rate_under_pressure: UNDER_PRESSURE,
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
            listeners: listeners.collect(),
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

    /// What is configured for a listener. `None` where it was taken out while connections to it stay open.
    pub(crate) fn listener(&self, id: ListenerId) -> Option<&SiteListener> {
        self.listeners.iter().find(|(other, _)| *other == id).map(|(_, listener)| listener)
    }

    /// Whether what `peer` says in forwarding fields is believed on a listener.
    pub(crate) fn trusts(&self, listener: ListenerId, peer: Option<IpAddr>) -> bool {
        // Most listeners have none, and every request asks.
        let listener = self.listener(listener).filter(|listener| !listener.trusted.is_empty());
        listener.is_some_and(|listener| sandarac_config::contains(&listener.trusted, peer))
    }

    /// The scheme by which clients reach a listener, where nobody who is believed says otherwise.
    pub(crate) fn scheme(&self, listener: ListenerId) -> Scheme {
        self.listener(listener).map_or(Scheme::Http, |listener| listener.scheme)
    }

    /// The address of whoever made the request that came over the connection of `peer`: the connection's, or what proxies
    /// that are believed say was theirs. `None` for a peer on a Unix socket. For logs: a decision about who may do what
    /// goes by the connection alone.
    pub(crate) fn visitor(&self, peer: &Peer, request: Fields<'_>) -> Option<IpAddr> {
        let address = peer.client.map(|address| address.ip());
        match self.listener(peer.listener).filter(|listener| !listener.trusted.is_empty()) {
            None => address,
            Some(listener) => {
                client_address(request, address, |peer| sandarac_config::contains(&listener.trusted, peer))
            }
        }
    }
}
