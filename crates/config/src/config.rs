//! The complete, valid configuration.

use std::path::PathBuf;

use sandarac_message::caching::Profile;
use sandarac_message::target::Scheme;
use sandarac_policy::{ByteSize, Routes};

use crate::address::{ListenAddress, Network, User};
use crate::pool::PoolConfig;
use crate::section::{Admin, Dns, Forwarded, Limits, Log, Purge, Timeouts};
use crate::shared::SharedConfig;
use crate::tls::ListenerTls;

/// A complete, valid configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The listeners; at least one.
    pub listeners: Vec<Listener>,
    /// The pools; a [`Route`](sandarac_policy::Route) refers to one by its index.
    pub pools: Vec<PoolConfig>,
    /// The routes.
    pub routes: Routes,
    /// The cache that all routes share.
    pub cache: Cache,
    /// Timeouts for clients.
    pub timeouts: Timeouts,
    /// Limits on the input of clients and backends.
    pub limits: Limits,
    /// Where bodies wait for slow clients.
    pub spool: SpoolConfig,
    /// Information sent to backends about the client.
    pub forwarded: Forwarded,
    /// How the names of backends are resolved.
    pub dns: Dns,
    /// Who may purge over HTTP.
    pub purge: Purge,
    /// The admin interface. If it is on TCP, there is a token.
    pub admin: Admin,
    /// The logs.
    pub log: Log,
    /// The user whose rights the process keeps; `None` for the one who starts it.
    pub user: Option<User>,
    /// How many cores to use; `None` for all.
    pub threads: Option<u32>,
}

/// Where bodies wait for slow clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpoolConfig {
    /// The directory of the files.
    pub directory: PathBuf,
    /// The most bytes of all files together.
    pub disk: u64,
}

/// A listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its address.
    pub address: ListenAddress,
    /// The mode of the Unix socket; `None` for the umask.
    pub mode: Option<u32>,
    /// Whether every connection begins with a PROXY header.
    pub proxy_protocol: bool,
    /// The scheme that clients use to reach it.
    pub scheme: Scheme,
    /// Peers whose `X-Forwarded-*` and `Forwarded` are trusted.
    pub trusted_proxies: Vec<Network>,
    /// Whether clients may speak HTTP/2.
    pub http2: bool,
    /// TLS; `None` if connections are not encrypted.
    pub tls: Option<ListenerTls>,
    /// Whether requests that came by http are redirected to https.
    pub redirect_to_https: bool,
    /// Whether the process goes without it if its address cannot be bound. Such listeners come last.
    pub is_optional: bool,
}

/// The cache that all routes share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// The most memory it takes.
    pub memory: ByteSize,
    /// The profile, which sets the defaults of the rules.
    pub profile: Profile,
    /// Whether responses carry `Cache-Status`.
    pub cache_status: bool,
    /// The shared tier, if there is one.
    pub shared: Option<SharedConfig>,
    /// The file that keeps what is stored from one process to the next. None with a shared tier.
    pub snapshot: Option<PathBuf>,
}
