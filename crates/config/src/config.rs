//! The configuration, whole and valid.

use std::time::Duration;

use sandarac_balance::{Address, Algorithm, Backend, Pool, Settings};
use sandarac_message::caching::Profile;
use sandarac_message::target::Scheme;

use crate::address::{ListenAddress, Network};
use crate::routes::Routes;
use crate::section::{Admin, Dns, Forwarded, Limits, Log, Purge, Timeouts};
use crate::value::ByteSize;

/// A whole and valid configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where clients are listened for; at least one.
    pub listeners: Vec<Listener>,
    /// The pools; a [`Route`](crate::Route) refers to one by its place here.
    pub pools: Vec<PoolConfig>,
    /// What is done with which requests.
    pub routes: Routes,
    /// The cache that all routes share.
    pub cache: Cache,
    /// How long clients are waited for.
    pub timeouts: Timeouts,
    /// How much of anything clients and backends may send.
    pub limits: Limits,
    /// What backends are told of the client.
    pub forwarded: Forwarded,
    /// How the names of backends are looked up.
    pub dns: Dns,
    /// Who may purge over HTTP.
    pub purge: Purge,
    /// The admin interface. Where it is on TCP, there is a token.
    pub admin: Admin,
    /// What is written down.
    pub log: Log,
    /// How many cores to use; all there are where it is `None`.
    pub threads: Option<u32>,
}

/// A listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Where to listen.
    pub address: ListenAddress,
    /// The mode of the Unix socket; the umask decides where it is `None`.
    pub mode: Option<u32>,
    /// Whether every connection begins with a PROXY header.
    pub proxy_protocol: bool,
    /// The scheme by which clients reach it.
    pub scheme: Scheme,
    /// Peers whose `X-Forwarded-*` and `Forwarded` are believed.
    pub trusted_proxies: Vec<Network>,
}

/// The cache that all routes share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// The most memory it takes.
    pub memory: ByteSize,
    /// Which side the defaults of the rules fall on.
    pub profile: Profile,
    /// Whether responses carry `Cache-Status`.
    pub cache_status: bool,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Its name.
    pub name: String,
    /// Where its backends are; at least one, all different.
    pub backends: Vec<Address>,
    /// How a backend is chosen.
    pub balance: Algorithm,
    /// The most requests in flight to each backend.
    pub max_in_flight: Option<u32>,
    /// The most requests that wait for a place at a backend when all are full.
    pub queue: u32,
    /// How long one of them waits.
    pub queue_timeout: Duration,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long a backend may take from the request to the first byte of its response.
    pub first_byte_timeout: Duration,
    /// How long a backend may pause between two reads.
    pub between_bytes_timeout: Duration,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
    /// How long a connection is used at most.
    pub connection_age: Duration,
    /// How often a request is tried again, at most 2.
    pub retries: u32,
}

impl PoolConfig {
    /// The pool that this describes, choosing by `seed`.
    pub fn build(&self, seed: u64) -> Pool {
        let limit = self.max_in_flight.unwrap_or(u32::MAX);
        let backend = |address: &Address| Backend::new(address.clone()).max_in_flight(limit);
        let backends = self.backends.iter().map(backend).collect();
        let settings =
            Settings { algorithm: self.balance, queue_limit: self.queue, seed, ..Settings::default() };
        Pool::new(&self.name, backends, settings)
    }
}
