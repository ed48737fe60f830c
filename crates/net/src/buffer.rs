//! Read buffers, lent by the core while a connection has bytes to parse or relay.
//!
//! A waiting connection holds none (invariant: an idle connection holds no buffers). So a core needs as many
//! as are in use at one instant, and keeps only a few after a burst.

use crate::lent::{Lend, Lent, Spare};
use std::cell::RefCell;
use std::ops::Range;
use std::thread::LocalKey;

/// Bytes in one buffer: the largest head fits, and a large body moves in few system calls.
pub const BUFFER_SIZE: usize = 64 * 1024;

/// Bytes that were received and are not consumed yet. The rest of the memory may have been used by this
/// connection or another; it can be overwritten but not read.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    memory: Box<[u8]>,
    start: usize,
    end: usize,
}

thread_local! {
    static SPARE: Spare<Buffer> = const { RefCell::new(Vec::new()) };
}

impl Lend for Buffer {
    const KEPT: usize = 32;

    fn make() -> Buffer {
        Buffer { memory: vec![0; BUFFER_SIZE].into_boxed_slice(), ..Buffer::default() }
    }

    fn spare() -> &'static LocalKey<Spare<Buffer>> {
        &SPARE
    }

    fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    fn is_clear(&self) -> bool {
        (self.start, self.end) == (0, 0)
    }
}

impl Buffer {
    /// A borrowed buffer that holds `bytes`, which came out of a buffer.
    #[inline]
    pub(crate) fn holding(bytes: Vec<u8>) -> Lent<Buffer> {
        let mut buffer = Lent::<Buffer>::take();
        buffer.memory[..bytes.len()].copy_from_slice(&bytes);
        buffer.end = bytes.len();
        buffer
    }

    /// Bytes received and not yet consumed.
    pub(crate) fn data(&self) -> &[u8] {
        &self.memory[self.start..self.end]
    }

    /// [`Buffer::data`], to be changed in place.
    pub(crate) fn data_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.end]
    }

    /// Drops the first `n` bytes of [`Buffer::data`].
    ///
    /// # Panics
    /// If there are fewer than `n`.
    pub(crate) fn consume(&mut self, n: usize) {
        let Range { start, end } = self.start + n..self.end;
        assert!(start <= end, "more is consumed than was received");
        (self.start, self.end) = if start == end { (0, 0) } else { (start, end) };
    }

    /// Lets `receive` put bytes behind [`Buffer::data`] and return their number. `None` if the buffer is
    /// full.
    pub(crate) fn fill<T>(&mut self, receive: impl FnOnce(&mut [u8]) -> (usize, T)) -> Option<T> {
        let room = self.memory.len() - self.end;
        if room == 0 && self.start == 0 {
            return None;
        }
        // Moving no more than was consumed costs little, and saves reading in small pieces.
        let is_cheap = self.start >= self.end - self.start;
        if room == 0 || (is_cheap && room < BUFFER_SIZE / 2) {
            self.memory.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let room = &mut self.memory[self.end..];
        let most = room.len();
        let (received, result) = receive(room);
        assert!(received <= most, "more was received than there is room for");
        self.end += received;
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(buffer: &mut Buffer, bytes: &[u8]) -> Option<()> {
        buffer.fill(|room| {
            room[..bytes.len()].copy_from_slice(bytes);
            (bytes.len(), ())
        })
    }

    #[test]
    fn a_buffer_shows_what_was_received_and_not_consumed() {
        let mut buffer = Lent::<Buffer>::take();
        put(&mut buffer, b"one two").unwrap();
        buffer.consume(4);
        assert_eq!(buffer.data(), b"two");
        put(&mut buffer, b" three").unwrap();
        assert_eq!(buffer.data(), b"two three");
        drop(buffer);
        assert_eq!(Lent::<Buffer>::take().data(), b"");
    }

    #[test]
    fn a_full_buffer_makes_room_of_what_was_consumed() {
        let mut buffer = Buffer::make();
        put(&mut buffer, &[b'x'; BUFFER_SIZE]).unwrap();
        assert_eq!(put(&mut buffer, b""), None);
        buffer.consume(BUFFER_SIZE - 1);
        put(&mut buffer, b"yz").unwrap();
        assert_eq!(buffer.data(), b"xyz");
    }

    #[test]
    #[should_panic(expected = "more is consumed")]
    fn no_more_is_consumed_than_was_received() {
        let mut buffer = Buffer::make();
        put(&mut buffer, b"one").unwrap();
        buffer.consume(4);
    }
}
