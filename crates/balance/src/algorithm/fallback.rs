//! Ordered: the first eligible backend.

use crate::candidates::Candidates;

/// The first candidate in the order configured.
pub(crate) fn choose(candidates: &Candidates<'_>) -> Option<usize> {
    candidates.all().find(|&at| candidates.eligible(at))
}
