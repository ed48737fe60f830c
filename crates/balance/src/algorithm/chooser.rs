//! The algorithm of a pool, with its state.

use super::Algorithm;
use super::consistent_hash::Ring;
use super::maglev::Maglev;
use super::random::WeightedDraw;
use super::resume::{ClassKey, Resume};
use super::round_robin::RoundRobin;
use super::{fallback, least_requests, peak_ewma};
use crate::candidates::Candidates;
use crate::choices::Chosen;
use crate::{Backend, ChoiceReason, Settings};

/// An algorithm with its state for one pool.
pub(crate) enum Chooser {
    LeastRequests(WeightedDraw),
    Resume(Resume),
    PeakEwma(WeightedDraw),
    RoundRobin(RoundRobin),
    Random(WeightedDraw),
    ConsistentHash(Ring),
    Maglev(Maglev),
    Fallback,
}

impl Chooser {
    /// The algorithm of a pool with these backends. `before` is that of the pool it succeeds; its state is
    /// kept if the algorithm is the same.
    pub(crate) fn new(settings: &Settings, backends: &[Backend], before: Option<&Chooser>) -> Chooser {
        match settings.algorithm {
            Algorithm::LeastRequests => Chooser::LeastRequests(WeightedDraw::new(backends)),
            Algorithm::Resume => {
                let before = match before {
                    Some(Chooser::Resume(before)) => Some(before),
                    _ => None,
                };
                Chooser::Resume(Resume::new(&settings.resume, settings.seed, backends.len(), before))
            }
            Algorithm::PeakEwma => Chooser::PeakEwma(WeightedDraw::new(backends)),
            Algorithm::RoundRobin => Chooser::RoundRobin(RoundRobin::new(backends)),
            Algorithm::Random => Chooser::Random(WeightedDraw::new(backends)),
            Algorithm::ConsistentHash => Chooser::ConsistentHash(Ring::new(backends, settings.load_factor)),
            Algorithm::Maglev => Chooser::Maglev(Maglev::new(backends)),
            Algorithm::Fallback => Chooser::Fallback,
        }
    }

    /// The algorithm's key of a class; `None` if it does not distinguish requests.
    pub(crate) fn key(&self, class: Option<&[u8]>) -> Option<ClassKey> {
        match self {
            Chooser::Resume(resume) => class.map(|class| resume.key(class)),
            Chooser::ConsistentHash(_) | Chooser::Maglev(_) => class.map(ClassKey::shared),
            _ => None,
        }
    }

    /// Chooses among `candidates`, of which there is at least one, and gives the reason. Takes no place.
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

    /// Whether backends differ for requests of a class, so that a full one may be worth waiting for.
    pub(crate) fn tells_classes_apart(&self) -> bool {
        matches!(self, Chooser::Resume(_) | Chooser::ConsistentHash(_) | Chooser::Maglev(_))
    }

    /// Whether the algorithm uses the load of the whole pool.
    pub(crate) fn counts_load(&self) -> bool {
        matches!(self, Chooser::Resume(_) | Chooser::ConsistentHash(_))
    }

    /// The state of `resume`, if that is the algorithm.
    pub(crate) fn resume(&self) -> Option<&Resume> {
        match self {
            Chooser::Resume(resume) => Some(resume),
            _ => None,
        }
    }
}
