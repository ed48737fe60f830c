//! Connections to origins: made, kept between requests, and given out again. Each worker has its own.

use crate::Fault;
use hashbrown::HashMap;
use hickory_resolver::TokioResolver;
use sandarac_balance::{Address, Endpoint, Host};
use sandarac_net::{Conn, Moment, Stream, within};
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};

/// Idle connections kept to one backend, per worker. More would hold descriptors at the origin that a burst opened and
/// nothing needs.
const IDLE_PER_BACKEND: usize = 64;

/// One worker's connections to all origins.
pub(crate) struct Origins {
    idle: RefCell<HashMap<Address, Vec<Idle>>>,
    names: Names,
}

struct Idle {
    conn: Box<Conn>,
    since: Moment,
}

impl Origins {
    pub(crate) fn new() -> Rc<Origins> {
        Rc::new(Origins { idle: RefCell::default(), names: Names::default() })
    }

    /// A connection that waited no longer than `idle_timeout`, on which nothing has arrived since: the latest used,
    /// being the most likely to be alive still.
    pub(crate) fn checkout(&self, address: &Address, idle_timeout: Duration) -> Option<Box<Conn>> {
        let mut idle = self.idle.borrow_mut();
        let waiting = idle.get_mut(address)?;
        let now = Moment::now();
        while let Some(last) = waiting.pop() {
            if now.since(last.since) < idle_timeout && last.conn.is_quiet() {
                return Some(last.conn);
            }
        }
        None
    }

    /// Keeps a connection on which a response has ended.
    pub(crate) fn checkin(&self, address: &Address, mut conn: Box<Conn>) {
        if !conn.is_quiet() {
            return;
        }
        conn.park();
        let mut idle = self.idle.borrow_mut();
        let waiting = match idle.get_mut(address) {
            Some(waiting) => waiting,
            None => idle.entry(address.clone()).or_default(),
        };
        if waiting.len() < IDLE_PER_BACKEND {
            waiting.push(Idle { conn, since: Moment::now() });
        }
    }

    /// Closes connections that waited longer than `idle_timeout`, and those that the origin closed.
    pub(crate) fn prune(&self, idle_timeout: Duration) {
        let now = Moment::now();
        self.idle.borrow_mut().retain(|_, waiting| {
            waiting.retain(|idle| now.since(idle.since) < idle_timeout && idle.conn.is_quiet());
            !waiting.is_empty()
        });
    }

    /// Opens a connection. A name is resolved at its TTL, and its addresses are tried one after another.
    pub(crate) async fn connect(&self, address: &Address, timeout: Duration) -> Result<Box<Conn>, Fault> {
        let stream =
            within(timeout, self.open(address.endpoint())).await.unwrap_or(Err(Fault::ConnectLate))?;
        Ok(Box::new(Conn::new(stream)))
    }

    async fn open(&self, endpoint: &Endpoint) -> Result<Stream, Fault> {
        match endpoint {
            Endpoint::Unix(path) => UnixStream::connect(path).await.map(Stream::Unix).map_err(connect_failed),
            Endpoint::Tcp(Host::Ip(ip), port) => connect_tcp(SocketAddr::new(*ip, *port)).await,
            Endpoint::Tcp(Host::Name(name), port) => {
                let mut fault = Fault::Unresolved;
                for ip in self.names.addresses(name).await {
                    match connect_tcp(SocketAddr::new(ip, *port)).await {
                        Ok(stream) => return Ok(stream),
                        Err(error) => fault = error,
                    }
                }
                Err(fault)
            }
        }
    }
}

async fn connect_tcp(address: SocketAddr) -> Result<Stream, Fault> {
    TcpStream::connect(address).await.map(Stream::tcp).map_err(connect_failed)
}

fn connect_failed(error: io::Error) -> Fault {
    Fault::ConnectFailed(error.kind())
}

/// Names and their addresses. The resolver keeps answers for their TTL; the last good answer of each name outlives
/// that, for as long as the name servers cannot be asked.
#[derive(Default)]
struct Names {
    resolver: RefCell<Option<Rc<TokioResolver>>>,
    last: RefCell<HashMap<Box<str>, Vec<IpAddr>>>,
}

impl Names {
    async fn addresses(&self, name: &str) -> Vec<IpAddr> {
        let found = match self.resolver() {
            Some(resolver) => resolver.lookup_ip(name).await.ok(),
            None => None,
        };
        match found {
            Some(found) => {
                let addresses: Vec<IpAddr> = found.iter().collect();
                self.last.borrow_mut().insert(name.into(), addresses.clone());
                addresses
            }
            None => self.last.borrow().get(name).cloned().unwrap_or_default(),
        }
    }

    /// The resolver with the system's configuration, made when a name is first needed.
    fn resolver(&self) -> Option<Rc<TokioResolver>> {
        let mut place = self.resolver.borrow_mut();
        if place.is_none() {
            let built = TokioResolver::builder_tokio().ok().and_then(|builder| builder.build().ok());
            *place = built.map(Rc::new);
        }
        place.clone()
    }
}
