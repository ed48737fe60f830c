//! The protocol of the shared tier, without I/O: several nodes share one cache in memcached servers.
//!
//! Everything here is a state machine: it takes replies and the time, and returns what to do next. The proxy
//! drives the machines over connections to real servers; the tests drive the same machines through histories
//! in virtual time, over a model of memcached and of the network. The protocol and its guarantees are
//! described in `docs/protocols/shared-tier.md`.
//!
//! A node has one [`Server`] for each memcached server. On top of it work a [`Lookup`] for each miss in RAM, a
//! [`Check`] for each [`LocalCopy`] in RAM whose time has come, and a [`LogSync`] at regular times and after
//! each purge. Times are those of a monotonic clock, in milliseconds.

mod check;
mod command;
mod deliveries;
mod health;
mod local_copy;
mod log_sync;
mod log_view;
mod lookup;
mod placement;
mod purge_call;
mod purge_index;
mod reason;
mod rules;
mod server;
mod settings;
mod shared_copy;
#[cfg(test)]
mod tests;

pub use check::{Check, CheckResult, CheckStep};
pub use command::{Command, Condition, Reply, StoredItem};
pub use health::{Attempt, Ejection, Health, Use};
pub use local_copy::{Hit, LocalCopy};
pub use log_sync::LogSync;
pub use lookup::{Fetch, Found, Lookup, LookupStep, Outcome, Target};
pub use placement::Placement;
pub use purge_call::{PurgeCall, tombstone};
pub use purge_index::{Subject, matches};
pub use reason::{FetchReason, Refusal};
pub use server::{LogOperation, Server, Verdict};
pub use settings::Settings;
pub use shared_copy::SharedCopy;
