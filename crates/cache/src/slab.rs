//! Slots with small numbers, in chunks, so that growth moves nothing and costs no more than a chunk.

use crate::budget::held;

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

/// Slots in a chunk.
const CHUNK: usize = 64;

/// A value in a slab. When free, it lends one of its numbers to the list of free slots.
pub(crate) trait Slot: Default {
    fn link(&self) -> u32;
    fn set_link(&mut self, next: u32);
}

pub(crate) struct Slab<T> {
    chunks: Vec<Box<[T]>>,
    free: u32,
    len: usize,
}

impl<T: Slot> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab { chunks: Vec::new(), free: NONE, len: 0 }
    }

    /// Slots in use.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// One past the greatest possible slot.
    pub(crate) fn end(&self) -> u32 {
        (self.chunks.len() * CHUNK) as u32
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.chunks.len() * held(CHUNK * size_of::<T>())
            + held(self.chunks.capacity() * size_of::<Box<[T]>>())
    }

    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if self.free == NONE {
            self.grow();
        }
        let at = self.free;
        let slot = self.get_mut(at);
        let next = slot.link();
        *slot = value;
        self.free = next;
        self.len += 1;
        at
    }

    pub(crate) fn remove(&mut self, at: u32) -> T {
        let next = self.free;
        let slot = self.get_mut(at);
        let value = std::mem::take(slot);
        slot.set_link(next);
        self.free = at;
        self.len -= 1;
        value
    }

    pub(crate) fn get(&self, at: u32) -> &T {
        &self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }

    pub(crate) fn get_mut(&mut self, at: u32) -> &mut T {
        &mut self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }

    fn grow(&mut self) {
        let start = self.end();
        // Grow by an eighth, not by doubling: the list of chunks of a large store is itself large.
        self.chunks.reserve_exact(if self.chunks.len() == self.chunks.capacity() {
            self.chunks.len() / 8 + 4
        } else {
            0
        });
        let mut chunk: Box<[T]> = std::iter::repeat_with(T::default).take(CHUNK).collect();
        for (at, slot) in chunk.iter_mut().enumerate() {
            slot.set_link(if at + 1 < CHUNK { start + at as u32 + 1 } else { self.free });
        }
        self.chunks.push(chunk);
        self.free = start;
    }
}
