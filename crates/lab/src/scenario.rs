//! The scenario of a simulation, read from a TOML file.

mod algorithms;

use std::fmt;

use sandarac_balance::ResumeSettings;
use serde::Deserialize;

use algorithms::WrittenAlgorithm;
pub use algorithms::{Algorithm, AlgorithmKind};

use crate::trace::Trace;

/// The most places that the object caches of all workers take, so that a scenario fits into memory.
const MAX_PLACES: u64 = 1 << 28;

/// The most that balancers keep of workers, for the same reason: as many times a kilobyte.
const MAX_BACKENDS: u64 = 1 << 18;

/// The most requests, of a day of simulating, and clients.
const MAX_REQUESTS: f64 = 1e10;
const MAX_CLIENTS: f64 = 1e6;

/// Longer times, in milliseconds, greater factors of them and higher rates are beyond the clock of a
/// simulation.
const MAX_MILLIS: f64 = 1e6;
const MAX_FACTOR: f64 = 1000.0;
const MAX_RATE: f64 = 1e6;

/// A scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What it is called in tables and charts.
    pub title: String,
    /// Requests measured, after the warm-up.
    pub requests: u64,
    /// Requests before the first is measured, at least; the warm-up also lasts until every object was asked
    /// for.
    pub warm_up: u64,
    /// How many balancers stand before the workers; each request comes to one of them.
    pub balancers: u32,
    /// Equal seeds give equal simulations.
    pub seed: u64,
    /// What is asked for.
    pub sites: Sites,
    /// What serves it.
    pub workers: Workers,
    /// How fast requests come.
    pub load: Load,
    /// What happens on the way, in order.
    pub events: Vec<Event>,
    /// What is compared.
    pub algorithms: Vec<Algorithm>,
}

/// What is asked for. A site is a request class, too.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sites {
    /// How many there are.
    pub count: u32,
    /// `uniform`, or how fast popularity falls from site to site.
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

/// How popularity falls with rank.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Popularity {
    /// Not at all.
    Uniform,
    /// The n-th is n to the power of this less popular than the first.
    Zipf(f64),
    /// Halved with every so many ranks.
    Exponential(f64),
}

/// What serves.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Workers {
    /// How many there are.
    pub count: u32,
    /// Objects that a worker's cache holds.
    pub cache: u32,
    /// Milliseconds that every request takes.
    pub fixed_ms: f64,
    /// Milliseconds that each object takes that has to be loaded.
    pub load_ms: f64,
    /// How much these times vary though requests need the same: their standard deviation over their mean.
    /// They are spread as a lognormal distribution, and 0 is not at all.
    pub jitter: f64,
    /// How many times longer the first workers take; the others take 1.
    pub slowness: Vec<f64>,
    /// The most requests that a balancer has in flight to each; those beyond wait at the balancer. No limit
    /// unless set. LARD and the oracle, which limit themselves, take no notice of it.
    pub max_in_flight: Option<u32>,
    /// Requests that a résumé goes back.
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
            slowness: Vec::new(),
            max_in_flight: None,
            history: 9999,
        }
    }
}

/// How fast requests come.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Load {
    /// So many clients, each of which asks again when it has its answer and has thought for a while.
    Clients {
        /// How many.
        count: u32,
        /// Milliseconds between an answer and the next request.
        #[serde(default)]
        think_ms: f64,
    },
    /// So many requests a second, whatever happens, at random times.
    Rate {
        /// How many.
        per_second: f64,
    },
    /// As requests came that a log tells of. No file says so.
    #[serde(skip)]
    Log {
        /// So many times as fast.
        pace: f64,
    },
}

/// Something that happens on the way. It begins a new phase of the report.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Event {
    /// Measured requests before it.
    pub at: u64,
    /// What happens.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EventKind {
    /// Nothing but a new phase.
    Mark,
    /// A worker dies, with what it was about to do; connections to it fail at once.
    Kill {
        /// Which, from 0.
        worker: u32,
    },
    /// A dead worker is back, or a live one starts anew, with an empty cache and without a résumé.
    Restart {
        /// Which, from 0.
        worker: u32,
    },
    /// A worker more, with an empty cache and without a résumé.
    Join {
        /// How many times longer than others it takes.
        #[serde(default = "one")]
        slowness: f64,
    },
    /// All workers start anew, as with a deploy.
    Deploy,
    /// A worker takes so many times longer from now on.
    Slow {
        /// Which, from 0.
        worker: u32,
        /// How many times longer.
        slowness: f64,
    },
    /// A share of all requests is for one site from now on; 0 ends it.
    Crowd {
        /// Which, from 0, the most popular.
        site: u32,
        /// From 0 to 1.
        share: f64,
    },
    /// The classifier changes: every class is made of other requests under a name that was another's. The
    /// fingerprint tells.
    Reclassify {
        /// Whether résumés carry the fingerprint; without, stale skills are believed.
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

/// Why a file is no scenario.
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

/// The key or the word that was probably meant, where `message` is that of an unknown one and lists the
/// known.
fn meant(message: &str) -> Option<&str> {
    let (unknown, known) = message.strip_prefix("unknown ")?.split_once(", expected ")?;
    let known: Vec<&str> = quoted(known).collect();
    sandarac_config::closest(quoted(unknown).next()?, &known)
}

/// What stands in backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

impl Written {
    fn read(text: &str) -> Result<Written, ScenarioError> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let help = meant(error.message()).map(|meant| format!("\n  help: did you mean `{meant}`?"));
            ScenarioError(format!("{}{}", error.to_string().trim_end(), help.unwrap_or_default()))
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

/// How a log is played before simulated workers.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSettings {
    /// The text of a scenario, of which workers, algorithms, events, balancers, warm-up and seed count;
    /// nothing of it is needed.
    pub text: String,
    /// What the run is called in tables and charts.
    pub title: String,
    /// How fast requests come.
    pub load: Load,
    /// How many workers there are, whatever the text says.
    pub workers: Option<u32>,
    /// Objects that a worker's cache holds, whatever the text says. Unless either says anything, the caches
    /// of all workers together hold what the log asks for.
    pub cache: Option<u32>,
    /// Milliseconds that every request takes, whatever the text says.
    pub fixed_ms: Option<f64>,
    /// Milliseconds that each object takes that has to be loaded, whatever the text says.
    pub load_ms: Option<f64>,
    /// Requests before the first is measured, whatever the text says. A tenth of all, unless either says
    /// anything.
    pub warm_up: Option<u64>,
    /// The seed, whatever the text says.
    pub seed: Option<u64>,
    /// How `resume` chooses, where the text lists no algorithms.
    pub resume: Option<ResumeSettings>,
}

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    /// If the text is no TOML, has a key that means nothing, or asks for what cannot be; the message tells
    /// where and why.
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

    /// The scenario in which a log is played, which stands in place of sites, their popularity and the load:
    /// `settings` say the rest.
    ///
    /// # Errors
    /// As with [`Scenario::from_toml`], or if there is no request left to be measured after the warm-up.
    pub fn for_log(settings: &LogSettings, trace: &Trace) -> Result<Scenario, ScenarioError> {
        let LogSettings { text, title, load, resume, .. } = settings;
        let mut written = Written::read(text)?;
        let said: toml::Table = toml::from_str(text).unwrap_or_default();
        let says_cache = said.get("workers").is_some_and(|workers| workers.get("cache").is_some());
        let usual = written.algorithms.is_empty();
        let workers = &mut written.workers;
        workers.count = settings.workers.unwrap_or(workers.count);
        if !says_cache {
            // As many objects as the log asks for fit into the caches of all workers together.
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

    /// Checks everything but what is asked for, which is so many objects in so many classes.
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
