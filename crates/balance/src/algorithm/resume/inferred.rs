//! Saving and restoring of skills.

use super::class::{MAX_CLASS_BYTES, Skill};
use super::worker_reports;
use super::{Resume, SkillSource};
use crate::ids::Places;
use crate::{Backend, BackendId, Pool};

/// The inferred skills of workers, to save and to restore after a restart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedSkills {
    /// The fingerprint of the classifier that they belong to.
    pub classifier: u64,
    /// Each worker that has skills.
    pub workers: Vec<SavedWorker>,
}

/// The skills of one worker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedWorker {
    /// Its address, as [`crate::Address`] writes it.
    pub address: String,
    /// The class, requests per second, and the number of responses behind the score.
    pub skills: Vec<(Box<[u8]>, f64, f64)>,
}

impl Pool {
    /// The inferred skills, to be saved.
    pub fn save_skills(&self) -> SavedSkills {
        let save = |resume: &Resume| resume.save(self.backends(), self.ids());
        self.inner().resume().map(save).unwrap_or_default()
    }

    /// Restores saved skills, and returns their number. Skills of another classifier or of backends that are
    /// gone, and impossible scores, are ignored.
    pub fn restore_skills(&self, saved: &SavedSkills) -> usize {
        self.inner().resume().map_or(0, |resume| resume.restore(saved, self.backends(), self.ids()))
    }
}

impl Resume {
    /// The skills to save; none if workers keep their résumés themselves.
    fn save(&self, backends: &[Backend], ids: &[BackendId]) -> SavedSkills {
        let mut saved = SavedSkills { classifier: self.settings.classifier, workers: Vec::new() };
        if self.settings.skills == SkillSource::Reported {
            return saved;
        }
        saved.workers.extend(
            backends
                .iter()
                .map(|backend| SavedWorker { address: backend.address().to_string(), skills: Vec::new() }),
        );
        let places = Places::new(ids);
        self.skills.each(|_, class| {
            for skill in class.skilled.iter().filter(|skill| skill.weight() > 0.0) {
                if let Some(at) = places.of(skill.worker) {
                    let entry = (class.name.clone(), f64::from(skill.score), f64::from(skill.weight()));
                    saved.workers[at].skills.push(entry);
                }
            }
        });
        saved.workers.iter_mut().for_each(|worker| worker.skills.sort_by(|a, b| a.0.cmp(&b.0)));
        saved.workers.retain(|worker| !worker.skills.is_empty());
        saved
    }

    /// Restores saved skills, and returns their number. Those of another classifier or of absent workers, and
    /// impossible scores, are ignored.
    fn restore(&self, saved: &SavedSkills, backends: &[Backend], ids: &[BackendId]) -> usize {
        if self.settings.skills == SkillSource::Reported || saved.classifier != self.settings.classifier {
            return 0;
        }
        let mut taken = 0;
        for worker in &saved.workers {
            let same = |backend: &Backend| backend.address().to_string() == worker.address;
            let Some(at) = backends.iter().position(same) else { continue };
            for (class, score, weight) in &worker.skills {
                let sane = worker_reports::score(*score).is_ok_and(|score| score > 0.0)
                    && weight.is_finite()
                    && *weight > 0.0;
                if sane && class.len() <= MAX_CLASS_BYTES {
                    let skill = Skill::inferred(ids[at], *score as f32, *weight as f32);
                    taken += usize::from(self.skills.set(self.key(class), class, skill, 0));
                }
            }
        }
        taken
    }
}
