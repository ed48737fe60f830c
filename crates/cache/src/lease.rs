//! Memory outside of objects that counts toward the limit.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::budget::held;
use crate::store::Store;

/// Bytes that are charged to the store while this lives, for memory that others hold: bodies that wait for slow clients. They
/// are bytes of no object, so they cause no memory pressure.
pub struct Lease {
    store: Arc<Store>,
    bytes: usize,
}

impl Store {
    /// Charges `bytes`, and evicts objects to make room for them, though none of proven worth if others take much memory: these
    /// may be held by readers, so that everything would be evicted in vain. `None` if there is no room.
    pub fn lease(self: &Arc<Store>, bytes: usize) -> Option<Lease> {
        if !self.reserve_arriving(bytes, usize::MAX) {
            return None;
        }
        self.leased.fetch_add(bytes as isize, Relaxed);
        Some(Lease { store: self.clone(), bytes })
    }

    /// Bytes that an allocation of `size` bytes takes from the system.
    pub fn allocation(size: usize) -> usize {
        held(size)
    }
}

impl Lease {
    /// Bytes charged.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Parts `bytes` from it.
    ///
    /// # Panics
    /// If it has less.
    pub fn split(&mut self, bytes: usize) -> Lease {
        self.bytes = self.bytes.checked_sub(bytes).expect("a lease is split within its bytes");
        Lease { store: self.store.clone(), bytes }
    }

    /// Adds another of the same store to it.
    pub fn join(&mut self, mut other: Lease) {
        debug_assert!(Arc::ptr_eq(&self.store, &other.store), "a lease is joined with one of its store");
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.store.leased.fetch_sub(self.bytes as isize, Relaxed);
        self.store.release(self.bytes);
    }
}
