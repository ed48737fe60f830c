//! The tail of an arriving body: the segment that is being filled.

use crate::buffer::Buffer;

/// The segment that is being filled.
#[derive(Default)]
pub(crate) struct Tail {
    /// Its place in the body.
    pub(crate) at: u64,
    pub(crate) memory: TailMemory,
    /// Bytes of the memory that are filled; the rest is to be read into.
    pub(crate) filled: usize,
    pub(crate) capacity: usize,
}

/// The memory of the tail.
pub(crate) enum TailMemory {
    Here(Buffer),
    /// The writer has it: to read into it, or to make a whole body of it.
    Lent,
}

impl Default for TailMemory {
    fn default() -> TailMemory {
        TailMemory::Here(Buffer::default())
    }
}

impl Tail {
    /// Adds as many of `bytes` as there is room for, and returns how many.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> usize {
        let TailMemory::Here(buffer) = &mut self.memory else { unreachable!("its one writer appends now") };
        let added = bytes.len().min(self.capacity - self.filled);
        buffer.put(self.filled, &bytes[..added]);
        self.filled += added;
        added
    }

    /// Makes room for `capacity` bytes in total.
    pub(crate) fn grow(&mut self, capacity: usize) {
        let TailMemory::Here(buffer) = &mut self.memory else { unreachable!("its one writer grows it now") };
        buffer.reserve(capacity);
        self.capacity = capacity;
    }

    /// Takes the memory out of it, for the writer.
    pub(crate) fn take(&mut self) -> Buffer {
        match std::mem::replace(&mut self.memory, TailMemory::Lent) {
            TailMemory::Here(buffer) => buffer,
            TailMemory::Lent => unreachable!("its one writer has given it back"),
        }
    }

    /// Puts the memory back, with `read` more bytes in it.
    pub(crate) fn put_back(&mut self, buffer: Buffer, read: usize) {
        debug_assert!(matches!(self.memory, TailMemory::Lent), "only lent memory comes back");
        debug_assert!(read <= self.capacity - self.filled, "no more is read than was lent");
        self.memory = TailMemory::Here(buffer);
        self.filled += read;
    }
}
