//! The power of two choices over requests in flight.

use super::random::Draw;
use crate::candidates::Candidates;

/// Of two candidates drawn by weight the one with less load; of all where neither of them is one.
pub(crate) fn choose(draw: &Draw, candidates: &Candidates<'_>) -> Option<usize> {
    less_of_two(draw, candidates, |at| candidates.load(at))
}

/// Of two backends drawn by weight the candidate whose `cost` is less.
pub(crate) fn less_of_two(
    draw: &Draw,
    candidates: &Candidates<'_>,
    cost: impl Fn(usize) -> f32,
) -> Option<usize> {
    let count = candidates.count();
    let one = draw.draw(candidates);
    let mut two = draw.draw(candidates);
    if two == one {
        // Another than `one`; the same where there is no other.
        two = (one + 1 + candidates.random.below((count - 1).max(1))) % count;
    }
    match (candidates.eligible(one), candidates.eligible(two)) {
        (true, true) => Some(if cost(two) < cost(one) { two } else { one }),
        (true, false) => Some(one),
        (false, true) => Some(two),
        (false, false) => candidates
            .all()
            .filter(|&at| candidates.eligible(at))
            .min_by(|&a, &b| cost(a).total_cmp(&cost(b))),
    }
}
