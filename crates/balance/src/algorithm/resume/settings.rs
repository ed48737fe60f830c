//! The settings of `resume`.

/// How `resume` chooses.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumeSettings {
    /// How far a worker's backlog may be above that of the least recently used one, in mean backlogs per
    /// worker. The greater it is, the longer requests wait for a worker that has their data; the smaller, the
    /// more workers load the same data. One class cannot take more than about 1 / `variance` of the workers,
    /// or three.
    pub variance: f64,
    /// How many requests a worker's backlog is averaged over.
    pub backlog_history: u32,
    /// The score, in requests per second, of a worker that is given a class it does not know.
    pub unskilled_score: f64,
    /// The share of requests that may be used to make an underused worker known to a class.
    pub exploration: f64,
    /// Whose word counts.
    pub skills: SkillSource,
    /// The fingerprint of what told the classes apart, which skills were earned under. A pool that succeeds
    /// one with another fingerprint knows no skills.
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
