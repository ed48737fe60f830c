//! Views of the classes, for people.

use super::Resume;
use super::class::{Class, ClassKey, HORIZON, Skill};
use crate::{SkillReport, SkillWord};

/// The state of a class at one moment.
pub(crate) struct ClassView<'a> {
    pub(crate) key: ClassKey,
    /// Its share of the recent requests.
    pub(crate) share: f32,
    class: &'a Class,
}

impl<'a> ClassView<'a> {
    fn new(key: ClassKey, class: &'a Class, tick: u64) -> ClassView<'a> {
        // At the beginning, fewer choices than the horizon were made.
        let made = 1.0 - (-(tick as f32) / HORIZON).exp();
        let share = class.asked.share(tick, HORIZON) / made.max(f32::EPSILON);
        ClassView { key, share: share.min(1.0), class }
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.class.name
    }

    /// The workers skilled in it, the best first.
    pub(crate) fn skilled(&self) -> impl Iterator<Item = SkillReport> {
        self.class.skilled.iter().map(|skill| SkillReport {
            worker: skill.worker,
            score: skill.is_known().then_some(skill.score),
            word: word(skill),
        })
    }
}

fn word(skill: &Skill) -> SkillWord {
    if skill.is_reported() {
        SkillWord::Reported
    } else if skill.is_known() {
        SkillWord::Inferred
    } else {
        SkillWord::Assumed
    }
}

impl Resume {
    /// Passes each class to `see`, in its state at the choice of number `tick`.
    pub(crate) fn each_class(&self, tick: u64, mut see: impl FnMut(ClassView<'_>)) {
        self.skills.each(|key, class| see(ClassView::new(key, class, tick)));
    }

    /// Passes one class to `see`, if it is known.
    pub(crate) fn class<T>(
        &self,
        key: ClassKey,
        tick: u64,
        see: impl FnOnce(ClassView<'_>) -> T,
    ) -> Option<T> {
        let shard = self.skills.read(key);
        shard.get(key).map(|class| see(ClassView::new(key, class, tick)))
    }
}
