//! Compaction of stored objects after the limit was lowered, and where others have left gaps.
//!
//! Small allocations share pages, and a page goes back to the system only when nothing in it is in use. The
//! few objects that survive a lower limit are scattered over nearly all pages: of 256 MiB of objects of 1 KB,
//! 143 MiB stayed resident at a limit of 32 MiB. Copies of the survivors fill the gaps of few pages, and the
//! other pages are freed.

use std::sync::Arc;

use crate::Object;
use crate::body::Content;
use crate::store::Store;
use crate::sweep_position::{BATCH, SweepPosition};
use crate::whole_body::{SHARES_PAGES, Whole};

impl Store {
    /// Has the next [sweeps](Store::sweep) compact all objects. Does nothing if they do already.
    pub fn compact_all(&self) {
        self.sweep_position.lock().uncompacted.get_or_insert((0, 0));
    }

    /// Whether objects are being compacted.
    pub fn is_compacting(&self) -> bool {
        self.sweep_position.lock().uncompacted.is_some()
    }

    /// Moves the next `budget` objects, or a few more.
    pub(crate) fn compact(&self, position: &mut SweepPosition, budget: usize) {
        // The originals are freed after the last copy is made: a copy could take the place of an original
        // freed before it.
        let mut originals = Vec::new();
        while let Some((at, from)) = position.uncompacted
            && originals.len() < budget
        {
            let shard = self.shard(at);
            let to = shard.end().min(from.saturating_add(BATCH));
            let objects: Vec<Arc<Object>> =
                (from..to).filter_map(|slot| shard.object(slot)).cloned().collect();
            position.uncompacted = match (to < shard.end(), at + 1 < self.shards()) {
                (true, _) => Some((at, to)),
                (false, true) => Some((at + 1, 0)),
                (false, false) => None,
            };
            drop(shard);
            originals.extend(objects.into_iter().filter_map(|object| self.relocate(&object)));
        }
        drop(originals);
        self.fit();
    }

    /// Replaces an object by a copy, and returns the original. `None` if it is arriving, or has left the store.
    fn relocate(&self, object: &Arc<Object>) -> Option<Arc<Object>> {
        let content = match object.content.whole()? {
            Whole::One(bytes) if bytes.len() <= SHARES_PAGES => Content::Whole(Whole::one(bytes.to_vec())),
            whole => Content::Whole(whole.clone()),
        };
        let parts = object.parts();
        // Charged only until the original is freed, so nothing is evicted for it.
        self.budget.add(parts.base_bytes() + content.own_bytes());
        let copy = Arc::new(parts.build(content, Some(self.budget.clone())));
        let mut shard = self.lock(object.key());
        let slot = shard.slot_of(object).filter(|_| !object.is_condemned())?;
        shard.exchange(slot, copy, None)
    }
}
