//! The phases of a simulation, from one event to the next, and their measurements.

use std::time::Duration;

use super::state::{InFlight, Simulation};
use super::watch::{Watch, Window, quantile_ms};
use crate::balancer::Balancer;
use crate::demand::Demand;
use crate::measure::{Phase, Report, fairness};
use crate::scenario::{Algorithm, Scenario};

/// Windows that the measured requests are divided into, for measurements over time.
const WINDOWS: u64 = 400;

/// The warm-up ends at the latest after this many times the measured requests.
const LONGEST_WARM_UP: u64 = 10;

impl Simulation<'_> {
    /// Whether the warm-up is over. Random requests need every object sooner or later. The objects of a log
    /// that were not requested by then may come late or never.
    pub(super) fn warm_up_is_over(&self) -> bool {
        let Scenario { warm_up, requests, .. } = self.scenario;
        match self.demand {
            Demand::Log(_) => self.warm_up >= *warm_up,
            Demand::Sites { .. } => {
                (self.unseen_count == 0 && self.warm_up >= *warm_up)
                    || self.warm_up >= (*warm_up).max(requests * LONGEST_WARM_UP)
            }
        }
    }

    pub(super) fn begin_to_measure(&mut self) {
        self.measuring = true;
        self.balancers.iter_mut().for_each(Balancer::warmed_up);
        self.begin_phase(String::new());
    }

    pub(super) fn measure(&mut self, request: &InFlight) {
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

    pub(super) fn window_size(&self) -> u64 {
        (self.scenario.requests / WINDOWS).max(1)
    }

    pub(super) fn end_window(&mut self) {
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

    /// Accumulates the spread of the backlogs until now.
    pub(super) fn note_spread(&mut self) {
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

    pub(super) fn begin_phase(&mut self, name: String) {
        self.phase = Watch::new(name, self.now, self.ended);
        self.window = Window::default();
        for worker in &mut self.workers {
            (worker.served_window, worker.served_phase, worker.worked) = (0, 0, 0);
        }
    }

    pub(super) fn end_phase(&mut self) {
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

    pub(super) fn report(self, algorithm: &Algorithm) -> Report {
        Report {
            label: algorithm.label.clone(),
            warm_up: self.warm_up,
            window: self.window_size(),
            phases: self.phases,
            loads_over_time: self.loads_over_time,
        }
    }
}
