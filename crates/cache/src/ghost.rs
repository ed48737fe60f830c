//! The ghost of S3-FIFO: keys that were recently evicted from the small queue.

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

    /// Remembers an eviction. `objects`, the number of objects in the shard, is also the number of entries
    /// worth keeping.
    pub(crate) fn insert(&mut self, hash: u32, objects: usize) {
        let wanted = objects.div_ceil(WAYS).max(1);
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

    /// Whether the key was evicted recently. Removes the entry.
    pub(crate) fn take(&mut self, hash: u32) -> bool {
        if self.buckets.is_empty() {
            return false;
        }
        let time = self.time();
        let bucket = self.bucket(hash);
        let entry = self.buckets[bucket]
            .iter_mut()
            .find(|entry| **entry >> 16 == fingerprint(hash) && time.wrapping_sub(**entry as u16) <= LIFE);
        entry.is_some_and(|entry| std::mem::take(entry) != 0)
    }

    /// Evictions are counted in steps of a sixteenth of the table, so that a time fits sixteen bits many
    /// times over.
    fn time(&self) -> u16 {
        (self.evictions / self.buckets.len().max(1) as u32) as u16
    }

    fn bucket(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.buckets.len() as u64) >> 32) as usize
    }
}

/// Steps of [`Ghost::time`] for which an entry is remembered: as many evictions as the table has entries.
const LIFE: u16 = WAYS as u16;

/// Never zero, which marks an empty entry. The bucket is chosen by the upper bits, this by the lower.
fn fingerprint(hash: u32) -> u32 {
    (hash & 0xffff).max(1)
}
