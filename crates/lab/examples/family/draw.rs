//! The scenarios of the family, drawn from their numbers.

use sandarac_balance::Random;
use sandarac_lab::{Load, Popularity, Scenario, Sites, Workers};

/// The number of the case with plenty of memory. The scenarios before it are the usual ones.
pub(crate) const PLENTY: u32 = 100;

/// Requests measured. The warm-up takes up to ten times as many, until every object was requested.
const REQUESTS: u64 = 12_000;

/// The rate of an open load, relative to what `published` serves if as many clients as drawn wait for each
/// response. So an open load is as heavy as a closed one, and no algorithm that is as good as `published` is
/// overloaded.
pub(crate) const OPEN: f64 = 0.8;

/// The speeds of the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speeds {
    /// All are equal.
    Equal,
    /// One is three times slower than the others.
    OneSlow,
    /// An eighth is three times slower than the fastest, a quarter twice, and a quarter one and a half times.
    Mixed,
}

/// A scenario and the numbers that it was made of.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub(crate) number: u32,
    /// The caches of all workers together, relative to the objects of all sites.
    pub(crate) memory: f64,
    pub(crate) speeds: Speeds,
    /// Whether requests arrive at a rate, rather than after responses. The rate is not known yet.
    pub(crate) open: bool,
    /// With the closed load.
    pub(crate) scenario: Scenario,
}

/// Scenario `number`. Numbers whose range spans decades are drawn evenly on a logarithmic scale.
pub(crate) fn scenario(number: u32) -> Drawn {
    let mut random = Random::new(u64::from(number));
    let mut even = |least: f64, most: f64| least + (most - least) * random.fraction();
    let mut log = |least: f64, most: f64| even(least.ln(), most.ln()).exp();
    let sites = log(20.0, 1600.0).round() as u32;
    let objects = log(10.0, 300.0).round() as u32;
    let per_request = (log(1.0, 25.0).round() as u32).min(objects);
    let workers = log(3.0, 50.0).round() as u32;
    let memory = log(0.3, 6.0);
    let fixed_ms = log(1.0, 25.0);
    let load_ms = log(0.5, 20.0);
    let clients = (log(0.5, 6.0) * f64::from(workers)).round().max(1.0) as u32;
    let zipf = even(0.6, 1.2);
    let churn = even(0.0, 0.2);
    let speeds = [Speeds::Equal, Speeds::OneSlow, Speeds::Mixed][(number / 2 % 3) as usize];
    Drawn {
        number,
        memory,
        speeds,
        open: number % 2 == 1,
        scenario: Scenario {
            title: format!("scenario {number}"),
            requests: REQUESTS,
            warm_up: 0,
            balancers: 1,
            seed: 0,
            sites: Sites {
                count: sites,
                popularity: Popularity::Zipf(zipf),
                objects,
                objects_per_request: per_request,
                object_popularity: Popularity::Uniform,
                // In a quarter of the scenarios nothing changes.
                churn: if number % 8 < 2 { 0.0 } else { churn },
            },
            workers: Workers {
                count: workers,
                cache: cache(memory, sites * objects, workers),
                fixed_ms,
                load_ms,
                slowness: slowness(speeds, workers),
                ..Workers::default()
            },
            load: Load::Clients { count: clients, think_ms: 0.0 },
            events: Vec::new(),
            algorithms: Vec::new(),
        },
    }
}

impl Drawn {
    /// The same, with workers that work on `concurrency` requests at a time, and as many times more clients.
    pub(crate) fn with_concurrency(mut self, concurrency: u32) -> Drawn {
        self.scenario.workers.concurrency = concurrency;
        if let Load::Clients { count, .. } = &mut self.scenario.load {
            *count *= concurrency;
        }
        self
    }
}

/// Requests before and in the measurement of [`plenty`]: classes spread slowly.
const LONG: u64 = 240_000;

/// The case with plenty of memory in which an earlier `resume` held every site at every worker: 16 equal
/// workers, nothing changes, and the caches hold four times the objects.
pub(crate) fn plenty() -> Drawn {
    let sites = Sites::default();
    let workers = Workers { cache: cache(4.0, sites.count * sites.objects, 16), ..Workers::default() };
    let load = Load::Clients { count: 32, think_ms: 0.0 };
    let mut drawn = scenario(PLENTY);
    drawn.scenario = Scenario {
        title: "plenty".to_owned(),
        requests: LONG,
        warm_up: LONG,
        sites,
        workers,
        load,
        ..drawn.scenario
    };
    Drawn { memory: 4.0, speeds: Speeds::Equal, open: false, ..drawn }
}

/// The objects that each worker holds.
fn cache(memory: f64, objects: u32, workers: u32) -> u32 {
    (memory * f64::from(objects) / f64::from(workers)).round().max(1.0) as u32
}

fn slowness(speeds: Speeds, workers: u32) -> Vec<f64> {
    let part = |of: u32| workers.div_ceil(of) as usize;
    match speeds {
        Speeds::Equal => Vec::new(),
        Speeds::OneSlow => vec![3.0],
        Speeds::Mixed => [vec![3.0; part(8)], vec![2.0; part(4)], vec![1.5; part(4)]].concat(),
    }
}
