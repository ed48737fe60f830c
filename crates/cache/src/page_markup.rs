//! The markup of a stored page with fragments, which is parsed once and kept beside the object.

use std::sync::Arc;

use sandarac_esi::Template;

use crate::Object;
use crate::budget::held;
use crate::shard::Shard;
use crate::store::Store;

/// What a page turned out to be when it was parsed.
#[derive(Debug)]
pub enum PageMarkup {
    /// Text alone: it is sent as it is.
    Plain,
    /// A page with these parts.
    Parts(Template),
    /// A page with more parts than are kept.
    TooMany,
}

impl PageMarkup {
    /// Bytes charged for it.
    pub(crate) fn bytes(&self) -> usize {
        let mut bytes = held(size_of::<PageMarkup>());
        if let PageMarkup::Parts(template) = self {
            template.allocations(|size| bytes += held(size));
        }
        bytes
    }
}

impl Store {
    /// Keeps the markup of an object beside it. Does nothing if it has one, or is not in the index, or if there is no room.
    pub fn keep_markup(&self, object: &Arc<Object>, markup: PageMarkup) {
        let reserved = object.markup_bytes(&markup);
        if !self.reserve(reserved) {
            return;
        }
        let mut shard = self.lock(object.key());
        let taken = shard.slot_of(object).map_or(0, |slot| shard.keep_markup(slot, markup));
        drop(shard);
        self.release(reserved - taken);
    }
}

impl Shard {
    /// Keeps the markup of an object, and returns the bytes that it takes.
    fn keep_markup(&mut self, slot: u32, markup: PageMarkup) -> usize {
        let Some(object) = self.object(slot).cloned() else { return 0 };
        let bytes = object.markup_bytes(&markup);
        if !object.set_markup(markup) {
            return 0;
        }
        self.add_bytes(&object, bytes);
        bytes
    }
}
