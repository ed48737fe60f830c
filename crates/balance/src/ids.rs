//! Backends by number, stable over the pools of a succession.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::hash::mix;

/// A backend of one pool, and the same backend in the pools that succeed it. It has no meaning for other
/// pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BackendId(pub(crate) u32);

/// Hashes numbers that this crate makes. Keys that outsiders choose are seeded hashes already.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = mix(self.0 ^ u64::from(byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }
}

/// A map from numbers.
pub(crate) type ByNumber<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// The position of each backend in its pool: a table at least twice as large as the pool, in which an id is
/// in the slot of its hash, or in the next free one. A lookup mostly takes one probe; every choice looks up
/// each skilled worker.
pub(crate) struct Places(Box<[Option<(BackendId, u32)>]>);

impl Places {
    pub(crate) fn new(ids: &[BackendId]) -> Places {
        let mut places = Places(vec![None; (2 * ids.len()).next_power_of_two()].into());
        for (&id, at) in ids.iter().zip(0..) {
            let free = places.find(id, |slot| slot.is_none());
            places.0[free] = Some((id, at));
        }
        places
    }

    pub(crate) fn of(&self, id: BackendId) -> Option<usize> {
        let found = self.find(id, |slot| slot.is_none_or(|(other, _)| other == id));
        self.0[found].map(|(_, at)| at as usize)
    }

    /// The first slot that `wanted` accepts, starting at that of `id`.
    fn find(&self, id: BackendId, wanted: impl Fn(Option<(BackendId, u32)>) -> bool) -> usize {
        // 2³² divided by the golden ratio: consecutive ids are far apart (Knuth, TAOCP 6.4).
        const GOLDEN: u32 = 0x9e37_79b9;
        let mask = self.0.len() - 1;
        let hash = u64::from(id.0.wrapping_mul(GOLDEN));
        let first = (hash >> (32 - self.0.len().trailing_zeros())) as usize;
        (first..).map(|slot| slot & mask).find(|&slot| wanted(self.0[slot])).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_backend_is_found_and_no_other(ids in proptest::collection::hash_set(0..40_u32, 0..30), far in 0..u32::MAX - 40) {
            let ids: Vec<BackendId> = ids.into_iter().map(|id| BackendId(id + far)).collect();
            let places = Places::new(&ids);
            for id in (0..40).map(|id| BackendId(id + far)) {
                prop_assert_eq!(places.of(id), ids.iter().position(|&other| other == id));
            }
        }
    }
}
