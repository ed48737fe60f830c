//! Bytes on their way, in memory that is borrowed only while there are some.

use crate::buffer::{BUFFER_SIZE, Buffer};
use crate::lent::Lent;

/// Bytes that were put in and not yet consumed. They lie in a borrowed buffer, which [`ByteQueue::park`] gives
/// back while the connection waits.
#[derive(Debug, Default)]
pub(crate) struct ByteQueue {
    buffer: Option<Lent<Buffer>>,
    /// What a parked queue holds, in memory of its own size.
    parked: Vec<u8>,
}

impl ByteQueue {
    /// The bytes that are not consumed.
    #[inline]
    pub(crate) fn data(&self) -> &[u8] {
        match &self.buffer {
            Some(buffer) => buffer.data(),
            None => &self.parked,
        }
    }

    /// [`ByteQueue::data`], to be changed in place.
    pub(crate) fn data_mut(&mut self) -> &mut [u8] {
        match &mut self.buffer {
            Some(buffer) => buffer.data_mut(),
            None => &mut self.parked,
        }
    }

    /// Drops the first `n` bytes of [`ByteQueue::data`].
    #[inline]
    pub(crate) fn consume(&mut self, n: usize) {
        match &mut self.buffer {
            Some(buffer) => buffer.consume(n),
            None if n == self.parked.len() => self.parked = Vec::new(),
            None => drop(self.parked.drain(..n)),
        }
    }

    /// Gives the buffer back, keeping the data in memory of its own size.
    #[inline]
    pub(crate) fn park(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            debug_assert!(self.parked.is_empty());
            self.parked = buffer.data().to_vec();
        }
    }

    /// Gives the buffer back if it holds nothing.
    pub(crate) fn release(&mut self) {
        if self.buffer.as_ref().is_some_and(|buffer| buffer.data().is_empty()) {
            self.buffer = None;
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        if self.buffer.is_some() { BUFFER_SIZE } else { self.parked.capacity() }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.data().is_empty()
    }

    /// Lets `receive` put bytes behind [`ByteQueue::data`] and return their number. `None` if the buffer is full.
    #[inline]
    pub(crate) fn fill<T>(&mut self, receive: impl FnOnce(&mut [u8]) -> (usize, T)) -> Option<T> {
        let parked = &mut self.parked;
        self.buffer.get_or_insert_with(|| Buffer::holding(std::mem::take(parked))).fill(receive)
    }
}

#[cfg(test)]
impl ByteQueue {
    /// Whether a buffer is on loan.
    pub(crate) fn borrows(&self) -> bool {
        self.buffer.is_some()
    }
}
