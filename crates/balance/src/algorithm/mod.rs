//! The ways to choose among the backends that may take a request.

pub(crate) mod consistent_hash;
pub(crate) mod fallback;
pub(crate) mod least_requests;
pub(crate) mod maglev;
pub(crate) mod peak_ewma;
pub(crate) mod random;
pub(crate) mod resume;
pub(crate) mod round_robin;

use std::str::FromStr;

use crate::candidates::Candidates;
use crate::choices::Chosen;
use crate::{Backend, ChoiceReason, Settings};
use consistent_hash::Ring;
use maglev::Maglev;
use random::Draw;
use resume::{ClassKey, Resume};
use round_robin::RoundRobin;

/// How a pool chooses among the backends that may take a request. All but [`Algorithm::Fallback`] heed weights: a
/// backend of weight 2 gets twice the requests of one of weight 1, or bears twice the load before others are preferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Of two backends drawn at random, the one with fewer requests in flight (Mitzenmacher 2001, "The power of two
    /// choices"). The default: it follows the load, and several balancers that cannot see each other do not all
    /// rush to the same idle backend.
    #[default]
    LeastRequests,
    /// The worker that is best at the request's class, by the résumés that workers keep (zc.resumelb, 2012).
    Resume,
    /// Of two backends drawn at random, the one with the smaller product of its requests in flight and its latency of
    /// late, where a slow answer counts at once and a fast one by and by (Finagle's peak EWMA).
    PeakEwma,
    /// Each in turn.
    RoundRobin,
    /// Any, with equal chances.
    Random,
    /// The backend next on a hash ring that is not loaded above the mean by more than a factor (Mirrokni, Thorup,
    /// Zadimoghaddam 2018, "Consistent hashing with bounded loads").
    ConsistentHash,
    /// The backend that a lookup table says, most of which stays when backends come and go (Eisenbud and others 2016,
    /// "Maglev").
    Maglev,
    /// The first, in the order configured, that can take the request.
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

    /// The name that configurations use.
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

/// An algorithm with the state it keeps for one pool.
pub(crate) enum Chooser {
    LeastRequests(Draw),
    Resume(Resume),
    PeakEwma(Draw),
    RoundRobin(RoundRobin),
    Random(Draw),
    ConsistentHash(Ring),
    Maglev(Maglev),
    Fallback,
}

impl Chooser {
    /// What the pool needs that has these backends; `before` is what the pool had whose place it takes, whose state goes
    /// on where the algorithm is the same.
    pub(crate) fn new(settings: &Settings, backends: &[Backend], before: Option<&Chooser>) -> Chooser {
        match settings.algorithm {
            Algorithm::LeastRequests => Chooser::LeastRequests(Draw::new(backends)),
            Algorithm::Resume => {
                let before = match before {
                    Some(Chooser::Resume(before)) => Some(before),
                    _ => None,
                };
                Chooser::Resume(Resume::new(&settings.resume, settings.seed, backends.len(), before))
            }
            Algorithm::PeakEwma => Chooser::PeakEwma(Draw::new(backends)),
            Algorithm::RoundRobin => Chooser::RoundRobin(RoundRobin::new(backends)),
            Algorithm::Random => Chooser::Random(Draw::new(backends)),
            Algorithm::ConsistentHash => Chooser::ConsistentHash(Ring::new(backends, settings.load_factor)),
            Algorithm::Maglev => Chooser::Maglev(Maglev::new(backends)),
            Algorithm::Fallback => Chooser::Fallback,
        }
    }

    /// The key by which the algorithm knows a class; `None` where it does not tell requests apart.
    pub(crate) fn key(&self, class: Option<&[u8]>) -> Option<ClassKey> {
        match self {
            Chooser::Resume(resume) => class.map(|class| resume.key(class)),
            Chooser::ConsistentHash(_) | Chooser::Maglev(_) => class.map(ClassKey::shared),
            _ => None,
        }
    }

    /// Chooses among `candidates`, of which there is at least one, without taking a place, and says why.
    pub(crate) fn choose(&self, candidates: &Candidates<'_>, class: Option<ClassKey>) -> Option<Chosen> {
        let (at, reason) = match self {
            Chooser::Resume(resume) => return resume.choose(candidates, class),
            Chooser::ConsistentHash(ring) => return ring.choose(candidates, class),
            Chooser::Maglev(table) => return table.choose(candidates, class),
            Chooser::LeastRequests(draw) => {
                (least_requests::choose(draw, candidates), ChoiceReason::FewerInFlight)
            }
            Chooser::PeakEwma(draw) => (peak_ewma::choose(draw, candidates), ChoiceReason::SoonerDone),
            Chooser::RoundRobin(turns) => (turns.choose(candidates), ChoiceReason::InTurn),
            Chooser::Random(draw) => (draw.choose(candidates), ChoiceReason::Drawn),
            Chooser::Fallback => (fallback::choose(candidates), ChoiceReason::FirstInOrder),
        };
        Some(Chosen::new(at?, reason))
    }

    /// Whether a request of a class is better off with one backend than with another, so that a full one may be worth
    /// waiting for.
    pub(crate) fn tells_classes_apart(&self) -> bool {
        matches!(self, Chooser::Resume(_) | Chooser::ConsistentHash(_) | Chooser::Maglev(_))
    }

    /// Whether the algorithm goes by the load of the whole pool.
    pub(crate) fn counts_load(&self) -> bool {
        matches!(self, Chooser::Resume(_) | Chooser::ConsistentHash(_))
    }

    /// What the résumé algorithm knows, where it is the one.
    pub(crate) fn resume(&self) -> Option<&Resume> {
        match self {
            Chooser::Resume(resume) => Some(resume),
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
