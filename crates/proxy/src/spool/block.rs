//! Memory for a part of one body.

use super::space::SpoolMemory;
use bytes::Bytes;
use sandarac_cache::Store;

/// The most bytes of a block.
pub(super) const BLOCK: usize = 64 << 10;

/// Bytes that a new block has room for. A client that sends little at a time holds little.
const LEAST: usize = 8 << 10;

/// The most bytes that are appended at once: no origin delivers more, over any protocol.
pub(crate) const MAX_APPENDED: usize = 256 << 10;

/// Memory that pays for one append, whatever the last block has room for.
pub(super) const FOR_ONE_APPEND: usize = MAX_APPENDED + 4 * LEAST;

/// Memory for a part of one body, charged while it lives. It is used once: made for that body, and freed with it.
pub(super) struct Block {
    bytes: Vec<u8>,
    memory: SpoolMemory,
}

impl Block {
    /// An empty block, for which `reserve` pays.
    pub(super) fn new(reserve: &mut SpoolMemory) -> Block {
        Block { memory: reserve.split(Store::allocation(LEAST)), bytes: Vec::with_capacity(LEAST) }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() == BLOCK
    }

    /// Whether it holds enough to be worth a write.
    pub(super) fn is_begun(&self) -> bool {
        self.bytes.len() >= LEAST
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends as much of `data` as fits, and returns its length. `reserve` pays for growth.
    pub(super) fn append(&mut self, data: &[u8], reserve: &mut SpoolMemory) -> usize {
        let taken = data.len().min(BLOCK - self.bytes.len());
        let (before, wanted) = (self.bytes.capacity(), self.bytes.len() + taken);
        if wanted > before {
            let after = wanted.next_power_of_two();
            self.memory.join(reserve.split(Store::allocation(after) - Store::allocation(before)));
            self.bytes.reserve_exact(after - self.bytes.len());
        }
        self.bytes.extend_from_slice(&data[..taken]);
        taken
    }

    /// The bytes, charged for as long as any of them is held.
    pub(super) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
