//! Connections to origins: opened, kept between requests, and reused. Each core has its own.

mod multiplexed;
mod provenance;
pub(crate) mod timeouts;
pub(crate) mod tls;

use self::multiplexed::{Multiplexed, NotShared};
pub(crate) use self::provenance::Provenance;
use crate::origin::timeouts::OriginTimeouts;
use crate::origin::tls::OriginTls;
use crate::report::tls_fault::TlsFault;
use crate::{Counter, Counters, Fault};
use hashbrown::{HashMap, HashSet};
use rustix::io::Errno;
use sandarac_balance::{Address, Endpoint, Host};
use sandarac_config::Dns;
use sandarac_discover::Resolver;
use sandarac_net::{
    Conn, Moment, OriginConnection, OriginStream, Place, Places, Stream, StreamFault, Unread, within,
};
use sandarac_wire::fastcgi::RequestId;
use sandarac_wire::h1::Limits;
use sandarac_wire::h1::repair::Repairs;
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Idle connections kept to one backend, per core. A few HTTP/2 clients have more requests at a time than a
/// hundred of HTTP/1, and connections that are closed between two bursts cost more than the requests. Those
/// not needed are closed after
/// `idle_timeout`, because the most recently used is taken first.
const IDLE_PER_BACKEND: usize = 1024;

/// For how long connections to a backend that did not report its version are used without asking for it.
const MUTE: Duration = Duration::from_secs(60);

/// The pause before a connection to a Unix socket is tried again whose queue was full.
const QUEUE_FULL: Duration = Duration::from_millis(5);

/// One core's connections to all origins.
pub(crate) struct Origins {
    idle: RefCell<HashMap<Address, Vec<Idle>>>,
    multiplexed: Multiplexed,
    /// Backends that were offered HTTP/2 and chose HTTP/1.1 when they were connected to last.
    declined_http2: RefCell<HashSet<Address>>,
    /// Backends that did not report their version, and until when they are not asked.
    mute: RefCell<HashMap<Address, Moment>>,
    resolver: Rc<Resolver>,
    counters: Arc<Counters>,
    /// The descriptors of all cores' connections to backends.
    places: Arc<Places>,
}

struct Idle {
    conn: Box<Conn>,
    provenance: Provenance,
    since: Moment,
}

/// A connection for one request.
pub(crate) enum OriginConn {
    /// A connection of its own.
    Http1(Box<Conn>, Provenance),
    /// A stream of a shared connection.
    Http2(OriginStream),
}

/// A new connection, in the protocol that the backend speaks.
pub(crate) enum Dialled {
    Http1(Box<Conn>),
    Http2(OriginConnection),
}

impl Origins {
    /// No connections yet. Names will be resolved as `dns` configures.
    pub(crate) fn new(dns: &Dns, counters: Arc<Counters>, places: Arc<Places>) -> Rc<Origins> {
        Rc::new(Origins {
            idle: RefCell::default(),
            multiplexed: Multiplexed::default(),
            declined_http2: RefCell::default(),
            mute: RefCell::default(),
            resolver: Resolver::new(dns),
            counters,
            places,
        })
    }

    /// Resolves names as `dns` configures from now on.
    pub(crate) fn ask_from(&self, dns: &Dns) {
        self.resolver.ask_from(dns);
    }

    /// A kept connection with `tls` that is neither too old nor idle for too long: a stream of a shared one,
    /// or one on which nothing has arrived since its last request. The most recently used comes first,
    /// because it is the most likely to be alive. One to an instance of a worker that is not `current` is
    /// closed. If its name is due, it is resolved again in the background.
    pub(crate) fn checkout(
        &self,
        address: &Address,
        tls: Option<&OriginTls>,
        timeouts: &OriginTimeouts,
        current: impl Fn(&str) -> bool,
    ) -> Option<OriginConn> {
        let name = name(address);
        if let Some(name) = name {
            self.resolver.keep_current(name);
        }
        let now = Moment::now();
        let tls = tls.filter(|_| address.is_tls());
        if may_be_shared(address, tls) {
            let is_good = |connection: &OriginConnection, provenance: &Provenance| {
                now.since(provenance.made) < timeouts.age
                    && connection.idle_since().is_none_or(|since| now.since(since) < timeouts.idle)
                    && self.leads_there(name, provenance)
            };
            let kept = self.multiplexed.kept(address, tls, is_good);
            if address.is_http2() || kept.is_some() {
                return kept.map(OriginConn::Http2);
            }
        }
        let mut idle = self.idle.borrow_mut();
        let waiting = idle.get_mut(address)?;
        while let Some(at) = waiting.iter().rposition(|idle| idle.provenance.tls.as_ref() == tls) {
            let Idle { mut conn, provenance, since } = waiting.remove(at);
            let young = now.since(since) < timeouts.idle && now.since(provenance.made) < timeouts.age;
            let current = provenance.instance.as_deref().is_none_or(&current);
            if young
                && current
                && self.leads_there(name, &provenance)
                && self.unread(&mut conn) == Unread::Nothing
            {
                return Some(OriginConn::Http1(conn, provenance));
            }
        }
        None
    }

    /// Counts bytes of a response's body.
    pub(crate) fn count_body(&self, bytes: usize) {
        self.counters.add(Counter::BytesFromOrigins, bytes as u64);
    }

    /// The bytes that have arrived on a connection before a request was sent on it. They would be taken for
    /// the response; they are counted.
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
        if waiting.len() < IDLE_PER_BACKEND && !self.places.are_scarce() {
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
        self.multiplexed.prune(|address, connection, provenance| {
            connection.idle_since().is_none_or(|since| now.since(since) < idle_timeout)
                && self.leads_there(name(address), provenance)
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

    /// A connection for one request, with `tls` if the address asks for that: a stream of a shared one, which
    /// may have to be made, or a new one. `limits` are those of response heads.
    pub(crate) async fn connect(
        &self,
        address: &Address,
        tls: Option<&OriginTls>,
        timeout: Duration,
        limits: Limits,
    ) -> Result<OriginConn, Fault> {
        let tls = tls.filter(|_| address.is_tls());
        let connected = async {
            if may_be_shared(address, tls) && !self.declined_http2.borrow().contains(address) {
                let make = async || self.dial_shared(address, tls, limits).await;
                match self.multiplexed.stream(address, tls, make).await {
                    Ok(stream) => return Ok(OriginConn::Http2(stream)),
                    Err(NotShared::Fault(fault)) => return Err(fault),
                    Err(NotShared::Http1(Some((conn, provenance)))) => {
                        return Ok(OriginConn::Http1(conn, provenance));
                    }
                    // Another request has found out.
                    Err(NotShared::Http1(None)) => {}
                }
            }
            match self.dial(address, tls, limits).await? {
                (Dialled::Http1(conn), provenance) => Ok(OriginConn::Http1(conn, provenance)),
                (Dialled::Http2(connection), provenance) => {
                    self.declined_http2.borrow_mut().remove(address);
                    let stream = connection.reserve();
                    self.multiplexed.add(address, connection, provenance);
                    stream.map(OriginConn::Http2).ok_or(Fault::Http2(StreamFault::Refused))
                }
            }
        };
        within(timeout, connected).await.unwrap_or(Err(Fault::ConnectLate))
    }

    /// A new connection to share. Fails if the backend chooses HTTP/1.1.
    async fn dial_shared(
        &self,
        address: &Address,
        tls: Option<&OriginTls>,
        limits: Limits,
    ) -> Result<(OriginConnection, Provenance), NotShared<Option<(Box<Conn>, Provenance)>>> {
        if self.declined_http2.borrow().contains(address) {
            return Err(NotShared::Http1(None));
        }
        match self.dial(address, tls, limits).await.map_err(NotShared::Fault)? {
            (Dialled::Http2(connection), provenance) => Ok((connection, provenance)),
            (Dialled::Http1(conn), provenance) => {
                self.declined_http2.borrow_mut().insert(address.clone());
                Err(NotShared::Http1(Some((conn, provenance))))
            }
        }
    }

    /// Opens a connection, with `tls` if the address asks for that. The addresses of a name are tried one
    /// after another. The caller limits the time.
    pub(crate) async fn dial(
        &self,
        address: &Address,
        tls: Option<&OriginTls>,
        limits: Limits,
    ) -> Result<(Dialled, Provenance), Fault> {
        let place = self.place().ok_or(Fault::NoDescriptors)?;
        let (stream, ip) = self.open(address.endpoint()).await?;
        let made = Moment::now();
        let (mut conn, is_http2, tls) = if address.is_tls() {
            // Nothing is ever sent in clear instead.
            let tls = tls.ok_or(Fault::TlsFailed(TlsFault::NoCas))?;
            let stream = tls.begin(stream, address.endpoint()).await?;
            let is_http2 = stream.state().alpn_protocol() == Some(b"h2");
            (Conn::new(stream), is_http2, Some(tls.clone()))
        } else {
            (Conn::new(stream), address.is_http2(), None)
        };
        conn.takes(Some(place));
        let provenance = Provenance { ip, made, tls, instance: None, request_id: RequestId::FIRST };
        if !is_http2 {
            return Ok((Dialled::Http1(Box::new(conn)), provenance));
        }
        let opened = Box::pin(OriginConnection::open(conn, limits)).await;
        let connection = opened.map_err(|fault| match fault {
            StreamFault::Lost => Fault::ConnectFailed(io::ErrorKind::UnexpectedEof),
            _ => Fault::NoHttp2,
        })?;
        Ok((Dialled::Http2(connection), provenance))
    }

    /// A place for one more connection, if need be that of the one that has been idle longest.
    fn place(&self) -> Option<Place> {
        self.places.take().or_else(|| {
            let mut idle = self.idle.borrow_mut();
            // The one used last is at the end.
            let fronts = idle.values_mut().filter(|waiting| !waiting.is_empty());
            drop(fronts.min_by_key(|waiting| waiting[0].since)?.remove(0));
            self.places.take()
        })
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

/// Whether requests to a backend may share a connection.
fn may_be_shared(address: &Address, tls: Option<&OriginTls>) -> bool {
    address.is_http2() || tls.is_some_and(OriginTls::offers_http2)
}

/// The name in an address, if it needs to be resolved.
fn name(address: &Address) -> Option<&str> {
    match address.endpoint() {
        Endpoint::Tcp(Host::Name(name), _) => Some(name),
        _ => None,
    }
}

/// Connects to a Unix socket. While its queue is full, the kernel refuses a connection instead of letting it
/// wait.
async fn connect_unix(path: &Path) -> Result<Stream, Fault> {
    loop {
        match Stream::connect_unix(path) {
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
