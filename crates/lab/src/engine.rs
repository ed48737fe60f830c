//! The simulation: events in the order of their time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use sandarac_balance::{Histogram, Outcome, Random, Settings};

use crate::balancer::{Asking, Balancer, Placed, Sent};
use crate::cache::Cache;
use crate::demand::Demand;
use crate::distribution::{exponential, factor, of_request};
use crate::measure::{Phase, Report, fairness};
use crate::resume::WorkerResume;
use crate::scenario::{Algorithm, EventKind, Load, Scenario};
use crate::trace::Trace;
use crate::worker::Worker;

/// Windows that the measured requests are cut into, for what is watched over time.
const WINDOWS: u64 = 400;

/// The warm-up ends at the latest after so many times the requests measured.
const LONGEST_WARM_UP: u64 = 10;

/// A request that could not be served at so many workers is given up.
const MAX_TRIES: usize = 3;

/// How long a request takes beside what it needs is another matter than what it needs.
const JITTER: u64 = 0x4a49_5454_4552;

/// Plays a scenario with one algorithm.
pub fn simulate(scenario: &Scenario, algorithm: &Algorithm) -> Report {
    play(scenario, Demand::of_sites(&scenario.sites), algorithm)
}

/// Plays a log with one algorithm, before the workers of `scenario`, which [`Scenario::for_log`] has made.
pub fn replay(scenario: &Scenario, trace: &Trace, algorithm: &Algorithm) -> Report {
    play(scenario, Demand::Log(trace), algorithm)
}

fn play(scenario: &Scenario, demand: Demand<'_>, algorithm: &Algorithm) -> Report {
    let mut simulation = Simulation::new(scenario, demand, algorithm);
    simulation.run();
    simulation.report(algorithm)
}

/// What comes next in time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    /// A request comes.
    Request,
    /// A worker is done with the request it works on, unless it died since this life.
    Done { worker: u32, life: u32 },
    /// A request that waits for a place has done so for as long as it waits for a certain one.
    Patience { place: u32, number: u64 },
}

/// A request in flight.
struct InFlight {
    number: u64,
    site: u32,
    class: u32,
    came: u64,
    balancer: u32,
    placed: Option<Placed>,
    /// The workers that it was sent to in vain.
    tried: Vec<usize>,
    loads: u32,
}

struct Simulation<'a> {
    scenario: &'a Scenario,
    now: u64,
    /// What comes next; the number keeps what comes at the same time in order.
    agenda: BinaryHeap<Reverse<(u64, u64, Next)>>,
    planned: u64,
    random: Random,
    demand: Demand<'a>,
    versions: Vec<u32>,
    workers: Vec<Worker>,
    balancers: Vec<Balancer>,
    names: Vec<Vec<u8>>,
    in_flight: Vec<Option<InFlight>>,
    free: Vec<u32>,
    /// Requests that came.
    came: u64,
    crowd: Option<(u32, f64)>,
    crowded: Vec<u32>,
    classifier: u64,
    /// How far the sites' classes are shifted.
    shift: u32,
    /// Objects not asked for yet.
    unseen: Vec<bool>,
    unseen_count: usize,
    measuring: bool,
    warm_up: u64,
    ended: u64,
    next_event: usize,
    phases: Vec<Phase>,
    phase: Watch,
    window: Window,
    loads_over_time: Vec<f64>,
    /// Workers that began with the phase.
    newcomers: Vec<usize>,
}

/// How long requests took, to 1/64.
type Times = Histogram<6>;

/// What is watched in a phase.
struct Watch {
    name: String,
    began: u64,
    ended_before: u64,
    loads: u64,
    retried: u64,
    times: Times,
    times_of_others: Times,
    spread: f64,
    spread_since: u64,
    share_after: Option<u64>,
    steady_after: Option<u64>,
}

#[derive(Default)]
struct Window {
    requests: u64,
    loads: u64,
}

impl Watch {
    fn new(name: String, now: u64, ended: u64) -> Watch {
        Watch {
            name,
            began: now,
            ended_before: ended,
            loads: 0,
            retried: 0,
            times: Times::default(),
            times_of_others: Times::default(),
            spread: 0.0,
            spread_since: now,
            share_after: None,
            steady_after: None,
        }
    }
}

impl<'a> Simulation<'a> {
    fn new(scenario: &'a Scenario, demand: Demand<'a>, algorithm: &Algorithm) -> Simulation<'a> {
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

    fn worker(&self, slowness: f64) -> Worker {
        let workers = &self.scenario.workers;
        Worker {
            slowness,
            alive: true,
            queue: Default::default(),
            busy: None,
            until: 0,
            life: 0,
            cache: Cache::new(workers.cache, self.demand.objects()),
            resume: WorkerResume::new(self.demand.classes(), workers.history),
            served_window: 0,
            served_phase: 0,
            worked: 0,
        }
    }

    fn plan(&mut self, at: u64, next: Next) {
        self.planned += 1;
        self.agenda.push(Reverse((at, self.planned, next)));
    }

    fn run(&mut self) {
        match self.scenario.load {
            Load::Clients { count, .. } => (0..count).for_each(|_| self.plan(self.now, Next::Request)),
            Load::Rate { .. } | Load::Log { .. } => self.plan(self.now, Next::Request),
        }
        if self.warm_up_is_over() {
            self.begin_to_measure();
        }
        while self.ended < self.scenario.requests {
            let Some(Reverse((at, _, next))) = self.agenda.pop() else { break };
            self.now = at;
            match next {
                Next::Request => self.request(),
                Next::Done { worker, life } => self.done(worker as usize, life),
                Next::Patience { place, number } => self.ask_again(place, number),
            }
            self.wake();
        }
        self.end_phase();
    }

    /// Lets a request ask again, if it still waits for a place.
    fn ask_again(&mut self, place: u32, number: u64) {
        let request = self.in_flight[place as usize].as_ref().filter(|request| request.number == number);
        if request.is_some_and(|request| self.balancers[request.balancer as usize].waits(place)) {
            self.send(place);
        }
    }

    /// Lets requests that wait for a place ask again, where there is reason to.
    fn wake(&mut self) {
        if self.scenario.workers.max_in_flight.is_none() {
            return;
        }
        for at in 0..self.balancers.len() {
            loop {
                let woken = self.balancers[at].woken();
                if woken.is_empty() {
                    break;
                }
                for place in woken {
                    if self.balancers[at].waits(place) {
                        self.send(place);
                    }
                }
            }
        }
    }

    /// Plans the next request of whoever has just had an answer.
    fn after_answer(&mut self) {
        if let Load::Clients { think_ms, .. } = self.scenario.load {
            let think = if think_ms > 0.0 { exponential(&mut self.random, think_ms * 1000.0) } else { 0.0 };
            self.plan(self.now + think as u64, Next::Request);
        }
    }

    fn request(&mut self) {
        self.came += 1;
        match self.scenario.load {
            Load::Clients { .. } => {}
            Load::Rate { per_second } => {
                let wait = exponential(&mut self.random, 1e6 / per_second);
                self.plan(self.now + wait as u64, Next::Request);
            }
            Load::Log { pace } => {
                if let Some(at) = self.demand.comes_at(self.came + 1) {
                    self.plan(self.now.max((at as f64 / pace) as u64), Next::Request);
                }
            }
        }
        let mut random = of_request(self.scenario.seed, self.came);
        let Some(mut site) = self.demand.site(self.came, &mut random) else { return };
        if let Some((crowded, share)) = self.crowd
            && random.fraction() < share
        {
            site = crowded;
        }
        self.demand.churn(&mut random, |object| self.versions[object as usize] += 1);
        let count = self.demand.classes();
        let request = InFlight {
            number: self.came,
            site,
            class: (site + self.shift) % count,
            came: self.now,
            balancer: (self.came % u64::from(self.scenario.balancers)) as u32,
            placed: None,
            tried: Vec::new(),
            loads: 0,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.in_flight[at as usize] = Some(request);
                at
            }
            None => {
                self.in_flight.push(Some(request));
                self.in_flight.len() as u32 - 1
            }
        };
        self.send(at);
    }

    /// Sends a request to a worker, and to another where that is dead.
    fn send(&mut self, at: u32) {
        let Some(mut request) = self.in_flight[at as usize].take() else { return };
        while request.tried.len() < MAX_TRIES {
            let name = &self.names[request.class as usize];
            let balancer = &mut self.balancers[request.balancer as usize];
            let (now, in_flight) = (self.now, &self.in_flight);
            let micros = |worker: &Worker, number: u64, site: u32| {
                let random = of_request(!self.scenario.seed, number);
                self.demand
                    .objects_of(number, site, random)
                    .filter(|&object| !worker.cache.holds(object, self.versions[object as usize]))
                    .fold(self.scenario.workers.fixed_ms, |ms, _| ms + self.scenario.workers.load_ms)
                    * worker.slowness
                    * 1000.0
            };
            let sight = |worker: &Worker| {
                let waiting = worker.queue.iter().filter_map(|&place| in_flight[place as usize].as_ref());
                let queued: f64 = waiting.map(|other| micros(worker, other.number, other.site)).sum();
                let left = worker.until.saturating_sub(now) as f64;
                (left + queued, micros(worker, request.number, request.site))
            };
            let asking = Asking { place: at, class: request.class, name, tried: &request.tried };
            let (worker, placed) = match balancer.send(asking, now, &self.workers, sight) {
                Sent::To(worker, placed) => (worker, placed),
                Sent::Waits { new } => {
                    let number = request.number;
                    self.in_flight[at as usize] = Some(request);
                    if new {
                        let patience = Settings::default().patience.as_micros() as u64;
                        self.plan(self.now + patience, Next::Patience { place: at, number });
                    }
                    return;
                }
                Sent::Nowhere => break,
            };
            if self.workers[worker].alive {
                request.placed = Some(placed);
                self.in_flight[at as usize] = Some(request);
                self.note_spread();
                self.workers[worker].queue.push_back(at);
                if self.workers[worker].busy.is_none() {
                    self.begin(worker);
                }
                return;
            }
            balancer.done(placed, Outcome::ConnectFailed, self.now);
            request.tried.push(worker);
        }
        // Nobody served it. Its client asks for something else.
        self.free.push(at);
        self.after_answer();
    }

    /// Lets a worker begin with the next request of its queue.
    fn begin(&mut self, at: usize) {
        let Scenario { workers, seed, .. } = self.scenario;
        let worker = &mut self.workers[at];
        let Some(next) = worker.queue.pop_front() else { return };
        let Some(request) = &mut self.in_flight[next as usize] else { return };
        let random = of_request(!seed, request.number);
        for object in self.demand.objects_of(request.number, request.site, random) {
            let seen = &mut self.unseen[object as usize];
            self.unseen_count -= usize::from(*seen);
            *seen = false;
            request.loads += u32::from(!worker.cache.touch(object, self.versions[object as usize]));
        }
        let mut millis = (workers.fixed_ms + workers.load_ms * f64::from(request.loads)) * worker.slowness;
        if workers.jitter > 0.0 {
            millis *= factor(&mut of_request(seed ^ JITTER, request.number), workers.jitter);
        }
        let micros = (millis * 1000.0) as u64;
        worker.busy = Some(next);
        worker.until = self.now + micros;
        worker.worked += micros;
        let life = worker.life;
        if !self.names[request.class as usize].is_empty() {
            worker.resume.served(request.class, millis / 1000.0);
        }
        self.plan(self.now + micros, Next::Done { worker: at as u32, life });
    }

    fn done(&mut self, at: usize, life: u32) {
        if self.workers[at].life != life || !self.workers[at].alive {
            return;
        }
        self.note_spread();
        let Some(place) = self.workers[at].busy.take() else { return };
        let Some(mut request) = self.in_flight[place as usize].take() else { return };
        self.free.push(place);
        let balancer = &mut self.balancers[request.balancer as usize];
        balancer.hear(at, &self.workers[at], self.classifier, &self.names, self.now);
        if let Some(placed) = request.placed.take() {
            balancer.done(placed, Outcome::Answered, self.now);
        }
        self.workers[at].served_window += 1;
        self.workers[at].served_phase += 1;
        self.begin(at);
        self.after_answer();
        if self.measuring {
            self.measure(&request);
        } else {
            self.warm_up += 1;
            if self.warm_up_is_over() {
                self.begin_to_measure();
            }
        }
    }

    /// Chance asks for every object sooner or later; what a log has not asked for by then, it has not.
    fn warm_up_is_over(&self) -> bool {
        let Scenario { warm_up, requests, .. } = self.scenario;
        match self.demand {
            Demand::Log(_) => self.warm_up >= *warm_up,
            Demand::Sites { .. } => {
                (self.unseen_count == 0 && self.warm_up >= *warm_up)
                    || self.warm_up >= (*warm_up).max(requests * LONGEST_WARM_UP)
            }
        }
    }

    fn begin_to_measure(&mut self) {
        self.measuring = true;
        self.balancers.iter_mut().for_each(Balancer::warmed_up);
        self.begin_phase(String::new());
    }

    fn measure(&mut self, request: &InFlight) {
        self.ended += 1;
        let time = Duration::from_micros(self.now - request.came);
        self.phase.loads += u64::from(request.loads);
        self.phase.times.record(time);
        if !self.crowded.contains(&request.site) {
            self.phase.times_of_others.record(time);
        }
        self.window.requests += 1;
        self.window.loads += u64::from(request.loads);
        if self.window.requests == self.window_size() {
            self.end_window();
        }
        while let Some(event) = self.scenario.events.get(self.next_event)
            && event.at <= self.ended
        {
            self.next_event += 1;
            self.happen(event.kind);
        }
    }

    fn window_size(&self) -> u64 {
        (self.scenario.requests / WINDOWS).max(1)
    }

    fn end_window(&mut self) {
        let loads = self.window.loads as f64 / self.window.requests as f64;
        self.loads_over_time.push(loads);
        let since = self.ended - self.phase.ended_before;
        let alive = self.workers.iter().filter(|worker| worker.alive).count() as f64;
        let half = 0.5 * self.window.requests as f64 / alive;
        let carry = |&at: &usize| self.workers[at].served_window as f64 >= half;
        if self.phase.share_after.is_none() && !self.newcomers.is_empty() && self.newcomers.iter().all(carry)
        {
            self.phase.share_after = Some(since);
        }
        if self.phase.steady_after.is_none()
            && self.phases.first().is_some_and(|first| loads <= first.loads * 1.1)
        {
            self.phase.steady_after = Some(since);
        }
        self.window = Window::default();
        self.workers.iter_mut().for_each(|worker| worker.served_window = 0);
    }

    /// Adds up how far backlogs differed until now.
    fn note_spread(&mut self) {
        if self.measuring && self.now > self.phase.spread_since {
            let (count, sum, squares) = self.workers.iter().filter(|worker| worker.alive).fold(
                (0.0, 0.0, 0.0),
                |(count, sum, squares), worker| {
                    let backlog = f64::from(worker.in_flight());
                    (count + 1.0, sum + backlog, squares + backlog * backlog)
                },
            );
            let mean: f64 = sum / count;
            let deviation = (squares / count - mean * mean).max(0.0).sqrt();
            self.phase.spread += deviation * (self.now - self.phase.spread_since) as f64;
            self.phase.spread_since = self.now;
        }
    }

    fn happen(&mut self, event: EventKind) {
        self.end_phase();
        self.newcomers.clear();
        let retried = self.phase.retried;
        let name = match event {
            EventKind::Mark => "mark".to_owned(),
            EventKind::Kill { worker } => {
                self.kill(worker as usize);
                format!("kill {worker}")
            }
            EventKind::Restart { worker } => {
                self.restart(worker as usize);
                format!("restart {worker}")
            }
            EventKind::Deploy => {
                (0..self.workers.len()).for_each(|at| self.restart(at));
                "deploy".to_owned()
            }
            EventKind::Join { slowness } => {
                let worker = self.worker(slowness);
                self.newcomers.push(self.workers.len());
                self.workers.push(worker);
                let count = self.workers.len();
                self.balancers.iter_mut().for_each(|balancer| balancer.joined(count));
                "join".to_owned()
            }
            EventKind::Slow { worker, slowness } => {
                if let Some(worker) = self.workers.get_mut(worker as usize) {
                    worker.slowness = slowness;
                }
                format!("slow {worker} × {slowness}")
            }
            EventKind::Crowd { site, share } => {
                self.crowd = (share > 0.0).then_some((site, share));
                format!("crowd {site}: {share}")
            }
            EventKind::Reclassify { fingerprint } => {
                let classes = self.demand.classes();
                self.shift += classes / 2;
                if fingerprint {
                    self.classifier += 1;
                    let count = self.workers.len();
                    self.balancers
                        .iter_mut()
                        .for_each(|balancer| balancer.reclassified(self.classifier, count));
                    let history = self.scenario.workers.history;
                    for worker in &mut self.workers {
                        worker.resume = WorkerResume::new(classes, history);
                    }
                }
                format!("reclassify{}", if fingerprint { "" } else { ", stale" })
            }
        };
        let retried = self.phase.retried - retried;
        self.begin_phase(name);
        self.phase.retried = retried;
    }

    fn kill(&mut self, at: usize) {
        let Some(worker) = self.workers.get_mut(at) else { return };
        worker.alive = false;
        worker.life += 1;
        let lost: Vec<u32> = worker.busy.take().into_iter().chain(worker.queue.drain(..)).collect();
        for place in lost {
            if let Some(request) = &mut self.in_flight[place as usize]
                && let Some(placed) = request.placed.take()
            {
                self.balancers[request.balancer as usize].done(placed, Outcome::Broken, self.now);
                request.tried.clear();
                self.phase.retried += 1;
            }
            self.send(place);
        }
    }

    fn restart(&mut self, at: usize) {
        self.kill(at);
        let Some(worker) = self.workers.get_mut(at) else { return };
        worker.alive = true;
        worker.cache.clear();
        worker.resume = WorkerResume::new(self.demand.classes(), self.scenario.workers.history);
        self.newcomers.push(at);
    }

    fn begin_phase(&mut self, name: String) {
        self.phase = Watch::new(name, self.now, self.ended);
        self.window = Window::default();
        for worker in &mut self.workers {
            (worker.served_window, worker.served_phase, worker.worked) = (0, 0, 0);
        }
    }

    fn end_phase(&mut self) {
        self.note_spread();
        let Watch { name, began, ended_before, loads, retried, times, times_of_others, spread, .. } =
            &self.phase;
        let requests = self.ended - ended_before;
        let micros = (self.now - began).max(1) as f64;
        let per_request = requests.max(1) as f64;
        let mut holders = vec![0_u32; self.versions.len()];
        for worker in self.workers.iter().filter(|worker| worker.alive) {
            worker.cache.objects().for_each(|object| holders[object as usize] += 1);
        }
        let held = holders.iter().filter(|&&holders| holders > 0).count().max(1) as f64;
        let shared = holders.iter().filter(|&&holders| holders > 1).count() as f64;
        let alive = self.workers.iter().filter(|worker| worker.alive);
        self.phases.push(Phase {
            name: name.clone(),
            requests,
            retried: *retried,
            loads: *loads as f64 / per_request,
            throughput: requests as f64 / micros * 1e6,
            p50_ms: quantile_ms(times, 0.5),
            p99_ms: quantile_ms(times, 0.99),
            p99_others_ms: quantile_ms(times_of_others, 0.99),
            overlap: shared / held,
            fairness: fairness(alive.map(|worker| worker.worked as f64)),
            backlog_spread: spread / micros,
            share_after: self.phase.share_after,
            steady_after: self.phase.steady_after,
        });
    }

    fn report(self, algorithm: &Algorithm) -> Report {
        Report {
            label: algorithm.label.clone(),
            warm_up: self.warm_up,
            window: self.window_size(),
            phases: self.phases,
            loads_over_time: self.loads_over_time,
        }
    }
}

/// The time that this share of requests does not exceed, in milliseconds: at most 1/64 below the true one, never above; 0
/// where there are none.
fn quantile_ms(times: &Times, share: f64) -> f64 {
    times.quantile(share).map_or(0.0, |bounds| bounds.start().as_micros() as f64 / 1000.0)
}
