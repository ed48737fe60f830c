//! Flow-control windows (RFC 9113 §5.2 and §6.9).

use super::super::fault::Fault;
use super::super::settings::MAX_WINDOW;

/// Bytes that this side may send. A lower initial window can make it negative (RFC 9113 §6.9.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct SendWindow(i64);

impl SendWindow {
    pub(super) fn new(size: u32) -> SendWindow {
        SendWindow(size.into())
    }

    /// Bytes that may be sent now.
    pub(super) fn room(self) -> u32 {
        self.0.max(0) as u32
    }

    pub(super) fn take(&mut self, bytes: u32) {
        debug_assert!(bytes <= self.room());
        self.0 -= i64::from(bytes);
    }

    /// Opens the window, or lowers it when a setting changed.
    pub(super) fn change(&mut self, by: i64) -> Result<(), Fault> {
        self.0 += by;
        if self.0 > MAX_WINDOW.into() { Err(Fault::WindowOverflow) } else { Ok(()) }
    }
}

/// Bytes that the peer may send, and those that the caller released and the peer does not know of.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveWindow {
    /// The whole window.
    size: i64,
    open: i64,
    released: u32,
}

impl ReceiveWindow {
    pub(super) fn new(size: u32) -> ReceiveWindow {
        ReceiveWindow { size: size.into(), open: size.into(), released: 0 }
    }

    pub(super) fn take(&mut self, bytes: u32) -> Result<(), Fault> {
        self.open -= i64::from(bytes);
        if self.open < 0 { Err(Fault::WindowExceeded) } else { Ok(()) }
    }

    /// Releases bytes, and returns the increment that the peer has to be sent, if it is worth a frame: half
    /// of the whole window.
    pub(super) fn release(&mut self, bytes: u32) -> Option<u32> {
        self.released = self.released.saturating_add(bytes);
        if i64::from(self.released) < (self.size / 2).max(1) {
            return None;
        }
        let increment = std::mem::take(&mut self.released);
        self.open += i64::from(increment);
        Some(increment)
    }

    /// The whole window has another size, and the peer knows.
    pub(super) fn change(&mut self, by: i64) {
        self.size += by;
        self.open += by;
    }
}
