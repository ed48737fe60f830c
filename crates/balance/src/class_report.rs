//! Reports on classes and skills, for people and monitoring.

use crate::BackendId;

/// The classes of a pool that chooses by résumé.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Classes {
    /// Those asked for most, the first first.
    pub top: Vec<ClassReport>,
    /// In how many classes each backend is skilled, in the order of the backends.
    pub skills: Vec<usize>,
    /// How many of these skills are told by whom: each word stands at its own number, `word as usize`.
    pub words: [usize; SkillWord::ALL.len()],
}

/// A class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassReport {
    /// Its name.
    pub name: Box<[u8]>,
    /// Its share of the requests of late.
    pub share: f32,
    /// The workers skilled in it, the best first.
    pub skilled: Vec<SkillReport>,
}

/// How good a worker is at a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SkillReport {
    /// The worker.
    pub worker: BackendId,
    /// Requests per second.
    pub score: f32,
    /// Whose word that is.
    pub word: SkillWord,
}

/// Whose word a score is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SkillWord {
    /// The worker's.
    Reported,
    /// The balancer's, by how long answers took.
    Inferred,
    /// Nobody's yet: the worker has been given the class and has not answered.
    Assumed,
}

impl SkillWord {
    /// Every word.
    pub const ALL: [SkillWord; 3] = [SkillWord::Reported, SkillWord::Inferred, SkillWord::Assumed];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            SkillWord::Reported => "reported",
            SkillWord::Inferred => "inferred",
            SkillWord::Assumed => "assumed",
        }
    }
}
