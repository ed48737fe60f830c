//! Weighted draws, and the algorithm that consists of one.

use crate::Backend;
use crate::candidates::Candidates;

/// Draws backends at random, each by its weight.
pub(crate) struct WeightedDraw {
    /// The sum of the weights up to and including each backend; empty if all weigh the same.
    upto: Box<[u64]>,
}

impl WeightedDraw {
    pub(crate) fn new(backends: &[Backend]) -> WeightedDraw {
        let same = backends.windows(2).all(|two| two[0].weight() == two[1].weight());
        let sum = |sum: &mut u64, backend: &Backend| {
            *sum += u64::from(backend.weight());
            Some(*sum)
        };
        WeightedDraw { upto: if same { Box::default() } else { backends.iter().scan(0, sum).collect() } }
    }

    /// Any backend, whether it may take the request or not. One in slow start is drawn less often.
    pub(crate) fn draw(&self, candidates: &Candidates<'_>) -> usize {
        // A pool that is in slow start as a whole must still be drawn from.
        const REDRAWS: usize = 8;
        let mut at = self.any(candidates);
        for _ in 0..REDRAWS {
            let warmth = candidates.warmth(at);
            if warmth >= 1.0 || candidates.random.happens(warmth) {
                break;
            }
            at = self.any(candidates);
        }
        at
    }

    fn any(&self, candidates: &Candidates<'_>) -> usize {
        match self.upto.last() {
            None => candidates.random.below(candidates.count()),
            Some(&sum) => {
                let point = candidates.random.below(sum as usize) as u64;
                self.upto.partition_point(|&upto| upto <= point)
            }
        }
    }

    /// A candidate, drawn by weight.
    pub(crate) fn choose(&self, candidates: &Candidates<'_>) -> Option<usize> {
        let at = self.draw(candidates);
        if candidates.eligible(at) { Some(at) } else { candidates.any() }
    }
}
