//! Items and records with any content and a valid checksum, written as `docs/protocols/entry.md` says.

use sandarac_wire::entry::EntryKey;
use xxhash_rust::xxh3::xxh3_128;

/// An item with a checksum.
pub(crate) fn item(key: &EntryKey, kind: u8, fields: &[u8], body: &[u8]) -> Vec<u8> {
    let before = [b'S', b'd', b'r', b'c', 1, kind, 0];
    let lengths = [(fields.len() as u32).to_le_bytes(), (body.len() as u32).to_le_bytes()].concat();
    let after = [&[7; 8], &*lengths, fields, body].concat();
    let seal = xxh3_128(&[b"item", key.as_bytes(), &before, &after].concat());
    [&before[..], &seal.to_le_bytes(), &after].concat()
}

/// A record of the log with the id of 16 bytes `log`, with a checksum.
pub(crate) fn record(key: &EntryKey, log: &[u8], fields: &[u8]) -> Vec<u8> {
    let len = fields.len() as u32 + 17;
    let before = [&len.to_le_bytes()[..], &[0]].concat();
    let seal = xxh3_128(&[b"purg", log, key.as_bytes(), &before, fields].concat());
    [&*before, &seal.to_le_bytes(), fields].concat()
}
