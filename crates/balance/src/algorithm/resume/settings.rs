//! The settings of `resume`.

/// How `resume` chooses.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumeSettings {
    /// How much longer a request waits for a worker that has its data rather than have another load all of
    /// it, in mean waits. With a greater value, requests wait longer for a worker that has their data; with a
    /// smaller one, more workers load the same data. One class cannot take more than about 1 / `variance` of
    /// the workers, or three.
    pub variance: f64,
    /// How many requests the mean wait and the reported mean backlog of a worker are averaged over.
    pub backlog_history: u32,
    /// The share of requests that may be used to introduce an underused worker to a class.
    pub exploration: f64,
    /// The most requests that a worker which does not report it works on at a time.
    pub concurrency: u32,
    /// The source of skills.
    pub skills: SkillSource,
    /// The fingerprint of the classifier that the skills belong to. A pool that succeeds one with another
    /// fingerprint starts without skills.
    pub classifier: u64,
    /// The most classes known at a time.
    pub max_classes: usize,
}

/// The source of skills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SkillSource {
    /// Workers keep résumés and report them.
    #[default]
    Reported,
    /// The balancer infers skills from response times.
    Inferred,
}

impl Default for ResumeSettings {
    fn default() -> ResumeSettings {
        ResumeSettings {
            variance: 4.0,
            backlog_history: 9,
            exploration: 0.02,
            concurrency: 1,
            skills: SkillSource::Reported,
            classifier: 0,
            max_classes: 100_000,
        }
    }
}
