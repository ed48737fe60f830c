//! What it costs to load data, and how scarce the memory is that holds it, as far as answers tell.

use super::WorkerLoad;
use crate::load::DecayedMean;

/// What a request is taken to need that finds nothing at hand, before any was seen, in seconds.
const FIRST_COLD: f32 = 0.1;

/// Requests that the share of loading is taken over, of all workers and of one.
const HORIZON: f32 = 2048.0;
const HORIZON_OF_ONE: f32 = 256.0;

/// The share of loading before it is known: memory is taken to be scarce, as classes that spread over workers with too
/// little of it take longer to find together again than those that spread late.
const UNKNOWN: f32 = 0.8;

/// After so many answers a worker has loaded the data of a class. What it loads then, it has lost or was changed.
pub(crate) const LOADED: u32 = 40;

/// From this much loading for each second of serving on, loading is never taken for an investment.
const INVESTED: f32 = 0.05;

/// The highest price of loading, in settings of `variance`.
const HIGHEST_PRICE: f32 = 1.3;

/// The price of loading where workers load for as long as they serve, in settings of `variance`.
const PRICE: f32 = 0.5;

/// What loading costs. Shared by the pools that follow each other over reloads.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Seconds that a worker spends on a request of a class that it did not know.
    cold: DecayedMean,
    /// The share of loading in the time that workers spend on classes that they had loaded; a second weighs one.
    reloading: DecayedMean,
}

impl Memory {
    /// What is known but for how scarce memory is, which depends on the classes.
    pub(crate) fn of_other_classes(&self) -> Memory {
        Memory { cold: self.cold.copy(), ..Memory::default() }
    }

    /// Seconds that a worker like most is expected to spend on a request of a class that it does not know.
    pub(crate) fn cold(&self) -> f32 {
        if self.cold.weight() > 0.0 { self.cold.get() } else { FIRST_COLD }
    }

    /// How many times longer than most this worker takes, by what it took where it had everything to load. What it takes
    /// for classes that it knows says as much about the classes.
    pub(crate) fn slowness(&self, worker: &WorkerLoad) -> f32 {
        /// Of fewer requests nothing follows.
        const ENOUGH: f32 = 4.0;
        if worker.cold.weight() < ENOUGH { 1.0 } else { (worker.cold.get() / self.cold()).clamp(0.1, 10.0) }
    }

    /// A worker spent `seconds` on a request of a class that it did not know.
    pub(crate) fn loaded(&self, worker: &WorkerLoad, seconds: f32) {
        self.cold.add(seconds, 1.0 - 1.0 / 64.0);
        worker.cold.add(seconds, 1.0 - 1.0 / 16.0);
    }

    /// A worker spent `seconds` on a request of a class whose data it had loaded, and would have spent `least` if it had
    /// had it all at hand.
    pub(crate) fn served(&self, worker: &WorkerLoad, seconds: f32, least: f32) {
        if self.reloading.weight() == 0.0 {
            self.reloading.set(UNKNOWN, self.cold() * HORIZON);
        }
        let one = &worker.reloading;
        if one.weight() == 0.0 {
            one.set(self.reloading.get(), self.reloading.weight() * (HORIZON_OF_ONE / HORIZON));
        }
        let share = (1.0 - least / seconds.max(1e-6)).max(0.0);
        self.reloading.add_weighted(share, seconds, 1.0 - 1.0 / HORIZON);
        one.add_weighted(share, seconds, 1.0 - 1.0 / HORIZON_OF_ONE);
    }

    /// One of so many workers has lost all it had: for twice its part, it is not known how scarce memory is, so that hardly
    /// anything is after all have started anew, one after the other.
    pub(crate) fn emptied(&self, worker: &WorkerLoad, workers: usize) {
        let share = self.reloading.get();
        let part = (2.0 / workers.max(1) as f32).min(1.0);
        self.reloading.set(share + part * (UNKNOWN - share).max(0.0), self.reloading.weight());
        worker.reloading.set(0.0, 0.0);
    }

    /// The seconds that all workers spend on loading again what they once had, for each second that they serve.
    pub(crate) fn reloading(&self) -> f32 {
        if self.reloading.weight() > 0.0 { per_served(self.reloading.get()) } else { per_served(UNKNOWN) }
    }

    /// What loading for a second at a worker costs, beside that second: where memory is scarce, what is loaded evicts what
    /// has to be loaded again, and that evicts something, and so on. The more workers reload, the longer that goes on, and
    /// most where it begins with one that reloads much itself; one that reloads less than others has room.
    ///
    /// `reloading` is that of all workers.
    pub(crate) fn price(&self, worker: &WorkerLoad, reloading: f32, variance: f32) -> f32 {
        let one = &worker.reloading;
        let own = if one.weight() > 0.0 { per_served(one.get()) } else { reloading };
        variance * (PRICE * (own * reloading).sqrt()).min(HIGHEST_PRICE)
    }

    /// The part of the time of loading that is charged to the request that causes it. Where nothing is ever loaded twice,
    /// it serves all that come after, and nothing is: the load alone counts.
    pub(crate) fn charged(reloading: f32) -> f32 {
        (reloading / INVESTED).min(1.0)
    }
}

/// The seconds of loading for each second of serving, by the share of loading in both.
fn per_served(share: f32) -> f32 {
    share / (1.0 - share).max(0.01)
}
