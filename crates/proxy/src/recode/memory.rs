//! The memory of encoders and decoders.

use sandarac_net::{Account, Held, Holder, Lease};
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
    holder: Holder,
}

/// A part of it, in use while this lives.
#[derive(Debug)]
pub(crate) struct Taken {
    memory: CodingMemory,
    lease: Lease,
}

impl CodingMemory {
    pub(crate) fn of_encoders(account: &Arc<Account>) -> CodingMemory {
        CodingMemory { used: Arc::default(), least: 0, holder: account.process() }
    }

    /// The same, but there is room for one however small the store is: what cannot be inflated is of no use.
    pub(crate) fn of_decoders(account: &Arc<Account>) -> CodingMemory {
        CodingMemory { used: Arc::default(), least: LEAST_OF_DECODERS, holder: account.process() }
    }

    /// Takes `bytes` if they are within the share of `limit`, that of the store.
    pub(crate) fn take(&self, bytes: usize, limit: usize) -> Option<Taken> {
        let mut taken = Taken { memory: self.clone(), lease: self.holder.nothing(Held::Coders) };
        taken.add(bytes, limit).then_some(taken)
    }
}

impl Taken {
    /// Takes more. False if that is beyond the share of `limit`.
    pub(crate) fn add(&mut self, bytes: usize, limit: usize) -> bool {
        let most = (limit / SHARE).max(self.memory.least);
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= most);
        if self.memory.used.fetch_update(Relaxed, Relaxed, more).is_err() {
            return false;
        }
        let is_added = self.lease.grow(bytes);
        if !is_added && self.memory.least > 0 {
            // Nobody could read what is not inflated.
            self.lease.set(self.lease.bytes() + bytes);
            return true;
        }
        if !is_added {
            self.memory.used.fetch_sub(bytes, Relaxed);
        }
        is_added
    }

    /// The bytes taken.
    pub(crate) fn bytes(&self) -> usize {
        self.lease.bytes()
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.lease.bytes(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lender::Lender;
    use sandarac_cache::{Settings, Store};
    use sandarac_coding::Decoder;
    use sandarac_message::codings::Coding;

    /// The account of a process with a cache of so many bytes.
    fn account(limit: usize) -> Arc<Account> {
        Account::new(Lender(Arc::new(Store::new(Settings::new(limit)))))
    }

    #[test]
    fn a_share_is_taken_and_given_back() {
        let limit = 400 << 20;
        let account = account(limit);
        let memory = CodingMemory::of_encoders(&account);
        let first = memory.take(70 << 20, limit).expect("room");
        assert!(memory.take((30 << 20) + 1, limit).is_none());
        let mut second = memory.take(30 << 20, limit).expect("room");
        drop(first);
        assert!(memory.take(70 << 20, limit).is_some());
        assert!(second.add(70 << 20, limit) && !second.add(1, limit));
        assert_eq!([second.bytes(), account.of(Held::Coders)], [100 << 20; 2]);
        drop(second);
        assert_eq!(account.bytes(), 0);
        assert!(memory.take(usize::MAX, limit).is_none());
        assert!(memory.take(100 << 20, limit).is_some());
    }

    #[test]
    fn where_memory_is_scarce_there_is_room_for_one_decoder_of_any_coding() {
        let memory = CodingMemory::of_decoders(&account(1 << 20));
        for coding in [Coding::Zstd, Coding::Brotli, Coding::Gzip] {
            assert!(memory.take(Decoder::memory(coding), 1 << 20).is_some(), "{coding:?}");
        }
    }
}
