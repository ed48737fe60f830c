//! Estimates of what loading data costs and of how scarce a worker's memory is, learnt from its responses.

use super::class_times::Times;
use super::worker::WorkerLoad;
use crate::load::DecayedMean;

/// The assumed seconds of a request that has to load all its data, before any was observed.
const FIRST_COLD: f32 = 0.1;

/// The requests that reloading is averaged over, of all workers and of one.
const HORIZON: f32 = 2048.0;
const HORIZON_OF_ONE: f32 = 256.0;

/// The initial assumption about reloading: memory is scarce. Classes that spread over workers with too little
/// memory take longer to concentrate again than those that spread late.
const UNKNOWN: f32 = 0.25;

/// From this reloaded part on, loading is never counted as an investment.
const INVESTED: f32 = 0.0025;

/// The part of the excess time of the most popular classes that is attributed to jitter. The rest is
/// attributed to reloading changed data.
const OF_POPULAR: f32 = 0.95;

/// The highest price of loading, in settings of `variance`.
const HIGHEST_PRICE: f32 = 1.1;

/// The lowest price of loading if anything is reloaded, in settings of `variance`. Varying times hide a
/// little reloading, and a class with a needless second home loads its changed data one more time for ever.
const LOWEST_PRICE: f32 = 0.25;

/// The price of loading if everything was reloaded, in settings of `variance`. Found with expensive and with
/// cheap loading: of constant prices, in seconds for each second of loading, the best are 2 to 4 if a quarter
/// is reloaded, 1 to 2 if a fiftieth is, and 0 to 1 if a hundredth or less is.
const PRICE: f32 = 17.0;

/// The reference for a response: the class, at a worker that has loaded its data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Baseline {
    pub(crate) times: Times,
    /// Its share of all requests.
    pub(crate) share: f32,
}

/// The cost of loading. Shared by the pools that succeed each other over reloads.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Seconds that a worker spends on a request of an unknown class.
    cold: DecayedMean,
    /// The part of the data of their requests that workers load again after having had it, relative to the
    /// time for loading all. Less than 0 if times vary more than is known yet.
    reloading: DecayedMean,
    /// The same including all variation of times: 0 only if nothing is ever reloaded and each request takes
    /// its time exactly.
    excess: DecayedMean,
    /// How much longer than the least time of its class a request with all its data usually takes, as a part
    /// of that time.
    jitter: DecayedMean,
}

impl Memory {
    /// The estimates, except the scarcity of memory, which depends on the classes.
    pub(crate) fn of_other_classes(&self) -> Memory {
        Memory { cold: self.cold.copy(), ..Memory::default() }
    }

    /// Expected seconds of an average worker for a request of an unknown class.
    pub(crate) fn cold(&self) -> f32 {
        if self.cold.weight() > 0.0 { self.cold.get() } else { FIRST_COLD }
    }

    /// How many times slower than average this worker is.
    pub(crate) fn slowness(&self, worker: &WorkerLoad) -> f32 {
        worker.slowness(self.cold())
    }

    /// The inputs to a choice, for all workers that it examines.
    pub(crate) fn costs(&self, variance: f32) -> Costs {
        Costs { cold: self.cold(), reloading: self.reloading(), charged: self.charged(), variance }
    }

    /// Takes the `seconds` that a worker spent on a request of an unknown class.
    pub(crate) fn loaded(&self, worker: &WorkerLoad, seconds: f32) {
        self.cold.add(seconds, 1.0 - 1.0 / 64.0);
        worker.cold.add(seconds, 1.0 - 1.0 / 16.0);
    }

    /// Takes the `seconds` that a worker of this `slowness` spent on a request of a class whose data it had
    /// loaded. The result is the part of the data that it had to reload, not the time for that relative to
    /// serving: loading evicts as much if it is cheap.
    pub(crate) fn served(&self, worker: &WorkerLoad, seconds: f32, class: &Baseline, slowness: f32) {
        let Baseline { times, share } = *class;
        let (least, usual) = (times.least * slowness, times.usual * slowness);
        // The most requested data is evicted last. So the excess time of the most popular classes over their
        // least time measures jitter, and the additional excess of others measures reloading. The mean would
        // not do, because the longest times dominate it.
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
        // If a class is slow even with all its data, the time for loading all of it is not known.
        let all = (cold - at_hand).max(0.5 * cold);
        self.excess.add_weighted(((seconds - least) / all).min(1.0), all, 1.0 - 1.0 / HORIZON);
        let part = ((usual - at_hand) / all).clamp(-1.0, 1.0);
        self.reloading.add_weighted(part, all, 1.0 - 1.0 / HORIZON);
        one.add_weighted(part, all, 1.0 - 1.0 / HORIZON_OF_ONE);
    }

    /// Notes that one of `workers` workers has lost all its data. The scarcity of memory becomes unknown for
    /// twice its part, so that hardly anything is known of it after all workers were restarted in turn.
    pub(crate) fn emptied(&self, worker: &WorkerLoad, workers: usize) {
        let part = (2.0 / workers.max(1) as f32).min(1.0);
        for mean in [&self.reloading, &self.excess] {
            let known = mean.get().max(0.0);
            mean.set(known + part * (UNKNOWN - known).max(0.0), mean.weight());
        }
        worker.reloading.set(0.0, 0.0);
    }

    /// The part of the data of their requests that workers load again after having had it: the effect of too
    /// little memory.
    pub(crate) fn reloading(&self) -> f32 {
        if self.reloading.weight() > 0.0 { self.reloading.get().max(0.0) } else { UNKNOWN }
    }

    /// See [`Costs::charged`].
    fn charged(&self) -> f32 {
        let excess = if self.excess.weight() > 0.0 { self.excess.get() } else { UNKNOWN };
        (excess / INVESTED).min(1.0)
    }
}

/// The cost of loading as far as it does not depend on the worker.
pub(crate) struct Costs {
    /// See [`Memory::cold`].
    pub(crate) cold: f32,
    /// See [`Memory::reloading`].
    reloading: f32,
    /// The part of the time of loading that is charged to the request that causes it. If nothing is ever
    /// loaded twice, loading serves all later requests and nothing is charged: the load alone counts. That
    /// can be determined only if times do not vary.
    pub(crate) charged: f32,
    /// The setting of that name.
    pub(crate) variance: f32,
}

impl Costs {
    /// The cost of one second of loading at a worker, beyond that second. If memory is scarce, loaded data
    /// evicts data that has to be loaded again, which evicts other data, and so on. The more workers reload,
    /// the longer the chain; it is longest if it begins at a worker that reloads much itself. A worker that
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

    /// The state after many responses: of requests that load everything, and of a popular and some rare
    /// classes, the n-th of which takes `popular(n)` and `seldom(n)` times as long as the least.
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
        // 0.4 of all their data, which takes 0.8 of the least time, except for one request in nine.
        let (memory, worker) = after(varies, |n| if n % 9 == 0 { varies(n) } else { varies(n) + 0.8 });
        let reloading = memory.reloading();
        assert!((0.2..0.6).contains(&reloading), "{reloading}");
        assert!(price(&memory, &worker) > 3.9);
    }
}
