//! Résumés: each request goes to the worker that is best at its class.
//!
//! After zc.resumelb (2012). A worker measures how many requests of each class it serves in a second. Workers
//! that recently served a class are faster at it, because they have its data.

mod choice;
mod class;
mod class_eviction;
mod class_view;
mod inferred;
mod loading_cost;
mod settings;
mod skills;
mod worker;
mod worker_reports;
mod worker_state;

use std::sync::Arc;

use crate::hash::hash;
use crate::ids::Places;
use crate::load::PoolLoad;
use crate::{Backend, BackendId};

use class::{HORIZON, Skill};
use loading_cost::LoadingCost;
use skills::Skills;

pub(crate) use class::ClassKey;
pub use class::MAX_CLASS_BYTES;
pub(crate) use class_view::ClassView;
pub use inferred::{SavedSkills, SavedWorker};
pub use settings::{ResumeSettings, SkillSource};
pub use skills::SkillCounts;
pub(crate) use worker::WorkerLoad;
pub use worker_reports::{Believed, Disbelief, Heard, Resumes};
pub use worker_state::{Known, WorkerState};

/// The state of the algorithm.
pub(crate) struct Resume {
    settings: ResumeSettings,
    /// Keys are hashes under a secret seed, so that outsiders cannot construct collisions.
    seed: u64,
    skills: Arc<Skills>,
    /// Of the mean backlog of each worker.
    backlog_decay: f32,
    /// Of the mean wait, to which each choice adds the wait of one worker.
    wait_decay: f32,
    loading: Arc<LoadingCost>,
}

/// The expectation of a request when it was given to a worker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Expected {
    /// Microseconds of work.
    pub(crate) work: u64,
    /// Microseconds until the response, behind what else the worker had in hand.
    pub(crate) response: u64,
    /// Whether it is the first request of its class for the worker, so that all data has to be loaded. Later
    /// ones may find some, although there was no response yet.
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
        let loading = before.map_or_else(Arc::default, |before| before.loading.clone());
        // Skills earned under another classifier belong to other requests, whatever their names are.
        let before = before.filter(|before| before.settings.classifier == settings.classifier);
        Resume {
            settings: settings.clone(),
            seed: before.map_or(seed, |before| before.seed),
            skills: before
                .map_or_else(|| Arc::new(Skills::new(settings.max_classes)), |before| before.skills.clone()),
            backlog_decay: 1.0 - 1.0 / history,
            wait_decay: 1.0 - 1.0 / (history * workers.max(1) as f32),
            loading,
        }
    }

    pub(crate) fn key(&self, class: &[u8]) -> ClassKey {
        ClassKey(hash(class, self.seed))
    }

    /// Takes over from `before`, if that used résumés too. Forgets the workers that are gone; if it starts
    /// without skills, also forgets the known résumés, so that they are fetched again.
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

    /// Notes that a worker was given a request at `now`, in microseconds, or that one has begun to wait for a
    /// place at it. Returns the expectation.
    pub(crate) fn begun(
        &self,
        backend: &Backend,
        id: BackendId,
        load: &PoolLoad,
        workers: usize,
        class: Option<(ClassKey, &[u8])>,
        now: u64,
    ) -> Expected {
        let tick = load.tick();
        let skill = class.and_then(|(key, name)| {
            let shard = self.skills.read(key);
            let class = shard.get(key);
            if let Some(class) = class {
                class.asked.count(tick, HORIZON);
            }
            let skill = class.and_then(|class| class.of(id)).copied();
            drop(shard);
            if skill.is_none() && name.len() <= MAX_CLASS_BYTES {
                backend.state.load.given(tick);
                self.skills.set(key, name, Skill::assumed(id), tick);
            }
            skill
        });
        let cold = || self.loading.cold_at(&backend.state.load);
        let seconds = skill.filter(Skill::is_known).map_or_else(cold, |skill| 1.0 / skill.score);
        let work = (seconds * 1e6) as u64;
        let response = backend.state.load.begun(work, tick, workers, now);
        Expected { work, response, cold: skill.is_none() }
    }

    /// Notes that a worker has finished a request, or that one no longer waits for it.
    pub(crate) fn ended(&self, backend: &Backend, expected: Expected) {
        backend.state.load.ended(expected.work);
    }

    /// Notes that a worker has finished a request given to it at `begun`, behind `ahead` others, at `now`, in
    /// microseconds. Returns the seconds of work on it.
    pub(crate) fn finished(&self, worker: &WorkerLoad, begun: u64, ahead: u32, now: u64) -> f32 {
        worker.finished(begun, ahead, now, self.settings.concurrency)
    }

    /// Notes a response of a worker, which worked on it for `seconds`, after `latency` seconds.
    pub(crate) fn answered(
        &self,
        id: BackendId,
        worker: &WorkerLoad,
        class: ClassKey,
        seconds: f32,
        latency: f32,
        expected: Expected,
    ) {
        if expected.cold {
            self.loading.loaded(worker, seconds);
        }
        // What is no later than it would be with everything to load is not late, whatever scores promise.
        let due = self.loading.cold_at(worker).max(expected.response as f32 * 1e-6);
        worker.responded(latency.max(1e-6) / due, self.loading.usual_delay());
        self.skills.learn(class, id, seconds);
    }

    /// Notes a server error of a worker. An assumed skill is removed: a scan of URLs that fail would
    /// otherwise fill the table.
    pub(crate) fn failed(&self, id: BackendId, class: ClassKey) {
        self.skills.remove_assumed(class, id);
    }
}

#[cfg(test)]
mod tests;
