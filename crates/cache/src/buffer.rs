//! The memory of a segment that is being filled.

use crate::memory_file::{MemoryFiles, SLOT, Slot};
use std::sync::Arc;

/// A body of so many bytes or more has its segments in memory files. Below that, two system calls for head and
/// body cost what the copy of the body saves (docs/decisions/0011).
pub(crate) const LARGE: u64 = 256 << 10;

/// The memory of a segment that is being filled.
pub(crate) enum Buffer {
    Heap(Vec<u8>),
    Slot(Slot),
}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer::Heap(Vec::new())
    }
}

impl Buffer {
    /// Memory for `capacity` bytes of a large body, at most [`SLOT`]: of the heap if there is no other.
    pub(crate) fn large(files: &Arc<MemoryFiles>, capacity: usize) -> Buffer {
        debug_assert!(capacity <= SLOT);
        files.take(capacity).map_or_else(Buffer::default, Buffer::Slot)
    }

    /// Makes room for `capacity` bytes in total.
    pub(crate) fn reserve(&mut self, capacity: usize) {
        match self {
            Buffer::Heap(bytes) => bytes.reserve_exact(capacity.saturating_sub(bytes.len())),
            Buffer::Slot(slot) => debug_assert!(slot.bytes().len() >= capacity),
        }
    }

    /// Writes `bytes` at `at`, for which there MUST be room. What follows is undefined.
    pub(crate) fn put(&mut self, at: usize, bytes: &[u8]) {
        match self {
            Buffer::Heap(buffer) => {
                buffer.truncate(at);
                buffer.extend_from_slice(bytes);
            }
            Buffer::Slot(slot) => slot.bytes_mut()[at..][..bytes.len()].copy_from_slice(bytes),
        }
    }

    /// Extends it by zeros to `capacity` bytes, to be read into.
    pub(crate) fn extend(&mut self, capacity: usize) {
        if let Buffer::Heap(buffer) = self {
            buffer.resize(capacity, 0);
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Buffer::Heap(buffer) => buffer,
            Buffer::Slot(slot) => slot.bytes(),
        }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Buffer::Heap(buffer) => buffer,
            Buffer::Slot(slot) => slot.bytes_mut(),
        }
    }

    /// Drops the bytes from `len` on, which nobody has read.
    pub(crate) fn truncate(&mut self, len: usize) {
        match self {
            Buffer::Heap(buffer) => buffer.truncate(len),
            Buffer::Slot(slot) => slot.truncate(len),
        }
    }
}
