//! The power of two choices over requests in flight times the recent latency.

use super::least_requests::one_of_two;
use super::random::WeightedDraw;
use crate::candidates::Candidates;

/// Of two candidates drawn by weight, the cheaper one; the cheapest of all if neither is a candidate.
pub(crate) fn choose(draw: &WeightedDraw, candidates: &Candidates<'_>) -> Option<usize> {
    // If no latency is known, the load alone decides.
    let latency = |at: usize| candidates.backends[at].state.latency.get(candidates.now).max(0.001);
    let cost = |at: usize| candidates.load(at) * latency(at);
    one_of_two(draw, candidates, |one, two| cost(two) < cost(one)).or_else(|| {
        let candidates = candidates.all().filter(|&at| candidates.eligible(at));
        candidates.min_by(|&a, &b| cost(a).total_cmp(&cost(b)))
    })
}
