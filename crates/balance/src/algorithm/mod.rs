//! The algorithms that choose among the backends that may take a request.

mod chooser;
pub(crate) mod consistent_hash;
pub(crate) mod fallback;
pub(crate) mod least_requests;
pub(crate) mod maglev;
pub(crate) mod peak_ewma;
pub(crate) mod random;
pub(crate) mod resume;
pub(crate) mod round_robin;

use std::str::FromStr;

pub(crate) use chooser::Chooser;

/// How a pool chooses among the backends that may take a request. All but [`Algorithm::Fallback`] use
/// weights: a backend of weight 2 gets twice the requests of one of weight 1, or has twice the load before
/// others are preferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Of two backends drawn at random, the one with fewer requests in flight (Mitzenmacher 2001, "The power
    /// of two choices"). The default: it follows the load, and several balancers that cannot see each other
    /// do not all rush to the same idle backend.
    #[default]
    LeastRequests,
    /// The worker that is best at the request's class, by the résumés of the workers (zc.resumelb, 2012).
    Resume,
    /// Of two backends drawn at random, the one with the smaller product of its requests in flight and its
    /// recent latency, in which a slow response counts at once and a fast one gradually (Finagle's peak
    /// EWMA).
    PeakEwma,
    /// Each in turn.
    RoundRobin,
    /// Any, with equal chances.
    Random,
    /// The next backend on a hash ring that is not loaded above the mean by more than a factor (Mirrokni,
    /// Thorup, Zadimoghaddam 2018, "Consistent hashing with bounded loads").
    ConsistentHash,
    /// The backend from a lookup table that changes little when backends come and go (Eisenbud and others
    /// 2016, "Maglev").
    Maglev,
    /// The first backend, in the order configured, that can take the request.
    Fallback,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Algorithm; 8] = [
        Algorithm::LeastRequests,
        Algorithm::Resume,
        Algorithm::PeakEwma,
        Algorithm::RoundRobin,
        Algorithm::Random,
        Algorithm::ConsistentHash,
        Algorithm::Maglev,
        Algorithm::Fallback,
    ];

    /// The name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::LeastRequests => "least_requests",
            Algorithm::Resume => "resume",
            Algorithm::PeakEwma => "peak_ewma",
            Algorithm::RoundRobin => "round_robin",
            Algorithm::Random => "random",
            Algorithm::ConsistentHash => "consistent_hash",
            Algorithm::Maglev => "maglev",
            Algorithm::Fallback => "fallback",
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

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
