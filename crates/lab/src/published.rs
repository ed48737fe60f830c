//! Résumés as in zc.resumelb (2012), for comparison. Not part of the shipping balancer.

use crate::resume::WorkerResume;

/// A worker with a backlog this many mean backlogs above that of the least recently used one is skipped.
const VARIANCE: f64 = 4.0;

/// Requests that a backlog is averaged over.
const BACKLOG_HISTORY: f64 = 9.0;

/// The score of a worker that is given an unknown class.
const UNSKILLED_SCORE: f64 = 1.0;

/// The workers, as known to the balancer.
pub(crate) struct Published {
    workers: Vec<Seen>,
    /// Recent requests in flight.
    backlog: f64,
    in_flight: f64,
    turn: u64,
    classes: u32,
}

/// What is known of a worker.
struct Seen {
    /// Its score in each class; 0 if it is unskilled.
    scores: Vec<f64>,
    /// The revision of the résumé with these scores.
    revision: u64,
    in_flight: f64,
    /// Recent requests in flight.
    backlog: f64,
    /// The last choice of this worker.
    used: u64,
}

impl Published {
    pub(crate) fn new(classes: u32, workers: usize) -> Published {
        let mut published = Published { workers: Vec::new(), backlog: 0.0, in_flight: 0.0, turn: 0, classes };
        (0..workers).for_each(|_| published.joined());
        published
    }

    /// The worker for a request of a class, among those that are `alive`: of the skilled ones that are not
    /// skipped, the one with the best score over its requests in flight, else the least recently used.
    pub(crate) fn pick(&mut self, class: u32, alive: impl Fn(usize) -> bool) -> Option<usize> {
        let class = class as usize;
        let living = || (0..self.workers.len()).filter(|&at| alive(at));
        let idlest = living().min_by_key(|&at| self.workers[at].used)?;
        let mean = self.backlog / self.workers.len() as f64;
        let ceiling = self.workers[idlest].backlog + 1.0 + VARIANCE * mean.max(1.0);
        let score = |at: usize| self.workers[at].scores[class] / self.workers[at].in_flight.max(1.0);
        let best = living()
            .filter(|&at| score(at) > 0.0 && self.workers[at].backlog <= ceiling)
            .max_by(|&one, &two| score(one).total_cmp(&score(two)));
        let picked = best.unwrap_or(idlest);
        self.turn += 1;
        let worker = &mut self.workers[picked];
        worker.used = self.turn;
        if worker.scores[class] == 0.0 {
            worker.scores[class] = UNSKILLED_SCORE;
        }
        self.count(picked, 1.0);
        Some(picked)
    }

    pub(crate) fn done(&mut self, worker: usize) {
        self.count(worker, -1.0);
    }

    fn count(&mut self, at: usize, change: f64) {
        let follow = |mean: &mut f64, value: f64, over: f64| *mean += (value - *mean) / (2.0 * over);
        let count = self.workers.len() as f64;
        let worker = &mut self.workers[at];
        worker.in_flight += change;
        self.in_flight += change;
        follow(&mut worker.backlog, worker.in_flight, BACKLOG_HISTORY);
        follow(&mut self.backlog, self.in_flight, BACKLOG_HISTORY * count);
    }

    /// Replaces the known résumé of a worker.
    pub(crate) fn hear(&mut self, worker: usize, resume: &WorkerResume) {
        let seen = &mut self.workers[worker];
        if seen.revision != resume.revision {
            seen.revision = resume.revision;
            seen.scores.fill(0.0);
            resume.whole().for_each(|(class, score)| seen.scores[class as usize] = score);
        }
    }

    pub(crate) fn joined(&mut self) {
        let scores = vec![0.0; self.classes as usize];
        self.workers.push(Seen { scores, revision: 1, in_flight: 0.0, backlog: 0.0, used: 0 });
    }

    /// Forgets all skills.
    pub(crate) fn forget(&mut self) {
        for worker in &mut self.workers {
            worker.scores.fill(0.0);
            worker.revision = 1;
        }
    }
}
