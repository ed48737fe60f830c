//! Reports on classes and skills, for people and monitoring.

use crate::BackendId;

/// The classes of a pool that chooses by résumé.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Classes {
    /// The most requested classes, the first first.
    pub top: Vec<ClassReport>,
    /// The number of classes each backend is skilled in, in the order of the backends.
    pub skills: Vec<usize>,
    /// How many of these skills have each source, at the index `word as usize`.
    pub words: [usize; SkillWord::ALL.len()],
}

/// A class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassReport {
    /// Its name.
    pub name: Box<[u8]>,
    /// Its share of the recent requests.
    pub share: f32,
    /// The workers skilled in it, the best first.
    pub skilled: Vec<SkillReport>,
}

/// A worker's skill in a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SkillReport {
    /// The worker.
    pub worker: BackendId,
    /// Requests per second; `None` until it is known.
    pub score: Option<f32>,
    /// The source of the score.
    pub word: SkillWord,
}

/// The source of a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SkillWord {
    /// Reported by the worker.
    Reported,
    /// Inferred by the balancer from response times.
    Inferred,
    /// Assumed: the worker was given the class and has not responded yet.
    Assumed,
}

impl SkillWord {
    /// Every source.
    pub const ALL: [SkillWord; 3] = [SkillWord::Reported, SkillWord::Inferred, SkillWord::Assumed];

    /// The name of the source.
    pub const fn name(self) -> &'static str {
        match self {
            SkillWord::Reported => "reported",
            SkillWord::Inferred => "inferred",
            SkillWord::Assumed => "assumed",
        }
    }
}
