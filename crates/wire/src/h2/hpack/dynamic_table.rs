//! The dynamic table of a decoder (RFC 7541 §2.3.2 and §4).

use std::collections::VecDeque;

/// The bytes that an entry counts beside its name and value (RFC 7541 §4.1).
const OVERHEAD: usize = 32;

/// The entries, the newest of which has index 1. Nothing is allocated until one is added.
#[derive(Debug, Default)]
pub(super) struct DynamicTable {
    /// Name and value of each entry, oldest first. Bytes before the oldest are free.
    bytes: Vec<u8>,
    /// Oldest first.
    entries: VecDeque<Entry>,
    /// The size of all entries (RFC 7541 §4.1).
    size: usize,
    max_size: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u32,
    name_len: u32,
    value_len: u32,
}

impl Entry {
    fn len(self) -> usize {
        (self.name_len + self.value_len) as usize
    }
}

impl DynamicTable {
    pub(super) fn new(max_size: usize) -> DynamicTable {
        DynamicTable { max_size, ..DynamicTable::default() }
    }

    pub(super) fn max_size(&self) -> usize {
        self.max_size
    }

    /// Sets the size, and evicts what exceeds it.
    pub(super) fn resize(&mut self, max_size: usize) {
        self.max_size = max_size;
        self.evict(max_size);
    }

    /// The name and the value of an entry; the newest is at 0.
    pub(super) fn get(&self, at: usize) -> Option<(&[u8], &[u8])> {
        let entry = self.entries.get(self.entries.len().checked_sub(at + 1)?)?;
        let bytes = &self.bytes[entry.at as usize..][..entry.len()];
        Some(bytes.split_at(entry.name_len as usize))
    }

    /// Adds an entry, after eviction. One that is larger than the table empties it (RFC 7541 §4.4).
    pub(super) fn add(&mut self, name: &[u8], value: &[u8]) {
        let len = name.len() + value.len();
        let Some(room) = self.max_size.checked_sub(len + OVERHEAD) else {
            return self.evict(0);
        };
        self.evict(room);
        if self.bytes.len() + len > self.max_size {
            self.move_to_front();
        }
        let entry =
            Entry { at: self.bytes.len() as u32, name_len: name.len() as u32, value_len: value.len() as u32 };
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.entries.push_back(entry);
        self.size += len + OVERHEAD;
    }

    /// Removes the oldest entries until the others have at most this size.
    fn evict(&mut self, size: usize) {
        while self.size > size {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.size -= oldest.len() + OVERHEAD;
        }
        if self.entries.is_empty() {
            self.bytes.clear();
        }
    }

    /// Frees the bytes before the oldest entry.
    fn move_to_front(&mut self) {
        let by = self.entries.front().map_or(self.bytes.len(), |oldest| oldest.at as usize);
        self.bytes.drain(..by);
        for entry in &mut self.entries {
            entry.at -= by as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_leave_when_the_table_is_full() {
        let mut table = DynamicTable::new(100);
        table.add(b"a", b"1");
        table.add(b"b", b"2");
        assert_eq!(
            (table.get(0), table.get(1)),
            (Some((&b"b"[..], &b"2"[..])), Some((&b"a"[..], &b"1"[..])))
        );
        table.add(b"c", b"3");
        assert_eq!(
            (table.get(0), table.get(1)),
            (Some((&b"c"[..], &b"3"[..])), Some((&b"b"[..], &b"2"[..])))
        );
        assert_eq!(table.get(2), None);
        table.resize(34);
        assert_eq!((table.get(0), table.get(1)), (Some((&b"c"[..], &b"3"[..])), None));
        table.add(b"long", b"value");
        assert_eq!(table.get(0), None);
    }

    #[test]
    fn its_bytes_stay_within_the_size() {
        let mut table = DynamicTable::new(4096);
        for turn in 0..10_000usize {
            table.add(&vec![b'n'; turn % 70], &vec![b'v'; turn * 31 % 900]);
            assert!(table.bytes.len() <= 4096 && table.size <= 4096);
            assert_eq!(table.get(0).unwrap().1.len(), turn * 31 % 900);
        }
        table.resize(0);
        assert_eq!((table.size, table.bytes.len()), (0, 0));
    }
}
