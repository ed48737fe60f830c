//! The choice itself.
//!
//! As published, the worker with the best score over its backlog takes a request, one too far above the mean
//! is skipped, and where all are, whoever was used least recently takes it. Two things are refined, as
//! simulation showed their worth (docs/balancing.md). What counts is time: a backlog is the seconds of work
//! that the requests in it are expected to be, as one that has to load its data holds a worker up twenty
//! times as long as one that finds it there. And a worker that is slower at the class because it would have
//! to load data costs more than that request waits: it evicts what it holds, and the class has two homes from
//! then on. How much more, depends on how scarce memory is, see [`super::memory`].

use std::sync::atomic::Ordering;

use super::class::{Class, ClassKey, Skill};
use super::loading_cost::Costs;
use super::{Resume, WorkerLoad};
use crate::ChoiceReason;
use crate::backend::Availability;
use crate::candidates::Candidates;
use crate::choices::Chosen;

/// Skilled workers looked at.
const SAMPLE: usize = 16;

/// Of the skilled workers looked at, where there are more, those that are not the best but drawn from the
/// rest.
const DRAWN: usize = 4;

/// In pools of up to so many workers, the idlest is looked for among all.
const SMALL_POOL: usize = 32;

/// In larger ones, among so many drawn at random: the idlest of eight is among the idlest third nearly
/// always.
const IDLEST_OF: u64 = 8;

/// So many classes that a worker was given and another was not count, where a class is new to all.
const AHEAD: f32 = 4.0;

/// A class may spread over so many workers however few there are: what it loses to loading, it gains by a
/// choice.
const HOMES: f32 = 3.0;

/// A worker this many times slower than the best at a class is no longer counted among those that have its
/// data.
const WARM: f32 = 2.0;

/// A worker of whose requests this share fails is neither the home of a class nor a refuge from one that
/// answers slowly: an error is no answer, and who gives no other cannot be told to be any better.
const FAILING: f32 = 0.5;

impl Resume {
    /// Chooses a worker for a request of `class`.
    pub(crate) fn choose(&self, candidates: &Candidates<'_>, class: Option<ClassKey>) -> Option<Chosen> {
        let costs = self.memory.costs(self.settings.variance as f32);
        let per_weight = candidates.count() as f32 / candidates.weights;
        let choice = SkilledChoice { resume: self, candidates, costs, per_weight };
        if let Some(at) = choice.on_trial() {
            return Some(Chosen::new(at, ChoiceReason::OnTrial));
        }
        let idlest = choice.idlest()?;
        let Some(key) = class else { return Some(Chosen::new(idlest, ChoiceReason::Unclassified)) };
        let shard = self.skills.read(key);
        let Some(class) = shard.get(key) else {
            drop(shard);
            return choice.freest().map(|at| Chosen::new(at, ChoiceReason::NewClass));
        };
        if let Some(at) = choice.trial(class) {
            return Some(Chosen::new(at, ChoiceReason::Explored));
        }
        Some(choice.best(class, idlest))
    }
}

/// A skilled candidate.
#[derive(Clone, Copy, Default)]
struct SkilledCandidate {
    at: usize,
    /// The seconds that a worker like most would spend on a request of the class with the data that this one
    /// has.
    seconds: f32,
    /// How many times longer it takes than most.
    slowness: f32,
    /// Whether it has loaded the data of the class.
    loaded: bool,
    /// Whether its backlog is too far above the others'.
    too_busy: bool,
    /// The share of requests to it that is taken to fail.
    blame: f32,
}

impl SkilledCandidate {
    fn fails(&self) -> bool {
        self.blame >= FAILING
    }
}

struct SkilledChoice<'a> {
    resume: &'a Resume,
    candidates: &'a Candidates<'a>,
    costs: Costs,
    /// How heavy a backend of weight 1 is, compared with the mean of the pool.
    per_weight: f32,
}

impl SkilledChoice<'_> {
    fn load(&self, at: usize) -> &WorkerLoad {
        &self.candidates.backends[at].state.load
    }

    /// The worker whose turn it is to be looked at, if its ejection is over and nobody knows yet whether it
    /// is back. What others know, and that requests to it failed, would keep this request from it for as long
    /// as they are not busy. Looking at one per choice costs the same in a pool of any size.
    fn on_trial(&self) -> Option<usize> {
        let candidates = self.candidates;
        let at = (candidates.load.ticks() % candidates.count() as u64) as usize;
        let availability = candidates.backends[at].state.availability(candidates.now);
        (matches!(availability, Availability::OnTrial(_)) && candidates.eligible(at)).then_some(at)
    }

    /// Seconds until a worker is done with what it has, more where requests to it fail.
    fn wait(&self, at: usize) -> f32 {
        self.load(at).wait(self.candidates.backends[at].in_hand(), self.candidates.micros, self.costs.cold)
    }

    /// How many times heavier than the backends of the pool in the mean a worker is.
    fn heaviness(&self, at: usize) -> f32 {
        self.candidates.backends[at].weight() as f32 * self.per_weight
    }

    /// The candidate that is done first with what it has for the part that it bears, of several the one used
    /// least recently; of all or of a sample.
    fn idlest(&self) -> Option<usize> {
        self.first(|at| self.wait(at) / self.candidates.part(at))
    }

    /// The candidate that is done first with what it has and with a request more of each class that it was
    /// given of late: of those, most has still to be loaded. So classes that are all new at once are spread
    /// evenly, to a heavy worker as many more as it weighs. Of a newcomer that was given none, a few count:
    /// it is not to be flooded until it has as many as the others. One that fails is taken to have more than
    /// any that does not.
    fn freest(&self) -> Option<usize> {
        let (tick, cold) = (self.candidates.load.ticks(), self.costs.cold);
        let given = |at: usize| {
            let fails = self.stranger(at).fails();
            if fails { f32::MAX } else { self.load(at).given_of_late(tick) / self.heaviness(at) }
        };
        let fewest = self.first(given).map_or(0.0, given);
        self.first(|at| {
            (self.wait(at) + cold * (given(at) - fewest).clamp(0.0, AHEAD)) / self.candidates.part(at)
        })
    }

    /// The candidate that has least of this, of several the one used least recently; of all or of a sample.
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

    /// The skilled candidate that is done first, with the price of loading for one that has to; `idlest`,
    /// which is taken to know nothing of the class unless it is skilled, where it is done before them or none
    /// of them may be taken.
    fn best(&self, class: &Class, idlest: usize) -> Chosen {
        let Costs { cold, variance, .. } = self.costs;
        let workers = self.candidates.count() as f32;
        let (seen, count) = self.look(class, self.ceiling(idlest));
        let seen = &seen[..count];
        let quickest = seen.iter().map(|seen| seen.seconds).fold(cold, f32::min);
        let answered = seen.iter().any(|seen| !seen.fails() && !seen.too_busy);
        let mut best: Option<(&SkilledCandidate, f32)> = None;
        let mut warm = 0;
        let mut knows = false;
        let mut loaded = false;
        let mut skipped = 0;
        for seen in seen {
            knows |= seen.at == idlest;
            loaded |= seen.loaded;
            warm += u32::from(seen.seconds <= WARM * quickest && !seen.fails());
            if seen.too_busy {
                skipped += 1;
            } else if !seen.fails() || !answered {
                let cost = self.cost(seen, seen.seconds - quickest, quickest);
                if best.is_none_or(|(_, least)| cost < least) {
                    best = Some((seen, cost));
                }
            }
        }
        let Some((best, least)) = best else {
            return Chosen { at: idlest, reason: ChoiceReason::LeastRecentlyUsed, skipped };
        };
        let stranger = self.stranger(idlest);
        // Who knows it fails, and has loaded nothing of it.
        if best.fails() && !knows && !stranger.fails() {
            return Chosen { at: idlest, reason: ChoiceReason::Unskilled, skipped };
        }
        // However busy it is, a class does not spread over more than its part of the workers of its own
        // accord.
        let may_spread = (warm as f32) < (workers / variance).max(HOMES);
        // Where a class has only just begun to be loaded, nobody is quick at it yet. That is no reason to
        // load it twice.
        let loading = if loaded { (cold - quickest).max(cold / 4.0) } else { cold };
        let unskilled = !knows && may_spread && !(answered && stranger.fails());
        if unskilled && self.cost(&stranger, loading, quickest) < least {
            return Chosen { at: idlest, reason: ChoiceReason::Unskilled, skipped };
        }
        Chosen { at: best.at, reason: ChoiceReason::BestScore, skipped }
    }

    /// The seconds until a request is answered by a candidate that has to load its data for so many seconds,
    /// and what that costs; `quickest` are those of the one that is best at the class.
    fn cost(&self, seen: &SkilledCandidate, loading: f32, quickest: f32) -> f32 {
        let load = self.load(seen.at);
        let own = quickest + self.costs.charged * (seen.seconds - quickest).max(0.0);
        // One that is to find its share among the others goes before its equals.
        let own = if load.is_new() { own * 0.5 } else { own };
        // Failing is quick: where requests fail, each is taken for as many as it needs until one succeeds, up
        // to ten.
        let success = 1.0 - 0.9 * seen.blame;
        let price = self.costs.price(load);
        (self.wait(seen.at) + (own + price * loading) * seen.slowness)
            / (self.candidates.part(seen.at) * success)
    }

    /// The backlog, for what the workers of the pool weigh in the mean, above which a worker is skipped.
    fn ceiling(&self, idlest: usize) -> f32 {
        let pool = self.candidates.load;
        // Of a sudden flood the mean of late knows nothing yet; it must not look like the backlog of a few.
        let mean = pool.backlog.get().max(pool.in_hand() as f32) / self.candidates.count() as f32;
        let least = self.load(idlest).backlog() / self.heaviness(idlest);
        least + 1.0 + (self.costs.variance * mean).max(1.0)
    }

    /// A candidate that knows nothing of the class.
    fn stranger(&self, at: usize) -> SkilledCandidate {
        let load = self.load(at);
        let (slowness, blame) = (load.slowness(self.costs.cold), load.blame(self.candidates.micros));
        SkilledCandidate { at, seconds: self.costs.cold, slowness, blame, ..SkilledCandidate::default() }
    }

    /// Candidates among the skilled: all, or the best and a few drawn from the rest. Those of a backlog above
    /// `ceiling` are too busy.
    fn look(&self, class: &Class, ceiling: f32) -> ([SkilledCandidate; SAMPLE], usize) {
        let mut found = [SkilledCandidate::default(); SAMPLE];
        let mut count = 0;
        let mut see = |skill: &Skill| {
            if let Some(at) = self.candidates.places.of(skill.worker)
                && self.candidates.eligible(at)
            {
                let mut seen = self.stranger(at);
                if skill.is_known() {
                    seen.seconds = 1.0 / (skill.score * seen.slowness);
                }
                seen.loaded = skill.is_loaded();
                seen.too_busy = self.load(at).backlog() > ceiling * self.heaviness(at);
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

    /// A new worker that shall be tried at the class, if there is one and it is idle. Under light load nobody
    /// else is ever so busy that it would get a class of its own.
    fn trial(&self, class: &Class) -> Option<usize> {
        let SkilledChoice { resume, candidates, .. } = self;
        if let Some(id) = class.trial() {
            let at = candidates.places.of(id)?;
            let load = &candidates.backends[at].state.load;
            let quickest = class.skilled.first().map_or(0.0, |skill| skill.score);
            let caught_up =
                class.of(id).is_some_and(|skill| skill.is_known() && skill.score * WARM >= quickest);
            let idle = candidates.backends[at].in_flight() == 0;
            if caught_up || !load.is_new() {
                class.end_trial();
            } else if idle && candidates.eligible(at) && load.try_once() {
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
        let idle = candidates.backends[at].in_flight() == 0 && candidates.eligible(at);
        if !idle || !load.is_new() {
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
