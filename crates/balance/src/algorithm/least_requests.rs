//! The power of two choices over requests in flight.

use super::random::WeightedDraw;
use crate::candidates::Candidates;

/// Of two candidates drawn by weight the first, unless the second would have no more load with this request
/// than the first has without it; of all the one with the least load where neither of them is one. So
/// backends are chosen by weight where nothing is going on, too: the loads alone would send all to the
/// heaviest then.
pub(crate) fn choose(draw: &WeightedDraw, candidates: &Candidates<'_>) -> Option<usize> {
    one_of_two(draw, candidates, |one, two| candidates.load(two) <= candidates.load_now(one))
        .or_else(|| candidates.least_loaded())
}

/// Of two backends drawn by weight the candidate, if there is one; where both are, the first unless the
/// second is `better`.
pub(crate) fn one_of_two(
    draw: &WeightedDraw,
    candidates: &Candidates<'_>,
    better: impl Fn(usize, usize) -> bool,
) -> Option<usize> {
    let count = candidates.count();
    let one = draw.draw(candidates);
    let mut two = draw.draw(candidates);
    if two == one {
        // Another than `one`; the same where there is no other.
        two = (one + 1 + candidates.random.below((count - 1).max(1))) % count;
    }
    match (candidates.eligible(one), candidates.eligible(two)) {
        (true, true) => Some(if better(one, two) { two } else { one }),
        (true, false) => Some(one),
        (false, true) => Some(two),
        (false, false) => None,
    }
}
