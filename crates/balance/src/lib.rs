//! Pools of backends, and the choice among them.
//!
//! Nothing here opens a socket, reads a clock or draws from an ambient source of randomness. `now` is the time since
//! any fixed moment of the caller's choice, the same for all calls on one pool, and it should not run backwards;
//! the seed of the choices is given to the pool.
//!
//! A [`Pool`] is shared by all cores. Choosing takes no lock while there is room and nobody waits; ejecting a
//! backend takes a short one, and so does waiting in the queue before the pool, see [`Pool::queue`].

mod address;
mod ages;
mod algorithm;
mod backend;
mod backoff;
mod budget;
mod candidates;
mod choices;
mod claim;
mod hash;
mod health;
mod histogram;
mod ids;
mod load;
mod pool;
mod queue;
mod random;
mod report;
mod settings;
mod silence;
mod version;

pub use address::{Address, AddressError, Endpoint, Host};
pub use algorithm::resume::{
    Believed, Disbelief, Heard, Known, MAX_CLASS_BYTES, ResumeSettings, Resumes, SavedSkills, SavedWorker,
    SkillCounts, SkillSource, WorkerState,
};
pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use backend::{Backend, Ejection};
pub use backoff::Backoff;
pub use budget::RetryBudget;
pub use choices::{Choice, ChoiceReason};
pub use health::{Checked, Checks, Outlook};
pub use histogram::{Buckets, Histogram, quantile};
pub use ids::BackendId;
pub use pool::{NoBackend, Outcome, Pick, Pool};
pub use queue::{QueueReport, Ticket};
pub use random::Random;
pub use report::{BackendReport, BackendState, ClassReport, Classes, PoolReport, SkillReport, SkillWord};
pub use settings::Settings;
