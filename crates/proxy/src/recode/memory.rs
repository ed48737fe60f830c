//! The memory of encoders and decoders.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The part of the store's limit that encoders, decoders, and bodies in the making may take beside it.
const SHARE: usize = 4;

/// The memory of all encoders and decoders, of all cores.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodingMemory(Arc<AtomicUsize>);

/// A part of it, in use while this lives.
#[derive(Debug)]
pub(crate) struct Taken {
    memory: CodingMemory,
    bytes: usize,
}

impl CodingMemory {
    /// Takes `bytes` if they are within the share of `limit`, that of the store.
    pub(crate) fn take(&self, bytes: usize, limit: usize) -> Option<Taken> {
        let mut taken = Taken { memory: self.clone(), bytes: 0 };
        taken.add(bytes, limit).then_some(taken)
    }
}

impl Taken {
    /// Takes more. False if that is beyond the share of `limit`.
    pub(crate) fn add(&mut self, bytes: usize, limit: usize) -> bool {
        let most = limit / SHARE;
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= most);
        let added = self.memory.0.fetch_update(Relaxed, Relaxed, more).is_ok();
        self.bytes += if added { bytes } else { 0 };
        added
    }

    /// The bytes taken.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_taken_and_given_back() {
        let memory = CodingMemory::default();
        let first = memory.take(700, 4000).expect("room");
        assert!(memory.take(301, 4000).is_none());
        let mut second = memory.take(300, 4000).expect("room");
        drop(first);
        assert!(memory.take(700, 4000).is_some());
        assert!(second.add(700, 4000) && !second.add(1, 4000));
        assert_eq!(second.bytes(), 1000);
        drop(second);
        assert!(memory.take(usize::MAX, 4000).is_none());
        assert!(memory.take(1000, 4000).is_some());
    }
}
