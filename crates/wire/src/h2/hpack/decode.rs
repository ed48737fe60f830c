//! Decoding of header blocks.

use super::super::fault::Fault;
use super::dynamic_table::DynamicTable;
use super::static_table::ENTRIES;
use super::{huffman, integer};
use std::ops::Range;

/// The decoder of one connection.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable,
    /// The largest size that the peer may choose.
    limit: usize,
    /// Whether the next block has to begin with a size update, because the limit fell below the size.
    update_due: bool,
}

/// The position of a decoded field. It is the last line of the bytes: `name: value CR LF`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldAt {
    /// The name, as received.
    pub name: Range<usize>,
    /// The value, as received.
    pub value: Range<usize>,
}

impl Decoder {
    /// A decoder whose table has at most `table_size` bytes. `table_size` MUST be the
    /// SETTINGS_HEADER_TABLE_SIZE that the peer knows: 4096 before any.
    pub fn new(table_size: u32) -> Decoder {
        let limit = table_size as usize;
        Decoder { table: DynamicTable::new(limit), limit, update_due: false }
    }

    /// Changes the limit of the table; call it when the peer has acknowledged the setting.
    pub fn set_table_size(&mut self, table_size: u32) {
        self.limit = table_size as usize;
        self.update_due = self.table.max_size() > self.limit;
    }

    /// Decodes a whole block. Each field is appended to `out` as a line, and `take` is called with its
    /// position. `take` may change that line and remove it, but MUST leave the bytes before it.
    ///
    /// `take` is called for every field, so that a caller that refuses a message keeps the table right.
    /// `bound` limits the bytes of all lines together; more is [`Fault::HeaderBomb`]. Every fault ends the
    /// connection (RFC 9113 §4.3).
    pub fn decode(
        &mut self,
        block: &[u8],
        out: &mut Vec<u8>,
        bound: usize,
        mut take: impl FnMut(&mut Vec<u8>, FieldAt),
    ) -> Result<(), Fault> {
        let mut rest = self.size_updates(block)?;
        let mut room = bound;
        while let Some(&first) = rest.first() {
            let start = out.len();
            let name_len;
            let mut add = false;
            if first & 0x80 != 0 {
                let (index, len) = integer::read(rest, 7)?;
                rest = &rest[len..];
                let (name, value) = self.entry(index)?;
                room = room.checked_sub(name.len() + value.len() + 4).ok_or(Fault::HeaderBomb)?;
                name_len = name.len();
                out.reserve(name.len() + value.len() + 4);
                out.extend_from_slice(name);
                out.extend_from_slice(b": ");
                out.extend_from_slice(value);
            } else {
                // Anything else is a literal; only those with 01 are added to the table.
                add = first & 0x40 != 0;
                let bits = match first {
                    0x40.. => 6,
                    0x20.. => return Err(Fault::InvalidTableSize),
                    _ => 4,
                };
                let (index, len) = integer::read(rest, bits)?;
                rest = &rest[len..];
                if index == 0 {
                    rest = string(rest, out)?;
                } else {
                    out.extend_from_slice(self.entry(index)?.0);
                }
                name_len = out.len() - start;
                out.extend_from_slice(b": ");
                rest = string(rest, out)?;
                room = room.checked_sub(out.len() - start + 2).ok_or(Fault::HeaderBomb)?;
            }
            let at = FieldAt { name: start..start + name_len, value: start + name_len + 2..out.len() };
            if add {
                self.table.add(&out[at.name.clone()], &out[at.value.clone()]);
            }
            out.extend_from_slice(b"\r\n");
            take(out, at);
            debug_assert!(out.len() >= start);
        }
        Ok(())
    }

    /// Processes the size updates at the beginning of a block: at most two (RFC 7541 §4.2).
    fn size_updates<'a>(&mut self, block: &'a [u8]) -> Result<&'a [u8], Fault> {
        let mut rest = block;
        let mut updates = 0;
        while let Some(0x20..=0x3f) = rest.first() {
            let (size, len) = integer::read(rest, 5)?;
            updates += 1;
            if size > self.limit || updates > 2 {
                return Err(Fault::InvalidTableSize);
            }
            self.table.resize(size);
            self.update_due = false;
            rest = &rest[len..];
        }
        if self.update_due { Err(Fault::InvalidTableSize) } else { Ok(rest) }
    }

    #[inline]
    fn entry(&self, index: usize) -> Result<(&[u8], &[u8]), Fault> {
        let place = index.checked_sub(1).ok_or(Fault::InvalidIndex)?;
        match ENTRIES.get(place) {
            Some((name, value)) => Ok((name.as_bytes(), value.as_bytes())),
            None => self.table.get(place - ENTRIES.len()).ok_or(Fault::InvalidIndex),
        }
    }
}

/// Appends the string at the start of `bytes` to `out` (RFC 7541 §5.2), and returns the bytes after it.
#[inline]
fn string<'a>(bytes: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], Fault> {
    let coded = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let (len, at) = integer::read(bytes, 7)?;
    let (text, rest) = bytes[at..].split_at_checked(len).ok_or(Fault::TruncatedBlock)?;
    if coded {
        huffman::decode(text, out)?;
    } else {
        out.extend_from_slice(text);
    }
    Ok(rest)
}
