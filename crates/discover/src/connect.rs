//! Connecting to the servers of a registry.

use super::{Loss, LossReason};
use crate::resolver;
use hickory_resolver::TokioResolver;
use sandarac_balance::{Address, Endpoint, Host};
use sandarac_config::NameServer;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

/// The time limit of a connection, including name resolution and all addresses. Allows two retransmissions to
/// one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

/// A server that served for less than this counts as failed.
const MIN_SERVICE: Duration = Duration::from_secs(1);

/// The servers of a registry, tried in turn.
pub(super) struct ServerRotation {
    servers: Vec<String>,
    next: usize,
    /// How many are still to be tried before the registry counts as lost.
    left: usize,
}

impl ServerRotation {
    /// Begins at a server chosen by `seed`, so that many balancers spread.
    pub(super) fn new(servers: Vec<String>, seed: u64) -> ServerRotation {
        let next = (seed % servers.len().max(1) as u64) as usize;
        ServerRotation { servers, next, left: 0 }
    }

    /// Begins a round over all servers; the one that was tried last comes last.
    pub(super) fn begin(&mut self) {
        self.left = self.servers.len();
    }

    /// The next server to try, if any is left.
    pub(super) fn next(&mut self) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        let server = self.servers.get(self.next)?.clone();
        self.next = (self.next + 1) % self.servers.len();
        Some(server)
    }

    /// Notes that the server tried last has failed, and since when it had served, if it had. If that was for
    /// a while, all the others are tried before the registry counts as lost.
    pub(super) fn ended(&mut self, served: Option<Instant>) {
        if served.is_some_and(|since| since.elapsed() >= MIN_SERVICE) {
            self.begin();
        }
    }
}

/// Connects to servers by name.
pub(super) struct Connector {
    servers: Vec<NameServer>,
    /// Made when it is first needed.
    resolver: Option<TokioResolver>,
}

impl Connector {
    /// Resolves names at `servers`, or at the system's name servers if there are none.
    pub(super) fn new(servers: &[NameServer]) -> Connector {
        Connector { servers: servers.to_vec(), resolver: None }
    }

    /// Connects to `server`, `host:port` or `http://host:port`: to the first of its addresses that accepts. A
    /// loss does not name the server; the caller adds it to any loss.
    pub(super) async fn connect(&mut self, server: &str) -> Result<TcpStream, Loss> {
        let end = Instant::now() + CONNECT_TIMEOUT;
        let connected = timeout_at(end, self.try_addresses(server, end)).await;
        connected.unwrap_or_else(|_| Err(too_late()))
    }

    /// Tries one address after the other, each for its share of the time until `end`, so that one without a
    /// response leaves time for the others.
    async fn try_addresses(&mut self, server: &str, end: Instant) -> Result<TcpStream, Loss> {
        let unreachable = |why: String| Loss::new(LossReason::Unreachable, why);
        let authority = server.strip_prefix("http://").unwrap_or(server);
        let address: Address = format!("http://{authority}")
            .parse()
            .map_err(|error: sandarac_balance::AddressError| unreachable(error.to_string()))?;
        let Endpoint::Tcp(host, port) = address.endpoint() else {
            return Err(unreachable("it has no port".to_owned()));
        };
        let mut last = unreachable("the name has no address".to_owned());
        let addresses = self.addresses(host).await.map_err(unreachable)?;
        for (at, ip) in addresses.iter().enumerate() {
            let left = (addresses.len() - at) as u32;
            let share = end.saturating_duration_since(Instant::now()) / left;
            match timeout(share, TcpStream::connect(SocketAddr::new(*ip, *port))).await {
                Ok(Ok(stream)) => {
                    // Requests are small, and their responses are awaited. If the option cannot be set, they
                    // are only slower.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => last = unreachable(error.to_string()),
                Err(_) => last = too_late(),
            }
        }
        Err(last)
    }

    async fn addresses(&mut self, host: &Host) -> Result<Vec<IpAddr>, String> {
        let name = match host {
            Host::Ip(ip) => return Ok(vec![*ip]),
            Host::Name(name) => name,
        };
        if self.resolver.is_none() {
            self.resolver = resolver::uncached(&self.servers);
        }
        let resolver = self.resolver.as_ref().ok_or("there is no name server to ask")?;
        let found = resolver.lookup_ip(&**name).await.map_err(|error| error.to_string())?;
        Ok(found.iter().collect())
    }
}

fn too_late() -> Loss {
    Loss::new(LossReason::TimedOut, "connecting")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_test_support::NameServer as Names;
    use std::net::{Ipv4Addr, TcpListener, TcpStream as Client};

    /// Regression: the first address used up the time for all, and the second was never tried.
    #[test]
    fn an_address_that_says_nothing_leaves_time_for_the_others() {
        let silent = Ipv4Addr::new(127, 0, 0, 9);
        let names = Names::new(&[silent, Ipv4Addr::LOCALHOST], 60);
        let good = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = good.local_addr().unwrap().port();
        let full = TcpListener::bind((silent, port)).unwrap();
        // With an empty accept queue, further connections get no response.
        rustix::net::listen(&full, 0).unwrap();
        let once = || Client::connect_timeout(&full.local_addr().unwrap(), Duration::from_millis(100));
        let _held: Vec<Client> = std::iter::from_fn(|| once().ok()).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let connected = runtime.block_on(async {
            let mut connector = Connector::new(&[NameServer(names.address())]);
            connector.connect(&format!("http://registry.example.com.:{port}")).await
        });
        assert_eq!(connected.unwrap().peer_addr().unwrap(), good.local_addr().unwrap());
    }
}
