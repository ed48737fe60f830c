//! Memory for decoding and encoding, which the sessions of a core use in turn.

use crate::Output;
use crate::lent::{Lend, Spare};
use sandarac_wire::h2::HeadBuf;
use std::cell::RefCell;
use std::thread::LocalKey;

/// Memory for decoding and encoding.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) head: HeadBuf,
    pub(super) output: Output,
    pub(super) block: Vec<u8>,
}

thread_local! {
    static SCRATCH: Spare<Scratch> = const { RefCell::new(Vec::new()) };
}

impl Lend for Scratch {
    /// A core works for one connection at a time.
    const KEPT: usize = 1;

    fn make() -> Scratch {
        Scratch::default()
    }

    fn spare() -> &'static LocalKey<Spare<Scratch>> {
        &SCRATCH
    }

    fn clear(&mut self) {
        self.head.clear();
        self.output.clear();
        self.block.clear();
    }

    fn is_clear(&self) -> bool {
        self.head.is_clear() && self.output.is_empty() && self.block.is_empty()
    }
}
