//! The ways to choose among the backends that may take a request.

use std::str::FromStr;

/// How a pool chooses among the backends that may take a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Of two backends drawn at random, the one with fewer requests in flight (Mitzenmacher 2001, "The power of two
    /// choices"). The default: it follows the load, and several balancers that cannot see each other do not all
    /// rush to the same idle backend.
    #[default]
    LeastRequests,
    /// Each in turn.
    RoundRobin,
    /// Any, with equal chances.
    Random,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Algorithm; 3] = [Algorithm::LeastRequests, Algorithm::RoundRobin, Algorithm::Random];

    /// The name that configurations use.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::LeastRequests => "least_requests",
            Algorithm::RoundRobin => "round_robin",
            Algorithm::Random => "random",
        }
    }
}

impl std::fmt::Display for Algorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// No algorithm has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownAlgorithm;

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Algorithm, UnknownAlgorithm> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name).ok_or(UnknownAlgorithm)
    }
}
