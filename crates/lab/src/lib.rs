//! Simulation of algorithms on the shipping balancer, without a network.
//!
//! [`Scenario`] is read from a TOML file, [`simulate`] runs it with one algorithm, and [`Report`] holds the
//! measurements. A simulation is deterministic: equal scenarios and seeds give equal reports, on every
//! machine. Requests may come from an access log instead: [`Log`] reads one, [`Trace`] holds it, [`replay`]
//! runs it.

mod balancer;
mod cache;
mod chart;
mod demand;
mod distribution;
mod engine;
mod lard;
mod log;
mod measure;
mod published;
mod resume;
mod scenario;
mod table;
mod trace;
mod worker;

pub use chart::chart;
pub use engine::{replay, simulate};
pub use lard::LardSettings;
pub use log::{Log, LogError, LogOptions, LogRequest, LogTally, Malformed};
pub use measure::{Phase, Report, fairness};
pub use scenario::{
    Algorithm, AlgorithmKind, Event, EventKind, Load, LogSettings, Popularity, Scenario, ScenarioError,
    Sites, Workers,
};
pub use table::{Row, rows, table};
pub use trace::{MOST_REQUESTS, Trace};
