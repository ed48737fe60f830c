//! The simulation: events in the order of their time.

mod events;
mod phases;
mod state;
mod watch;

use std::cmp::Reverse;

use sandarac_balance::{AttemptOutcome, Settings};

use crate::balancer::{Asking, Sent};
use crate::demand::Demand;
use crate::distribution::{exponential, factor, of_request};
use crate::measure::Report;
use crate::scenario::{Algorithm, Load, Scenario};
use crate::trace::Trace;
use crate::worker::Worker;
use state::{InFlight, Next, Simulation};

/// A request that this many workers failed is given up.
const MAX_TRIES: usize = 3;

/// Separates the draws of the variation of service times from those of the objects.
const JITTER: u64 = 0x4a49_5454_4552;

/// Simulates a scenario with one algorithm.
pub fn simulate(scenario: &Scenario, algorithm: &Algorithm) -> Report {
    play(scenario, Demand::of_sites(&scenario.sites), algorithm)
}

/// Simulates a log with one algorithm and the workers of `scenario`, which MUST come from
/// [`Scenario::for_log`].
pub fn replay(scenario: &Scenario, trace: &Trace, algorithm: &Algorithm) -> Report {
    play(scenario, Demand::Log(trace), algorithm)
}

fn play(scenario: &Scenario, demand: Demand<'_>, algorithm: &Algorithm) -> Report {
    let mut simulation = Simulation::new(scenario, demand, algorithm);
    simulation.run();
    simulation.report(algorithm)
}

impl Simulation<'_> {
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
                Next::Done { worker, life, place } => self.done(worker as usize, life, place),
                Next::Patience { place, number } => self.ask_again(place, number),
            }
            self.wake();
        }
        self.end_phase();
    }

    /// Polls a request again, if it still waits for a place.
    fn ask_again(&mut self, place: u32, number: u64) {
        let request = self.in_flight[place as usize].as_ref().filter(|request| request.number == number);
        if request.is_some_and(|request| self.balancers[request.balancer as usize].waits(place)) {
            self.send(place);
        }
    }

    /// Polls woken requests that wait for a place.
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

    /// Schedules the next request of the client whose response has just come.
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

    /// Sends a request to a worker, and to another if that is dead.
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
                let left: u64 = worker.busy.iter().map(|&(_, until)| until.saturating_sub(now)).sum();
                let wait = (left as f64 + queued) / f64::from(worker.concurrency);
                (wait, micros(worker, request.number, request.site))
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
                self.begin(worker);
                return;
            }
            balancer.done(placed, AttemptOutcome::ConnectFailed, self.now);
            request.tried.push(worker);
        }
        // No worker served it. Its client continues with another request.
        self.free.push(at);
        self.after_answer();
    }

    /// Lets a worker begin with the next request of its queue, if it can.
    fn begin(&mut self, at: usize) {
        let Scenario { workers, seed, .. } = self.scenario;
        let worker = &mut self.workers[at];
        if worker.busy.len() as u32 >= worker.concurrency {
            return;
        }
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
        worker.busy.push((next, self.now + micros));
        worker.worked += micros;
        let life = worker.life;
        if !self.names[request.class as usize].is_empty() {
            worker.resume.served(request.class, millis / 1000.0);
        }
        self.plan(self.now + micros, Next::Done { worker: at as u32, life, place: next });
    }

    fn done(&mut self, at: usize, life: u32, place: u32) {
        if self.workers[at].life != life || !self.workers[at].alive {
            return;
        }
        self.note_spread();
        self.workers[at].busy.retain(|&(busy, _)| busy != place);
        let Some(mut request) = self.in_flight[place as usize].take() else { return };
        self.free.push(place);
        let balancer = &mut self.balancers[request.balancer as usize];
        balancer.hear(at, &self.workers[at], self.classifier, &self.names, self.now);
        if let Some(placed) = request.placed.take() {
            balancer.done(placed, AttemptOutcome::Answered, self.now);
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
}
