//! The configuration in force: a snapshot that every exchange keeps from its beginning to its end.

use crate::files::FileCache;
use crate::listener_tls::ListenerTls;
use crate::pool::{PoolChanges, SitePool};
use crate::report::handling::Handling;
use crate::site_tls::SiteTls;
use crate::tier::SharedTier;
use sandarac_config::{ClientCertificateForward, Config, Credentials, Network};
use sandarac_message::Fields;
use sandarac_message::forwarding::{Forwarding, client_address};
use sandarac_message::status_fields::CacheStatus;
use sandarac_message::target::Scheme;
use sandarac_net::{ListenAddress, Listener, ListenerId, MinimumRate, Peer, Places, SessionLimits};
use sandarac_policy::{PoolId, Route};
use sandarac_wire::h1::Limits;
use std::net::IpAddr;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The minimum rate of a client under memory pressure. What its system took at once pays for some time, so
/// that one which reads at all is left alone, also where the system shows that in large steps.
const UNDER_PRESSURE: MinimumRate = MinimumRate { bytes: 4 << 10, after: Duration::from_secs(2) };

/// The same where others find no room: a line of a quarter of a megabit reaches it, with time for a stall.
const WHEN_FULL: MinimumRate = MinimumRate { bytes: 32 << 10, after: Duration::from_secs(2) };

/// How many removed listeners are remembered, for the connections to them that are still open.
const MAX_GONE: usize = 64;

/// A configuration made ready for use.
pub struct Site {
    /// What was configured.
    pub config: Config,
    pub(crate) pools: Vec<SitePool>,
    pool_changes: Arc<PoolChanges>,
    /// The shared tier, if one is configured.
    pub(crate) tier: Option<Arc<SharedTier>>,
    pub(crate) session: SessionLimits,
    /// The limits of a response head.
    pub(crate) response_head: Limits,
    pub(crate) introduction: Introduction,
    /// Whether a pool speaks FastCGI, so that an application is given the visitor's address.
    pub(crate) speaks_fastcgi: bool,
    /// The limit of a request body, in bytes.
    pub(crate) body_limit: u64,
    /// The listeners in force, then those that were removed: connections to them may still be open.
    listeners: Vec<(ListenerId, SiteListener)>,
}

/// A listener's configuration.
#[derive(Clone)]
pub(crate) struct SiteListener {
    /// The address bound.
    pub(crate) address: ListenAddress,
    /// The networks whose forwarding fields are trusted.
    trusted: Vec<Network>,
    /// The scheme that clients use: https if TLS ends at a proxy before us.
    scheme: Scheme,
    /// Whether every connection begins with a PROXY protocol header.
    pub(crate) proxy_protocol: bool,
    /// Whether clients may speak HTTP/2.
    pub(crate) http2: bool,
    /// TLS; `None` if connections are not encrypted.
    pub(crate) tls: Option<Arc<ListenerTls>>,
    /// Whether requests that came by http are redirected to https.
    pub(crate) redirects_to_https: bool,
    /// What backends get of the certificates of clients; `None` if clients are asked for none.
    certificate_forward: Option<ClientCertificateForward>,
}

/// What is added to requests to describe their path to origins.
#[derive(Clone, Debug)]
pub(crate) struct Introduction {
    pub(crate) forwarding: Forwarding,
    /// Whether fields with underscores in their names are forwarded.
    pub(crate) underscores: bool,
    /// The name of this proxy in Via.
    pub(crate) name: Box<str>,
}

/// A core's own reference to a [`Site`]: cloning and dropping it touches no memory that other cores write.
#[derive(Clone)]
pub(crate) struct LocalSite(Rc<Local>);

/// A core's part of a configuration.
pub(crate) struct Local {
    site: Arc<Site>,
    /// What the core knows of the files that the configuration serves.
    files: FileCache,
}

impl LocalSite {
    /// The part of one of `cores`, whose files take `places`.
    pub(crate) fn new(site: Arc<Site>, places: &Arc<Places>, cores: usize) -> LocalSite {
        let files = FileCache::new(places.clone(), cores);
        LocalSite(Rc::new(Local { site, files }))
    }

    /// The configuration, for other threads.
    pub(crate) fn shared(&self) -> Arc<Site> {
        self.0.site.clone()
    }

    /// What the core knows of files.
    pub(crate) fn files(&self) -> &FileCache {
        &self.0.files
    }
}

impl Deref for LocalSite {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.0.site
    }
}

impl Site {
    /// Prepares `config`. `bound` are the listeners, in the order of the configuration. Pools keep the state
    /// that `before` has of the same backends. `seed` decides between equal backends. `credentials` are those
    /// of the shared tier, which is not used without. `tls` was loaded for this configuration.
    pub fn new(
        config: Config,
        credentials: Option<Credentials>,
        tls: SiteTls,
        bound: &[Listener],
        before: Option<&Site>,
        seed: u64,
    ) -> Site {
        let pool_changes = before.map_or_else(Arc::default, |site| site.pool_changes.clone());
        let pools = config.pools.iter().enumerate().map(|(at, settings)| {
            let known = before.and_then(|site| site.pool(&settings.name));
            let pool = SitePool::new(settings, known, seed.wrapping_add(at as u64), pool_changes.clone());
            pool.with_tls(tls.pools.get(at).cloned().flatten())
        });
        let limits = &config.limits;
        let request_head = Limits {
            head: limits.head.get(),
            fields: limits.fields.get() as usize,
            target: limits.target.get(),
        };
        let mut listeners_tls = tls.listeners.into_iter();
        let in_force = config.listeners.iter().zip(bound).map(|(listener, bound)| {
            let tls = listeners_tls.next().flatten();
            assert_eq!(tls.is_some(), listener.tls.is_some(), "TLS of {}", bound.address);
            let listener = SiteListener {
                address: bound.address.clone(),
                trusted: listener.trusted_proxies.clone(),
                scheme: listener.scheme,
                proxy_protocol: listener.proxy_protocol,
                http2: listener.http2,
                tls,
                redirects_to_https: listener.redirect_to_https,
                certificate_forward: listener
                    .tls
                    .as_ref()
                    .and_then(|tls| tls.client_certificates.as_ref())
                    .map(|clients| clients.forward),
            };
            (bound.id, listener)
        });
        let is_gone = |(id, _): &&(ListenerId, SiteListener)| bound.iter().all(|bound| bound.id != *id);
        let gone = before.iter().flat_map(|site| &site.listeners).filter(is_gone).take(MAX_GONE);
        let listeners = in_force.chain(gone.cloned());
        let tier_before = before.and_then(|site| site.tier.as_deref());
        let tier = config.cache.shared.as_ref().zip(credentials);
        let tier = tier.map(|(shared, credentials)| SharedTier::new(shared, credentials, tier_before));
        let name = config.forwarded.name.as_str();
        Site {
            pools: pools.collect(),
            pool_changes,
            tier: tier.map(Arc::new),
            session: SessionLimits {
                head: request_head,
                idle_timeout: *config.timeouts.idle,
                head_timeout: *config.timeouts.head,
                body_timeout: *config.timeouts.body,
                send_timeout: *config.timeouts.write,
                min_rate_in: MinimumRate { bytes: limits.min_rate_in.0, after: *limits.min_rate_after },
                min_rate_out: MinimumRate { bytes: limits.min_rate_out.0, after: *limits.min_rate_after },
                min_rate_under_pressure: UNDER_PRESSURE,
                min_rate_when_full: WHEN_FULL,
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
            speaks_fastcgi: config.pools.iter().any(|pool| pool.fastcgi.is_some()),
            body_limit: limits.body.map_or(u64::MAX, |most| most.0),
            listeners: listeners.collect(),
            config,
        }
    }

    /// The pools, in the order of the configuration.
    pub fn pools(&self) -> &[SitePool] {
        &self.pools
    }

    /// The pool of this name.
    pub fn pool(&self, name: &str) -> Option<&SitePool> {
        let place = self.config.pools.iter().position(|pool| pool.name == name)?;
        Some(&self.pools[place])
    }

    /// The pool that a route names.
    pub(crate) fn pool_by_id(&self, pool: PoolId) -> &SitePool {
        &self.pools[pool.place()]
    }

    /// Waits until the backends of a pool change.
    pub(crate) async fn members_changed(&self) {
        self.pool_changes.backends().await;
    }

    /// Blocks the thread until every pool is ready to serve, at most for `patience`.
    pub(crate) fn wait_until_ready(&self, patience: Duration) {
        let is_ready = || self.pools.iter().all(|pool| pool.awaits().is_none());
        self.pool_changes.wait_until(is_ready, patience);
    }

    /// Blocks the thread until every pool has a backend, at most for `patience`.
    pub fn wait_for_backends(&self, patience: Duration) {
        let has_backends = |pool: &SitePool| !pool.live().backends().is_empty();
        self.pool_changes.wait_until(|| self.pools.iter().all(has_backends), patience);
    }

    /// The name of this proxy in Via, Cache-Status and Proxy-Status.
    pub(crate) fn name(&self) -> &str {
        self.config.forwarded.name.as_str()
    }

    /// The configuration of a listener, even if the listener was removed. `None` if more than [`MAX_GONE`]
    /// were removed since.
    pub(crate) fn listener(&self, id: ListenerId) -> Option<&SiteListener> {
        self.listeners.iter().find(|(other, _)| *other == id).map(|(_, listener)| listener)
    }

    /// Whether the forwarding fields of `peer` are trusted on a listener.
    pub(crate) fn trusts(&self, listener: ListenerId, peer: Option<IpAddr>) -> bool {
        // Most listeners have none, and every request asks.
        let listener = self.listener(listener).filter(|listener| !listener.trusted.is_empty());
        listener.is_some_and(|listener| sandarac_config::contains(&listener.trusted, peer))
    }

    /// The listeners in force that have TLS, with their addresses.
    pub fn tls(&self) -> impl Iterator<Item = (&ListenAddress, &Arc<ListenerTls>)> {
        let in_force = self.config.listeners.len().min(self.listeners.len());
        let listeners = self.listeners[..in_force].iter();
        listeners.filter_map(|(_, listener)| Some((&listener.address, listener.tls.as_ref()?)))
    }

    /// The value of `Strict-Transport-Security` for a response to `peer` by a route. A listener whose
    /// certificate browsers do not accept must not bind them to https.
    pub(crate) fn hsts<'r>(&self, peer: &Peer, scheme: Scheme, route: &'r Route) -> Option<&'r [u8]> {
        let value = route.hsts.as_ref().filter(|_| scheme == Scheme::Https)?;
        let tls = self.listener(peer.listener).and_then(|listener| listener.tls.as_ref());
        (!tls.is_some_and(|tls| tls.has_self_signed())).then_some(value.as_bytes())
    }

    /// Cache-Status as responses to requests that were handled so have it, with the name of the cache.
    pub(crate) fn reported(&self, handling: &Handling) -> Option<(CacheStatus<'static>, &str)> {
        (self.config.cache.cache_status && handling.is_reported())
            .then(|| (handling.cache_status(), self.name()))
    }

    /// Whether a listener is in force.
    pub(crate) fn is_listening(&self, id: ListenerId) -> bool {
        let in_force = self.config.listeners.len().min(self.listeners.len());
        self.listeners[..in_force].iter().any(|(other, _)| *other == id)
    }

    /// The scheme that clients of a listener use, unless a trusted peer reports another one.
    pub(crate) fn scheme(&self, listener: ListenerId) -> Scheme {
        self.listener(listener).map_or(Scheme::Http, |listener| listener.scheme)
    }

    /// What backends get of the certificates of `peer`; `None` if it was asked for none.
    pub(crate) fn certificate_forward(&self, peer: &Peer) -> Option<ClientCertificateForward> {
        // Most connections are in clear, and every request asks.
        peer.tls.as_ref().and_then(|_| self.listener(peer.listener)?.certificate_forward)
    }

    /// The address of the client behind the connection of `peer`: the one that trusted proxies report, else
    /// the connection's. `None` for a peer on a Unix socket. For logs only: permissions depend on the
    /// connection's address alone.
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
