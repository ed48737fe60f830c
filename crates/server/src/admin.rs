//! The admin interface: what can be asked of a running process and told to it, and both ends of the talk.
//!
//! The server end speaks HTTP over a Unix socket that only its owner may open, or over TCP to callers with a token.
//! It acts through [`Control`] alone. The client end is what the subcommands use.

pub mod client;
pub mod endpoint;
mod listener;
mod metrics;
mod pools;
mod server;

pub use client::AdminClient;
pub use endpoint::Endpoint;
pub use listener::{Bound, Callers};
pub use pools::*;
pub use server::{Access, Server, Token};

use std::borrow::Cow;
use std::collections::BTreeMap;

use sandarac_balance::quantile;
use serde::{Deserialize, Serialize};

use crate::logs::{Filter, Subscription, Viewer};

/// The running process, as the admin interface sees it. Calls come from threads that may block; they MUST NOT be
/// slower than what they ask for needs, and MUST NOT hold anything that a worker needs to answer a request.
pub trait Control: Send + Sync + 'static {
    /// How the process is.
    fn status(&self) -> Status;

    /// What was counted so far.
    fn stats(&self) -> Stats;

    /// Makes stored objects unusable, or stale where it is soft. On return no request begun later can be answered with
    /// what they were.
    fn purge(&self, purge: &Purge) -> Result<Purged, Refusal>;

    /// Bans what an expression matches.
    fn ban(&self, expression: &str) -> Result<Banned, Refusal>;

    /// Reads the configuration again and takes it up if it is valid; otherwise nothing changes.
    fn reload(&self) -> Result<Reloaded, Refusal>;

    /// What is known of pools.
    fn pools(&self, ask: &AskPools) -> Result<Pools, Refusal>;

    /// Adds a backend to a pool.
    fn add_backend(&self, order: &AddBackend) -> Result<Ordered, Refusal>;

    /// Removes a backend from a pool. Requests in flight to it go on.
    fn remove_backend(&self, order: &RemoveBackend) -> Result<Ordered, Refusal>;

    /// Gives a backend no new requests, or gives it some again.
    fn drain_backend(&self, order: &DrainBackend) -> Result<Ordered, Refusal>;

    /// Begins to watch the exchanges, at most `limit` a second.
    fn subscribe(&self, viewer: Viewer, limit: u64, filter: Filter) -> Option<Subscription>;
}

/// How a process is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The version of the program.
    pub version: String,
    /// The process id.
    pub pid: u32,
    /// Whether new connections are taken.
    pub state: State,
    /// When it started (RFC 3339).
    pub started: String,
    /// For how long it has run, in seconds.
    pub uptime_seconds: u64,
    /// The file that the configuration came from; `None` where it was the command line.
    pub config: Option<String>,
    /// The cache profile, `safe` or `rfc`.
    pub profile: String,
    /// How many workers there are.
    pub threads: u64,
    /// The addresses really bound.
    pub listeners: Vec<String>,
    /// Where the admin interface is.
    pub admin: String,
    /// The cache's memory.
    pub cache: CacheStatus,
    /// The pools.
    pub pools: Vec<PoolStatus>,
}

/// What every version of a process says of how it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Standing {
    /// The process id.
    pub pid: u32,
    /// Whether new connections are taken.
    pub state: State,
}

/// Whether new connections are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// They are.
    Running,
    /// The process finishes what it has begun and ends.
    Draining,
}

/// The cache's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheStatus {
    /// The most it may take, in bytes.
    pub limit_bytes: u64,
    /// What it takes, in bytes.
    pub used_bytes: u64,
    /// How many objects it holds.
    pub objects: u64,
}

/// A pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolStatus {
    /// Its name.
    pub name: String,
    /// Requests in flight to a backend, in the mean over all: of late where it chooses by résumé, now otherwise.
    pub mean_backlog: f64,
    /// For how long the oldest request has been in flight, in seconds; `None` where none is.
    pub oldest_seconds: Option<f64>,
    /// Requests that wait for a place at a backend.
    pub waiting: u64,
    /// Its backends.
    pub backends: Vec<BackendStatus>,
}

/// A backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendStatus {
    /// Where it is.
    pub address: String,
    /// In a word, whether requests go to it: `healthy`, `untried`, `silent`, `failing`, `ejected`, `down`, `draining` or `sidelined`.
    pub state: String,
    /// Requests that it works on now.
    pub in_flight: u64,
}

/// What was counted since the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Counters and gauges.
    pub metrics: Vec<Metric>,
    /// Times from the first byte of a request to the end of its answer.
    pub latency: Latency,
    /// Time from the choice of a backend to the head of its response, by pool.
    #[serde(default)]
    pub origin_latency: BTreeMap<String, Latency>,
}

/// One counter or gauge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The name: lower-case words with underscores, the unit last where there is one.
    pub name: Cow<'static, str>,
    /// Whether it only grows.
    pub kind: MetricKind,
    /// What it counts, a sentence.
    pub text: Cow<'static, str>,
    /// What tells it from others of its name.
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
    /// A number of things.
    Whole(u64),
    /// A mean, a share, or seconds.
    Part(f64),
}

impl Value {
    /// The number of things; what is no whole number is rounded down.
    pub fn whole(self) -> u64 {
        match self {
            Value::Whole(number) => number,
            Value::Part(number) => number as u64,
        }
    }

    /// Whether it is nothing.
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

    /// A gauge that is no number of things, without labels.
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
    /// The sum of all metrics of that name, which are whole numbers; 0 where there is none.
    pub fn get(&self, name: &str) -> u64 {
        self.metrics.iter().filter(|metric| metric.name == name).map(|metric| metric.value.whole()).sum()
    }
}

/// A histogram of durations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Upper bound in microseconds and count of each bucket that counted anything, in ascending order.
    pub buckets: Vec<(u64, u64)>,
    /// The sum of all durations, in microseconds.
    pub sum_us: u64,
}

impl Latency {
    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|&(_, count)| count).sum()
    }

    /// The duration, in microseconds, that at least `fraction` (0 to 1) of those counted do not exceed.
    pub fn quantile_us(&self, fraction: f64) -> Option<u64> {
        let at = quantile(self.buckets.iter().map(|&(_, count)| count), self.count(), fraction)?;
        Some(self.buckets[at].0)
    }

    /// What was counted since `earlier`, a histogram of the same process.
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

/// What to purge.
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

/// What a purge did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// How many objects it concerned.
    pub objects: u64,
}

/// What a ban did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Banned {
    /// How many bans there are now that some stored object has not been tested against.
    pub active: u64,
}

/// What a reload did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// The file read.
    pub config: String,
    /// What the file says that takes effect only at the next start, and other remarks.
    pub warnings: Vec<String>,
}

/// Why something asked for was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Whether asking differently would help.
    #[serde(skip, default = "Refusal::default_fault")]
    pub fault: Fault,
    /// What is wrong.
    pub what: String,
    /// Where: a part of the body or expression, or file, line and column.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// What is wrong with the configuration, as `sandarac check` shows it: one or more paragraphs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
}

/// Whose fault a refusal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The caller's: what was asked makes no sense.
    Caller,
    /// This process's: it could not do it.
    Process,
}

impl Refusal {
    /// What was asked makes no sense.
    pub fn invalid(what: impl Into<String>) -> Refusal {
        Refusal { fault: Fault::Caller, what: what.into(), place: None, instead: None, report: None }
    }

    /// It could not be done.
    pub fn failed(what: impl Into<String>) -> Refusal {
        Refusal { fault: Fault::Process, ..Refusal::invalid(what) }
    }

    /// Says where it is wrong.
    pub fn at(self, place: impl Into<String>) -> Refusal {
        Refusal { place: Some(place.into()), ..self }
    }

    /// Says what to do instead.
    pub fn instead(self, instead: impl Into<String>) -> Refusal {
        Refusal { instead: Some(instead.into()), ..self }
    }

    /// Shows what is wrong with the configuration.
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
