//! The configuration, whole and valid.

use sandarac_message::caching::Profile;
use sandarac_message::target::Scheme;
use sandarac_policy::{ByteSize, Routes};

use crate::address::{ListenAddress, Network};
use crate::pool::PoolConfig;
use crate::section::{Admin, Dns, Forwarded, Limits, Log, Purge, Timeouts};

/// A whole and valid configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where clients are listened for; at least one.
    pub listeners: Vec<Listener>,
    /// The pools; a [`Route`](sandarac_policy::Route) refers to one by its place here.
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
