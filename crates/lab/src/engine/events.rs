//! The events of a scenario.

use sandarac_balance::AttemptOutcome;

use super::state::Simulation;
use crate::resume::WorkerResume;
use crate::scenario::EventKind;

impl Simulation<'_> {
    pub(super) fn happen(&mut self, event: EventKind) {
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

    pub(super) fn kill(&mut self, at: usize) {
        let Some(worker) = self.workers.get_mut(at) else { return };
        worker.alive = false;
        worker.life += 1;
        let busy = worker.busy.drain(..).map(|(place, _)| place);
        let lost: Vec<u32> = busy.chain(worker.queue.drain(..)).collect();
        for place in lost {
            if let Some(request) = &mut self.in_flight[place as usize]
                && let Some(placed) = request.placed.take()
            {
                self.balancers[request.balancer as usize].done(placed, AttemptOutcome::Broken, self.now);
                request.tried.clear();
                self.phase.retried += 1;
            }
            self.send(place);
        }
    }

    pub(super) fn restart(&mut self, at: usize) {
        self.kill(at);
        let Some(worker) = self.workers.get_mut(at) else { return };
        worker.alive = true;
        worker.cache.clear();
        worker.resume = WorkerResume::new(self.demand.classes(), self.scenario.workers.history);
        self.newcomers.push(at);
    }
}
