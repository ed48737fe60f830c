//! The memory that streams hold, on all connections.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The memory that streams hold for slow clients and slow exchanges, on all connections.
#[derive(Debug)]
pub struct HeldByStreams {
    bytes: AtomicUsize,
    /// Connections whose streams hold some of it.
    connections: AtomicUsize,
    /// Bytes that all may hold before they have to let go of some.
    allowed: AtomicUsize,
}

impl Default for HeldByStreams {
    fn default() -> HeldByStreams {
        HeldByStreams {
            bytes: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            allowed: AtomicUsize::new(usize::MAX),
        }
    }
}

impl HeldByStreams {
    /// All bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Sets how many bytes all may hold before they have to let go of some.
    pub fn allow(&self, bytes: usize) {
        self.allowed.store(bytes, Relaxed);
    }

    /// Whether a connection whose streams hold `bytes` has to let go of them: all hold too much, and it holds no less
    /// than others do on average. So clients that take most of the memory do not have those cut off that take little.
    pub(super) fn presses(&self, bytes: usize) -> bool {
        let all = self.bytes();
        all > self.allowed.load(Relaxed) && bytes > 0 && bytes >= all / self.connections.load(Relaxed).max(1)
    }

    /// Counts that the streams of a connection hold `after` bytes, and no longer `before`.
    pub(super) fn count(&self, before: usize, after: usize) {
        if before == after {
            return;
        }
        // Wraps if it is less.
        self.bytes.fetch_add(after.wrapping_sub(before), Relaxed);
        let connections = usize::from(after > 0).wrapping_sub(usize::from(before > 0));
        if connections != 0 {
            self.connections.fetch_add(connections, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_hold_less_than_others_are_left_alone() {
        let held = HeldByStreams::default();
        held.count(0, 1000);
        held.count(0, 5000);
        held.count(0, 100);
        assert!(!held.presses(5000), "so much is allowed");
        held.allow(500);
        assert_eq!([5000, 1000, 100, 0].map(|bytes| held.presses(bytes)), [true, false, false, false]);
        held.count(5000, 0);
        assert_eq!([1000, 100].map(|bytes| held.presses(bytes)), [true, false]);
        held.count(1000, 0);
        assert!(!held.presses(100) && held.bytes() == 100, "what is left is allowed");
        held.count(100, 0);
        assert!(!held.presses(0) && held.bytes() == 0);
    }
}
