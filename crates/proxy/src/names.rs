//! Names and their addresses, asked for again when their TTL has run out.

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

/// The shortest time between two questions for a name, whatever its TTL: a TTL of zero is not a question per request.
const LEAST: Duration = Duration::from_secs(1);

/// The longest that an answer is believed, whatever its TTL.
const MOST: Duration = Duration::from_secs(24 * 60 * 60);

/// How long after a question, unless it is answered, the next one is asked.
const AGAIN: Duration = Duration::from_secs(5);

/// One worker's names. The last good answer of each outlives its TTL for as long as no name server gives another.
pub(crate) struct Names {
    servers: RefCell<Vec<NameServer>>,
    /// Made when a name is first needed.
    resolver: RefCell<Option<Rc<TokioResolver>>>,
    known: RefCell<HashMap<Box<str>, Known>>,
}

struct Known {
    addresses: Vec<IpAddr>,
    /// When to ask anew: at the end of the TTL, or, once asked, when an answer is overdue.
    ask: Moment,
}

impl Names {
    pub(crate) fn new(dns: &Dns) -> Rc<Names> {
        Rc::new(Names {
            servers: RefCell::new(dns.servers.clone()),
            resolver: RefCell::default(),
            known: RefCell::default(),
        })
    }

    /// From now on, asks the name servers of `dns`. What others have said is asked for again when it is next needed.
    pub(crate) fn ask_from(&self, dns: &Dns) {
        if *self.servers.borrow() == dns.servers {
            return;
        }
        self.servers.borrow_mut().clone_from(&dns.servers);
        self.resolver.replace(None);
        let now = Moment::now();
        self.known.borrow_mut().values_mut().for_each(|known| known.ask = now);
    }

    /// Whether `ip` is among the addresses of `name`, as far as is known.
    pub(crate) fn may_be_at(&self, name: &str, ip: IpAddr) -> bool {
        self.known.borrow().get(name).is_none_or(|known| known.addresses.contains(&ip))
    }

    /// Asks for a name in the background if its time has come.
    pub(crate) fn keep_current(self: &Rc<Names>, name: &str) {
        if self.known.borrow_mut().get_mut(name).is_some_and(Known::is_due) {
            let (names, name) = (self.clone(), Box::<str>::from(name));
            tokio::task::spawn_local(async move { names.ask(&name).await });
        }
    }

    /// The addresses of a name; none where it never had any.
    pub(crate) async fn addresses(&self, name: &str) -> Vec<IpAddr> {
        if self.known.borrow_mut().get_mut(name).is_none_or(Known::is_due) {
            self.ask(name).await;
        }
        self.known.borrow().get(name).map(|known| known.addresses.clone()).unwrap_or_default()
    }

    async fn ask(&self, name: &str) {
        let Some(resolver) = self.resolver() else { return };
        if let Ok(found) = resolver.lookup_ip(name).await {
            let known = Known { addresses: found.iter().collect(), ask: Moment::now().plus(ttl(&found)) };
            self.known.borrow_mut().insert(name.into(), known);
        }
    }

    fn resolver(&self) -> Option<Rc<TokioResolver>> {
        let mut place = self.resolver.borrow_mut();
        if place.is_none() {
            *place = resolver(&self.servers.borrow()).map(Rc::new);
        }
        place.clone()
    }
}

impl Known {
    /// Whether it is to be asked for; then the next question is put off until an answer is overdue.
    fn is_due(&mut self) -> bool {
        let now = Moment::now();
        let due = now >= self.ask;
        if due {
            self.ask = now.plus(AGAIN);
        }
        due
    }
}

/// What asks `servers`, or those of the system where there are none, and keeps no answer. `None` where those of the system
/// cannot be told.
pub(crate) fn resolver(servers: &[NameServer]) -> Option<TokioResolver> {
    let mut builder = match servers {
        [] => TokioResolver::builder_tokio().ok()?,
        servers => TokioResolver::builder_with_config(
            ResolverConfig::from_name_servers(servers.iter().map(name_server).collect()),
            TokioRuntimeProvider::default(),
        ),
    };
    // Those who ask keep the answers.
    builder.options_mut().cache_size = 0;
    builder.build().ok()
}

fn ttl(found: &LookupIp) -> Duration {
    found.valid_until().saturating_duration_since(Instant::now()).clamp(LEAST, MOST)
}

fn name_server(NameServer(address): &NameServer) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    server.connections.iter_mut().for_each(|connection| connection.port = address.port());
    server
}
