//! The sweep in the background: it tests bans and frees objects that are past every use, a little at a time.

use std::sync::Arc;

use sandarac_message::Timestamp;

use crate::ban::Expression;
use crate::stats::Removal;
use crate::store::Store;
use crate::sweep_position::BATCH;
use crate::{Key, Object};

/// The most bans in force. One more waits until the oldest have met every object.
const BANS: usize = 1024;

/// What a step of the sweep has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Places looked at, with an object or without.
    pub examined: usize,
    /// Objects removed: expired, banned or purged.
    pub removed: usize,
    /// Whether this step ended a round over the whole store. Bans that were in force when the round began are
    /// dropped.
    pub round: bool,
}

impl Store {
    /// Bans what an expression describes: no object that is stored or being fetched now, and for which it
    /// holds, is served from here on.
    pub fn ban(&self, expression: Expression, now: Timestamp) {
        self.bans.add(expression);
        while self.bans.len() > BANS {
            self.sweep(usize::MAX, now);
        }
    }

    /// The bans in force, the oldest first.
    pub fn bans(&self) -> Vec<String> {
        self.bans.texts()
    }

    /// Looks at the next `budget` places of the store, or a few more, up to the end of a round: tests bans
    /// and removes what is banned or past every use. After the limit was lowered, moves as many objects
    /// together. To be called periodically, often enough that a round takes a minute or so.
    pub fn sweep(&self, budget: usize, now: Timestamp) -> Swept {
        let mut position = self.sweep_position.lock();
        let mut swept = self.reclaim(budget);
        self.compact(&mut position, budget);
        if (position.shard, position.slot) == (0, 0) {
            position.round = self.bans.latest();
        }
        while swept.examined < budget {
            let (examined, end) = self.sweep_batch(position.shard, position.slot, now, &mut swept.removed);
            swept.examined += examined;
            position.slot += BATCH;
            if end {
                (position.shard, position.slot) = (position.shard + 1, 0);
            }
            if position.shard == self.shards() {
                position.shard = 0;
                self.bans.drop_until(position.round);
                swept.round = true;
                break;
            }
        }
        swept
    }

    /// Frees objects that were purged.
    fn reclaim(&self, budget: usize) -> Swept {
        let mut swept = Swept::default();
        for at in 0..self.shards() {
            while swept.examined < budget {
                let mut shard = self.shard(at);
                let removed: Vec<Arc<Object>> =
                    std::iter::from_fn(|| shard.reclaim()).take(BATCH as usize).collect();
                drop(shard);
                swept.examined += removed.len();
                swept.removed += removed.len();
                if removed.is_empty() {
                    break;
                }
            }
        }
        swept
    }

    /// Sweeps some slots of a shard. Returns how many, and whether they were the last.
    fn sweep_batch(&self, at: usize, from: u32, now: Timestamp, removed: &mut usize) -> (usize, bool) {
        loop {
            let mut shard = self.shard(at);
            let end = shard.end();
            let to = end.min(from.saturating_add(BATCH));
            let mut dead: Vec<Arc<Object>> = Vec::new();
            let mut untested: Vec<Arc<Object>> = Vec::new();
            for slot in from..to {
                let Some(object) = shard.object(slot) else { continue };
                if object.lifetimes().dead(now) && object.body().is_whole() {
                    dead.extend(shard.remove(slot, Removal::Expired));
                } else if !self.bans.are_tested(object) {
                    untested.push(object.clone());
                }
            }
            drop(shard);
            *removed += dead.len();
            if untested.is_empty() {
                return (to.saturating_sub(from) as usize, to >= end);
            }
            // Tested without the lock. Then the slots are looked at again: objects may have taken each
            // other's place.
            for object in untested {
                if self.bans.meet(&object) && self.discard(&object, Removal::Banned) {
                    *removed += 1;
                }
            }
        }
    }

    /// The stored variants of a key, the newest first: for the admin interface, and for tests.
    pub fn variants(&self, key: Key) -> Vec<Arc<Object>> {
        let shard = self.lock(key);
        shard
            .variants(key)
            .filter(|(_, object)| !object.is_condemned())
            .map(|(_, object)| object.clone())
            .collect()
    }
}
