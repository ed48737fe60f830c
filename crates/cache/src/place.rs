//! An object's entry in its shard.

use std::sync::Arc;

use crate::Object;
use crate::slab::{NONE, Slot};

/// An object's entry in its shard.
pub(crate) struct Place {
    pub(crate) object: Option<Arc<Object>>,
    pub(crate) hash: u32,
    /// Neighbours in the queue. A free place uses `next` for the free list.
    pub(crate) prev: u32,
    pub(crate) next: u32,
    /// The next object of the same key, stored before this one.
    pub(crate) variant: u32,
}

impl Default for Place {
    fn default() -> Place {
        Place { object: None, hash: 0, prev: NONE, next: NONE, variant: NONE }
    }
}

impl Slot for Place {
    fn link(&self) -> u32 {
        self.next
    }

    fn set_link(&mut self, next: u32) {
        self.next = next;
    }
}
