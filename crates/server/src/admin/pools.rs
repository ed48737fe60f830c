//! Questions about pools and orders to them, as they go over the wire.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Which pools are meant, and how much of their classes is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskPools {
    /// Their names; all where there is none.
    pub names: Vec<String>,
    /// How many classes of each are told, those asked for most.
    pub classes: usize,
    /// These classes alone, where there is one.
    pub class: Vec<String>,
}

impl AskPools {
    /// So many classes are told unless more or less are asked for: a screen of them.
    pub const CLASSES: usize = 10;
}

impl Default for AskPools {
    fn default() -> AskPools {
        AskPools { names: Vec::new(), classes: AskPools::CLASSES, class: Vec::new() }
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pools {
    /// The pools, in the order of the configuration.
    pub pools: Vec<PoolDetail>,
}

/// A pool, with all that is known of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolDetail {
    /// Its name.
    pub name: String,
    /// How it chooses.
    pub algorithm: String,
    /// What sorts its requests into classes; `None` where it does not tell requests apart.
    pub classifier: Option<ClassifierDetail>,
    /// Whether only the largest group of backends of one version serves.
    pub single_version: bool,
    /// What is in force of the settings that sources may change, by name: as configured, or as a source says; empty where it
    /// does not choose by résumé.
    pub settings: BTreeMap<String, f64>,
    /// Where more backends are found than the configuration names.
    pub sources: Vec<SourceDetail>,
    /// The addresses of backends that were removed by order and not added again.
    pub removed: Vec<String>,
    /// Requests in flight to its backends.
    pub in_flight: u64,
    /// Requests in flight to a backend, in the mean over all: of late where it chooses by résumé, now otherwise.
    pub mean_backlog: f64,
    /// For how long the oldest request has been in flight, in seconds; `None` where none is.
    pub oldest_seconds: Option<f64>,
    /// The queue before it.
    pub queue: QueueDetail,
    /// What is known of its workers' skills; `None` where it does not choose by résumé.
    pub skills: Option<SkillsDetail>,
    /// Its backends.
    pub backends: Vec<BackendDetail>,
    /// The classes that were asked for.
    pub classes: Vec<ClassDetail>,
    /// The last choices, the newest first.
    pub choices: Vec<ChoiceDetail>,
}

/// What sorts requests into classes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassifierDetail {
    /// What it goes by.
    pub text: String,
    /// Its fingerprint, 16 hexadecimal digits.
    pub fingerprint: String,
    /// The file that it goes by; `None` where it goes by none.
    pub table: Option<TableDetail>,
}

/// A table of classes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDetail {
    /// How many lines of it are in force; 0 where none could be read yet.
    pub lines: u64,
    /// Why it cannot be read or taken; `None` where it can. The one before stays in force.
    pub lost: Option<String>,
}

/// A source of backends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceDetail {
    /// What it is.
    pub source: String,
    /// Whether anything was heard of it yet.
    pub told: bool,
    /// How many backends it names.
    pub backends: u64,
    /// How many of its entries made no sense.
    pub ignored: u64,
    /// The settings that it gives, by name.
    pub settings: BTreeMap<String, f64>,
    /// Why it cannot be reached or read; `None` where it can. What it named last stays in force.
    pub lost: Option<String>,
}

/// The queue before a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueDetail {
    /// Requests that wait now.
    pub waiting: u64,
    /// The most that may.
    pub limit: u64,
    /// Requests that had to wait, ever.
    pub queued: u64,
    /// Requests that found it full, ever.
    pub refused: u64,
}

/// What is known of the skills of a pool's workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillsDetail {
    /// Whose word counts: `reported` or `inferred`.
    pub by: String,
    /// Classes known.
    pub classes: u64,
    /// Skills known, over all classes and workers.
    pub skills: u64,
    /// Those of them that workers reported.
    #[serde(default)]
    pub reported: u64,
    /// Those of them that follow from how long answers took.
    #[serde(default)]
    pub inferred: u64,
    /// Those of them that hold until the worker answers.
    #[serde(default)]
    pub assumed: u64,
    /// Classes forgotten to make room for others, ever.
    pub forgotten: u64,
    /// Classes that workers reported and there was no room for, ever.
    pub refused: u64,
}

/// A backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackendDetail {
    /// Where it is.
    pub address: String,
    /// How much of the load it is to bear, compared with others.
    pub weight: u64,
    /// In a word, whether requests go to it: `healthy`, `silent`, `failing`, `ejected`, `down`, `draining` or `sidelined`.
    pub state: String,
    /// Whether its checks fail, and it is in service all the same, as no more of the pool may be out.
    #[serde(default)]
    pub spared: bool,
    /// For how much longer it is ejected, in seconds; `None` where it is not.
    pub ejected_seconds: Option<f64>,
    /// Requests that it works on now.
    pub in_flight: u64,
    /// For how long it has been at the oldest of them, in seconds.
    pub oldest_seconds: Option<f64>,
    /// Requests in flight to it: of late where the pool chooses by résumé, now otherwise.
    pub mean_backlog: f64,
    /// The share of requests to it that failed of late, from 0 to 1.
    pub faults: f64,
    /// The version it announced.
    pub version: Option<String>,
    /// Which of its résumés is known.
    pub resume: Option<ResumeDetail>,
    /// In how many classes it is skilled; `None` where the pool does not choose by résumé.
    pub skills: Option<u64>,
    /// Requests that it was given, ever.
    pub picks: u64,
    /// Failures to connect to it, ever.
    pub connect_failures: u64,
}

/// Which résumé of a worker is known.
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
    /// Its share of the requests of late, from 0 to 1.
    pub share: f64,
    /// The workers skilled in it, the best first.
    pub skilled: Vec<SkillDetail>,
}

/// How good a worker is at a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkillDetail {
    /// Its address; `None` where it has left meanwhile.
    pub backend: Option<String>,
    /// Requests per second.
    pub score: f64,
    /// Whose word that is: `reported` by the worker, `inferred` from how long it took, or `assumed` until it answers.
    pub by: String,
}

/// A choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChoiceDetail {
    /// How long ago it was, in seconds.
    pub ago_seconds: f64,
    /// The class of the request; `None` where it is of none.
    pub class: Option<String>,
    /// The address of the backend; `None` where it has left since.
    pub backend: Option<String>,
    /// Why it was this one, in a word.
    pub reason: String,
    /// How many skilled workers were passed over because of their backlog.
    pub skipped: u64,
    /// How many backends had been tried for this request before.
    pub tried: u64,
}

/// An order to add a backend to a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddBackend {
    /// The pool.
    pub pool: String,
    /// The address.
    pub backend: String,
    /// How much of the load it is to bear, compared with others.
    #[serde(default = "AddBackend::usual_weight")]
    pub weight: u32,
}

impl AddBackend {
    fn usual_weight() -> u32 {
        1
    }
}

/// An order to remove a backend from a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoveBackend {
    /// The pool.
    pub pool: String,
    /// The address.
    pub backend: String,
}

/// An order to give a backend no new requests, or to give it some again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainBackend {
    /// The pool.
    pub pool: String,
    /// The address.
    pub backend: String,
    /// Whether it is to get some again.
    #[serde(default)]
    pub undo: bool,
}

/// What an order to a pool did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ordered {
    /// The pool.
    pub pool: String,
    /// The address, as it is known.
    pub backend: String,
    /// Requests in flight to the backend when the order was carried out.
    pub in_flight: u64,
    /// How many backends the pool has now.
    pub backends: u64,
}
