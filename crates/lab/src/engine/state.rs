//! The state of a simulation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sandarac_balance::Random;

use super::watch::{Watch, Window};
use crate::balancer::{Balancer, Placed};
use crate::cache::Cache;
use crate::demand::Demand;
use crate::measure::Phase;
use crate::resume::WorkerResume;
use crate::scenario::{Algorithm, EventKind, Scenario};
use crate::worker::Worker;

/// The kinds of events on the agenda.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Next {
    /// A request arrives.
    Request,
    /// A worker finishes a request, unless it died since this life.
    Done { worker: u32, life: u32, place: u32 },
    /// The patience of a request that waits for a certain place is over.
    Patience { place: u32, number: u64 },
}

/// A request in flight.
pub(super) struct InFlight {
    pub(super) number: u64,
    pub(super) site: u32,
    pub(super) class: u32,
    pub(super) came: u64,
    pub(super) balancer: u32,
    pub(super) placed: Option<Placed>,
    /// The workers that failed it.
    pub(super) tried: Vec<usize>,
    pub(super) loads: u32,
}

pub(super) struct Simulation<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) now: u64,
    /// The coming events. The number keeps events of the same time in order.
    pub(super) agenda: BinaryHeap<Reverse<(u64, u64, Next)>>,
    pub(super) planned: u64,
    pub(super) random: Random,
    pub(super) demand: Demand<'a>,
    pub(super) versions: Vec<u32>,
    pub(super) workers: Vec<Worker>,
    pub(super) balancers: Vec<Balancer>,
    pub(super) names: Vec<Vec<u8>>,
    pub(super) in_flight: Vec<Option<InFlight>>,
    pub(super) free: Vec<u32>,
    /// Requests that arrived.
    pub(super) came: u64,
    pub(super) crowd: Option<(u32, f64)>,
    pub(super) crowded: Vec<u32>,
    pub(super) classifier: u64,
    /// How far the sites' classes are shifted.
    pub(super) shift: u32,
    /// Objects not requested yet.
    pub(super) unseen: Vec<bool>,
    pub(super) unseen_count: usize,
    pub(super) measuring: bool,
    pub(super) warm_up: u64,
    pub(super) ended: u64,
    pub(super) next_event: usize,
    pub(super) phases: Vec<Phase>,
    pub(super) phase: Watch,
    pub(super) window: Window,
    pub(super) loads_over_time: Vec<f64>,
    /// Workers that started with the phase.
    pub(super) newcomers: Vec<usize>,
}

impl<'a> Simulation<'a> {
    pub(super) fn new(scenario: &'a Scenario, demand: Demand<'a>, algorithm: &Algorithm) -> Simulation<'a> {
        let Scenario { workers, seed, .. } = scenario;
        let (classes, objects) = (demand.classes(), demand.objects());
        let slowness = |at: u32| workers.slowness.get(at as usize).copied().unwrap_or(1.0);
        let mut simulation = Simulation {
            scenario,
            now: 1,
            agenda: BinaryHeap::new(),
            planned: 0,
            random: Random::new(*seed),
            versions: vec![0; objects as usize],
            workers: Vec::new(),
            balancers: (0..scenario.balancers)
                .map(|at| Balancer::new(algorithm, workers, classes, seed + u64::from(at)))
                .collect(),
            names: demand.names(),
            demand,
            in_flight: Vec::new(),
            free: Vec::new(),
            came: 0,
            crowd: None,
            crowded: scenario
                .events
                .iter()
                .filter_map(|event| match event.kind {
                    EventKind::Crowd { site, .. } => Some(site),
                    _ => None,
                })
                .collect(),
            classifier: 0,
            shift: 0,
            unseen: vec![true; objects as usize],
            unseen_count: objects as usize,
            measuring: false,
            warm_up: 0,
            ended: 0,
            next_event: 0,
            phases: Vec::new(),
            phase: Watch::new(String::new(), 0, 0),
            window: Window::default(),
            loads_over_time: Vec::new(),
            newcomers: Vec::new(),
        };
        simulation.workers = (0..workers.count).map(|at| simulation.worker(slowness(at))).collect();
        simulation
    }

    pub(super) fn worker(&self, slowness: f64) -> Worker {
        let workers = &self.scenario.workers;
        Worker {
            slowness,
            concurrency: workers.concurrency,
            alive: true,
            queue: Default::default(),
            busy: Vec::new(),
            life: 0,
            cache: Cache::new(workers.cache, self.demand.objects()),
            resume: WorkerResume::new(self.demand.classes(), workers.history),
            served_window: 0,
            served_phase: 0,
            worked: 0,
        }
    }

    pub(super) fn plan(&mut self, at: u64, next: Next) {
        self.planned += 1;
        self.agenda.push(Reverse((at, self.planned, next)));
    }
}
