//! The protocol of the shared tier, without I/O: several nodes share one cache in memcached servers.
//!
//! Everything here is a state machine: it takes replies and the time, and returns what to do next. The proxy
//! drives the machines over connections to real servers; the tests drive the same machines through histories
//! in virtual time, over a model of memcached and of the network.

mod health;
mod placement;

pub use health::{Ejection, Health, Use};
pub use placement::Placement;
