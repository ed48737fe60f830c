//! The background sweep: tests bans and frees objects that are past every use, a little at a time.

use std::sync::Arc;

use sandarac_message::Timestamp;

use crate::ban::Expression;
use crate::forgotten::{Forgotten, Purge};
use crate::stats::Removal;
use crate::store::Store;
use crate::sweep_position::BATCH;
use crate::{Key, Object};

/// The most bans in force. Adding another sweeps until the oldest have been tested against every object.
const BANS: usize = 1024;

/// The outcome of a step of the sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Places examined, with or without an object.
    pub examined: usize,
    /// Objects removed: expired, banned or purged.
    pub removed: usize,
    /// Whether this step ended a round over the whole store. Bans that were in force when the round began
    /// have been dropped.
    pub round: bool,
}

impl Store {
    /// Bans the objects that match an expression: none that is stored or being fetched now is served from
    /// here on.
    pub fn ban(&self, expression: Expression, now: Timestamp) {
        let text = expression.text().to_owned();
        self.bans.add(expression);
        while self.bans.len() > BANS {
            self.sweep(usize::MAX, now);
        }
        self.tell_others(Purge::Hard, || Forgotten::Ban(text));
    }

    /// The bans in force, the oldest first.
    pub fn bans(&self) -> Vec<String> {
        self.bans.texts()
    }

    /// Examines the next `budget` places of the store, or a few more, up to the end of a round: tests bans
    /// and removes objects that are banned or past every use. After the limit was lowered, also compacts as
    /// many objects. Call this periodically, often enough that a round takes a minute or so.
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

    /// Sweeps some slots of a shard. Returns their number, and whether they were the last.
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
                    dead.extend(shard.expire(slot));
                } else if !self.bans.are_tested(object) {
                    untested.push(object.clone());
                }
            }
            drop(shard);
            *removed += dead.len();
            if untested.is_empty() {
                return (to.saturating_sub(from) as usize, to >= end);
            }
            // The tests run without the lock. The slots are examined again afterwards, because their objects
            // may have been replaced.
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
