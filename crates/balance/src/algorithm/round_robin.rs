//! Each in turn, in proportion to its weight.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Backend;
use crate::candidates::Candidates;

/// A round of turns, and the position in it.
pub(crate) struct RoundRobin {
    /// The backends in the order of their turns, those of a heavy one spread over the round.
    round: Box<[u32]>,
    turn: AtomicUsize,
}

impl RoundRobin {
    pub(crate) fn new(backends: &[Backend]) -> RoundRobin {
        let divisor = backends.iter().map(Backend::weight).fold(0, gcd).max(1);
        let mut turns = Vec::new();
        for (at, backend) in (0..).zip(backends) {
            let count = backend.weight() / divisor;
            // The n-th of its turns lies in the middle of the n-th part of the round.
            turns.extend((0..count).map(|turn| ((2 * turn + 1) as f64 / f64::from(count), at)));
        }
        turns.sort_by(|(a, one), (b, two)| a.total_cmp(b).then(one.cmp(two)));
        RoundRobin { round: turns.into_iter().map(|(_, at)| at).collect(), turn: AtomicUsize::new(0) }
    }

    /// The next candidate in turn. A backend that may not take the request loses its turn, so that its load
    /// is spread over all others. One in slow start skips a turn now and then.
    pub(crate) fn choose(&self, candidates: &Candidates<'_>) -> Option<usize> {
        let next = |_| {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            self.round[turn % self.round.len()] as usize
        };
        let takes = |at: usize| {
            let warmth = candidates.warmth(at);
            warmth >= 1.0 || candidates.random.happens(warmth)
        };
        let mut in_turn = (0..self.round.len()).map(next).filter(|&at| candidates.eligible(at));
        if let Some(first) = in_turn.next() {
            return if takes(first) { Some(first) } else { in_turn.find(|&at| takes(at)).or(Some(first)) };
        }
        // Other cores may have taken turns meanwhile, including those of the only candidate.
        candidates.all().find(|&at| candidates.eligible(at))
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
