//! Simulation on the shipping balancer: what an algorithm would do, without a network.
//!
//! [`Scenario`] is read from a TOML file, [`simulate`] plays it with one algorithm, and [`Report`] holds what was
//! measured. A simulation is deterministic: equal scenarios and seeds give equal reports, on every machine.

mod balancer;
mod cache;
mod chance;
mod chart;
mod engine;
mod lard;
mod measure;
mod resume;
mod scenario;
mod table;
mod worker;

pub use chart::chart;
pub use engine::simulate;
pub use lard::LardSettings;
pub use measure::{Phase, Report};
pub use scenario::{
    Algorithm, AlgorithmKind, Event, EventKind, Load, Popularity, Scenario, ScenarioError, Sites, Workers,
};
pub use table::table;
