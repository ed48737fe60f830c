//! The settings of a pool.

use std::time::Duration;

use crate::{Algorithm, Checks, Ejection, ResumeSettings};

/// How a pool chooses, ejects and queues.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The algorithm that chooses among its backends.
    pub algorithm: Algorithm,
    /// For `consistent_hash`: how far a backend may be loaded above its share, as a factor of at least 1.
    /// 1.25 by default, as in the paper: closer to 1 spreads load more evenly and classes over more backends.
    pub load_factor: f64,
    /// For `resume`.
    pub resume: ResumeSettings,
    /// When a backend is ejected.
    pub ejection: Ejection,
    /// When active checks, if there are any, change a backend's state.
    pub checks: Checks,
    /// How long a backend that came into service gets less than its share, growing with time. 0 by default,
    /// because a backend that needs no warm-up should not be spared.
    pub slow_start: Duration,
    /// How long a backend may take to begin a response. 60 s by default, as is usual for reverse proxies.
    pub answer_within: Duration,
    /// The most requests that wait for a place; 0 means that none does.
    pub queue_limit: u32,
    /// How long a request waits for a place at its best backend, while others may have places. Then it takes
    /// any. 5 s by default, half of the usual limit for the whole wait: a backend without a place by then may
    /// not have one at all, and half of the time is left for the others.
    pub patience: Duration,
    /// Whether only the largest group of backends of one version serves.
    pub single_version: bool,
    /// Equal seeds and equal calls give equal choices.
    pub seed: u64,
}

impl Settings {
    /// The default limit of requests that wait for a place. A thousand are a second of work for a pool that
    /// answers each in 10 ms at ten places: a burst is waited out, while the excess of a lasting overload is
    /// refused before its client has gone. At some 100 bytes here and a connection each, they are cheap to
    /// hold.
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
