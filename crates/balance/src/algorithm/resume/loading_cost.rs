//! The cost of loading data, learnt from responses and choices.

use super::WorkerLoad;
use crate::load::DecayedMean;

/// The assumed seconds of a request that has to load all its data, before any was observed.
const FIRST_COLD: f32 = 0.1;

/// The cost of loading. Shared by the pools that succeed each other over reloads.
#[derive(Debug, Default)]
pub(crate) struct LoadingCost {
    /// Seconds that a worker spends on the first request of a class.
    cold: DecayedMean,
    /// Seconds until a worker has finished its work, of all workers in turn.
    wait: DecayedMean,
    /// The logarithm of how many times later than expected workers respond, of all in turn: one that gets
    /// most requests does not make its delay the usual one.
    delay: DecayedMean,
}

impl LoadingCost {
    /// Expected seconds of an average worker for a request of an unknown class.
    pub(crate) fn cold(&self) -> f32 {
        if self.cold.weight() > 0.0 { self.cold.get() } else { FIRST_COLD }
    }

    /// Expected seconds of this worker for a request of an unknown class.
    pub(crate) fn cold_at(&self, worker: &WorkerLoad) -> f32 {
        let cold = self.cold();
        cold * worker.slowness(cold)
    }

    /// Takes the `seconds` that a worker spent on its first request of a class.
    pub(crate) fn loaded(&self, worker: &WorkerLoad, seconds: f32) {
        self.cold.add(seconds, 1.0 - 1.0 / 64.0);
        worker.cold.add(seconds, 1.0 - 1.0 / 16.0);
    }

    /// Takes the delay of a worker, if any is known.
    pub(crate) fn delays(&self, worker: &WorkerLoad, decay: f32) {
        if let Some(delay) = worker.delay() {
            self.delay.add(delay, decay);
        }
    }

    /// The logarithm of how many times later than expected workers usually respond; at least 0. Much more than
    /// that if they work on many requests at the same time, because the work of one is then only a part of its
    /// time.
    pub(crate) fn usual_delay(&self) -> f32 {
        self.delay.get().max(0.0)
    }

    /// Takes the `seconds` until a worker has finished its work.
    pub(crate) fn waits(&self, seconds: f32, decay: f32) {
        self.wait.add(seconds, decay);
    }

    /// Mean seconds until a worker has finished its work.
    pub(crate) fn mean_wait(&self) -> f32 {
        self.wait.get()
    }
}
