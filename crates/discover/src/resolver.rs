//! The resolver: host names and their addresses, looked up again when their TTL has expired.

use hashbrown::HashMap;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolverConfig};
use hickory_resolver::lookup_ip::LookupIp;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use sandarac_config::{Dns, NameServer};
use sandarac_net::Moment;
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The shortest time between two lookups of a name, so that a TTL of zero does not cost a lookup per request.
const MIN_TTL: Duration = Duration::from_secs(1);

/// The longest that an answer is used without another lookup, whatever its TTL.
const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// The pause after a lookup that has got no answer yet.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// A resolver for one thread, with a cache. The last good answer for a name outlives its TTL for as long as
/// no name server gives another.
pub struct Resolver {
    servers: RefCell<Vec<NameServer>>,
    /// Made when a name is first needed.
    client: RefCell<Option<Rc<TokioResolver>>>,
    cache: RefCell<HashMap<Box<str>, CachedAnswer>>,
}

struct CachedAnswer {
    addresses: Vec<IpAddr>,
    /// When to look the name up again: at the end of the TTL or, during a lookup, when its answer is overdue.
    refresh_at: Moment,
}

impl Resolver {
    /// A resolver that asks the name servers of `dns`, with an empty cache.
    pub fn new(dns: &Dns) -> Rc<Resolver> {
        Rc::new(Resolver {
            servers: RefCell::new(dns.servers.clone()),
            client: RefCell::default(),
            cache: RefCell::default(),
        })
    }

    /// Asks the name servers of `dns` from now on. Answers of other servers are refreshed when they are next
    /// needed.
    pub fn ask_from(&self, dns: &Dns) {
        if *self.servers.borrow() == dns.servers {
            return;
        }
        self.servers.borrow_mut().clone_from(&dns.servers);
        self.client.replace(None);
        let now = Moment::now();
        self.cache.borrow_mut().values_mut().for_each(|answer| answer.refresh_at = now);
    }

    /// Whether `ip` is among the cached addresses of `name`; true of a name that is not cached.
    pub fn may_be_at(&self, name: &str, ip: IpAddr) -> bool {
        self.cache.borrow().get(name).is_none_or(|answer| answer.addresses.contains(&ip))
    }

    /// Refreshes a cached name in the background if it is due. Must be called on a tokio runtime that runs
    /// local tasks.
    pub fn keep_current(self: &Rc<Resolver>, name: &str) {
        if self.cache.borrow_mut().get_mut(name).is_some_and(CachedAnswer::take_due) {
            let (resolver, name) = (self.clone(), Box::<str>::from(name));
            tokio::task::spawn_local(async move { resolver.look_up(&name).await });
        }
    }

    /// The addresses of a name; none if no lookup of it ever succeeded.
    pub async fn addresses(&self, name: &str) -> Vec<IpAddr> {
        if self.cache.borrow_mut().get_mut(name).is_none_or(CachedAnswer::take_due) {
            self.look_up(name).await;
        }
        self.cache.borrow().get(name).map(|answer| answer.addresses.clone()).unwrap_or_default()
    }

    async fn look_up(&self, name: &str) {
        let Some(client) = self.client() else { return };
        if let Ok(found) = client.lookup_ip(name).await {
            let refresh_at = Moment::now().plus(ttl(&found));
            let answer = CachedAnswer { addresses: found.iter().collect(), refresh_at };
            self.cache.borrow_mut().insert(name.into(), answer);
        }
    }

    fn client(&self) -> Option<Rc<TokioResolver>> {
        let mut client = self.client.borrow_mut();
        if client.is_none() {
            *client = uncached(&self.servers.borrow()).map(Rc::new);
        }
        client.clone()
    }
}

impl CachedAnswer {
    /// Whether a lookup is due. If so, the next one is put off until an answer to this one is overdue.
    fn take_due(&mut self) -> bool {
        let now = Moment::now();
        let due = now >= self.refresh_at;
        if due {
            self.refresh_at = now.plus(RETRY_AFTER);
        }
        due
    }
}

/// A resolver without a cache that asks `servers`, or the system's name servers if the list is empty. `None`
/// if the system's configuration cannot be read.
pub(crate) fn uncached(servers: &[NameServer]) -> Option<TokioResolver> {
    let mut builder = match servers {
        [] => TokioResolver::builder_tokio().ok()?,
        servers => TokioResolver::builder_with_config(
            ResolverConfig::from_name_servers(servers.iter().map(name_server).collect()),
            TokioRuntimeProvider::default(),
        ),
    };
    builder.options_mut().cache_size = 0;
    builder.build().ok()
}

fn ttl(found: &LookupIp) -> Duration {
    found.valid_until().saturating_duration_since(Instant::now()).clamp(MIN_TTL, MAX_TTL)
}

fn name_server(NameServer(address): &NameServer) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    server.connections.iter_mut().for_each(|connection| connection.port = address.port());
    server
}
