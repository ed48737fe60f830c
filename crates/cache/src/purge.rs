//! Purges: by key, by tag or group, of everything.
//!
//! A stored object is removed or made stale at once. A response that was being fetched is checked when it
//! arrives: the store remembers the last purges, and a response that one of them matches is served to its
//! waiters and to no later request.

use sandarac_message::Timestamp;

use crate::forgotten::{Forgotten, Purge};
use crate::purge_log::Purged;
use crate::stats::Removal;
use crate::store::Store;
use crate::{Expression, Key, Tag};

/// Objects, or tags, that are processed while a shard's lock is held once.
const BATCH: usize = 64;

impl Store {
    /// Purges every object of a key. Returns their number.
    pub fn purge(&self, key: Key, purge: Purge, now: Timestamp) -> usize {
        let _walk = self.purges.note([Purged::Key(key)]);
        let mut shard = self.lock(key);
        let present = shard.variants(key).filter(|(_, object)| !object.is_condemned());
        let slots: Vec<u32> = present.map(|(slot, _)| slot).collect();
        let mut removed = Vec::new();
        for &slot in &slots {
            match purge {
                Purge::Hard => removed.extend(shard.remove(slot, Removal::Purged)),
                Purge::Soft => shard.object(slot).into_iter().for_each(|object| object.purge_softly(now)),
            }
        }
        drop(shard);
        self.tell_others(purge, || Forgotten::Key(key));
        slots.len()
    }

    /// Purges every object that carries one of these tags or groups. Returns their number. None of them is
    /// served once this has returned. Eviction and [`Store::sweep`] free their memory.
    pub fn purge_tags(&self, tags: &[Tag], purge: Purge, now: Timestamp) -> usize {
        let _walk = self.purges.note(tags.iter().map(|&tag| Purged::Tag(tag)));
        let purged = self.purge_tagged(tags, purge, now);
        self.tell_others(purge, || Forgotten::Tags(tags.to_vec()));
        purged
    }

    /// Purges every object that carries this [`Tag::target`], as [`Store::purge_tags`] does.
    pub fn purge_target(&self, target: Tag, purge: Purge, now: Timestamp) -> usize {
        let _walk = self.purges.note([Purged::Target(target)]);
        let purged = self.purge_tagged(&[target], purge, now);
        self.tell_others(purge, || Forgotten::Target(target));
        purged
    }

    fn purge_tagged(&self, tags: &[Tag], purge: Purge, now: Timestamp) -> usize {
        let batches = (0..self.shards()).flat_map(|at| tags.chunks(BATCH).map(move |tags| (at, tags)));
        let purged = batches.map(|(at, tags)| self.purge_batch(at, tags, purge, now)).sum();
        // The list of what is condemned is part of the index.
        self.fit();
        purged
    }

    /// Purges the objects of a shard that carry one of a few tags. The list of their slots begins again when the index is rebuilt,
    /// because that moves them.
    fn purge_batch(&self, at: usize, tags: &[Tag], purge: Purge, now: Timestamp) -> usize {
        let mut condemned = 0;
        'list: loop {
            let shard = self.shard(at);
            let rebuilt = shard.rebuilt();
            let slots: Vec<(Tag, Vec<u32>)> = tags.iter().map(|&tag| (tag, shard.tags.slots(tag))).collect();
            drop(shard);
            let mut softened = 0;
            for (tag, slots) in
                slots.iter().flat_map(|(tag, slots)| slots.chunks(BATCH).map(|slots| (*tag, slots)))
            {
                let mut shard = self.shard(at);
                if shard.rebuilt() != rebuilt {
                    continue 'list;
                }
                match purge {
                    Purge::Hard => condemned += shard.condemn(slots, tag),
                    Purge::Soft => softened += shard.purge_softly(slots, tag, now),
                }
            }
            return condemned + softened;
        }
    }

    /// Purges everything, marks included. Returns the number of objects.
    pub fn purge_all(&self, purge: Purge, now: Timestamp) -> usize {
        let _walk = self.purges.note_all();
        let purged = (0..self.shards())
            .map(|at| match purge {
                Purge::Hard => {
                    let mut shard = self.shard(at);
                    let purged = shard.len();
                    let cleared = shard.clear();
                    drop(shard);
                    // Objects are freed without holding the lock.
                    drop(cleared);
                    purged
                }
                Purge::Soft => self.purge_shard_softly(at, now),
            })
            .sum();
        self.tell_others(purge, || Forgotten::All);
        purged
    }

    /// Forgets what the store of another process has forgotten.
    pub fn forget(&self, what: &Forgotten, purge: Purge, now: Timestamp) {
        match what {
            Forgotten::Key(key) => _ = self.purge(*key, purge, now),
            Forgotten::Tags(tags) => _ = self.purge_tags(tags, purge, now),
            Forgotten::Target(target) => _ = self.purge_target(*target, purge, now),
            Forgotten::All => _ = self.purge_all(purge, now),
            Forgotten::Ban(text) => match Expression::parse(text) {
                Ok(expression) => self.ban(expression, now),
                // One that this version cannot read may hold for anything.
                Err(_) => _ = self.purge_all(Purge::Hard, now),
            },
        }
    }

    fn purge_shard_softly(&self, at: usize, now: Timestamp) -> usize {
        let mut shard = self.shard(at);
        shard.marks.clear();
        let mut rebuilt = shard.rebuilt();
        drop(shard);
        let (mut purged, mut from) = (0, 0);
        loop {
            let shard = self.shard(at);
            if shard.rebuilt() != rebuilt {
                // The objects have moved.
                rebuilt = shard.rebuilt();
                (purged, from) = (0, 0);
            }
            let to = shard.end().min(from + BATCH as u32);
            for object in
                (from..to).filter_map(|slot| shard.object(slot)).filter(|object| !object.is_condemned())
            {
                object.purge_softly(now);
                purged += 1;
            }
            from = to;
            if from == shard.end() {
                return purged;
            }
        }
    }
}
