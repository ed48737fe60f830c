//! Résumés: each request to the worker that is best at its class.
//!
//! After zc.resumelb (2012). A worker measures how many requests of each class it serves in a second; those that
//! served a class lately are the faster at it, having its data at hand.

mod choice;
mod feed;
mod inferred;
mod memory;
mod room;
mod skills;
mod times;
mod view;
mod worker;

use std::sync::Arc;

use crate::candidates::Candidates;
use crate::choices::Chosen;
use crate::hash::hash;
use crate::ids::Places;
use crate::load::PoolLoad;
use crate::{Backend, BackendId};

pub use feed::{Believed, Disbelief, Heard, Known, Resumes, WorkerState};
pub use inferred::{SavedSkills, SavedWorker};
use memory::Memory;
pub use skills::{MAX_CLASS_BYTES, SkillCounts};
use skills::{Skill, Skills};
pub(crate) use times::Took;
pub(crate) use view::ClassView;
pub(crate) use worker::WorkerLoad;

/// How `resume` chooses.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumeSettings {
    /// How far a worker's backlog may be above that of the least recently used one, in mean backlogs per worker.
    /// The greater it is, the longer requests wait for a worker that has their data; the smaller, the more workers
    /// load the same data. One class cannot take more than about 1 / `variance` of the workers, or three.
    pub variance: f64,
    /// How many requests a worker's backlog is averaged over.
    pub backlog_history: u32,
    /// The score, in requests per second, of a worker that is given a class it does not know.
    pub unskilled_score: f64,
    /// The share of requests that may be used to make an underused worker known to a class.
    pub exploration: f64,
    /// Whose word counts.
    pub skills: SkillSource,
    /// The fingerprint of what told the classes apart, which skills were earned under. A pool that succeeds one with
    /// another fingerprint knows no skills.
    pub classifier: u64,
    /// The most classes known at a time.
    pub max_classes: usize,
}

/// Whose word on skills counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SkillSource {
    /// The workers': they keep résumés and report them.
    #[default]
    Reported,
    /// The balancer's, which goes by how long answers take.
    Inferred,
}

impl Default for ResumeSettings {
    fn default() -> ResumeSettings {
        ResumeSettings {
            variance: 4.0,
            backlog_history: 9,
            unskilled_score: 1.0,
            exploration: 0.02,
            skills: SkillSource::Reported,
            classifier: 0,
            max_classes: 100_000,
        }
    }
}

/// A class, by a hash of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClassKey(pub(crate) u64);

impl ClassKey {
    /// The key that every balancer gives the class.
    pub(crate) fn shared(class: &[u8]) -> ClassKey {
        ClassKey(hash(class, 0))
    }
}

/// The choices over which the share of a class is taken, and how many classes a worker was given.
const HORIZON: f32 = 4096.0;

/// The state of the algorithm.
pub(crate) struct Resume {
    settings: ResumeSettings,
    /// Keys are hashes under a seed that outsiders do not know, so that they cannot make classes meet.
    seed: u64,
    skills: Arc<Skills>,
    worker_decay: f32,
    pool_decay: f32,
    memory: Arc<Memory>,
}

/// What was expected of a request when it was given to a worker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Expected {
    /// Microseconds of work.
    pub(crate) work: u64,
    /// Whether the worker did not know the class.
    pub(crate) cold: bool,
}

impl Resume {
    pub(crate) fn new(
        settings: &ResumeSettings,
        seed: u64,
        workers: usize,
        before: Option<&Resume>,
    ) -> Resume {
        let history = settings.backlog_history.max(1) as f32;
        // Skills earned under another classifier are about other requests, whatever their names say.
        let memory = before.map(|before| before.memory.of_other_classes());
        let before = before.filter(|before| before.settings.classifier == settings.classifier);
        Resume {
            settings: settings.clone(),
            seed: before.map_or(seed, |before| before.seed),
            skills: before
                .map_or_else(|| Arc::new(Skills::new(settings.max_classes)), |before| before.skills.clone()),
            worker_decay: 1.0 - 1.0 / (history * 2.0),
            pool_decay: 1.0 - 1.0 / (history * 2.0 * workers.max(1) as f32),
            memory: before
                .map_or_else(|| Arc::new(memory.unwrap_or_default()), |before| before.memory.clone()),
        }
    }

    pub(crate) fn key(&self, class: &[u8]) -> ClassKey {
        ClassKey(hash(class, self.seed))
    }

    /// Takes over from `before`, if that went by résumés too: forgets the workers that are no longer there, and where
    /// it starts without skills, what was known of résumés, so that they are fetched again.
    pub(crate) fn follow(
        &self,
        before: Option<&Resume>,
        ids: &[BackendId],
        now: &Places,
        backends: &[Backend],
    ) {
        if before.is_some_and(|before| Arc::ptr_eq(&self.skills, &before.skills)) {
            for &gone in ids.iter().filter(|&&id| now.of(id).is_none()) {
                self.skills.retain(gone, |_, _| false);
            }
        } else {
            backends.iter().for_each(|backend| backend.state.load.forget());
        }
    }

    /// A worker was given a request, or one has come to wait for a place at it. Returns what is expected of it.
    pub(crate) fn begun(
        &self,
        backend: &Backend,
        id: BackendId,
        load: &PoolLoad,
        workers: usize,
        class: Option<(ClassKey, &[u8])>,
    ) -> Expected {
        let tick = load.tick();
        let known = class.and_then(|(key, name)| {
            let shard = self.skills.read(key);
            let class = shard.get(key);
            if let Some(class) = class {
                class.asked.count(tick, HORIZON);
            }
            let skill = class.and_then(|class| class.of(id)).copied();
            drop(shard);
            if skill.is_none() && name.len() <= MAX_CLASS_BYTES {
                backend.state.load.given(tick);
                let unskilled = Skill::guessed(id, self.settings.unskilled_score as f32, 0.0);
                self.skills.set(key, name, unskilled, tick);
            }
            skill.filter(Skill::is_known)
        });
        let cold = || self.memory.cold() * self.memory.slowness(&backend.state.load);
        let seconds = known.map_or_else(cold, |skill| 1.0 / skill.score);
        let expected = Expected { work: (seconds * 1e6) as u64, cold: known.is_none() };
        backend.state.load.begun(expected.work, backend.in_hand(), self.worker_decay, tick, workers);
        load.backlog.add(load.in_hand() as f32, self.pool_decay);
        expected
    }

    /// A worker is done with a request, or one no longer waits for it.
    pub(crate) fn ended(&self, backend: &Backend, load: &PoolLoad, expected: Expected) {
        backend.state.load.ended(expected.work, backend.in_hand(), self.worker_decay);
        load.backlog.add(load.in_hand() as f32, self.pool_decay);
    }

    /// A worker answered.
    pub(crate) fn answered(
        &self,
        id: BackendId,
        worker: &WorkerLoad,
        class: ClassKey,
        took: Took,
        expected: Expected,
    ) {
        if expected.cold {
            self.memory.loaded(worker, took.seconds);
        }
        let slowness = self.memory.slowness(worker);
        if let Some(class) = self.skills.learn(class, id, took, slowness) {
            self.memory.served(worker, took.seconds, &class, slowness);
        }
    }

    /// A worker answered with a server error. What it was only assumed to be skilled in is no longer: a scan of URLs that fail
    /// would fill the table.
    pub(crate) fn failed(&self, id: BackendId, class: ClassKey) {
        self.skills.remove_assumed(class, id);
    }

    pub(crate) fn choose(&self, candidates: &Candidates<'_>, class: Option<ClassKey>) -> Option<Chosen> {
        choice::choose(self, candidates, class)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
