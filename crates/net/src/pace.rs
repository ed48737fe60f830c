//! Whether a peer that is waited for moves enough bytes on average.

use crate::Moment;
use std::time::Duration;

/// A least rate, and when it begins to count.
#[derive(Clone, Copy, Debug)]
pub struct LeastRate {
    /// Bytes per second; 0 lets all pass.
    pub bytes: u64,
    /// How long the peer must have been waited for before its rate counts.
    pub after: Duration,
}

/// How fast a peer moves bytes, counting only the time in which it is waited for: it is not to blame when the other side
/// is slow.
#[derive(Debug, Default)]
pub struct Pace {
    waiting: Option<(Moment, u64)>,
    waited: Duration,
    moved: u64,
}

impl Pace {
    /// The peer is being waited for, having moved `total` bytes so far. Whether it has been too slow for `least`.
    pub fn waits(&mut self, total: u64, least: LeastRate) -> bool {
        let now = Moment::now();
        let (since, from) = *self.waiting.get_or_insert((now, total));
        let waited = self.waited + now.since(since);
        let moved = self.moved + (total - from);
        waited >= least.after && moved < (least.bytes as f64 * waited.as_secs_f64()) as u64
    }

    /// The peer is not waited for at the moment, having moved `total` bytes so far.
    pub fn goes_on(&mut self, total: u64) {
        if let Some((since, from)) = self.waiting.take() {
            self.waited += Moment::now().since(since);
            self.moved += total - from;
        }
    }
}
