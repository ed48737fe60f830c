//! Pools of backends, and the choice among them.
//!
//! Nothing here opens a socket, reads a clock or uses an ambient source of randomness. `now` is the time
//! since a fixed moment of the caller's choice, the same for all calls on one pool, and should not run
//! backwards. The seed of the choices is a setting of the pool.
//!
//! A [`Pool`] is shared by all cores. Choosing takes no lock while there is room and no waiter. Ejecting a
//! backend takes a short lock, and so does waiting in the queue of the pool, see [`Pool::queue`].

mod address;
mod algorithm;
mod announcements;
mod backend;
mod backoff;
mod candidates;
mod checks;
mod choices;
mod claim;
mod class_report;
mod durations;
mod ejection;
mod hash;
mod health;
mod histogram;
mod ids;
mod last_heard;
mod latency;
mod load;
mod no_backend;
mod outcome;
mod pick;
mod pool;
mod queue;
mod random;
mod report;
mod request_ages;
mod retry_budget;
mod settings;
mod silence;
mod ticket;
mod version;

pub use address::{Address, AddressError, Endpoint, Host};
pub use algorithm::resume::{
    Believed, Disbelief, Heard, Known, MAX_CLASS_BYTES, ResumeSettings, Resumes, SavedSkills, SavedWorker,
    SkillCounts, SkillSource, WorkerState,
};
pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use backend::Backend;
pub use backoff::Backoff;
pub use checks::{Checked, Checks};
pub use choices::{Choice, ChoiceReason};
pub use class_report::{ClassReport, Classes, SkillReport, SkillWord};
pub use ejection::Ejection;
pub use hash::hash;
pub use health::Outlook;
pub use histogram::{Buckets, Histogram, quantile};
pub use ids::BackendId;
pub use no_backend::NoBackend;
pub use outcome::AttemptOutcome;
pub use pick::Pick;
pub use pool::Pool;
pub use queue::QueueReport;
pub use random::Random;
pub use report::{BackendReport, BackendState, PoolReport};
pub use retry_budget::RetryBudget;
pub use settings::Settings;
pub use ticket::Ticket;
