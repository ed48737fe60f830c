//! The memory of encoders and decoders.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The part of the store's limit that encoders, decoders, and bodies in the making may take beside it.
const SHARE: usize = 4;

/// What decoders may take in any case: one of any coding fits.
const LEAST_OF_DECODERS: usize = 18 << 20;

/// The memory of all encoders, or of all decoders, of all cores.
#[derive(Clone, Debug)]
pub(crate) struct CodingMemory {
    used: Arc<AtomicUsize>,
    least: usize,
}

/// A part of it, in use while this lives.
#[derive(Debug)]
pub(crate) struct Taken {
    memory: CodingMemory,
    bytes: usize,
}

impl CodingMemory {
    pub(crate) fn of_encoders() -> CodingMemory {
        CodingMemory { used: Arc::default(), least: 0 }
    }

    /// The same, but there is room for one however small the store is: what cannot be inflated is of no use.
    pub(crate) fn of_decoders() -> CodingMemory {
        CodingMemory { used: Arc::default(), least: LEAST_OF_DECODERS }
    }

    /// Takes `bytes` if they are within the share of `limit`, that of the store.
    pub(crate) fn take(&self, bytes: usize, limit: usize) -> Option<Taken> {
        let mut taken = Taken { memory: self.clone(), bytes: 0 };
        taken.add(bytes, limit).then_some(taken)
    }
}

impl Taken {
    /// Takes more. False if that is beyond the share of `limit`.
    pub(crate) fn add(&mut self, bytes: usize, limit: usize) -> bool {
        let most = (limit / SHARE).max(self.memory.least);
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= most);
        let added = self.memory.used.fetch_update(Relaxed, Relaxed, more).is_ok();
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
        self.memory.used.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_coding::Decoder;
    use sandarac_message::codings::Coding;

    #[test]
    fn a_share_is_taken_and_given_back() {
        let (memory, limit) = (CodingMemory::of_encoders(), 400 << 20);
        let first = memory.take(70 << 20, limit).expect("room");
        assert!(memory.take((30 << 20) + 1, limit).is_none());
        let mut second = memory.take(30 << 20, limit).expect("room");
        drop(first);
        assert!(memory.take(70 << 20, limit).is_some());
        assert!(second.add(70 << 20, limit) && !second.add(1, limit));
        assert_eq!(second.bytes(), 100 << 20);
        drop(second);
        assert!(memory.take(usize::MAX, limit).is_none());
        assert!(memory.take(100 << 20, limit).is_some());
    }

    #[test]
    fn where_memory_is_scarce_there_is_room_for_one_decoder_of_any_coding() {
        let memory = CodingMemory::of_decoders();
        for coding in [Coding::Zstd, Coding::Brotli, Coding::Gzip] {
            assert!(memory.take(Decoder::memory(coding), 1 << 20).is_some(), "{coding:?}");
        }
    }
}
