//! The settings of a pool.

use std::time::Duration;

use crate::{Algorithm, Checks, Ejection, ResumeSettings};

/// How a pool chooses, ejects and queues.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How it chooses among its backends.
    pub algorithm: Algorithm,
    /// For `consistent_hash`: how far a backend may be loaded above its share, as a factor of at least 1.
    /// 1.25 by default, as in the paper: closer to 1 spreads load more evenly and classes over more backends.
    pub load_factor: f64,
    /// For `resume`.
    pub resume: ResumeSettings,
    /// When a backend is left out.
    pub ejection: Ejection,
    /// When active checks, if there are any, change a backend's standing.
    pub checks: Checks,
    /// How long a backend that came into service is given less than its share, growing with time. 0 by
    /// default: a backend that needs no warming up should not be spared.
    pub slow_start: Duration,
    /// How long a backend may take to begin an answer. 60 s by default, as for reverse proxies in general.
    pub answer_within: Duration,
    /// The most requests that wait for a place; 0 means that none does.
    pub queue_limit: u32,
    /// How long a request waits at most for a place at the backend that is best for it, while others may have
    /// places: then it takes any. 5 s by default, half of what is usual for the whole wait: a backend that
    /// has not come to it by then may not do so at all, and half of the time is left for the others.
    pub patience: Duration,
    /// Whether only the largest group of backends of one version serves.
    pub single_version: bool,
    /// Equal seeds and equal calls give equal choices.
    pub seed: u64,
}

impl Settings {
    /// How many may wait for a place, where nothing else is said. A thousand are a second of work for a pool
    /// that answers each in 10 ms at ten places: a burst is waited out, while what comes on top of a lasting
    /// overload is refused before its client has gone. At some 100 bytes here and a connection each, they are
    /// cheap to hold.
    pub const QUEUE_LIMIT: u32 = 1000;
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            algorithm: Algorithm::default(),
            load_factor: 1.25,
            resume: ResumeSettings::default(),
            ejection: Ejection::default(),
            checks: Checks::default(),
            slow_start: Duration::ZERO,
            answer_within: Duration::from_secs(60),
            queue_limit: Settings::QUEUE_LIMIT,
            patience: Duration::from_secs(5),
            single_version: false,
            seed: 0,
        }
    }
}

impl From<Algorithm> for Settings {
    fn from(algorithm: Algorithm) -> Settings {
        Settings { algorithm, ..Settings::default() }
    }
}
