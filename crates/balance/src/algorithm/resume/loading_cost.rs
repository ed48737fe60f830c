//! Estimates of what loading data costs and of how scarce a worker's memory is, learnt from its answers.

use super::class_times::Times;
use super::worker::WorkerLoad;
use crate::load::DecayedMean;

/// What a request is taken to need that finds nothing at hand, before any was seen, in seconds.
const FIRST_COLD: f32 = 0.1;

/// Requests that reloading is taken over, of all workers and of one.
const HORIZON: f32 = 2048.0;
const HORIZON_OF_ONE: f32 = 256.0;

/// The part that is reloaded before it is known: memory is taken to be scarce, as classes that spread over
/// workers with too little of it take longer to find together again than those that spread late.
const UNKNOWN: f32 = 0.25;

/// From this part on that is reloaded, loading is never taken for an investment.
const INVESTED: f32 = 0.0025;

/// So much of what the most popular classes take longer than their least is taken for jitter. The rest they
/// reload too: what was changed.
const OF_POPULAR: f32 = 0.95;

/// The highest price of loading, in settings of `variance`.
const HIGHEST_PRICE: f32 = 1.1;

/// The lowest price of loading where anything is, in settings of `variance`. Times that vary hide what little
/// is reloaded, and a class that has another home for nothing has its changed data loaded once more for good.
const LOWEST_PRICE: f32 = 0.25;

/// The price of loading if all of everything was reloaded, in settings of `variance`. Found with loading that
/// is dear and that is cheap: of constant prices, in seconds for each second of loading, the best are 2 to 4
/// where a quarter is reloaded, 1 to 2 where it is a fiftieth, and 0 to 1 where it is a hundredth and less.
const PRICE: f32 = 17.0;

/// What an answer is held against: the class of it, at a worker that has loaded its data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Baseline {
    pub(crate) times: Times,
    /// Its share of all requests.
    pub(crate) share: f32,
}

/// What loading costs. Shared by the pools that follow each other over reloads.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Seconds that a worker spends on a request of a class that it did not know.
    cold: DecayedMean,
    /// The part of the data of their requests that workers load again, having had it, by the time it takes to
    /// load all. Less than nothing where times vary more than is known yet.
    reloading: DecayedMean,
    /// The same with all by which times vary: nothing only where nothing is ever loaded again and each takes
    /// its time exactly.
    excess: DecayedMean,
    /// How much longer than the least time of its class a request usually takes that finds all its data, as a
    /// part of that time: no two take equally long.
    jitter: DecayedMean,
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

    /// How many times longer than most this worker takes.
    pub(crate) fn slowness(&self, worker: &WorkerLoad) -> f32 {
        worker.slowness(self.cold())
    }

    /// What a choice has to know, for all workers that it looks at.
    pub(crate) fn costs(&self, variance: f32) -> Costs {
        Costs { cold: self.cold(), reloading: self.reloading(), charged: self.charged(), variance }
    }

    /// A worker spent `seconds` on a request of a class that it did not know.
    pub(crate) fn loaded(&self, worker: &WorkerLoad, seconds: f32) {
        self.cold.add(seconds, 1.0 - 1.0 / 64.0);
        worker.cold.add(seconds, 1.0 - 1.0 / 16.0);
    }

    /// A worker of this `slowness` spent `seconds` on a request of a class whose data it had loaded. What
    /// matters is which part of it it had to load, and not how long that takes beside serving: it evicts as
    /// much where loading is cheap.
    pub(crate) fn served(&self, worker: &WorkerLoad, seconds: f32, class: &Baseline, slowness: f32) {
        let Baseline { times, share } = *class;
        let (least, usual) = (times.least * slowness, times.usual * slowness);
        // What is asked for most is evicted last. So what the most popular classes usually take longer than
        // their least tells how much times vary; how much longer others do, tells what they reload. The mean
        // would not: it goes by the longest.
        self.jitter.add_weighted(usual / least - 1.0, share * share, 1.0 - 1.0 / HORIZON);
        let at_hand = least * (1.0 + OF_POPULAR * self.jitter.get());
        let cold = self.cold() * slowness;
        if self.reloading.weight() == 0.0 {
            self.reloading.set(UNKNOWN, self.cold() * HORIZON);
            self.excess.set(UNKNOWN, self.cold() * HORIZON);
        }
        let one = &worker.reloading;
        if one.weight() == 0.0 {
            one.set(self.reloading(), self.reloading.weight() * (HORIZON_OF_ONE / HORIZON));
        }
        // Of a class that is dearer than most even at hand, the time for loading all of it is not known.
        let all = (cold - at_hand).max(0.5 * cold);
        self.excess.add_weighted(((seconds - least) / all).min(1.0), all, 1.0 - 1.0 / HORIZON);
        let part = ((usual - at_hand) / all).clamp(-1.0, 1.0);
        self.reloading.add_weighted(part, all, 1.0 - 1.0 / HORIZON);
        one.add_weighted(part, all, 1.0 - 1.0 / HORIZON_OF_ONE);
    }

    /// One of so many workers has lost all it had: for twice its part, it is not known how scarce memory is,
    /// so that hardly anything is after all have started anew, one after the other.
    pub(crate) fn emptied(&self, worker: &WorkerLoad, workers: usize) {
        let part = (2.0 / workers.max(1) as f32).min(1.0);
        for mean in [&self.reloading, &self.excess] {
            let known = mean.get().max(0.0);
            mean.set(known + part * (UNKNOWN - known).max(0.0), mean.weight());
        }
        worker.reloading.set(0.0, 0.0);
    }

    /// The part of what their requests need that workers load again, having had it: what all miss by having
    /// too little memory.
    pub(crate) fn reloading(&self) -> f32 {
        if self.reloading.weight() > 0.0 { self.reloading.get().max(0.0) } else { UNKNOWN }
    }

    /// See [`Costs::charged`].
    fn charged(&self) -> f32 {
        let excess = if self.excess.weight() > 0.0 { self.excess.get() } else { UNKNOWN };
        (excess / INVESTED).min(1.0)
    }
}

/// What loading costs as far as it does not depend on the worker.
pub(crate) struct Costs {
    /// See [`Memory::cold`].
    pub(crate) cold: f32,
    /// See [`Memory::reloading`].
    reloading: f32,
    /// The part of the time of loading that is charged to the request that causes it. Where nothing is ever
    /// loaded twice, it serves all that come after, and nothing is: the load alone counts. That can be told
    /// only where times do not vary.
    pub(crate) charged: f32,
    /// The setting of that name.
    pub(crate) variance: f32,
}

impl Costs {
    /// What loading for a second at a worker costs, beside that second: where memory is scarce, what is
    /// loaded evicts what has to be loaded again, and that evicts something, and so on. The more workers
    /// reload, the longer that goes on, and most where it begins with one that reloads much itself; one that
    /// reloads less than others has room.
    pub(crate) fn price(&self, worker: &WorkerLoad) -> f32 {
        let one = &worker.reloading;
        let own = if one.weight() > 0.0 { one.get().max(0.0) } else { self.reloading };
        let price = PRICE * (own * self.reloading).sqrt();
        self.variance * price.clamp(LOWEST_PRICE * self.charged, HIGHEST_PRICE)
    }
}

#[cfg(test)]
mod tests {
    use super::super::class_times::ServiceTime;
    use super::*;

    const COLD: f32 = 0.003;
    const LEAST: f32 = 0.001;

    /// What is known after many answers: of requests that load all, and of a popular and some seldom classes,
    /// the n-th of which takes `popular(n)` and `seldom(n)` times as long as the least.
    fn after(popular: impl Fn(u32) -> f32, seldom: impl Fn(u32) -> f32) -> (Memory, WorkerLoad) {
        let (memory, worker) = (Memory::default(), WorkerLoad::default());
        let mut both = [Times::UNKNOWN; 2];
        for n in 0..20_000 {
            memory.loaded(&worker, COLD);
            let is_popular = n % 4 == 0;
            let (share, part) = if is_popular { (0.25, popular(n)) } else { (0.01, seldom(n)) };
            let (times, seconds) = (&mut both[usize::from(is_popular)], LEAST * part);
            times.add(ServiceTime { seconds, alone: true }, 1.0, n);
            memory.served(&worker, seconds, &Baseline { times: *times, share }, 1.0);
        }
        (memory, worker)
    }

    fn price(memory: &Memory, worker: &WorkerLoad) -> f32 {
        memory.costs(4.0).price(worker)
    }

    /// From the least to twice the least.
    fn varies(n: u32) -> f32 {
        1.0 + (n.wrapping_mul(2_654_435_761) >> 16) as f32 / 65_536.0
    }

    #[test]
    fn loading_has_no_price_where_nothing_is_ever_loaded_again() {
        let (memory, worker) = after(|_| 1.0, |_| 1.0);
        assert!(memory.charged() < 0.01);
        assert!(price(&memory, &worker) < 0.01);
    }

    #[test]
    fn times_that_vary_are_not_taken_for_loading() {
        let (memory, worker) = after(varies, varies);
        assert!(memory.reloading() < 0.05, "{}", memory.reloading());
        let price = price(&memory, &worker);
        assert!((4.0 * LOWEST_PRICE..2.5).contains(&price), "{price}");
    }

    #[test]
    fn classes_of_requests_of_many_kinds_are_not_taken_to_load() {
        // The longest take eight times as long as the shortest.
        let kinds = |n: u32| 8_f32.powf(varies(n) - 1.0);
        let (memory, _) = after(kinds, kinds);
        assert!(memory.reloading() < 0.1, "{}", memory.reloading());
    }

    #[test]
    fn what_classes_load_again_that_are_seldom_asked_for_is_seen_though_times_vary() {
        // 0.4 of all that they need, by which they take 0.8 of the least time longer, but for one in nine.
        let (memory, worker) = after(varies, |n| if n % 9 == 0 { varies(n) } else { varies(n) + 0.8 });
        let reloading = memory.reloading();
        assert!((0.2..0.6).contains(&reloading), "{reloading}");
        assert!(price(&memory, &worker) > 3.9);
    }
}
