//! Memory of an arriving body that its writer reads into without a lock.

use std::ops::Range;

use crate::buffer::Buffer;
use crate::growth::FullTail;

/// The memory for the next bytes of a body that is stored.
pub(crate) enum NextMemory<'a> {
    Loan(Loan<'a>),
    /// There is none until the body has grown.
    Full(FullTail),
}

/// The owner of a tail.
pub(crate) trait Lender {
    /// Takes the memory of its tail back, with `read` more bytes in it.
    fn give_back(&self, buffer: Buffer, read: usize);
}

/// The right to fill the free part of a tail. It is given back when it is dropped, even if reading panics. Its length is its own,
/// because the body may be evicted, and stream, while it lasts.
pub(crate) struct Loan<'a> {
    lender: &'a dyn Lender,
    buffer: Buffer,
    /// The part of the buffer to fill.
    free: Range<usize>,
    read: usize,
}

impl<'a> Loan<'a> {
    /// `buffer` MUST have been taken from the tail of `lender`, and `free` MUST NOT be empty.
    pub(crate) fn new(lender: &'a dyn Lender, mut buffer: Buffer, free: Range<usize>) -> Loan<'a> {
        buffer.extend(free.end);
        debug_assert!(!free.is_empty() && free.end <= buffer.bytes().len(), "a loan has room");
        Loan { lender, buffer, free, read: 0 }
    }

    /// The memory to fill from its start, never empty.
    pub(crate) fn memory(&mut self) -> &mut [u8] {
        &mut self.buffer.bytes_mut()[self.free.clone()]
    }

    /// Gives it back with `read` bytes at its start, or as many as there is room for.
    pub(crate) fn end(mut self, read: usize) -> usize {
        self.read = read.min(self.free.len());
        self.read
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        self.lender.give_back(std::mem::take(&mut self.buffer), self.read);
    }
}
