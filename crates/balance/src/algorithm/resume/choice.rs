//! The choice itself.
//!
//! As published, the worker with the best score over its backlog takes a request, one too far above the mean is skipped,
//! and where all are, whoever was used least recently takes it. Two things are refined, as simulation showed their worth
//! (docs/balancing.md). What counts is time: a backlog is the seconds of work that the requests in it are expected to be,
//! as one that has to load its data holds a worker up twenty times as long as one that finds it there. And a worker that is
//! slower at the class because it would have to load data costs more than that request waits: it evicts what it holds, and
//! the class has two homes from then on. A popular class pays that back soon, a rare one never, so the surcharge falls with
//! the share of requests that are of the class.

use std::sync::atomic::Ordering;

use super::skills::{Class, Skill};
use super::{ClassKey, Resume};
use crate::ChoiceReason;
use crate::candidates::Candidates;
use crate::choices::Chosen;

/// Skilled workers looked at.
const SAMPLE: usize = 16;

/// Of the skilled workers looked at, where there are more, those that are not the best but drawn from the rest.
const DRAWN: usize = 4;

/// In pools of up to so many workers, the idlest is looked for among all.
const SMALL_POOL: usize = 32;

/// In larger ones, among so many drawn at random: the idlest of eight is among the idlest third nearly always.
const IDLEST_OF: usize = 8;

/// The surcharge of a class that is as much as one worker bears, in settings of `variance`.
const SURCHARGE: f32 = 1.0 / 6.0;

/// The highest surcharge, of rare classes, in settings of `variance`.
const HIGHEST_SURCHARGE: f32 = 2.0;

/// What is left of the surcharge where workers have memory in plenty, and what one loads evicts nothing of use.
const PLENTY: f32 = 0.25;

/// A worker this many times slower than the best at a class is no longer counted among those that have its data.
const WARM: f32 = 2.0;

/// Chooses a worker for a request of `class`.
pub(super) fn choose(
    resume: &Resume,
    candidates: &Candidates<'_>,
    class: Option<ClassKey>,
) -> Option<Chosen> {
    let choice = Choice { resume, candidates };
    let idlest = choice.idlest()?;
    let Some(key) = class else { return Some(Chosen::new(idlest, ChoiceReason::Unclassified)) };
    let shard = resume.skills.read(key);
    let Some(class) = shard.get(key) else { return Some(Chosen::new(idlest, ChoiceReason::NewClass)) };
    if let Some(at) = choice.trial(class) {
        return Some(Chosen::new(at, ChoiceReason::Explored));
    }
    Some(choice.best(class, idlest))
}

struct Choice<'a> {
    resume: &'a Resume,
    candidates: &'a Candidates<'a>,
}

impl Choice<'_> {
    /// Seconds until a worker is done with what it has, more where requests to it fail.
    fn wait(&self, at: usize) -> f32 {
        self.candidates.backends[at].state.load.wait(self.candidates.now)
    }

    /// The seconds that a worker is expected to spend on a request of the class.
    fn seconds(&self, skill: &Skill) -> f32 {
        if skill.is_known() { 1.0 / skill.score } else { self.resume.cold() }
    }

    /// The candidate with the fewest requests, of several the one used least recently; of all or of a sample.
    fn idlest(&self) -> Option<usize> {
        let candidates = self.candidates;
        let idle = |at: &usize| {
            let backend = &candidates.backends[*at];
            let in_flight = backend.in_flight() as f32 / (backend.weight() as f32 * candidates.warmth(*at));
            ((in_flight * 1000.0) as u64, backend.state.load.used())
        };
        let eligible = |at: &usize| candidates.eligible(*at);
        let count = candidates.count();
        if count > SMALL_POOL {
            let sample = (0..IDLEST_OF).map(|_| candidates.random.below(count));
            if let Some(at) = sample.filter(eligible).min_by_key(idle) {
                return Some(at);
            }
        }
        candidates.all().filter(eligible).min_by_key(idle)
    }

    /// The skilled candidate that is done first, with the surcharge of one that has to load; `idlest`, which is taken to
    /// know nothing of the class unless it is skilled, where it is done before them or none of them may be taken.
    fn best(&self, class: &Class, idlest: usize) -> Chosen {
        let Choice { resume, candidates } = self;
        let workers = candidates.count() as f32;
        let variance = resume.settings.variance as f32;
        let cold = resume.cold();
        let load = |at: usize| &candidates.backends[at].state.load;
        let (looked_at, count) = self.look(class);
        let looked_at = &looked_at[..count];
        let quickest = looked_at.iter().map(|&(_, seconds)| seconds).fold(cold, f32::min);

        // How many workers the requests of this class alone would keep busy.
        let tick = candidates.load.ticks();
        let worth = (class.share(tick) * workers).max(1e-3);
        let scarcity = PLENTY + (1.0 - PLENTY) * resume.scarcity();
        let surcharge = scarcity * (variance * SURCHARGE / worth).min(variance * HIGHEST_SURCHARGE);
        let cost = |at: usize, seconds: f32, loading: f32| {
            let share = candidates.backends[at].weight() as f32 * candidates.warmth(at);
            (self.wait(at) + seconds + surcharge * loading) / share
        };

        // Of a sudden flood the mean of late knows nothing yet; it must not look like the backlog of a few.
        let mean = candidates.load.backlog.get().max(candidates.load.in_flight() as f32) / workers;
        let ceiling = load(idlest).backlog() + 1.0 + (variance * mean).max(1.0);
        let mut best: Option<(usize, f32)> = None;
        let mut warm = 0;
        let mut knows = false;
        let mut skipped = 0;
        for &(at, seconds) in looked_at {
            knows |= at == idlest;
            warm += u32::from(seconds <= WARM * quickest);
            if load(at).backlog() > ceiling {
                skipped += 1;
                continue;
            }
            // One that is to find its share among the others goes before its equals.
            let own = if load(at).is_new() { seconds * 0.5 } else { seconds };
            let cost = cost(at, own, seconds - quickest);
            if best.is_none_or(|(_, least)| cost < least) {
                best = Some((at, cost));
            }
        }
        // However busy it is, a class does not spread over more than its part of the workers of its own accord.
        let may_spread = (warm as f32) < (workers / variance).max(1.0);
        // Where a class has only just begun to be loaded, nobody is quick at it yet. That is no reason to load it twice.
        let loading = (cold - quickest).max(cold / 4.0);
        let (at, reason) = match best {
            Some((_, least)) if !knows && may_spread && cost(idlest, cold, loading) < least => {
                (idlest, ChoiceReason::Unskilled)
            }
            Some((at, _)) => (at, ChoiceReason::BestScore),
            None => (idlest, ChoiceReason::LeastRecentlyUsed),
        };
        Chosen { at, reason, skipped }
    }

    /// Candidates among the skilled, with the seconds that each would take: all, or the best and a few drawn from the rest.
    fn look(&self, class: &Class) -> ([(usize, f32); SAMPLE], usize) {
        let mut found = [(0, 0.0); SAMPLE];
        let mut count = 0;
        let mut see = |skill: &Skill| {
            if let Some(at) = self.candidates.places.of(skill.worker)
                && self.candidates.eligible(at)
            {
                found[count] = (at, self.seconds(skill));
                count += 1;
            }
        };
        let skilled = &class.skilled;
        if skilled.len() <= SAMPLE {
            skilled.iter().for_each(see);
        } else {
            let (best, rest) = skilled.split_at(SAMPLE - DRAWN);
            best.iter().for_each(&mut see);
            (0..DRAWN).for_each(|_| see(&rest[self.candidates.random.below(rest.len())]));
        }
        (found, count)
    }

    /// A new worker that shall be tried at the class, if there is one and it is idle. Under light load nobody else is ever
    /// so busy that it would get a class of its own.
    fn trial(&self, class: &Class) -> Option<usize> {
        let Choice { resume, candidates } = self;
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
        let fair = 1.0 / candidates.count() as f32;
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
    /// How often it is asked for, of all requests of late.
    fn share(&self, tick: u64) -> f32 {
        self.asked.share(tick, super::HORIZON)
    }

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
