//! The power of two choices over requests in flight times the latency of late.

use super::least_requests::one_of_two;
use super::random::WeightedDraw;
use crate::candidates::Candidates;

/// Of two candidates drawn by weight the one that costs less; of all where neither of them is one.
pub(crate) fn choose(draw: &WeightedDraw, candidates: &Candidates<'_>) -> Option<usize> {
    // Where nothing is known the load alone decides.
    let latency = |at: usize| candidates.backends[at].state.latency.get(candidates.now).max(0.001);
    let cost = |at: usize| candidates.load(at) * latency(at);
    one_of_two(draw, candidates, |one, two| cost(two) < cost(one)).or_else(|| {
        let candidates = candidates.all().filter(|&at| candidates.eligible(at));
        candidates.min_by(|&a, &b| cost(a).total_cmp(&cost(b)))
    })
}
