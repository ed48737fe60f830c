//! Ghosts: keys that were recently evicted from a queue.

use crate::budget::held;

/// Entries in a bucket: one cache line.
const WAYS: usize = 16;

/// Fingerprints of evicted keys, in buckets of one cache line. The oldest are forgotten first: an entry lasts
/// until as many evictions have followed as the table has entries, or until its bucket needs the place.
pub(crate) struct Ghost {
    /// Fingerprint in the upper half, time of the eviction in the lower.
    buckets: Box<[[u32; WAYS]]>,
    evictions: u32,
}

impl Ghost {
    pub(crate) fn new() -> Ghost {
        Ghost { buckets: Box::new([]), evictions: 0 }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        held(size_of_val(&*self.buckets))
    }

    /// Remembers an eviction. `entries` is the number of evictions worth remembering.
    pub(crate) fn insert(&mut self, hash: u32, entries: usize) {
        let wanted = entries.div_ceil(WAYS).max(1);
        if self.buckets.len() < wanted || self.buckets.len() > wanted * 4 {
            // The old entries are lost; they would soon expire in any case.
            self.buckets = vec![[0; WAYS]; wanted + wanted / 8].into();
        }
        self.evictions = self.evictions.wrapping_add(1);
        let time = self.time();
        let bucket = self.bucket(hash);
        let age = |entry: u32| if entry == 0 { u16::MAX } else { time.wrapping_sub(entry as u16) };
        let entries = &mut self.buckets[bucket];
        let oldest = (0..WAYS).max_by_key(|&at| age(entries[at])).unwrap_or_default();
        entries[oldest] = fingerprint(hash) << 16 | u32::from(time);
    }

    /// The age of a key's eviction, in parts of [`LIFE`], if it is remembered. Removes the entry.
    pub(crate) fn take(&mut self, hash: u32) -> Option<u16> {
        if self.buckets.is_empty() {
            return None;
        }
        let time = self.time();
        let bucket = self.bucket(hash);
        let age = |entry: u32| time.wrapping_sub(entry as u16);
        let entry = self.buckets[bucket]
            .iter_mut()
            .find(|entry| **entry >> 16 == fingerprint(hash) && age(**entry) <= LIFE)?;
        Some(age(std::mem::take(entry)))
    }

    /// Evictions are counted in parts of the table, so that a time fits sixteen bits many times over.
    fn time(&self) -> u16 {
        let entries = self.buckets.len() * WAYS;
        (u64::from(self.evictions) * u64::from(LIFE) / entries.max(1) as u64) as u16
    }

    fn bucket(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.buckets.len() as u64) >> 32) as usize
    }
}

/// The age at which an entry is forgotten: as many evictions as the table has entries.
pub(crate) const LIFE: u16 = 64;

/// Never zero, which marks an empty entry. The bucket is chosen by the upper bits, this by the lower.
fn fingerprint(hash: u32) -> u32 {
    (hash & 0xffff).max(1)
}
