//! A balancer of a simulation: a pool of the shipping crate, or an algorithm to compare with.

use std::collections::HashMap;
use std::time::Duration;

use sandarac_balance::{Backend, BackendId, Heard, Outcome, Pick, Pool, Settings, WorkerState};

use crate::lard::Lard;
use crate::scenario::{Algorithm, AlgorithmKind};
use crate::worker::Worker;

/// A balancer.
pub(crate) enum Balancer {
    Pool(Box<Pooled>),
    Lard(Lard),
    /// Sees what every worker holds and has to do, and charges this price for each second of loading.
    Oracle(f64),
}

/// A pool and which worker each of its backends is.
pub(crate) struct Pooled {
    pool: Pool,
    workers: HashMap<BackendId, usize>,
    /// The backend of each worker.
    ids: Vec<BackendId>,
    settings: Settings,
    /// Whether it stops learning at the end of the warm-up.
    freezes: bool,
    frozen: bool,
    /// Whether it goes by what workers report alone.
    uncorrected: bool,
}

/// Where a request was sent, and what ends that.
pub(crate) enum Placed {
    Pick(Pick),
    Lard(usize),
    Oracle,
}

impl Balancer {
    /// A balancer before `workers` workers.
    pub(crate) fn new(algorithm: &Algorithm, workers: usize, classes: u32, seed: u64) -> Balancer {
        match &algorithm.kind {
            AlgorithmKind::Lard(settings) => Balancer::Lard(Lard::new(*settings, classes, workers)),
            AlgorithmKind::Oracle { price } => Balancer::Oracle(*price),
            AlgorithmKind::Pool { algorithm, load_factor, resume, frozen, uncorrected } => {
                let settings = Settings {
                    algorithm: *algorithm,
                    load_factor: *load_factor,
                    resume: resume.clone(),
                    seed,
                    ..Settings::default()
                };
                let pool = Pool::new("simulated", backends(workers), settings.clone());
                Balancer::Pool(Box::new(Pooled::new(pool, settings, *frozen, *uncorrected)))
            }
        }
    }

    /// Sends a request somewhere other than to those in `tried`. One whose class has an empty `name` has none. `sight` is
    /// what an oracle sees of a worker: the microseconds until it is done, and those that it would spend on the request.
    pub(crate) fn pick(
        &mut self,
        class: u32,
        name: &[u8],
        now: u64,
        tried: &[usize],
        alive: &[Worker],
        sight: impl Fn(&Worker) -> (f64, f64),
    ) -> Option<(usize, Placed)> {
        match self {
            Balancer::Pool(pooled) => {
                let tried: Vec<_> = tried.iter().map(|&at| pooled.ids[at]).collect();
                let class = Some(name).filter(|name| !name.is_empty());
                let pick = pooled.pool.pick(class, Duration::from_micros(now), &tried).ok()?;
                Some((pooled.workers[&pick.id()], Placed::Pick(pick)))
            }
            Balancer::Oracle(price) => {
                let seen: Vec<_> = alive.iter().map(|worker| worker.alive.then(|| sight(worker))).collect();
                let least = seen.iter().flatten().map(|(_, own)| *own).fold(f64::MAX, f64::min);
                let cost = |(at, seen): (usize, &Option<(f64, f64)>)| {
                    seen.map(|(wait, own)| (wait + own + *price * (own - least), at))
                };
                let costs = seen.iter().enumerate().filter_map(cost);
                let (_, at) = costs.min_by(|one, two| {
                    let idler = || alive[one.1].served_phase.cmp(&alive[two.1].served_phase);
                    one.0.total_cmp(&two.0).then_with(idler)
                })?;
                Some((at, Placed::Oracle))
            }
            // It is told of deaths by whoever tells it of workers.
            Balancer::Lard(lard) => {
                let worker = lard.pick(class, now, |at| alive[at].alive)?;
                Some((worker, Placed::Lard(worker)))
            }
        }
    }

    /// The request has ended.
    pub(crate) fn done(&mut self, placed: Placed, outcome: Outcome, now: u64) {
        match (self, placed) {
            (Balancer::Pool(pooled), Placed::Pick(pick)) => {
                // From a request given up nothing is learnt.
                let silent = (pooled.frozen || pooled.uncorrected) && outcome == Outcome::Answered;
                pick.finish(if silent { Outcome::Aborted } else { outcome }, Duration::from_micros(now));
            }
            (Balancer::Lard(lard), Placed::Lard(worker)) => lard.done(worker),
            (Balancer::Oracle(_), Placed::Oracle) => {}
            _ => unreachable!("a request ends at the balancer where it began"),
        }
    }

    /// A worker says with a response what it always says.
    pub(crate) fn hear(
        &mut self,
        number: usize,
        worker: &Worker,
        classifier: u64,
        names: &[Vec<u8>],
        now: u64,
    ) {
        let Balancer::Pool(pooled) = self else { return };
        let (Some(resumes), false) = (pooled.pool.resumes(), pooled.frozen) else { return };
        let id = pooled.ids[number];
        let revision = worker.resume.revision;
        let instance = worker.instance(number);
        let state =
            WorkerState { instance: &instance, revision, in_flight: Some(worker.in_flight()), version: None };
        let known = || resumes.known(id).map_or(0, |known| known.revision);
        let named = |(class, score): (u32, f64)| (names[class as usize].as_slice(), score);
        // What is not believed is what a balancer has outgrown: it fetches anew.
        let whole =
            || drop(resumes.whole(id, classifier, &instance, revision, worker.resume.whole().map(named)));
        match resumes.heard(id, &state, Duration::from_micros(now)) {
            Heard::Current | Heard::NotAsked => {}
            Heard::Unknown => whole(),
            Heard::Behind => match worker.resume.since(known()) {
                Some(changes) => {
                    drop(resumes.changed(id, classifier, &instance, revision, changes.map(named)))
                }
                None => whole(),
            },
        }
    }

    /// The warm-up is over.
    pub(crate) fn warmed_up(&mut self) {
        if let Balancer::Pool(pooled) = self {
            pooled.frozen = pooled.freezes;
        }
    }

    /// There is a worker more.
    pub(crate) fn joined(&mut self, workers: usize) {
        match self {
            Balancer::Lard(lard) => lard.joined(),
            Balancer::Oracle(_) => {}
            Balancer::Pool(pooled) => pooled.succeed(workers),
        }
    }

    /// The classes are made of other requests.
    pub(crate) fn reclassified(&mut self, classifier: u64, workers: usize) {
        if let Balancer::Pool(pooled) = self {
            pooled.settings.resume.classifier = classifier;
            pooled.succeed(workers);
        }
    }
}

impl Pooled {
    fn new(pool: Pool, settings: Settings, freezes: bool, uncorrected: bool) -> Pooled {
        let ids = pool.ids().to_vec();
        let workers = ids.iter().copied().zip(0..).collect();
        Pooled { pool, workers, ids, settings, freezes, frozen: false, uncorrected }
    }

    fn succeed(&mut self, workers: usize) {
        let pool = self.pool.succeeded_by(backends(workers), self.settings.clone());
        let frozen = self.frozen;
        *self = Pooled { frozen, ..Pooled::new(pool, self.settings.clone(), self.freezes, self.uncorrected) };
    }
}

fn backends(count: usize) -> Vec<Backend> {
    let address = |number: usize| format!("unix:/workers/{number}").parse().expect("a path is an address");
    (0..count).map(|number| Backend::new(address(number))).collect()
}
