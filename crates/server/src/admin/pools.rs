//! Queries and commands about pools, in their wire format.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The selected pools, and the number of their classes to report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskPools {
    /// Their names; all if empty.
    pub names: Vec<String>,
    /// How many classes of each are reported, the most requested first.
    pub classes: usize,
    /// Only these classes, unless empty.
    pub class: Vec<String>,
}

impl AskPools {
    /// The default number of classes: one screen.
    pub const CLASSES: usize = 10;
}

impl Default for AskPools {
    fn default() -> AskPools {
        AskPools { names: Vec::new(), classes: AskPools::CLASSES, class: Vec::new() }
    }
}

/// The response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pools {
    /// The pools, in the order of the configuration.
    pub pools: Vec<PoolDetail>,
}

/// The full state of a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolDetail {
    /// Its name.
    pub name: String,
    /// Its algorithm.
    pub algorithm: String,
    /// Its classifier; `None` if it does not use classes.
    pub classifier: Option<ClassifierDetail>,
    /// Whether only the largest group of backends of one version serves.
    pub single_version: bool,
    /// The values of the settings that sources may change, by name, from the configuration or a source; empty if it
    /// does not choose by résumé.
    pub settings: BTreeMap<String, f64>,
    /// Sources of more backends than the configuration lists.
    pub sources: Vec<SourceDetail>,
    /// The addresses of backends that were removed by command and not added again.
    pub removed: Vec<String>,
    /// Requests in flight to its backends.
    pub in_flight: u64,
    /// Requests in flight per backend, the mean over all: a recent average if it chooses by résumé, the current value
    /// otherwise.
    pub mean_backlog: f64,
    /// The age of the oldest request in flight, in seconds; `None` if there is none.
    pub oldest_seconds: Option<f64>,
    /// Its queue.
    pub queue: QueueDetail,
    /// Its workers' skills; `None` if it does not choose by résumé.
    pub skills: Option<SkillsDetail>,
    /// Its backends.
    pub backends: Vec<BackendDetail>,
    /// The selected classes.
    pub classes: Vec<ClassDetail>,
    /// The last choices, the newest first.
    pub choices: Vec<ChoiceDetail>,
}

/// A classifier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassifierDetail {
    /// Its rule.
    pub text: String,
    /// Its fingerprint, 16 hexadecimal digits.
    pub fingerprint: String,
    /// The file of its table; `None` without one.
    pub table: Option<TableDetail>,
}

/// A table of classes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDetail {
    /// The number of its lines in force; 0 if none could be read yet.
    pub lines: u64,
    /// The reason why it cannot be read or used; `None` if it can. The previous table stays in force.
    pub lost: Option<String>,
}

/// A source of backends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceDetail {
    /// Its description.
    pub source: String,
    /// Whether it has ever answered.
    pub told: bool,
    /// The number of its backends.
    pub backends: u64,
    /// The number of its invalid entries.
    pub ignored: u64,
    /// Its settings, by name.
    pub settings: BTreeMap<String, f64>,
    /// The reason why it cannot be reached or read; `None` if it can. Its last backends stay in force.
    pub lost: Option<String>,
}

/// The queue of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueDetail {
    /// Waiting requests.
    pub waiting: u64,
    /// The limit.
    pub limit: u64,
    /// Requests that had to wait, since the start.
    pub queued: u64,
    /// Requests that found it full, since the start.
    pub refused: u64,
}

/// The skills of a pool's workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillsDetail {
    /// Their source: `reported` or `inferred`.
    pub by: String,
    /// Classes known.
    pub classes: u64,
    /// Skills known, over all classes and workers.
    pub skills: u64,
    /// Of these, reported by workers.
    #[serde(default)]
    pub reported: u64,
    /// Of these, inferred from response times.
    #[serde(default)]
    pub inferred: u64,
    /// Of these, assumed until the worker answers.
    #[serde(default)]
    pub assumed: u64,
    /// Classes forgotten to make room for others, since the start.
    pub forgotten: u64,
    /// Reported classes for which there was no room, since the start.
    pub refused: u64,
}

/// A backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackendDetail {
    /// Its address.
    pub address: String,
    /// Its share of the load relative to others.
    pub weight: u64,
    /// Its state: `healthy`, `silent`, `failing`, `ejected`, `down`, `draining` or `sidelined`.
    pub state: String,
    /// Whether its checks fail but it stays in service, because no more of the pool may be out of service.
    #[serde(default)]
    pub spared: bool,
    /// The remaining time of its ejection, in seconds; `None` if it is not ejected.
    pub ejected_seconds: Option<f64>,
    /// Its requests in flight.
    pub in_flight: u64,
    /// The age of the oldest of them, in seconds.
    pub oldest_seconds: Option<f64>,
    /// Requests in flight to it: a recent average if the pool chooses by résumé, the current value otherwise.
    pub mean_backlog: f64,
    /// The share of recent requests to it that failed, from 0 to 1.
    pub faults: f64,
    /// The version it reported.
    pub version: Option<String>,
    /// Its known résumé.
    pub resume: Option<ResumeDetail>,
    /// The number of classes in which it is skilled; `None` if the pool does not choose by résumé.
    pub skills: Option<u64>,
    /// Requests given to it, since the start.
    pub picks: u64,
    /// Failures to connect to it, since the start.
    pub connect_failures: u64,
}

/// The known résumé of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeDetail {
    /// The instance of the worker, new with each start.
    pub instance: String,
    /// The revision of its résumé.
    pub revision: u64,
}

/// A class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassDetail {
    /// Its name; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// Its share of recent requests, from 0 to 1.
    pub share: f64,
    /// The workers skilled in it, the best first.
    pub skilled: Vec<SkillDetail>,
}

/// A worker's skill in a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkillDetail {
    /// Its address; `None` if it has left meanwhile.
    pub backend: Option<String>,
    /// Requests per second; `None` if it is assumed.
    pub score: Option<f64>,
    /// The source: `reported` by the worker, `inferred` from response times, or `assumed` until it answers.
    pub by: String,
}

/// A choice of a backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChoiceDetail {
    /// Its age, in seconds.
    pub ago_seconds: f64,
    /// The class of the request; `None` without one.
    pub class: Option<String>,
    /// The address of the backend; `None` if it has left since.
    pub backend: Option<String>,
    /// The reason, in a word.
    pub reason: String,
    /// How many backends had been tried for this request before.
    pub tried: u64,
}

/// A command to add a backend to a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddBackend {
    /// The pool.
    pub pool: String,
    /// The address.
    pub backend: String,
    /// Its share of the load relative to others.
    #[serde(default = "AddBackend::usual_weight")]
    pub weight: u32,
}

impl AddBackend {
    fn usual_weight() -> u32 {
        1
    }
}

/// A command to remove a backend from a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoveBackend {
    /// The pool.
    pub pool: String,
    /// The address.
    pub backend: String,
}

/// A command to stop or resume new requests to a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainBackend {
    /// The pool.
    pub pool: String,
    /// The address.
    pub backend: String,
    /// Whether requests resume.
    #[serde(default)]
    pub undo: bool,
}

/// The result of a command to a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ordered {
    /// The pool.
    pub pool: String,
    /// The address, in canonical form.
    pub backend: String,
    /// Requests in flight to the backend when the command was executed.
    pub in_flight: u64,
    /// How many backends the pool has now.
    pub backends: u64,
    /// How many of them are healthy, or untried; `None` from a version that does not report it.
    pub healthy: Option<u64>,
}
