//! The power of two choices over requests in flight.

use super::random::WeightedDraw;
use crate::candidates::Candidates;

/// Draws two candidates by weight and takes the first, unless the second with this request would have at most
/// the load that the first has without it. If neither is a candidate, takes the least loaded of all. An idle
/// pool is therefore also chosen from by weight, where the loads alone would send everything to the heaviest.
pub(crate) fn choose(draw: &WeightedDraw, candidates: &Candidates<'_>) -> Option<usize> {
    one_of_two(draw, candidates, |one, two| candidates.load(two) <= candidates.load_now(one))
        .or_else(|| candidates.least_loaded())
}

/// Draws two backends by weight. If both are candidates, takes the first unless the second is `better`; if
/// one is, takes that.
pub(crate) fn one_of_two(
    draw: &WeightedDraw,
    candidates: &Candidates<'_>,
    better: impl Fn(usize, usize) -> bool,
) -> Option<usize> {
    let count = candidates.count();
    let one = draw.draw(candidates);
    let mut two = draw.draw(candidates);
    if two == one {
        // A different one from `one`, if there is another.
        two = (one + 1 + candidates.random.below((count - 1).max(1))) % count;
    }
    match (candidates.eligible(one), candidates.eligible(two)) {
        (true, true) => Some(if better(one, two) { two } else { one }),
        (true, false) => Some(one),
        (false, true) => Some(two),
        (false, false) => None,
    }
}
