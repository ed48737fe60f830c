//! Consistent hashing with bounded loads.

use super::resume::ClassKey;
use crate::candidates::Candidates;
use crate::choices::Chosen;
use crate::hash::{hash, mix};
use crate::{Backend, ChoiceReason};

/// Points on the ring for a backend of weight 1. With 100 of them the shares of backends differ by about a
/// tenth.
const POINTS: u32 = 100;

/// The most points of one backend. If one weighs more than ten, all have proportionally fewer points: more
/// would make the ring larger and the shares no more exact.
const MOST_POINTS: u32 = 10 * POINTS;

/// How many points are probed for a backend below its bound: several times the expected number at the
/// smallest useful factor (Mirrokni and others, theorem 4: 2 / ε² probes). After that, the least loaded takes
/// the request.
const PROBES: usize = 256;

/// The ring.
pub(crate) struct Ring {
    /// The position of each point, and its backend.
    points: Box<[(u64, u32)]>,
    load_factor: f32,
}

impl Ring {
    /// The position of a backend depends on its address alone, so that all balancers agree, and pools after a
    /// change too.
    pub(crate) fn new(backends: &[Backend], load_factor: f64) -> Ring {
        let heaviest = backends.iter().map(|backend| u64::from(backend.weight())).max().unwrap_or(1);
        let of_heaviest = (heaviest * u64::from(POINTS)).min(u64::from(MOST_POINTS));
        let mut points = Vec::new();
        for (at, backend) in (0..).zip(backends) {
            let place = hash(backend.address().to_string().as_bytes(), 0);
            let count = (u64::from(backend.weight()) * of_heaviest / heaviest).max(1);
            points.extend((0..count).map(|point| (mix(place ^ mix(point)), at)));
        }
        points.sort_unstable();
        Ring { points: points.into(), load_factor: load_factor.max(1.0) as f32 }
    }

    /// The first candidate below its bound, starting at the position of the class; the least loaded for a
    /// request without a class.
    pub(crate) fn choose(&self, candidates: &Candidates<'_>, class: Option<ClassKey>) -> Option<Chosen> {
        let least_loaded = |reason| Some(Chosen::new(candidates.least_loaded()?, reason));
        let Some(ClassKey(place)) = class else { return least_loaded(ChoiceReason::Unclassified) };
        let start = self.points.partition_point(|&(point, _)| point < place);
        let all = self.load_factor * candidates.total_load();
        let around = self.points[start..].iter().chain(&self.points[..start]);
        let mut last = None;
        for &(_, at) in around.take(PROBES) {
            let at = at as usize;
            if last == Some(at) {
                continue;
            }
            last = Some(at);
            let bound = (all * candidates.share_of_all(at)).ceil().max(1.0);
            if (candidates.backends[at].in_hand() as f32) < bound && candidates.eligible(at) {
                return Some(Chosen::new(at, ChoiceReason::NextOnRing));
            }
        }
        least_loaded(ChoiceReason::LeastLoaded)
    }
}
