//! Discovery: sources that name the backends of a pool, watched for as long as the pool is in force.
//!
//! A source is read, reports changes, and may fail. It never empties a pool. If it cannot be reached, its
//! last list stays in force ([`Event::Lost`]). The same holds if it can be reached and names no backend
//! ([`Event::Emptied`]), because a restarted registry, a directory that was cleared a moment too early and a
//! name server with a broken zone look like that. The backends that stay are judged by their health, as
//! always. The content of a source is not trusted: malformed entries are ignored, each for a named
//! [`IgnoredReason`], and everything is bounded.

mod backoff;
mod connect;
mod directory;
mod directory_watch;
mod dns;
mod etcd;
mod event;
mod file;
mod file_thread;
mod ignored;
mod listing;
mod registry_entry;
mod resolver;
mod settings;
mod zookeeper;

pub use backoff::JitteredBackoff;
pub use directory::reappears;
pub use event::{Event, Loss, LossReason};
pub use file::follow_text;
pub use file_thread::on_file_thread;
pub use ignored::{Ignored, IgnoredEntry, IgnoredReason, MAX_ENTRY_BYTES};
pub use listing::{ListedBackend, Listing, MAX_MEMBERS};
pub use resolver::Resolver;
pub use settings::LiveSettings;

use self::connect::{Connector, ServerRotation};
use self::dns::{DnsName, Families, Question};
use self::etcd::Etcd;
use self::event::EventReporter;
use self::zookeeper::ZooKeeper;
use sandarac_config::{Dns, Source};
use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

/// Watches `source` for as long as the future is polled, and passes its events to `events`. Names are
/// resolved by the name servers of `dns`; `memory` is the state that an earlier watch of the same source
/// left. Equal seeds give equal pauses between attempts to reach a lost source.
///
/// The future never completes; dropping it closes everything it opened. It needs a tokio runtime with I/O and
/// time; one thread suffices.
pub async fn watch(
    source: Source,
    dns: &Dns,
    memory: Memory,
    seed: u64,
    mut events: impl FnMut(Event),
) -> Infallible {
    let mut reporter = EventReporter::new(&mut events);
    let mut backoff = JitteredBackoff::new(seed);
    let mut follower = Follower::new(source, dns, memory, seed);
    loop {
        let loss = follower.follow(&mut reporter).await;
        let lived_long = reporter.lost(loss);
        follower.pause(backoff.pause(lived_long)).await;
    }
}

/// The state of a watch, beside the listing, that another watch of the source needs to continue.
#[derive(Clone, Debug, Default)]
pub struct Memory(Families);

/// A source with the state to follow it.
enum Follower {
    Directory(PathBuf),
    File(PathBuf),
    Dns(DnsName),
    ZooKeeper(ZooKeeper),
    Etcd(Etcd),
}

impl Follower {
    fn new(source: Source, dns: &Dns, memory: Memory, seed: u64) -> Follower {
        let connector = || Connector::new(&dns.servers);
        match source {
            Source::Directory(path) => Follower::Directory(path),
            Source::File(path) => Follower::File(path),
            Source::Dns { name, port } => {
                Follower::Dns(DnsName::new(Question::Addresses(name.into(), port), &dns.servers, memory.0))
            }
            Source::Srv(name) => {
                Follower::Dns(DnsName::new(Question::Services(name.into()), &dns.servers, memory.0))
            }
            Source::ZooKeeper { servers, path, session_timeout } => {
                let servers = ServerRotation::new(servers.iter().map(ToString::to_string).collect(), seed);
                Follower::ZooKeeper(ZooKeeper::new(servers, &path, session_timeout, connector()))
            }
            Source::Etcd { endpoints, prefix, login } => {
                let endpoints =
                    ServerRotation::new(endpoints.iter().map(ToString::to_string).collect(), seed);
                let login = login.map(|(user, password)| (user, password.to_string()));
                Follower::Etcd(Etcd::new(endpoints, prefix.trim_end_matches('/'), login, connector()))
            }
        }
    }

    /// Reports the content of the source for as long as it can be reached.
    async fn follow(&mut self, reporter: &mut EventReporter<'_>) -> Loss {
        match self {
            Follower::Directory(path) => directory::follow(path, reporter).await,
            Follower::File(path) => file::follow(path, reporter).await,
            Follower::Dns(name) => name.follow(reporter).await,
            Follower::ZooKeeper(zookeeper) => zookeeper.follow(reporter).await,
            Follower::Etcd(etcd) => etcd.follow(reporter).await,
        }
    }

    /// Waits before the source is tried again.
    async fn pause(&self, pause: Duration) {
        match self {
            Follower::Directory(path) | Follower::File(path) => directory::reappears(path, pause).await,
            _ => tokio::time::sleep(pause).await,
        }
    }
}
