//! The queues of a shard.

use std::sync::atomic::Ordering::Relaxed;

use crate::Object;
use crate::slab::NONE;

/// The two queues of S3-FIFO, and the newest part of the small one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    Small = 0,
    Main = 1,
    /// Objects that have entered the small queue a short time ago. Requests that follow an object's arrival
    /// at once say little about later ones (correlated references: Johnson and Shasha, "2Q", VLDB 1994). So
    /// hits count a quarter here: four hits, the most that are counted, are one when the object goes on.
    Arrivals = 2,
}

/// Arrivals are at most this part of the objects in the small queue. The time is counted in objects, so that
/// it follows the traffic.
pub(crate) const ARRIVALS: usize = 8;

impl Queue {
    /// The queue that an object is in.
    pub(crate) fn of(object: &Object) -> Queue {
        match object.queue.load(Relaxed) {
            0 => Queue::Small,
            1 => Queue::Main,
            _ => Queue::Arrivals,
        }
    }

    /// The queue of S3-FIFO that this one is, or is a part of.
    pub(crate) fn whole(self) -> Queue {
        if self == Queue::Main { Queue::Main } else { Queue::Small }
    }
}

/// The ends and the length of a queue.
pub(crate) struct Line {
    pub(crate) head: u32,
    pub(crate) tail: u32,
    pub(crate) len: usize,
}

impl Line {
    pub(crate) const EMPTY: Line = Line { head: NONE, tail: NONE, len: 0 };
}
