//! Connections to origins: opened, kept between requests, and reused. Each core has its own.

use crate::origin_timeouts::OriginTimeouts;
use crate::origin_tls::OriginTls;
use crate::tls_fault::TlsFault;
use crate::{Counter, Counters, Fault};
use hashbrown::HashMap;
use rustix::io::Errno;
use sandarac_balance::{Address, Endpoint, Host};
use sandarac_config::Dns;
use sandarac_discover::Resolver;
use sandarac_net::{Conn, Moment, Stream, Unread, within};
use sandarac_wire::h1::repair::Repairs;
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Idle connections kept to one backend, per core. More would only hold descriptors at the origin after a
/// burst.
const IDLE_PER_BACKEND: usize = 64;

/// For how long connections to a backend that did not report its version are used without asking for it.
const MUTE: Duration = Duration::from_secs(60);

/// The pause before a connection to a Unix socket is tried again whose queue was full.
const QUEUE_FULL: Duration = Duration::from_millis(5);

/// One core's connections to all origins.
pub(crate) struct Origins {
    idle: RefCell<HashMap<Address, Vec<Idle>>>,
    /// Backends that did not report their version, and until when they are not asked.
    mute: RefCell<HashMap<Address, Moment>>,
    resolver: Rc<Resolver>,
    counters: Arc<Counters>,
}

struct Idle {
    conn: Box<Conn>,
    provenance: Provenance,
    since: Moment,
}

/// The address, the time and the security of a connection. It is reused only while it is young and its name
/// still has that address, and only by pools with the same TLS.
#[derive(Debug)]
pub(crate) struct Provenance {
    ip: Option<IpAddr>,
    made: Moment,
    /// TLS of the connection; `None` if it is in clear.
    tls: Option<OriginTls>,
    /// The instance of the worker at its end, if it was identified.
    pub(crate) instance: Option<Box<str>>,
}

impl Provenance {
    /// When the connection was made.
    pub(crate) fn made(&self) -> Moment {
        self.made
    }
}

impl Origins {
    /// No connections yet. Names will be resolved as `dns` configures.
    pub(crate) fn new(dns: &Dns, counters: Arc<Counters>) -> Rc<Origins> {
        let (idle, mute) = Default::default();
        Rc::new(Origins { idle, mute, resolver: Resolver::new(dns), counters })
    }

    /// Resolves names as `dns` configures from now on.
    pub(crate) fn ask_from(&self, dns: &Dns) {
        self.resolver.ask_from(dns);
    }

    /// A kept connection with `tls` that is neither too old nor idle for too long, and on which nothing has arrived
    /// since. The most recently used comes first, because it is the most likely to be alive. One to an
    /// instance of a worker that is not `current` is closed. If its name is due, it is resolved again in the
    /// background.
    pub(crate) fn checkout(
        &self,
        address: &Address,
        tls: Option<&OriginTls>,
        timeouts: &OriginTimeouts,
        current: impl Fn(&str) -> bool,
    ) -> Option<(Box<Conn>, Provenance)> {
        let name = name(address);
        if let Some(name) = name {
            self.resolver.keep_current(name);
        }
        let mut idle = self.idle.borrow_mut();
        let waiting = idle.get_mut(address)?;
        let now = Moment::now();
        let tls = tls.filter(|_| address.is_tls());
        while let Some(at) = waiting.iter().rposition(|idle| idle.provenance.tls.as_ref() == tls) {
            let Idle { mut conn, provenance, since } = waiting.remove(at);
            let young = now.since(since) < timeouts.idle && now.since(provenance.made) < timeouts.age;
            let current = provenance.instance.as_deref().is_none_or(&current);
            if young
                && current
                && self.leads_there(name, &provenance)
                && self.unread(&mut conn) == Unread::Nothing
            {
                return Some((conn, provenance));
            }
        }
        None
    }

    /// What has arrived on a connection before a request was sent on it. Such bytes would be taken for the
    /// response; they are counted.
    pub(crate) fn unread(&self, conn: &mut Conn) -> Unread {
        let unread = conn.unread();
        if unread == Unread::Data {
            self.counters.one(Counter::OriginConnectionsStray);
        }
        unread
    }

    /// Counts the repairs of a response.
    pub(crate) fn repaired(&self, repairs: Repairs) {
        repairs.iter().for_each(|repair| self.counters.repaired.one(&repair));
    }

    /// Keeps a connection whose response has ended, if the request was written and the response read to its
    /// end.
    pub(crate) fn checkin(&self, address: &Address, mut conn: Box<Conn>, provenance: Provenance) {
        if !conn.is_flushed() || !conn.data().is_empty() {
            self.unread(&mut conn);
            return;
        }
        conn.park();
        let mut idle = self.idle.borrow_mut();
        let waiting = match idle.get_mut(address) {
            Some(waiting) => waiting,
            None => idle.entry(address.clone()).or_default(),
        };
        if waiting.len() < IDLE_PER_BACKEND {
            waiting.push(Idle { conn, provenance, since: Moment::now() });
        }
    }

    /// Closes connections that were idle for longer than `idle_timeout`, that the origin closed, or whose
    /// name no longer has their address.
    pub(crate) fn prune(&self, idle_timeout: Duration) {
        let now = Moment::now();
        self.idle.borrow_mut().retain(|address, waiting| {
            let name = name(address);
            waiting.retain_mut(|idle| {
                now.since(idle.since) < idle_timeout
                    && self.leads_there(name, &idle.provenance)
                    && self.unread(&mut idle.conn) == Unread::Nothing
            });
            !waiting.is_empty()
        });
        self.mute.borrow_mut().retain(|_, until| now < *until);
    }

    /// Whether a backend is asked for its version.
    pub(crate) fn is_asked(&self, address: &Address) -> bool {
        self.mute.borrow().get(address).is_none_or(|&until| Moment::now() >= until)
    }

    /// Notes that a backend did not report its version: for a while, no request waits for that again.
    pub(crate) fn found_mute(&self, address: &Address) {
        self.mute.borrow_mut().insert(address.clone(), Moment::now().plus(MUTE));
    }

    /// Whether a connection leads to an address that its name still has.
    fn leads_there(&self, name: Option<&str>, provenance: &Provenance) -> bool {
        match (name, provenance.ip) {
            (Some(name), Some(ip)) => self.resolver.may_be_at(name, ip),
            _ => true,
        }
    }

    /// The addresses of a name; none if it cannot be resolved.
    pub(crate) async fn addresses(&self, name: &str) -> Vec<IpAddr> {
        self.resolver.addresses(name).await.into_iter().collect()
    }

    /// Opens a connection, with `tls` if the address asks for that. The addresses of a name are tried one after
    /// another.
    pub(crate) async fn connect(
        &self,
        address: &Address,
        tls: Option<&OriginTls>,
        timeout: Duration,
    ) -> Result<(Box<Conn>, Provenance), Fault> {
        let opened = async {
            let (stream, ip) = self.open(address.endpoint()).await?;
            if !address.is_tls() {
                return Ok((Conn::new(stream), ip, None));
            }
            // Nothing is ever sent in clear instead.
            let tls = tls.ok_or(Fault::TlsFailed(TlsFault::NoCas))?;
            Ok((Conn::new(tls.begin(stream, address.endpoint()).await?), ip, Some(tls.clone())))
        };
        let (conn, ip, tls) = within(timeout, opened).await.unwrap_or(Err(Fault::ConnectLate))?;
        Ok((Box::new(conn), Provenance { ip, made: Moment::now(), tls, instance: None }))
    }

    async fn open(&self, endpoint: &Endpoint) -> Result<(Stream, Option<IpAddr>), Fault> {
        match endpoint {
            Endpoint::Unix(path) => Ok((connect_unix(path).await?, None)),
            Endpoint::Tcp(Host::Ip(ip), port) => {
                Ok((connect_tcp(SocketAddr::new(*ip, *port)).await?, Some(*ip)))
            }
            Endpoint::Tcp(Host::Name(name), port) => {
                let mut fault = Fault::Unresolved;
                for ip in self.resolver.addresses(name).await {
                    match connect_tcp(SocketAddr::new(ip, *port)).await {
                        Ok(stream) => return Ok((stream, Some(ip))),
                        Err(error) => fault = error,
                    }
                }
                Err(fault)
            }
        }
    }
}

/// The name in an address, if it needs to be resolved.
fn name(address: &Address) -> Option<&str> {
    match address.endpoint() {
        Endpoint::Tcp(Host::Name(name), _) => Some(name),
        _ => None,
    }
}

/// Connects to a Unix socket. While its queue is full, the kernel refuses a connection instead of letting it wait.
async fn connect_unix(path: &Path) -> Result<Stream, Fault> {
    loop {
        match Stream::connect_unix(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sandarac_net::sleep(QUEUE_FULL).await,
            connected => return connected.map_err(connect_failed),
        }
    }
}

async fn connect_tcp(address: SocketAddr) -> Result<Stream, Fault> {
    Stream::connect(address).await.map_err(connect_failed)
}

fn connect_failed(error: io::Error) -> Fault {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE | Errno::NFILE) => Fault::NoDescriptors,
        _ => Fault::ConnectFailed(error.kind()),
    }
}
