//! The memory of encoders and decoders.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The part of the store's limit that encoders, decoders, and bodies in the making may take beside it.
const SHARE: usize = 8;

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
        let most = limit / SHARE;
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= most);
        self.0.fetch_update(Relaxed, Relaxed, more).ok()?;
        Some(Taken { memory: self.clone(), bytes })
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
        let first = memory.take(700, 8000).expect("room");
        assert!(memory.take(301, 8000).is_none());
        let second = memory.take(300, 8000).expect("room");
        drop(first);
        assert!(memory.take(700, 8000).is_some());
        drop(second);
        assert!(memory.take(usize::MAX, 8000).is_none());
        assert!(memory.take(1000, 8000).is_some());
    }
}
