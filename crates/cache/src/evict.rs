//! Eviction: making room in the store.

use std::sync::atomic::Ordering::Relaxed;

use crate::judge::Judge;
use crate::queue::Queue;
use crate::shard::Victim;
use crate::store::Store;

/// Objects without proven worth may take the place of others only while they take less than a tenth.
const SHARE: usize = 10;

/// An index that takes more than this part of the store is checked for unneeded memory, every `LOOK_AFTER`
/// evictions.
const LARGE_INDEX: usize = 8;
const LOOK_AFTER: usize = 64;

impl Store {
    pub(crate) fn judge(&self) -> Judge {
        Judge { limit: self.budget.limit(), desperate: false }
    }

    /// Charges `bytes`, evicting until they fit. False if that would be in vain: the last share of what no
    /// eviction can free is for objects that may stay. While readers hold much, new objects displace only
    /// others without proven worth.
    pub(crate) fn reserve(&self, bytes: usize) -> bool {
        let limit = self.budget.limit();
        while !self.budget.try_add(bytes) {
            let fixed = self.fixed_bytes();
            if fixed > limit - limit / SHARE || fixed + bytes > limit {
                return false;
            }
            let evicted = if self.is_much_for_readers(fixed) {
                self.evict_from(Queue::Small, false)
            } else {
                self.evict()
            };
            if !evicted {
                return false;
            }
        }
        true
    }

    /// Charges `bytes` for the body of an object that is arriving and holds `held` already. False if it has
    /// to stream.
    ///
    /// Readers may be slow, and nothing that they hold can be freed. So objects without proven worth, with or
    /// without readers, may exceed their share only by displacing other such objects, and leave the last
    /// share of free memory to small objects. Otherwise a few clients that ask for large objects and do not
    /// read would empty the main queue. Of what has left the store, readers have half of the limit: the other
    /// half can be lent.
    pub(crate) fn reserve_arriving(&self, bytes: usize, held: usize) -> bool {
        let limit = self.budget.limit();
        let share = limit / SHARE;
        let is_small = held <= limit / 1024;
        let most = if is_small { limit } else { limit - share };
        loop {
            let fixed = self.fixed_bytes();
            if fixed + bytes > most || !is_small && self.is_much_for_readers(fixed) {
                return false;
            }
            let unproven = self.unproven_bytes() + bytes;
            if unproven <= most && self.budget.try_add(bytes) {
                return true;
            }
            let freed = self.evict_from(Queue::Small, false)
                || (unproven <= share && self.evict_from(Queue::Main, false));
            if !freed {
                return false;
            }
        }
    }

    /// Whether readers hold more than half of the limit in objects that have left the store, of `fixed` bytes
    /// that no eviction can free.
    fn is_much_for_readers(&self, fixed: usize) -> bool {
        fixed.saturating_sub(self.budget.lent_charged()) > self.budget.limit() / 2
    }

    /// Bytes of objects without proven worth, of objects that have left the index but are being read, and of
    /// what is lent.
    fn unproven_bytes(&self) -> usize {
        self.used_beside(&[&self.shards.main_bytes, &self.shards.index_bytes])
    }

    pub(crate) fn release(&self, bytes: usize) {
        self.budget.sub(bytes);
    }

    /// Evicts until the limit is kept. No shard's lock may be held. What is lent, beside what readers hold,
    /// may exceed it for a while, and does not empty the store: objects of proven worth keep their share.
    pub fn fit(&self) {
        while !self.budget.fits() {
            let has_proven = self.proven_exceed_their_share();
            let evicted = if has_proven { self.evict() } else { self.evict_unproven() };
            // The search may have moved objects with hits to the main queue.
            if !evicted && (has_proven || !self.proven_exceed_their_share()) {
                // The excess may be an index that has become too large for its content.
                self.shrink();
                return;
            }
        }
    }

    /// Whether objects of proven worth, with the index, take more than what they keep in any case.
    fn proven_exceed_their_share(&self) -> bool {
        let proven = self.shards.main_bytes.load(Relaxed) + self.shards.index_bytes.load(Relaxed);
        usize::try_from(proven).is_ok_and(|proven| proven > self.budget.limit() / SHARE)
    }

    /// Evicts an object without proven worth, also one that is being read: what readers hold then has slow
    /// ones cut off.
    fn evict_unproven(&self) -> bool {
        [false, true].into_iter().any(|desperate| self.evict_from(Queue::Small, desperate))
    }

    fn shrink(&self) {
        (0..self.shards()).for_each(|shard| self.shard(shard).shrink());
    }

    /// Rebuilds the index, as eviction does when it is large for its content.
    #[cfg(model)]
    pub fn rebuild_index(&self) {
        self.shrink();
    }

    /// Evicts one object. False if there is none.
    fn evict(&self) -> bool {
        let index = usize::try_from(self.shards.index_bytes.load(Relaxed)).unwrap_or(0);
        let turn = self.evictions.fetch_add(1, Relaxed);
        if turn.is_multiple_of(LOOK_AFTER) && index > self.budget.limit() / LARGE_INDEX {
            self.shrink();
        }
        let order = if self.shards.small_exceeds_its_share() {
            [Queue::Small, Queue::Main]
        } else {
            [Queue::Main, Queue::Small]
        };
        let mut tries = [false, true].into_iter().flat_map(|desperate| order.map(|queue| (queue, desperate)));
        tries.any(|(queue, desperate)| self.evict_from(queue, desperate))
    }

    /// Evicts one object of a queue. False if there is none, or, unless `desperate`, only objects that have
    /// had hits or are being read.
    fn evict_from(&self, queue: Queue, desperate: bool) -> bool {
        let judge = Judge { desperate, ..self.judge() };
        // Hits that arrive meanwhile could save every object for ever, so the search ends and is repeated as
        // desperate.
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
        false
    }

    /// The shard that gives the next victim. Shards take turns, but of two the one with more objects in the
    /// queue is taken. So the queues stay equally long and act like a single one.
    fn turn(&self, queue: Queue) -> usize {
        let hand = self.hand.fetch_add(1, Relaxed);
        let last = self.shards() - 1;
        // The distance varies, so that in time every shard is compared with every other.
        let (one, other) = (hand & last, (hand + 1 + hand / self.shards()) & last);
        let len = |at: usize| self.shards.queue_len(at, queue);
        if len(one) >= len(other) { one } else { other }
    }
}
