//! Read buffers, lent by the worker for as long as a connection has bytes to parse or relay.
//!
//! A connection that waits holds none (invariant: an idle connection holds no buffers), so a worker needs as many as
//! are in use at one instant, and a burst gives back all but a few.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Bytes in one buffer: the largest head fits, and a large body moves in few system calls.
pub const BUFFER_SIZE: usize = 64 * 1024;

/// Buffers a worker keeps for the next use; more than this are freed.
const KEPT: usize = 32;

thread_local! {
    static SPARE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer on loan; dropping it gives it back to the worker.
#[derive(Debug)]
pub struct Buffer(Box<[u8]>);

impl Buffer {
    /// Borrows a buffer. Its content is arbitrary.
    pub fn take() -> Buffer {
        let spare = SPARE.with_borrow_mut(Vec::pop);
        Buffer(spare.unwrap_or_else(|| vec![0; BUFFER_SIZE].into_boxed_slice()))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.0);
        // The thread may be ending; then there is no one to give the buffer back to.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < KEPT {
                spare.push(buffer);
            }
        });
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}
