//! Ghosts: keys that were recently evicted from a queue.

use crate::budget::held;

/// Entries in a bucket: one cache line.
const WAYS: usize = 16;

/// Fingerprints of evicted keys, in buckets of one cache line. The oldest are forgotten first: an entry lasts
/// until as many evictions have followed as the table has entries, or until its bucket needs the place.
pub(crate) struct Ghost {
    /// From the highest bit: a fingerprint, how often the key was requested, the time of the eviction.
    buckets: Box<[[u32; WAYS]]>,
    evictions: u32,
}

/// What a ghost remembers of a key.
pub(crate) struct Remembered {
    /// The time since its eviction, in parts of [`LIFE`].
    pub(crate) age: u16,
    /// The requests for it before, up to [`MOST_REQUESTS`].
    pub(crate) requests: u8,
}

/// Requests for a key that are counted: they have two bits.
pub(crate) const MOST_REQUESTS: u8 = 3;

impl Ghost {
    pub(crate) fn new() -> Ghost {
        Ghost { buckets: Box::new([]), evictions: 0 }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        held(size_of_val(&*self.buckets))
    }

    /// Remembers an eviction, and up to [`MOST_REQUESTS`] `requests` for the key. `entries` is the number of
    /// evictions worth remembering.
    pub(crate) fn insert(&mut self, hash: u32, requests: u8, entries: usize) {
        let wanted = entries.div_ceil(WAYS).max(1);
        if self.buckets.len() < wanted {
            // The old entries are lost; they would soon expire in any case. A table that is too large stays
            // until the shard is shrunk: a sweep that removes most objects must not lose their keys.
            self.buckets = vec![[0; WAYS]; wanted + wanted / 8].into();
        }
        self.evictions = self.evictions.wrapping_add(1);
        let time = self.time();
        let bucket = self.bucket(hash);
        let age = |entry: u32| if entry == 0 { u16::MAX } else { time.wrapping_sub(entry as u16) };
        let entries = &mut self.buckets[bucket];
        let oldest = (0..WAYS).max_by_key(|&at| age(entries[at])).unwrap_or_default();
        let requests = u32::from(requests.min(MOST_REQUESTS));
        entries[oldest] = fingerprint(hash) << 18 | requests << 16 | u32::from(time);
    }

    /// What is remembered of a key. Removes the entry.
    pub(crate) fn take(&mut self, hash: u32) -> Option<Remembered> {
        if self.buckets.is_empty() {
            return None;
        }
        let time = self.time();
        let bucket = self.bucket(hash);
        let age = |entry: u32| time.wrapping_sub(entry as u16);
        let entry = self.buckets[bucket]
            .iter_mut()
            .find(|entry| **entry >> 18 == fingerprint(hash) && age(**entry) <= LIFE)?;
        let entry = std::mem::take(entry);
        Some(Remembered { age: age(entry), requests: (entry >> 16) as u8 & MOST_REQUESTS })
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
    (hash & 0x3fff).max(1)
}
