//! Reading and writing fields of items. Numbers are little-endian; lengths have two bytes.

use super::EntryError;
use bytes::{Buf, Bytes};

/// The fields of an item that have not been read yet.
pub(super) struct Reader(Bytes);

impl Reader {
    pub(super) fn new(bytes: Bytes) -> Reader {
        Reader(bytes)
    }

    pub(super) fn u8(&mut self) -> Result<u8, EntryError> {
        self.0.try_get_u8().map_err(|_| EntryError::Truncated)
    }

    pub(super) fn u16(&mut self) -> Result<u16, EntryError> {
        self.0.try_get_u16_le().map_err(|_| EntryError::Truncated)
    }

    pub(super) fn u32(&mut self) -> Result<u32, EntryError> {
        self.0.try_get_u32_le().map_err(|_| EntryError::Truncated)
    }

    pub(super) fn u64(&mut self) -> Result<u64, EntryError> {
        self.0.try_get_u64_le().map_err(|_| EntryError::Truncated)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], EntryError> {
        let mut array = [0; N];
        self.0.try_copy_to_slice(&mut array).map_err(|_| EntryError::Truncated)?;
        Ok(array)
    }

    /// The next `len` bytes, not copied.
    pub(super) fn bytes(&mut self, len: usize) -> Result<Bytes, EntryError> {
        if len > self.0.len() { Err(EntryError::Truncated) } else { Ok(self.0.split_to(len)) }
    }

    /// Bytes preceded by their length.
    pub(super) fn text(&mut self) -> Result<Bytes, EntryError> {
        let len = self.u16()?;
        self.bytes(len.into())
    }

    /// Checks that all fields have been read.
    pub(super) fn finish(self) -> Result<(), EntryError> {
        if self.0.is_empty() { Ok(()) } else { Err(EntryError::TrailingBytes) }
    }
}

/// Appends the number of bytes, texts or tags that follow.
pub(super) fn put_len(out: &mut Vec<u8>, len: usize) -> Result<(), EntryError> {
    let len = u16::try_from(len).map_err(|_| EntryError::TooLarge)?;
    out.extend_from_slice(&len.to_le_bytes());
    Ok(())
}

/// Appends bytes preceded by their length.
pub(super) fn put_text(out: &mut Vec<u8>, text: &[u8]) -> Result<(), EntryError> {
    put_len(out, text.len())?;
    out.extend_from_slice(text);
    Ok(())
}
