//! Simulates the scenarios.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sandarac_balance::{Algorithm as Balance, ResumeSettings};
use sandarac_lab::{Algorithm, AlgorithmKind, Load, Report, Scenario, simulate};
use serde::{Deserialize, Serialize};

use crate::Options;
use crate::draw::{Drawn, OPEN};

/// The algorithms that every scenario is simulated with.
pub(crate) const USUAL: [&str; 6] =
    ["resume", "published", "least_requests", "hashing 1.25", "hashing 2", "hashing 4"];

/// A scenario, a seed and an algorithm.
pub(crate) type Key = (u32, u64, String);

/// The result of a simulation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) scenario: u32,
    pub(crate) seed: u64,
    pub(crate) algorithm: String,
    pub(crate) loads: f64,
    pub(crate) throughput: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) overlap: f64,
    /// The throughput of `published` under a closed load, in a scenario with an open one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) closed: Option<f64>,
}

impl Outcome {
    pub(crate) fn key(&self) -> Key {
        (self.scenario, self.seed, self.algorithm.clone())
    }
}

/// Simulates whatever is not among the `known` outcomes.
pub(crate) fn simulate_all(
    drawn: &[Drawn],
    options: &Options,
    known: &BTreeMap<Key, Outcome>,
) -> Vec<Outcome> {
    let seeds = 1..=options.seeds;
    // The costly ones first, so that no core is left with one of them in the end.
    let mut jobs: Vec<(&Drawn, u64)> =
        drawn.iter().flat_map(|drawn| seeds.clone().map(move |seed| (drawn, seed))).collect();
    jobs.sort_by_key(|(drawn, _)| std::cmp::Reverse(drawn.scenario.sites.objects_per_request));
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    let work = || {
        while let Some(&(drawn, seed)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let new = simulate_one(drawn, seed, options, known);
            outcomes.lock().expect("no thread panicked").extend(new);
        }
    };
    std::thread::scope(|scope| (0..options.jobs).for_each(|_| drop(scope.spawn(work))));
    let mut outcomes = outcomes.into_inner().expect("no thread panicked");
    outcomes.sort_by_key(Outcome::key);
    outcomes
}

fn simulate_one(drawn: &Drawn, seed: u64, options: &Options, known: &BTreeMap<Key, Outcome>) -> Vec<Outcome> {
    let missing = |label: &&String| !known.contains_key(&(drawn.number, seed, (*label).clone()));
    let wanted: Vec<&String> = options.algorithms.iter().filter(missing).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut scenario = Scenario { seed, ..drawn.scenario.clone() };
    let closed = drawn.open.then(|| {
        let earlier = known.values().find(|outcome| (outcome.scenario, outcome.seed) == (drawn.number, seed));
        let measured = || simulate(&scenario, &algorithm("published")).phases[0].throughput;
        earlier.and_then(|outcome| outcome.closed).unwrap_or_else(measured)
    });
    if let Some(closed) = closed {
        scenario.load = Load::Rate { per_second: OPEN * closed };
    }
    let outcome = |label: &&String| {
        let Report { phases, .. } = simulate(&scenario, &algorithm(label));
        Outcome {
            scenario: drawn.number,
            seed,
            algorithm: (*label).clone(),
            loads: phases[0].loads,
            throughput: phases[0].throughput,
            p50_ms: phases[0].p50_ms,
            p99_ms: phases[0].p99_ms,
            overlap: phases[0].overlap,
            closed,
        }
    };
    wanted.iter().map(outcome).collect()
}

/// The algorithm of a label.
fn algorithm(label: &str) -> Algorithm {
    let kind = |algorithm, load_factor| AlgorithmKind::Pool {
        algorithm,
        load_factor,
        resume: ResumeSettings::default(),
        frozen: false,
        uncorrected: false,
    };
    let kind = match label.split_once(' ') {
        Some(("hashing", factor)) => kind(Balance::ConsistentHash, factor.parse().expect("a load factor")),
        _ if label == "published" => AlgorithmKind::Published,
        _ => kind(label.parse().unwrap_or(Balance::Resume), 1.25),
    };
    Algorithm { label: label.to_owned(), kind }
}
