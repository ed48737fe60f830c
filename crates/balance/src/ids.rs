//! Backends by number, whatever pool of a succession is asked.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::hash::mix;

/// A backend of one pool, and the same backend of the pools that take its place on reloads. It means nothing to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BackendId(pub(crate) u32);

/// Hashes numbers of our own making; for keys that others choose, they are seeded hashes already.
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

/// Where in its pool each backend is.
pub(crate) struct Places(ByNumber<u32, u32>);

impl Places {
    pub(crate) fn new(ids: &[BackendId]) -> Places {
        Places(ids.iter().map(|id| id.0).zip(0..).collect())
    }

    pub(crate) fn of(&self, id: BackendId) -> Option<usize> {
        self.0.get(&id.0).map(|&at| at as usize)
    }
}
