//! What it costs to load data, and how scarce the memory is that holds it, as far as answers tell.

use super::WorkerLoad;
use crate::load::DecayedMean;

/// What a request is taken to need that finds nothing at hand, before any was seen, in seconds.
const FIRST_COLD: f32 = 0.1;

/// Requests that reloading is taken over, of all workers and of one.
const HORIZON: f32 = 2048.0;
const HORIZON_OF_ONE: f32 = 256.0;

/// The part that is reloaded before it is known: memory is taken to be scarce, as classes that spread over workers with too
/// little of it take longer to find together again than those that spread late.
const UNKNOWN: f32 = 0.25;

/// After so many answers a worker has loaded the data of a class. What it loads then, it has lost or was changed.
pub(crate) const LOADED: u32 = 40;

/// From this part on that is reloaded, loading is never taken for an investment.
const INVESTED: f32 = 0.0025;

/// The highest price of loading, in settings of `variance`.
const HIGHEST_PRICE: f32 = 1.1;

/// The price of loading if all of everything was reloaded, in settings of `variance`. Found with loading that is dear and that
/// is cheap: of constant prices, in seconds for each second of loading, the best are 2 to 4 where a quarter is reloaded, 1 to 2
/// where it is a fiftieth, and 0 to 1 where it is a hundredth and less.
const PRICE: f32 = 12.0;

/// What loading costs. Shared by the pools that follow each other over reloads.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Seconds that a worker spends on a request of a class that it did not know.
    cold: DecayedMean,
    /// The part of the data of their requests that workers load again, having had it, by the time it takes to load all.
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

    /// A worker of this `slowness` spent `seconds` on a request of a class whose data it had loaded, and would have spent
    /// `least` if it had had it all at hand. What matters is which part it had to load, and not how long that takes beside serving: it evicts as
    /// much where loading is cheap.
    pub(crate) fn served(&self, worker: &WorkerLoad, seconds: f32, least: f32, slowness: f32) {
        let cold = self.cold() * slowness;
        if self.reloading.weight() == 0.0 {
            self.reloading.set(UNKNOWN, self.cold() * HORIZON);
        }
        let one = &worker.reloading;
        if one.weight() == 0.0 {
            one.set(self.reloading.get(), self.reloading.weight() * (HORIZON_OF_ONE / HORIZON));
        }
        // Of a class that is dearer than most even at hand, the time for loading all of it is not known.
        let all = (cold - least).max(0.5 * cold);
        let part = ((seconds - least) / all).clamp(0.0, 1.0);
        self.reloading.add_weighted(part, all, 1.0 - 1.0 / HORIZON);
        one.add_weighted(part, all, 1.0 - 1.0 / HORIZON_OF_ONE);
    }

    /// One of so many workers has lost all it had: for twice its part, it is not known how scarce memory is, so that hardly
    /// anything is after all have started anew, one after the other.
    pub(crate) fn emptied(&self, worker: &WorkerLoad, workers: usize) {
        let known = self.reloading.get();
        let part = (2.0 / workers.max(1) as f32).min(1.0);
        self.reloading.set(known + part * (UNKNOWN - known).max(0.0), self.reloading.weight());
        worker.reloading.set(0.0, 0.0);
    }

    /// The part of what their requests need that workers load again, having had it: what all miss by having too little memory.
    pub(crate) fn reloading(&self) -> f32 {
        if self.reloading.weight() > 0.0 { self.reloading.get() } else { UNKNOWN }
    }

    /// What loading for a second at a worker costs, beside that second: where memory is scarce, what is loaded evicts what
    /// has to be loaded again, and that evicts something, and so on. The more workers reload, the longer that goes on, and
    /// most where it begins with one that reloads much itself; one that reloads less than others has room.
    ///
    /// `reloading` is that of all workers.
    pub(crate) fn price(&self, worker: &WorkerLoad, reloading: f32, variance: f32) -> f32 {
        let one = &worker.reloading;
        let own = if one.weight() > 0.0 { one.get() } else { reloading };
        variance * (PRICE * (own * reloading).sqrt()).min(HIGHEST_PRICE)
    }

    /// The part of the time of loading that is charged to the request that causes it. Where nothing is ever loaded twice,
    /// it serves all that come after, and nothing is: the load alone counts.
    pub(crate) fn charged(reloading: f32) -> f32 {
        (reloading / INVESTED).min(1.0)
    }
}
