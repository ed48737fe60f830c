//! A server of the tier, as all cores share it: what is known of it, its health, and what was done with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use sandarac_balance::Host;
use sandarac_config::SharedServer;
use sandarac_message::Timestamp;
use sandarac_net::memcached::ServerAddress;
use sandarac_tier::{Attempt, Ejection, Health, Server, Settings, Use};
use sandarac_wire::entry::{EntryKey, Record, Sealer};
use std::net::SocketAddr;

use super::clock::now;

/// The memory that purges of other nodes are applied to.
pub(crate) trait Memory {
    /// Applies a purge.
    fn apply(&self, record: &Record);
}

/// A server of the tier.
pub(crate) struct TierServer {
    server: SharedServer,
    name: Box<str>,
    /// Where it is; `None` until its name is resolved.
    address: ArcSwapOption<ServerAddress>,
    state: Mutex<State>,
    counts: [AtomicU64; TierCount::ALL.len()],
}

struct State {
    server: Server,
    health: Health,
    /// Why an operation was not answered last.
    fault: Option<Box<str>>,
}

macro_rules! counts {
    ($($variant:ident $name:literal $text:literal),* $(,)?) => {
        /// What is counted for each server.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum TierCount {
            $(#[doc = $text] $variant),*
        }

        impl TierCount {
            /// Every count.
            pub const ALL: &'static [TierCount] = &[$(TierCount::$variant),*];

            /// The name, as metrics show it without prefix and suffix.
            pub const fn name(self) -> &'static str {
                match self { $(TierCount::$variant => $name),* }
            }

            /// What it counts.
            pub const fn text(self) -> &'static str {
                match self { $(TierCount::$variant => $text),* }
            }
        }
    };
}

counts! {
    Hits "tier_hits" "Entries of the shared tier that answered a request.",
    Misses "tier_misses" "Lookups in the shared tier that led to a fetch.",
    Refused "tier_refused" "Entries of the shared tier that were not used because of a purge, a lost log or damage.",
    Waits "tier_waits" "Pauses of a lookup while another node fetched.",
    Fills "tier_fills" "Entries written to the shared tier.",
    FillsRefused "tier_fills_refused" "Entries that the server did not take: another node was quicker, or a purge came.",
    Marks "tier_marks" "Marks written in place of responses that are not shared.",
    Checks "tier_checks" "Copies in RAM that were compared with the shared tier.",
    Restored "tier_restored" "Entries that the server had lost, written back from RAM.",
    Dropped "tier_dropped" "Copies in RAM that were dropped by a comparison.",
    BytesRead "tier_bytes_read" "Bytes of values read from the shared tier.",
    BytesWritten "tier_bytes_written" "Bytes of values written to the shared tier.",
    Packets "tier_packets" "Groups of operations sent and answered.",
    Failures "tier_failures" "Groups of operations that were not answered.",
    Microseconds "tier_microseconds" "Time that answered groups of operations took, added up.",
}

/// The state of a server, for status and metrics.
#[derive(Clone, Debug)]
pub struct TierServerState {
    /// The name, as configured.
    pub name: String,
    /// Whether it is not used because it fails.
    pub is_ejected: bool,
    /// Ejections so far.
    pub ejections: u64,
    /// Whether its purge log is known and recent.
    pub is_current: bool,
    /// Purges that it was not told of yet.
    pub owes_purges: bool,
    /// What was wrong last, if something is.
    pub fault: Option<String>,
    /// Whether it answers, but has a purge log that this node cannot use.
    pub log_fault: bool,
    /// The counts, in the order of [`TierCount::ALL`].
    pub counts: Vec<u64>,
}

impl TierServer {
    pub(super) fn new(server: SharedServer, state: Server, ejection: Ejection) -> TierServer {
        let address = match &server {
            SharedServer::Unix(path) => Some(ServerAddress::Unix(path.clone())),
            SharedServer::Tcp(tcp) => match &tcp.host {
                Host::Ip(ip) => Some(ServerAddress::Tcp(SocketAddr::new(*ip, tcp.port))),
                Host::Name(_) => None,
            },
        };
        TierServer {
            name: server.to_string().into(),
            server,
            address: ArcSwapOption::from_pointee(address),
            state: Mutex::new(State { server: state, health: Health::new(ejection), fault: None }),
            counts: [const { AtomicU64::new(0) }; TierCount::ALL.len()],
        }
    }

    /// Takes over other settings. What it is owed stays.
    pub(super) fn configure(
        &self,
        settings: &Settings,
        sealer: &Sealer,
        log_key: EntryKey,
        ejection: Ejection,
    ) {
        let mut state = self.state.lock();
        state.server.configure(settings.clone(), sealer.clone(), log_key);
        state.health.configure(ejection);
    }

    /// The server as configured.
    pub(crate) fn server(&self) -> &SharedServer {
        &self.server
    }

    /// Its name, by which keys are placed.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where it is; `None` until its name is resolved.
    pub(super) fn address(&self) -> Option<Arc<ServerAddress>> {
        self.address.load_full()
    }

    /// The name to be resolved, and the port, if it is configured by a name.
    pub(crate) fn name_to_resolve(&self) -> Option<(&str, u16)> {
        match &self.server {
            SharedServer::Tcp(tcp) => match &tcp.host {
                Host::Name(name) => Some((name, tcp.port)),
                Host::Ip(_) => None,
            },
            SharedServer::Unix(_) => None,
        }
    }

    /// Notes where the server is.
    pub(crate) fn resolved(&self, address: SocketAddr) {
        let address = ServerAddress::Tcp(address);
        if self.address.load().as_deref() != Some(&address) {
            self.address.store(Some(Arc::new(address)));
        }
    }

    /// Works with what is known of the server. Purges that were read are applied to RAM before the lock is
    /// left, so that nothing they apply to is served from this server afterwards.
    pub(super) fn with<T>(&self, memory: &impl Memory, work: impl FnOnce(&mut Server) -> T) -> T {
        let server = &mut self.state.lock().server;
        let result = work(server);
        server.take_unapplied().iter().for_each(|record| memory.apply(record));
        result
    }

    /// Works with what is known of the server, and whether it is used.
    pub(super) fn ask<T>(&self, work: impl FnOnce(&mut Server, bool) -> T) -> T {
        let state = &mut *self.state.lock();
        work(&mut state.server, !state.health.is_ejected())
    }

    /// Notes a purge of this node, which has been applied to RAM.
    pub(super) fn owe(&self, record: Record, now: Timestamp) {
        self.state.lock().server.owe(record, now);
    }

    /// Whether the server is used.
    pub(super) fn is_reachable(&self) -> bool {
        !self.state.lock().health.is_ejected()
    }

    /// Takes the outcome of a group of operations. Returns whether the server is used.
    pub(super) fn answered(&self, attempt: Attempt, fault: Option<&str>) -> bool {
        let mut state = self.state.lock();
        match fault {
            None => {
                state.health.answered(attempt);
                // The reason of an ejection stays as long as that.
                if !state.health.is_ejected() {
                    state.fault = None;
                }
            }
            Some(fault) => {
                state.health.failed(attempt, now());
                state.fault = Some(fault.into());
            }
        }
        !state.health.is_ejected()
    }

    /// Counts one.
    pub(super) fn count(&self, count: TierCount) {
        self.add(count, 1);
    }

    /// Counts `n`.
    pub(super) fn add(&self, count: TierCount, n: u64) {
        self.counts[count as usize].fetch_add(n, Relaxed);
    }

    /// The state, for status and metrics.
    pub(crate) fn state(&self) -> TierServerState {
        let state = self.state.lock();
        let log_fault =
            state.server.log_fault().map(|fault| format!("its purge log cannot be used: {}", fault.text()));
        TierServerState {
            name: self.name.to_string(),
            is_ejected: state.health.is_ejected(),
            ejections: state.health.ejections(),
            is_current: state.server.is_current(now()),
            owes_purges: state.server.owes_any(),
            log_fault: state.server.log_fault().is_some(),
            fault: state.fault.as_deref().map(str::to_owned).or(log_fault),
            counts: self.counts.iter().map(|count| count.load(Relaxed)).collect(),
        }
    }

    /// Whether the upkeep has something to do: purges to deliver, a log to read, or a trial.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        let state = &mut *self.state.lock();
        let server = &state.server;
        // As the machine that reads the log counts: a trial that nothing follows would count as failed.
        let half = server.settings().local_ttl / 2;
        let is_old = server.read_at().is_none_or(|read_at| now.since(read_at) > half);
        (server.owes_any() || is_old) && state.health.may_use(now) != Use::Ejected
    }
}
