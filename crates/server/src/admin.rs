//! The admin interface: queries and commands to a running process, with the server and the client.
//!
//! The server speaks HTTP over a Unix socket that only its owner may open, or over TCP to callers with a token. It acts
//! only through [`Control`]. The subcommands use the client.

pub mod client;
pub mod endpoint;
mod listener;
mod metrics;
mod pools;
mod server;
mod tls;

pub use client::AdminClient;
pub use endpoint::Endpoint;
pub use listener::{Bound, Callers};
pub use pools::*;
pub(crate) use server::AdminSocket;
pub use server::{Access, Server, Token};
pub use tls::*;

use std::borrow::Cow;
use std::collections::BTreeMap;

use sandarac_balance::quantile;
use serde::{Deserialize, Serialize};

use crate::logs::{Filter, Subscription, Viewer};

/// The running process, as seen by the admin interface. Calls come from threads that may block. They MUST NOT take
/// longer than needed, and MUST NOT hold anything that a core needs to answer a request.
pub trait Control: Send + Sync + 'static {
    /// The status of the process.
    fn status(&self) -> Status;

    /// TLS of the listeners.
    fn tls(&self, ask: &AskTls) -> TlsStatus;

    /// The statistics so far.
    fn stats(&self) -> Stats;

    /// Removes stored objects, or makes them stale if the purge is soft. After it returns, no later request can be
    /// answered with their previous state.
    fn purge(&self, purge: &Purge) -> Result<Purged, Refusal>;

    /// Bans all objects that match an expression.
    fn ban(&self, expression: &str) -> Result<Banned, Refusal>;

    /// What the shared tier has for a URL.
    fn shared(&self, ask: &AskShared) -> Result<SharedContent, Refusal>;

    /// Reads the configuration again and applies it if it is valid; otherwise nothing changes.
    fn reload(&self) -> Result<Reloaded, Refusal>;

    /// Hands over to a new process.
    fn upgrade(&self, order: &Upgrade) -> Result<Upgraded, Refusal>;

    /// The state of pools.
    fn pools(&self, ask: &AskPools) -> Result<Pools, Refusal>;

    /// Adds a backend to a pool.
    fn add_backend(&self, order: &AddBackend) -> Result<Ordered, Refusal>;

    /// Removes a backend from a pool. Requests in flight to it continue.
    fn remove_backend(&self, order: &RemoveBackend) -> Result<Ordered, Refusal>;

    /// Stops or resumes new requests to a backend.
    fn drain_backend(&self, order: &DrainBackend) -> Result<Ordered, Refusal>;

    /// Begins to watch the exchanges, at most `limit` a second.
    fn subscribe(&self, viewer: Viewer, limit: u64, filter: Filter) -> Option<Subscription>;
}

/// The status of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The version of the program.
    pub version: String,
    /// The process id.
    pub pid: u32,
    /// Whether new connections are accepted.
    pub state: State,
    /// Its start time (RFC 3339).
    pub started: String,
    /// Its uptime, in seconds.
    pub uptime_seconds: u64,
    /// The time since it began to drain, in seconds; `None` if it does not drain.
    pub draining_seconds: Option<u64>,
    /// The configuration file; `None` for the command line.
    pub config: Option<String>,
    /// The cache profile, `safe` or `rfc`.
    pub profile: String,
    /// The number of cores.
    pub threads: u64,
    /// The processes that this one has taken over from and that have connections left, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predecessors: Vec<u32>,
    /// The actual addresses.
    pub listeners: Vec<String>,
    /// The address of the admin interface.
    pub admin: String,
    /// The cache's memory.
    pub cache: CacheStatus,
    /// Memory and descriptors that are held for clients.
    #[serde(default)]
    pub holdings: HoldingsStatus,
    /// The parts of the process that have panicked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub panics: Vec<PanicCount>,
    /// The servers of the shared tier.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<SharedServerStatus>,
    /// The pools.
    pub pools: Vec<PoolStatus>,
}

/// Panics of a part of the process. Each is a fault in the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PanicCount {
    /// The part that they ended.
    pub part: String,
    /// How many there were.
    pub count: u64,
}

/// The part of the status that every version has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Standing {
    /// The process id.
    pub pid: u32,
    /// Whether new connections are accepted.
    pub state: State,
}

/// Whether new connections are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// They are.
    Running,
    /// The process finishes exchanges in progress and ends.
    Draining,
}

/// The cache's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheStatus {
    /// The limit, in bytes.
    pub limit_bytes: u64,
    /// The use, in bytes.
    pub used_bytes: u64,
    /// The number of objects.
    pub objects: u64,
}

/// Memory and descriptors that are held for clients, with the most of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldingsStatus {
    /// Bytes of memory, beside stored objects.
    pub bytes: u64,
    /// The most such bytes.
    pub limit_bytes: u64,
    /// Open descriptors by their use.
    pub descriptors: Vec<DescriptorsStatus>,
}

/// Open descriptors of one use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescriptorsStatus {
    /// The use: `clients`, `backends`, `spools` or `files`.
    pub of: String,
    /// How many are open.
    pub open: u64,
    /// How many may be.
    pub limit: u64,
}

/// A server of the shared tier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedServerStatus {
    /// Its address, as configured.
    pub address: String,
    /// Its state: `used`, `failing` if the last operation was not answered, `ejected` if it is left alone for a while,
    /// or `unknown` until its purge log has been read.
    pub state: String,
    /// What is wrong, if anything is.
    #[serde(default)]
    pub fault: Option<String>,
    /// The mean time of a group of operations, in microseconds.
    pub mean_us: u64,
    /// Entries that answered a request.
    pub hits: u64,
    /// Lookups that led to a fetch.
    pub misses: u64,
    /// Entries that the server lost while they were in use, written back from the memory of this node.
    pub restored: u64,
    /// Entries written.
    pub fills: u64,
    /// Whether it does not know of all purges yet.
    pub owes_purges: bool,
}

/// A pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolStatus {
    /// Its name.
    pub name: String,
    /// Requests in flight per backend, the mean over all: a recent average if the pool chooses by résumé, the current
    /// value otherwise.
    pub mean_backlog: f64,
    /// The age of the oldest request in flight, in seconds; `None` if there is none.
    pub oldest_seconds: Option<f64>,
    /// Requests waiting for a place at a backend.
    pub waiting: u64,
    /// Its backends.
    pub backends: Vec<BackendStatus>,
}

/// A backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendStatus {
    /// Its address.
    pub address: String,
    /// Its state: `healthy`, `untried`, `silent`, `failing`, `ejected`, `down`, `draining` or `sidelined`.
    pub state: String,
    /// Its requests in flight.
    pub in_flight: u64,
}

/// The statistics since the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// The time, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Counters and gauges.
    pub metrics: Vec<Metric>,
    /// Times from the first byte of a request to the end of its response.
    pub latency: Latency,
    /// Times from the choice of a backend to the head of its response, by pool.
    #[serde(default)]
    pub origin_latency: BTreeMap<String, Latency>,
}

/// One counter or gauge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The name: lower-case words with underscores, the unit last if there is one.
    pub name: Cow<'static, str>,
    /// Whether it only grows.
    pub kind: MetricKind,
    /// A description, as a sentence.
    pub text: Cow<'static, str>,
    /// The labels that distinguish it from others of its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
    /// The value.
    pub value: Value,
}

/// The name and the value of a label.
pub type Label = (Cow<'static, str>, String);

/// The value of a metric.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A count.
    Whole(u64),
    /// A mean, a share, or seconds.
    Part(f64),
}

impl Value {
    /// The count; a fraction is rounded down.
    pub fn whole(self) -> u64 {
        match self {
            Value::Whole(number) => number,
            Value::Part(number) => number as u64,
        }
    }

    /// Whether it is zero.
    pub fn is_zero(self) -> bool {
        matches!(self, Value::Whole(0)) || self == Value::Part(0.0)
    }
}

/// Whether a metric only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricKind {
    /// It only grows while the process runs.
    Counter,
    /// It goes up and down.
    Gauge,
}

impl Metric {
    /// A counter without labels.
    pub fn counter(name: &'static str, text: &'static str, value: u64) -> Metric {
        let (name, text) = (name.into(), text.into());
        Metric { name, kind: MetricKind::Counter, text, labels: Vec::new(), value: Value::Whole(value) }
    }

    /// A gauge without labels.
    pub fn gauge(name: &'static str, text: &'static str, value: u64) -> Metric {
        Metric { kind: MetricKind::Gauge, ..Metric::counter(name, text, value) }
    }

    /// A gauge that is not a count, without labels.
    pub fn measure(name: &'static str, text: &'static str, value: f64) -> Metric {
        Metric { value: Value::Part(value), ..Metric::gauge(name, text, 0) }
    }

    /// The same with one more label.
    pub fn with(mut self, label: &'static str, value: impl Into<String>) -> Metric {
        self.labels.push((label.into(), value.into()));
        self
    }
}

impl Stats {
    /// The sum of all metrics of that name, which are whole numbers; 0 if there is none.
    pub fn get(&self, name: &str) -> u64 {
        self.metrics.iter().filter(|metric| metric.name == name).map(|metric| metric.value.whole()).sum()
    }
}

/// A histogram of durations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Upper bound in microseconds and count of each non-empty bucket, in ascending order.
    pub buckets: Vec<(u64, u64)>,
    /// The sum of all durations, in microseconds.
    pub sum_us: u64,
}

impl Latency {
    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|&(_, count)| count).sum()
    }

    /// The duration, in microseconds, that at least `fraction` (0 to 1) of all do not exceed.
    pub fn quantile_us(&self, fraction: f64) -> Option<u64> {
        let at = quantile(self.buckets.iter().map(|&(_, count)| count), self.count(), fraction)?;
        Some(self.buckets[at].0)
    }

    /// The difference to `earlier`, a histogram of the same process.
    pub fn since(&self, earlier: &Latency) -> Latency {
        let before =
            |upper| earlier.buckets.iter().find(|bucket| bucket.0 == upper).map_or(0, |bucket| bucket.1);
        let buckets = self.buckets.iter().map(|&(upper, count)| (upper, count.saturating_sub(before(upper))));
        Latency {
            buckets: buckets.filter(|&(_, count)| count > 0).collect(),
            sum_us: self.sum_us.saturating_sub(earlier.sum_us),
        }
    }
}

/// A purge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Purge {
    /// Absolute URLs; every variant of each.
    pub urls: Vec<String>,
    /// Tags, as origins give them in `Surrogate-Key`, `Cache-Tag` and `xkey`.
    pub tags: Vec<String>,
    /// Everything.
    pub all: bool,
    /// Mark stale instead of removing: grace still applies.
    pub soft: bool,
}

/// The result of a purge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// The number of objects affected in the memory of this node.
    pub objects: u64,
    /// The servers of the shared tier that do not know of it yet. They are told when they answer again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreached: Vec<String>,
    /// The URLs that a route with files answers. Files are not stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// A question about a URL in the shared tier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskShared {
    /// The absolute URL.
    pub url: String,
    /// Lines of the request that select a variant, or that the key has parts of: name and value.
    #[serde(default)]
    pub fields: Vec<(String, String)>,
    /// Whether all servers are asked, not only the one that has the key.
    #[serde(default)]
    pub everywhere: bool,
    /// Whether only key and server are told.
    #[serde(default)]
    pub only_where: bool,
    /// Whether the entries are removed.
    #[serde(default)]
    pub remove: bool,
}

/// What the shared tier has for a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedContent {
    /// The objects for it in the memory of this node.
    pub objects: u64,
    /// What is on servers.
    pub entries: Vec<SharedEntry>,
}

/// What a server has for a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedEntry {
    /// The scheme of the URL.
    pub scheme: String,
    /// The server.
    pub server: String,
    /// The key on the server.
    pub key: String,
    /// The kind of item; `None` if there is none.
    pub kind: Option<String>,
    /// Whether it would be used for a request.
    pub used: bool,
    /// Why it is used or not.
    pub why: String,
    /// Of a response: its status, its size and its times.
    pub response: Option<String>,
}

/// The result of a ban.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Banned {
    /// The number of bans with which some stored object has not been compared yet.
    pub active: u64,
    /// The servers of the shared tier that do not know of it yet. They are told when they answer again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreached: Vec<String>,
}

/// The result of a reload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// The file read.
    pub config: String,
    /// Settings of the file that take effect only at the next start, and other warnings.
    pub warnings: Vec<String>,
}

/// The process that is to take over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upgrade {
    /// The name in the abstract namespace of the Unix socket at which a process waits that wants to take over; without one the
    /// program is started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// The result of an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upgraded {
    /// The new process.
    pub pid: u32,
}

/// The reason why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Whether a different call would help.
    #[serde(skip, default = "Refusal::default_fault")]
    pub fault: Fault,
    /// The problem.
    pub what: String,
    /// Its place: a part of the body or expression, or file, line and column.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// A suggestion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// The errors of the configuration, as printed by `sandarac check`: one or more paragraphs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
}

/// The side at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The caller: the call is invalid.
    Caller,
    /// This process: it could not execute the call.
    Process,
}

impl Refusal {
    /// An invalid call.
    pub fn invalid(what: impl Into<String>) -> Refusal {
        Refusal { fault: Fault::Caller, what: what.into(), place: None, instead: None, report: None }
    }

    /// A failure of the process.
    pub fn failed(what: impl Into<String>) -> Refusal {
        Refusal { fault: Fault::Process, ..Refusal::invalid(what) }
    }

    /// Adds the place.
    pub fn at(self, place: impl Into<String>) -> Refusal {
        Refusal { place: Some(place.into()), ..self }
    }

    /// Adds a suggestion.
    pub fn instead(self, instead: impl Into<String>) -> Refusal {
        Refusal { instead: Some(instead.into()), ..self }
    }

    /// Adds the errors of the configuration.
    pub fn report(self, report: impl Into<String>) -> Refusal {
        Refusal { report: Some(report.into()), ..self }
    }

    fn default_fault() -> Fault {
        Fault::Process
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)?;
        if let Some(place) = &self.place {
            write!(f, "\n  at: {place}")?;
        }
        if let Some(instead) = &self.instead {
            write!(f, "\n  help: {instead}")?;
        }
        match &self.report {
            Some(report) => write!(f, "\n{report}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
pub(crate) use tests::status as example;

#[cfg(test)]
mod tests;
