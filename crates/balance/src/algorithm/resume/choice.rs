//! The choice of a worker.
//!
//! The worker with the lowest cost takes a request. The cost is the time until the response, plus a price for
//! each second of loading beyond what the best worker would load (see [`super::loading_cost`]): loading takes
//! time from all requests and evicts other data, and the class has two homes from then on. A class that needs
//! more than one worker spreads as soon as its workers have that much more to do than the idlest.

use std::sync::atomic::Ordering;

use super::class::{Class, ClassKey, Skill};
use super::{Resume, WorkerLoad};
use crate::ChoiceReason;
use crate::backend::Availability;
use crate::candidates::Candidates;
use crate::choices::Chosen;

/// The most skilled workers that are examined.
const SAMPLE: usize = 16;

/// Of these, the number drawn at random from those that are not the best, if there are more.
const DRAWN: usize = 4;

/// In pools of up to this many workers, the idlest is the idlest of all.
const SMALL_POOL: usize = 32;

/// In larger pools, the idlest of this many drawn at random. The idlest of eight is almost always among the
/// idlest third.
const IDLEST_OF: u64 = 8;

/// How many classes more than another a worker can be charged for, if a class is new to all.
const AHEAD: f32 = 4.0;

/// In one choice of this many, loading is an investment, which serves later requests too: its time does not
/// count, and its price only in part. So classes spread where there is room, and hardly where there is none.
const INVESTS: u64 = 64;

/// That part of the price.
const INVESTED: f32 = 0.5;

/// A class may spread over this many workers however few there are: the gain from a choice outweighs the loss
/// to loading.
const HOMES: f32 = 3.0;

/// A worker this many times slower than the best at a class does not count as having its data.
const WARM: f32 = 2.0;

/// A worker that fails this share of its requests is not a home of a class, and is no alternative to a slow
/// worker. Errors are not progress, and reveal nothing about the worker's speed.
const FAILING: f32 = 0.5;

impl Resume {
    /// Chooses a worker for a request of `class`.
    pub(crate) fn choose(&self, candidates: &Candidates<'_>, class: Option<ClassKey>) -> Option<Chosen> {
        let choice = SkilledChoice {
            resume: self,
            candidates,
            cold: self.loading.cold(),
            usual_delay: self.loading.usual_delay(),
            variance: self.settings.variance as f32,
            mean_wait: self.loading.mean_wait(),
            invests: candidates.load.ticks().is_multiple_of(INVESTS),
            per_weight: candidates.count() as f32 / candidates.weights,
        };
        // Examining one worker per choice costs the same in a pool of any size.
        let turn = (candidates.load.ticks() % candidates.count() as u64) as usize;
        let load = choice.load(turn);
        load.backlog.add(candidates.backends[turn].in_hand() as f32, self.backlog_decay);
        if candidates.eligible(turn) {
            self.loading.waits(choice.wait(turn), self.wait_decay);
            self.loading.delays(load, self.wait_decay);
            load.look_again(candidates.micros, choice.usual_delay);
            if choice.on_trial(turn) {
                return Some(Chosen::new(turn, ChoiceReason::OnTrial));
            }
        }
        choice.make(class)
    }
}

/// A skilled candidate.
#[derive(Clone, Copy, Default)]
struct SkilledCandidate {
    at: usize,
    /// The seconds that an average worker would spend on a request of the class with the data of this one.
    seconds: f32,
    /// How many times slower than average it is.
    slowness: f32,
    /// Whether it has loaded the data of the class.
    loaded: bool,
    /// The assumed share of its requests that fail.
    blame: f32,
    /// How many times later than others it responds.
    late: f32,
}

impl SkilledCandidate {
    fn fails(&self) -> bool {
        self.blame >= FAILING
    }
}

/// The requests to a worker that are needed for one success if this share fails, at most ten: failing is
/// quick.
fn repeats(blame: f32) -> f32 {
    if blame == 0.0 { 1.0 } else { 1.0 / (1.0 - 0.9 * blame) }
}

struct SkilledChoice<'a> {
    resume: &'a Resume,
    candidates: &'a Candidates<'a>,
    /// The seconds of an average worker for a request of an unknown class.
    cold: f32,
    /// The logarithm of how many times later than expected workers usually respond.
    usual_delay: f32,
    /// The mean waits that loading everything costs.
    variance: f32,
    /// The mean wait of a worker.
    mean_wait: f32,
    /// Whether loading is an investment.
    invests: bool,
    /// The weight of a backend of weight 1, relative to the mean of the pool.
    per_weight: f32,
}

impl SkilledChoice<'_> {
    fn make(&self, class: Option<ClassKey>) -> Option<Chosen> {
        let idlest = self.idlest()?;
        let Some(key) = class else { return Some(Chosen::new(idlest, ChoiceReason::Unclassified)) };
        let shard = self.resume.skills.read(key);
        let Some(class) = shard.get(key) else {
            drop(shard);
            return self.freest().map(|at| Chosen::new(at, ChoiceReason::NewClass));
        };
        if let Some(at) = self.trial(class) {
            return Some(Chosen::new(at, ChoiceReason::Explored));
        }
        Some(self.best(class, idlest))
    }

    fn load(&self, at: usize) -> &WorkerLoad {
        &self.candidates.backends[at].state.load
    }

    /// Whether the ejection of a worker is over and its trial is due. Its failures and the skills of others
    /// would keep it without requests while the others are not busy.
    fn on_trial(&self, at: usize) -> bool {
        let availability = self.candidates.backends[at].state.availability(self.candidates.now);
        matches!(availability, Availability::OnTrial(_))
    }

    /// Seconds until a worker has finished its work; more if it is late, and if its requests fail.
    fn wait(&self, at: usize) -> f32 {
        let (load, now) = (self.load(at), self.candidates.micros);
        self.wait_with(at, load.lateness(now, self.usual_delay) * repeats(load.blame(now)))
    }

    /// The same, if a request takes `penalty` times as long.
    // A choice takes 3 to 4 % fewer instructions than with a call.
    #[inline(always)]
    fn wait_with(&self, at: usize, penalty: f32) -> f32 {
        let in_hand = self.candidates.backends[at].in_hand();
        self.load(at).wait(in_hand, self.candidates.micros, self.cold, penalty)
    }

    /// The weight of a worker, relative to the mean of the pool.
    fn heaviness(&self, at: usize) -> f32 {
        self.candidates.backends[at].weight() as f32 * self.per_weight
    }

    /// The candidate with the least time to the end of its work, relative to its part of the load. Of
    /// several, the least recently used. Examines all, or a sample.
    fn idlest(&self) -> Option<usize> {
        self.first(|at| self.wait(at) / self.candidates.part(at))
    }

    /// The candidate with the least time to the end of its work, plus a request of each class that it was
    /// recently given, because most of those have yet to be loaded. This spreads classes that are all new at
    /// once evenly by weight. A newcomer without any is charged at most a few classes less than the others,
    /// so that it is not flooded until it has as many. A failing worker ranks after all others.
    fn freest(&self) -> Option<usize> {
        let (tick, cold) = (self.candidates.load.ticks(), self.cold);
        let given = |at: usize| {
            let fails = self.stranger(at).fails();
            if fails { f32::MAX } else { self.load(at).given_of_late(tick) / self.heaviness(at) }
        };
        let fewest = self.first(given).map_or(0.0, given);
        self.first(|at| {
            (self.wait(at) + cold * (given(at) - fewest).clamp(0.0, AHEAD)) / self.candidates.part(at)
        })
    }

    /// The candidate with the smallest amount; of several, the least recently used. Examines all, or a
    /// sample.
    fn first(&self, amount: impl Fn(usize) -> f32) -> Option<usize> {
        let candidates = self.candidates;
        let order = |at: &usize| {
            let millionths = amount(*at) * 1e6;
            (millionths as u64, self.load(*at).used())
        };
        let eligible = |at: &usize| candidates.eligible(*at);
        let count = candidates.count();
        if count > SMALL_POOL {
            let sample = candidates.random.several_below(count, IDLEST_OF);
            if let Some(at) = sample.filter(eligible).min_by_key(order) {
                return Some(at);
            }
        }
        candidates.all().filter(eligible).min_by_key(order)
    }

    /// The skilled candidate of the lowest cost; `idlest`, which counts as unskilled unless it is among them,
    /// if it costs less or none of them may be taken.
    fn best(&self, class: &Class, idlest: usize) -> Chosen {
        let cold = self.cold;
        let (seen, count) = self.look(class);
        let seen = &seen[..count];
        let quickest = seen.iter().map(|seen| seen.seconds).fold(cold, f32::min);
        let answered = seen.iter().any(|seen| !seen.fails());
        let mut best: Option<(&SkilledCandidate, f32)> = None;
        for seen in seen.iter().filter(|seen| !seen.fails() || !answered) {
            let cost = self.cost(seen, seen.seconds - quickest, quickest);
            if best.is_none_or(|(_, least)| cost < least) {
                best = Some((seen, cost));
            }
        }
        let Some((best, least)) = best else {
            return Chosen::new(idlest, ChoiceReason::LeastRecentlyUsed);
        };
        let knows = seen.iter().any(|seen| seen.at == idlest);
        let stranger = self.stranger(idlest);
        // However long the wait, a class does not spread beyond its part of the workers.
        let homes = seen.iter().filter(|seen| seen.seconds <= WARM * quickest && !seen.fails()).count();
        let workers = self.candidates.count() as f32;
        let may_spread = (homes as f32) < (workers / self.variance).max(HOMES);
        if !knows && may_spread && !(stranger.fails() && answered) {
            // When a class has only begun to be loaded, no worker is quick at it yet. That is no reason to
            // load it twice.
            let loaded = seen.iter().any(|seen| seen.loaded);
            let loading = if loaded { cold - quickest } else { cold };
            // A skilled worker that fails has loaded nothing of the class.
            if best.fails() && !stranger.fails() || self.cost(&stranger, loading, quickest) < least {
                return Chosen::new(idlest, ChoiceReason::Unskilled);
            }
        }
        Chosen::new(best.at, ChoiceReason::BestScore)
    }

    /// The cost of a request at a candidate that has to load `loading` seconds more than the best one, which
    /// needs `quickest`: the seconds until the response, plus the price of loading. To load everything costs
    /// as long as another request and `variance` mean waits, because all requests wait longer and evicted
    /// data has to be loaded again. But if many requests wait for few workers, an idle worker can load
    /// without delaying any of them: there it costs at most `variance` times as long as some requests would
    /// wait for it.
    fn cost(&self, seen: &SkilledCandidate, loading: f32, quickest: f32) -> f32 {
        let repeats = repeats(seen.blame);
        let wait = self.wait_with(seen.at, seen.late * repeats);
        let (own, mean_wait) =
            if self.invests { (quickest, INVESTED * self.mean_wait) } else { (seen.seconds, self.mean_wait) };
        let all = quickest + self.variance * mean_wait;
        let all = all.min(self.variance * (2.0 * wait + self.cold));
        // A new worker, which has yet to find its share, is preferred among equals.
        let own = if self.load(seen.at).is_new() { own * 0.5 } else { own };
        (wait + (own + all * loading / self.cold) * seen.slowness) * repeats / self.candidates.part(seen.at)
    }

    /// A candidate without any skill in the class.
    fn stranger(&self, at: usize) -> SkilledCandidate {
        let load = self.load(at);
        let now = self.candidates.micros;
        let (blame, late) = (load.blame(now), load.lateness(now, self.usual_delay));
        SkilledCandidate {
            at,
            seconds: self.cold,
            slowness: load.slowness(self.cold),
            loaded: false,
            blame,
            late,
        }
    }

    /// Candidates among the skilled: all, or the best and a few drawn from the rest.
    fn look(&self, class: &Class) -> ([SkilledCandidate; SAMPLE], usize) {
        let mut found = [SkilledCandidate::default(); SAMPLE];
        let mut count = 0;
        let mut see = |skill: &Skill| {
            if let Some(at) = self.candidates.places.of(skill.worker)
                && self.candidates.eligible(at)
            {
                let mut seen = self.stranger(at);
                if skill.is_known() {
                    seen.seconds = seen.late / (skill.score * seen.slowness);
                }
                seen.loaded = skill.is_loaded();
                found[count] = seen;
                count += 1;
            }
        };
        let skilled = &class.skilled;
        if skilled.len() <= SAMPLE {
            skilled.iter().for_each(see);
        } else {
            let (best, rest) = skilled.split_at(SAMPLE - DRAWN);
            best.iter().for_each(&mut see);
            let drawn = self.candidates.random.several_below(rest.len(), DRAWN as u64);
            drawn.for_each(|at| see(&rest[at]));
        }
        (found, count)
    }

    /// Whether a worker may be tried: it is idle, and neither late nor failing.
    fn may_be_tried(&self, at: usize) -> bool {
        self.candidates.backends[at].in_flight() == 0
            && self.candidates.eligible(at)
            && !self.load(at).is_late()
            && !self.stranger(at).fails()
    }

    /// A new worker to try at the class, if there is one and it is idle. Under light load the other workers
    /// are never busy enough for it to get a class by itself.
    fn trial(&self, class: &Class) -> Option<usize> {
        let SkilledChoice { resume, candidates, .. } = self;
        if let Some(id) = class.trial() {
            let at = candidates.places.of(id)?;
            let load = &candidates.backends[at].state.load;
            let quickest = class.skilled.first().map_or(0.0, |skill| skill.score);
            let caught_up =
                class.of(id).is_some_and(|skill| skill.is_known() && skill.score * WARM >= quickest);
            if caught_up || !load.is_new() {
                class.end_trial();
            } else if self.may_be_tried(at) && load.try_once() {
                return Some(at);
            }
            return None;
        }
        if !candidates.random.happens(resume.settings.exploration as f32) {
            return None;
        }
        let at = candidates.random.below(candidates.count());
        let load = &candidates.backends[at].state.load;
        let fair = self.heaviness(at) / candidates.count() as f32;
        let underused = || load.share(candidates.load.ticks(), candidates.count()) < 0.75 * fair;
        if !load.is_new() || !self.may_be_tried(at) {
            return None;
        }
        if !underused() {
            load.settle();
            return None;
        }
        class.begin_trial(candidates.ids[at]);
        load.try_once().then_some(at)
    }
}

impl Class {
    fn trial(&self) -> Option<crate::BackendId> {
        match self.tried.load(Ordering::Relaxed) {
            0 => None,
            id => Some(crate::BackendId(id - 1)),
        }
    }

    fn begin_trial(&self, worker: crate::BackendId) {
        self.tried.store(worker.0.wrapping_add(1), Ordering::Relaxed);
    }

    fn end_trial(&self) {
        self.tried.store(0, Ordering::Relaxed);
    }
}
