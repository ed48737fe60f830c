//! The scenario of a simulation, read from a TOML file.

mod algorithms;

use std::fmt;

use sandarac_balance::ResumeSettings;
use serde::Deserialize;

use algorithms::WrittenAlgorithm;
pub use algorithms::{Algorithm, AlgorithmKind};

use crate::trace::Trace;

/// The most slots in the object caches of all workers, so that a scenario fits into memory.
const MAX_PLACES: u64 = 1 << 28;

/// The most workers times balancers, for the same reason: each takes a kilobyte.
const MAX_BACKENDS: u64 = 1 << 18;

/// The most requests, about a day of simulation, and the most clients.
const MAX_REQUESTS: f64 = 1e10;
const MAX_CLIENTS: f64 = 1e6;

/// The limit of times, in milliseconds, of their factors and of rates. The clock of a simulation cannot
/// represent more.
const MAX_MILLIS: f64 = 1e6;
const MAX_FACTOR: f64 = 1000.0;
const MAX_RATE: f64 = 1e6;

/// A scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The title in tables and charts.
    pub title: String,
    /// Requests measured, after the warm-up.
    pub requests: u64,
    /// The least number of requests before the first is measured. The warm-up also lasts until every object
    /// was requested.
    pub warm_up: u64,
    /// The number of balancers before the workers; each request comes to one of them.
    pub balancers: u32,
    /// Equal seeds give equal simulations.
    pub seed: u64,
    /// The sites that are requested.
    pub sites: Sites,
    /// The workers.
    pub workers: Workers,
    /// The arrival of requests.
    pub load: Load,
    /// The events during the simulation, in order.
    pub events: Vec<Event>,
    /// The algorithms to compare.
    pub algorithms: Vec<Algorithm>,
}

/// The sites that are requested. A site is a request class, too.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sites {
    /// The number of sites.
    pub count: u32,
    /// `uniform`, or the decrease of popularity from site to site.
    pub popularity: Popularity,
    /// Objects of each site.
    pub objects: u32,
    /// Objects that a request needs.
    pub objects_per_request: u32,
    /// The popularity of the objects of a site.
    pub object_popularity: Popularity,
    /// Objects that change with each request, on average; a changed object has to be loaded again.
    pub churn: f64,
}

impl Default for Sites {
    fn default() -> Sites {
        Sites {
            count: 200,
            popularity: Popularity::Zipf(0.9),
            objects: 100,
            objects_per_request: 10,
            object_popularity: Popularity::Uniform,
            churn: 0.0,
        }
    }
}

/// The decrease of popularity with rank.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Popularity {
    /// No decrease.
    Uniform,
    /// The n-th is less popular than the first by n to the power of this.
    Zipf(f64),
    /// Halved after this many ranks.
    Exponential(f64),
}

/// The workers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Workers {
    /// The number of workers.
    pub count: u32,
    /// Objects that a worker's cache holds.
    pub cache: u32,
    /// Milliseconds that every request takes.
    pub fixed_ms: f64,
    /// Milliseconds for each object that has to be loaded.
    pub load_ms: f64,
    /// The variation of these times among equal requests: standard deviation over mean, of a lognormal
    /// distribution. 0 is no variation.
    pub jitter: f64,
    /// The requests that a worker works on at a time. They do not slow each other.
    pub concurrency: u32,
    /// The slowness of the first workers; that of the others is 1.
    pub slowness: Vec<f64>,
    /// The most requests that a balancer has in flight to each worker; further requests wait at the balancer.
    /// No limit unless set. LARD and the oracle ignore it, because they have limits of their own.
    pub max_in_flight: Option<u32>,
    /// The number of requests that a résumé covers.
    pub history: u64,
}

impl Default for Workers {
    fn default() -> Workers {
        Workers {
            count: 16,
            cache: 5000,
            fixed_ms: 5.0,
            load_ms: 10.0,
            jitter: 0.0,
            concurrency: 1,
            slowness: Vec::new(),
            max_in_flight: None,
            history: 9999,
        }
    }
}

/// The arrival of requests.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Load {
    /// A number of clients. Each sends its next request after the response and a pause.
    Clients {
        /// The number.
        count: u32,
        /// Milliseconds between a response and the next request.
        #[serde(default)]
        think_ms: f64,
    },
    /// A constant mean rate, at random times.
    Rate {
        /// The rate.
        per_second: f64,
    },
    /// The arrival times of a log. Not available in a file.
    #[serde(skip)]
    Log {
        /// The factor of speed.
        pace: f64,
    },
}

/// An event during the simulation. It begins a new phase of the report.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Event {
    /// Measured requests before it.
    pub at: u64,
    /// The kind of event.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// The kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EventKind {
    /// Only a new phase.
    Mark,
    /// A worker dies with all its requests; connections to it fail at once.
    Kill {
        /// The worker, from 0.
        worker: u32,
    },
    /// A dead worker returns, or a live one is restarted, with an empty cache and without a résumé.
    Restart {
        /// The worker, from 0.
        worker: u32,
    },
    /// A worker joins, with an empty cache and without a résumé.
    Join {
        /// Its slowness.
        #[serde(default = "one")]
        slowness: f64,
    },
    /// All workers are restarted, as with a deploy.
    Deploy,
    /// A worker is slower from now on.
    Slow {
        /// The worker, from 0.
        worker: u32,
        /// Its slowness.
        slowness: f64,
    },
    /// One site gets a share of all requests from now on; 0 ends it.
    Crowd {
        /// The site, from 0, the most popular.
        site: u32,
        /// From 0 to 1.
        share: f64,
    },
    /// The classifier changes: every class consists of other requests, under a name that another class had.
    /// The fingerprint shows it.
    Reclassify {
        /// Whether résumés carry the fingerprint. Without it, stale skills are accepted.
        #[serde(default = "yes")]
        fingerprint: bool,
    },
}

const fn one() -> f64 {
    1.0
}

const fn yes() -> bool {
    true
}

/// Why a file is not a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError(String);

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ScenarioError {}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    title: Option<String>,
    #[serde(default = "million")]
    requests: u64,
    #[serde(default)]
    warm_up: u64,
    #[serde(default = "single")]
    balancers: u32,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    sites: Sites,
    #[serde(default)]
    workers: Workers,
    load: Option<Load>,
    #[serde(default, rename = "event")]
    events: Vec<Event>,
    #[serde(default, rename = "algorithm")]
    algorithms: Vec<WrittenAlgorithm>,
}

const fn million() -> u64 {
    1_000_000
}

const fn single() -> u32 {
    1
}

/// The key or word that was probably meant, if `message` reports an unknown one and lists the known ones.
fn meant(message: &str) -> Option<&str> {
    let (unknown, known) = message.strip_prefix("unknown ")?.split_once(", expected ")?;
    let known: Vec<&str> = quoted(known).collect();
    sandarac_config::closest(quoted(unknown).next()?, &known)
}

/// The message, or a better one if it is about the data structures of this program.
fn plain(message: &str) -> &str {
    if message.contains("variant Load::") {
        "a load is [load.clients] with `count`, or [load.rate] with `per_second`"
    } else if message.contains("newtype variant") || message.contains("unit variant") {
        "a popularity is \"uniform\", { zipf = 0.9 } or { exponential = 20 }"
    } else if message.starts_with("wanted exactly 1 element") {
        "there are several of them; only one is possible"
    } else {
        message
    }
}

/// The texts in backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

impl Written {
    fn read(text: &str) -> Result<Written, ScenarioError> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let help = meant(error.message()).map(|meant| format!("\n  help: did you mean `{meant}`?"));
            let said = error.to_string().replace(error.message(), plain(error.message()));
            ScenarioError(format!("{}{}", said.trim_end(), help.unwrap_or_default()))
        })
    }

    fn scenario(self, title: String, load: Load) -> Result<Scenario, ScenarioError> {
        let algorithms = if self.algorithms.is_empty() { WrittenAlgorithm::usual() } else { self.algorithms };
        let read = |(place, written): (usize, &WrittenAlgorithm)| {
            written.read().map_err(|error| format!("algorithm {place}: {error}"))
        };
        let algorithms: Result<_, _> = (1..).zip(&algorithms).map(read).collect();
        Ok(Scenario {
            title,
            requests: self.requests,
            warm_up: self.warm_up,
            balancers: self.balancers,
            seed: self.seed,
            sites: self.sites,
            workers: self.workers,
            load,
            events: self.events,
            algorithms: algorithms.map_err(ScenarioError)?,
        })
    }
}

/// How a log is replayed with simulated workers.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSettings {
    /// The text of a scenario. Its workers, algorithms, events, balancers, warm-up and seed are used; all of
    /// it is optional.
    pub text: String,
    /// The title in tables and charts.
    pub title: String,
    /// The arrival of requests.
    pub load: Load,
    /// The number of workers, instead of the text's.
    pub workers: Option<u32>,
    /// Objects that a worker's cache holds, instead of the text's number. By default, the caches of all
    /// workers together hold the objects of the log.
    pub cache: Option<u32>,
    /// Milliseconds that every request takes, instead of the text's.
    pub fixed_ms: Option<f64>,
    /// Milliseconds for each object that has to be loaded, instead of the text's.
    pub load_ms: Option<f64>,
    /// Requests before the first is measured, instead of the text's number. By default a tenth of all.
    pub warm_up: Option<u64>,
    /// The seed, instead of the text's.
    pub seed: Option<u64>,
    /// The settings of `resume`, if the text lists no algorithms.
    pub resume: Option<ResumeSettings>,
}

impl Scenario {
    /// Parses a scenario.
    ///
    /// # Errors
    /// If the text is not TOML, has an unknown key, or requires the impossible; the message gives the place
    /// and the reason.
    pub fn from_toml(text: &str) -> Result<Scenario, ScenarioError> {
        let mut written = Written::read(text)?;
        let missing = |key: &str| ScenarioError(format!("missing field `{key}`"));
        let title = written.title.take().ok_or_else(|| missing("title"))?;
        let load = written.load.take().ok_or_else(|| missing("load"))?;
        let scenario = written.scenario(title, load)?;
        let Sites { count, objects, .. } = scenario.sites;
        let checked = scenario
            .check_sites()
            .and_then(|()| scenario.check(count, u64::from(count) * u64::from(objects)));
        checked.map_err(ScenarioError)?;
        Ok(scenario)
    }

    /// The scenario for the replay of a log. The log replaces sites, their popularity and the load;
    /// `settings` provide the rest.
    ///
    /// # Errors
    /// As with [`Scenario::from_toml`], or if no request is left to measure after the warm-up.
    pub fn for_log(settings: &LogSettings, trace: &Trace) -> Result<Scenario, ScenarioError> {
        let LogSettings { text, title, load, resume, .. } = settings;
        let mut written = Written::read(text)?;
        let said: toml::Table = toml::from_str(text).unwrap_or_default();
        let says_cache = said.get("workers").is_some_and(|workers| workers.get("cache").is_some());
        let usual = written.algorithms.is_empty();
        let workers = &mut written.workers;
        workers.count = settings.workers.unwrap_or(workers.count);
        if !says_cache {
            // The objects of the log fit into the caches of all workers together.
            workers.cache = trace.objects().div_ceil(workers.count.max(1)).max(1);
        }
        workers.cache = settings.cache.unwrap_or(workers.cache);
        workers.fixed_ms = settings.fixed_ms.unwrap_or(workers.fixed_ms);
        workers.load_ms = settings.load_ms.unwrap_or(workers.load_ms);
        written.seed = settings.seed.unwrap_or(written.seed);
        if !said.contains_key("warm_up") {
            written.warm_up = trace.requests() / 10;
        }
        written.warm_up = settings.warm_up.unwrap_or(written.warm_up);
        written.requests = trace.requests().saturating_sub(written.warm_up);
        let mut scenario = written.scenario(title.clone(), *load)?;
        if let (true, Some(configured)) = (usual, resume) {
            for algorithm in &mut scenario.algorithms {
                if let AlgorithmKind::Pool { resume, .. } = &mut algorithm.kind {
                    *resume = configured.clone();
                }
            }
        }
        scenario.check_for_log(trace).map_err(ScenarioError)?;
        Ok(scenario)
    }

    fn check_for_log(&self, trace: &Trace) -> Result<(), String> {
        if self.requests == 0 {
            return Err(format!(
                "none of the {} requests of the log is left to be measured after a warm-up of {}",
                trace.requests(),
                self.warm_up
            ));
        }
        if let Load::Log { pace } = self.load
            && !(pace > 0.0 && pace.is_finite())
        {
            return Err(format!("the pace has to be more than 0, and is {pace}"));
        }
        if self.events.iter().any(|event| matches!(event.kind, EventKind::Crowd { .. })) {
            return Err("a `crowd` is at one of the `sites` of a scenario, and a log has none".to_owned());
        }
        self.check(trace.classes(), u64::from(trace.objects().max(trace.classes())))
    }

    fn check_sites(&self) -> Result<(), String> {
        let sites = &self.sites;
        for (name, value) in [("count", sites.count), ("objects", sites.objects)] {
            if value == 0 {
                return Err(format!("sites.{name} has to be more than 0, and is 0"));
            }
        }
        if !(sites.churn >= 0.0 && sites.churn.is_finite()) {
            return Err(format!("sites.churn cannot be less than 0, and is {}", sites.churn));
        }
        let objects = u64::from(sites.count) * u64::from(sites.objects);
        if sites.churn > objects as f64 {
            return Err(format!(
                "sites.churn cannot be more than the {objects} objects that there are, and is {}",
                sites.churn
            ));
        }
        if sites.objects_per_request > sites.objects {
            return Err(format!(
                "sites.objects_per_request cannot be more than the {} objects of a site, and is {}",
                sites.objects, sites.objects_per_request
            ));
        }
        for (name, popularity) in
            [("popularity", sites.popularity), ("object_popularity", sites.object_popularity)]
        {
            if let Popularity::Zipf(value) | Popularity::Exponential(value) = popularity
                && !(value > 0.0 && value.is_finite())
            {
                return Err(format!("sites.{name} has to be more than 0, and is {value}"));
            }
        }
        Ok(())
    }

    /// Checks everything except the demand, which has this many classes and objects.
    fn check(&self, classes: u32, objects: u64) -> Result<(), String> {
        let workers = &self.workers;
        for (name, value, most) in [
            ("requests", self.requests as f64, MAX_REQUESTS),
            ("balancers", f64::from(self.balancers), f64::INFINITY),
            ("workers.count", f64::from(workers.count), f64::INFINITY),
            ("workers.cache", f64::from(workers.cache), f64::INFINITY),
            ("workers.fixed_ms", workers.fixed_ms, MAX_MILLIS),
            ("workers.history", workers.history as f64, f64::INFINITY),
        ] {
            positive(name, value, most)?;
        }
        not_negative("warm_up", self.warm_up as f64, MAX_REQUESTS)?;
        not_negative("workers.load_ms", workers.load_ms, MAX_MILLIS)?;
        not_negative("workers.jitter", workers.jitter, MAX_FACTOR)?;
        if workers.concurrency == 0 {
            return Err("workers.concurrency has to be more than 0".to_owned());
        }
        if workers.max_in_flight == Some(0) {
            return Err("workers.max_in_flight has to be more than 0".to_owned());
        }
        for &slowness in &workers.slowness {
            positive("workers.slowness", slowness, MAX_FACTOR)?;
        }
        match self.load {
            Load::Clients { count, think_ms } => {
                positive("load.clients.count", f64::from(count), MAX_CLIENTS)?;
                not_negative("load.clients.think_ms", think_ms, MAX_MILLIS)?;
            }
            Load::Rate { per_second } => positive("load.rate.per_second", per_second, MAX_RATE)?,
            Load::Log { .. } => {}
        }
        let joins = self.events.iter().filter(|event| matches!(event.kind, EventKind::Join { .. })).count();
        let most_workers = workers.count as usize + joins;
        if objects.saturating_mul(most_workers as u64) > MAX_PLACES {
            return Err(format!(
                "{objects} objects times {most_workers} workers are more than the {MAX_PLACES} that can be simulated"
            ));
        }
        if u64::from(self.balancers).saturating_mul(most_workers as u64) > MAX_BACKENDS {
            return Err(format!(
                "{} balancers times {most_workers} workers are more than the {MAX_BACKENDS} that can be simulated",
                self.balancers
            ));
        }
        for event in &self.events {
            if event.at >= self.requests {
                return Err(format!(
                    "an event at {} comes after the last of {} requests",
                    event.at, self.requests
                ));
            }
            match event.kind {
                EventKind::Kill { worker }
                | EventKind::Restart { worker }
                | EventKind::Slow { worker, .. }
                    if worker as usize >= most_workers =>
                {
                    return Err(format!(
                        "there is no worker {worker}; the first is 0, the last {}",
                        most_workers - 1
                    ));
                }
                EventKind::Join { slowness } | EventKind::Slow { slowness, .. } => {
                    positive(&format!("event at {}: slowness", event.at), slowness, MAX_FACTOR)?;
                }
                EventKind::Crowd { site, share } if site >= classes || !(0.0..=1.0).contains(&share) => {
                    return Err(format!(
                        "a crowd of {share} at site {site} cannot be: shares are from 0 to 1, sites from 0 to {}",
                        classes - 1
                    ));
                }
                _ => {}
            }
        }
        if self.events.windows(2).any(|two| two[0].at > two[1].at) {
            return Err("events are to be listed in their order".to_owned());
        }
        self.check_lives()
    }

    /// Without any worker no request would ever end.
    fn check_lives(&self) -> Result<(), String> {
        let mut alive = vec![true; self.workers.count as usize];
        for event in &self.events {
            match event.kind {
                EventKind::Kill { worker } | EventKind::Restart { worker } => {
                    if let Some(alive) = alive.get_mut(worker as usize) {
                        *alive = matches!(event.kind, EventKind::Restart { .. });
                    }
                }
                EventKind::Deploy => alive.fill(true),
                EventKind::Join { .. } => alive.push(true),
                _ => {}
            }
            if !alive.contains(&true) {
                return Err(format!(
                    "the event at {} kills the last worker, and requests would wait for ever; let another join or restart first",
                    event.at
                ));
            }
        }
        Ok(())
    }
}

fn positive(name: &str, value: f64, most: f64) -> Result<(), String> {
    if value > 0.0 {
        at_most(name, value, most)
    } else {
        Err(format!("{name} has to be more than 0, and is {value}"))
    }
}

fn not_negative(name: &str, value: f64, most: f64) -> Result<(), String> {
    if value >= 0.0 {
        at_most(name, value, most)
    } else {
        Err(format!("{name} cannot be less than 0, and is {value}"))
    }
}

fn at_most(name: &str, value: f64, most: f64) -> Result<(), String> {
    if value <= most { Ok(()) } else { Err(format!("{name} cannot be more than {most}, and is {value}")) }
}
