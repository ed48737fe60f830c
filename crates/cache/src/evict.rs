//! Making room.

use std::sync::atomic::Ordering::Relaxed;

use crate::shard::{Judge, Queue, Victim};
use crate::store::Store;

impl Store {
    pub(crate) fn judge(&self) -> Judge {
        Judge { limit: self.budget.limit(), desperate: false }
    }

    /// Charges `bytes`, evicting until they fit. False where they never will.
    pub(crate) fn reserve(&self, bytes: usize) -> bool {
        if bytes > self.budget.limit() {
            return false;
        }
        while !self.budget.try_add(bytes) {
            if !self.evict() {
                return false;
            }
        }
        true
    }

    pub(crate) fn release(&self, bytes: usize) {
        self.budget.sub(bytes);
    }

    /// Evicts until the limit is kept. No shard's lock may be held.
    pub(crate) fn fit(&self) {
        for evicted in 1.. {
            if self.budget.fits() {
                return;
            }
            let more = self.evict();
            // What does not fit may be index that has become too large for what it holds.
            if evicted % 64 == 0 || !more {
                (0..self.shards()).for_each(|shard| self.shard(shard).shrink());
            }
            if !more {
                return;
            }
        }
    }

    /// Evicts one object. False where there is none.
    fn evict(&self) -> bool {
        // S3-FIFO gives a tenth to objects that have yet to show their worth.
        let share = self.budget.limit() / 10;
        let small = usize::try_from(self.small_bytes.load(Relaxed)).unwrap_or(0);
        let order = if small > share { [Queue::Small, Queue::Main] } else { [Queue::Main, Queue::Small] };
        for desperate in [false, true] {
            let judge = Judge { desperate, ..self.judge() };
            for queue in order {
                // Hits that come meanwhile could save every object for ever: so this ends, and desperation comes.
                let mut empty = 0;
                for _ in 0..8 * self.shards() {
                    let victim = self.shard(self.turn(queue)).evict(queue, judge);
                    match victim {
                        Victim::Evicted(object) => {
                            object.evicted();
                            return true;
                        }
                        Victim::Passed => empty = 0,
                        Victim::None => empty += 1,
                    }
                    if empty == self.shards() {
                        break;
                    }
                }
            }
        }
        false
    }

    /// The shard that gives the next victim: they take turns, but of two the one gives that has more objects in the
    /// queue. So the queues stay equally long, and all together are like one.
    fn turn(&self, queue: Queue) -> usize {
        let hand = self.hand.fetch_add(1, Relaxed);
        let last = self.shards() - 1;
        // Every pair of neighbours at some distance meets in the course of time.
        let (one, other) = (hand & last, (hand + 1 + hand / self.shards()) & last);
        let len = |at: usize| self.shards[at].queued[queue as usize].load(Relaxed);
        if len(one) >= len(other) { one } else { other }
    }
}
