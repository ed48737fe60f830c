//! Marks: keys whose responses are known not to be worth waiting for.

use sandarac_message::Timestamp;

use crate::Key;
use crate::budget::held;

/// A mark of a key whose responses cannot be shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Do not wait for other fetches, but store the response if it turns out to be storable.
    HitForMiss,
    /// Pass requests to the origin and store nothing.
    HitForPass,
}

/// Entries in a bucket.
const WAYS: usize = 4;

/// Marks in buckets. The table grows as needed, up to a share of the store. Marks are hints: if a flood of
/// uncacheable responses fills the table, those that would end first make room.
pub(crate) struct Marks {
    buckets: Box<[[Entry; WAYS]]>,
    most: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    key: Key,
    /// Milliseconds, with the kind in the lowest bit; zero if the entry is free.
    until: u64,
}

const FREE: Entry = Entry { key: Key::ZERO, until: 0 };

impl Entry {
    fn holds(&self, now: Timestamp) -> bool {
        self.until & !1 > now.as_millis()
    }
}

impl Marks {
    /// Marks that take at most `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> Marks {
        let most = (bytes / size_of::<[Entry; WAYS]>()).max(1);
        Marks { buckets: Box::new([]), most: 1 << most.ilog2() }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        held(size_of_val(&*self.buckets))
    }

    /// Whether there may be any marks.
    pub(crate) fn any(&self) -> bool {
        !self.buckets.is_empty()
    }

    pub(crate) fn get(&self, key: Key, now: Timestamp) -> Option<Mark> {
        let entry = self.bucket(key)?.iter().find(|entry| entry.key == key && entry.holds(now))?;
        Some(if entry.until & 1 == 0 { Mark::HitForMiss } else { Mark::HitForPass })
    }

    pub(crate) fn set(&mut self, key: Key, mark: Mark, until: Timestamp, now: Timestamp) {
        self.remove(key);
        let full = |bucket: &[Entry; WAYS]| bucket.iter().all(|entry| entry.holds(now));
        while self.bucket(key).is_none_or(full) && self.buckets.len() < self.most {
            self.grow(now);
        }
        let kind = match mark {
            Mark::HitForMiss => 0,
            Mark::HitForPass => 1,
        };
        if let Some(bucket) = self.bucket_mut(key)
            && let Some(entry) = bucket.iter_mut().min_by_key(|entry| entry.until)
        {
            *entry = Entry { key, until: until.as_millis() & !1 | kind };
        }
    }

    pub(crate) fn remove(&mut self, key: Key) {
        let entries = self.bucket_mut(key).into_iter().flatten();
        entries.filter(|entry| entry.key == key).for_each(|entry| *entry = FREE);
    }

    pub(crate) fn clear(&mut self) {
        self.buckets = Box::new([]);
    }

    fn grow(&mut self, now: Timestamp) {
        let more = (self.buckets.len() * 2).max(4).min(self.most);
        let before = std::mem::replace(&mut self.buckets, vec![[FREE; WAYS]; more].into());
        for entry in before.iter().flatten().filter(|entry| entry.holds(now)) {
            // Splitting a bucket leaves room in both, so there is always a place.
            if let Some(free) =
                self.bucket_mut(entry.key).and_then(|bucket| bucket.iter_mut().find(|e| e.until == 0))
            {
                *free = *entry;
            }
        }
    }

    fn bucket(&self, key: Key) -> Option<&[Entry; WAYS]> {
        self.buckets.get(key.hash() as usize & self.buckets.len().wrapping_sub(1))
    }

    fn bucket_mut(&mut self, key: Key) -> Option<&mut [Entry; WAYS]> {
        let at = key.hash() as usize & self.buckets.len().wrapping_sub(1);
        self.buckets.get_mut(at)
    }
}
