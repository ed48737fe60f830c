//! Large bodies: split into chunks when they are stored, and put together when they are found.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use sandarac_tier::{Command, Condition, Reply};
use sandarac_wire::entry::{Content, EntryKey, EntryKeys, Item, MAX_TTL, Sealer, Token};

use super::{Links, Place, SharedTier, TierServer};

/// The most bytes of a chunk. memcached stores a large item in pieces of half a megabyte.
const CHUNK: u64 = 512 << 10;

/// Bytes of an item besides its body, and of the server's own, for which there is always room.
pub(super) const BESIDE_BODY: u64 = 128 << 10;

/// Chunks that are sent or asked for at once, so that what waits for a server stays bounded.
const AT_ONCE: usize = 4;

/// Seconds by which chunks outlive their manifest.
const MARGIN: u32 = 10;

/// A chunk as it is stored.
pub(super) struct Chunk {
    key: EntryKey,
    token: Token,
    value: Vec<Bytes>,
}

/// The size of the chunks of a body of `len` bytes; `None` if it fits into one item of `item_limit` bytes.
pub(super) fn chunk_size(len: u64, item_limit: u64) -> Option<u32> {
    let most = item_limit.saturating_sub(BESIDE_BODY).max(item_limit / 2);
    (len > most).then(|| most.min(CHUNK) as u32)
}

/// The chunks of a body under a manifest. `None` if one cannot be made.
pub(super) fn split(
    body: &[Bytes],
    chunk_size: u32,
    keys: &EntryKeys,
    manifest: &EntryKey,
    token: Token,
    sealer: &Sealer,
) -> Option<Vec<Chunk>> {
    let mut chunks = Vec::new();
    let mut rest: Vec<Bytes> = body.iter().rev().filter(|piece| !piece.is_empty()).cloned().collect();
    while !rest.is_empty() {
        let mut value = Vec::new();
        let mut room = chunk_size as usize;
        while room > 0
            && let Some(mut piece) = rest.pop()
        {
            let taken = piece.split_to(piece.len().min(room));
            room -= taken.len();
            value.push(taken);
            if !piece.is_empty() {
                rest.push(piece);
            }
        }
        let number = u32::try_from(chunks.len()).ok()?;
        let key = keys.chunk(manifest, token, number);
        let parts: Vec<&[u8]> = value.iter().map(|piece| &**piece).collect();
        let head = Item { token, content: Content::Chunk { number } }.encode(sealer, &key, &parts).ok()?;
        value.insert(0, head.into());
        chunks.push(Chunk { key, token, value });
    }
    Some(chunks)
}

/// Stores chunks. Returns whether the server took all of them.
pub(super) async fn put(
    links: &Links,
    tier: &SharedTier,
    server: &Arc<TierServer>,
    chunks: Vec<Chunk>,
    ttl: u32,
) -> bool {
    let mut chunks = chunks.into_iter().peekable();
    while chunks.peek().is_some() {
        let set = |Chunk { key, token, value }| Command::Set {
            key,
            condition: Condition::Always,
            ttl: Some((ttl + MARGIN).min(MAX_TTL)),
            flags: token.flags(),
            value,
        };
        let commands = chunks.by_ref().take(AT_ONCE).map(set).collect();
        let replies = links.send(tier, server, commands).await;
        if !replies.iter().all(|reply| matches!(reply, Reply::Stored(_))) {
            return false;
        }
    }
    true
}

/// The body of a manifest, of at most `most` bytes. `None` if a chunk is lost or damaged.
pub(super) async fn get(
    links: &Links,
    place: &Place,
    manifest: &Item,
    key: &EntryKey,
    most: u64,
) -> Option<Bytes> {
    let Content::Manifest { total, .. } = &manifest.content else { return None };
    let (tier, server) = (&place.tier, &place.server);
    let sealer = server.ask(|server, _| server.sealer().clone());
    let mut body = BytesMut::with_capacity(usize::try_from(*total).ok().filter(|_| *total <= most)?);
    let count = manifest.content.chunks();
    let mut next = 0;
    while next < count {
        let numbers = next..count.min(next + AT_ONCE as u32);
        next = numbers.end;
        let keys: Vec<EntryKey> =
            numbers.clone().map(|number| tier.keys.chunk(key, manifest.token, number)).collect();
        let commands = keys.iter().map(|key| Command::Get { key: *key, value: true }).collect();
        let replies = links.send(tier, server, commands).await;
        for ((number, key), reply) in numbers.zip(keys).zip(replies) {
            let Reply::Item(stored) = reply else { return None };
            let (item, part) = Item::decode(&sealer, &key, stored.value).ok()?;
            let is_it = item.token == manifest.token && item.content == Content::Chunk { number };
            if !is_it || manifest.content.chunk_len(number) != u32::try_from(part.len()).ok() {
                return None;
            }
            body.extend_from_slice(&part);
        }
    }
    Some(body.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_have_the_bytes_of_the_body_in_order() {
        let sealer = Sealer::checksum();
        let keys = EntryKeys::new(b"", &sealer);
        let manifest = keys.purge_log();
        let body: Vec<u8> = (0..1000u32).map(|byte| byte as u8).collect();
        for sizes in [&[1000][..], &[1, 999], &[500, 500], &[3, 0, 7, 990]] {
            let mut rest = Bytes::from(body.clone());
            let pieces: Vec<Bytes> = sizes.iter().map(|size| rest.split_to(*size)).collect();
            for chunk_size in [1000, 999, 500, 300, 7] {
                let chunks = split(&pieces, chunk_size, &keys, &manifest, Token(1), &sealer).unwrap();
                assert_eq!(chunks.len(), 1000usize.div_ceil(chunk_size as usize));
                let mut whole = Vec::new();
                for (number, chunk) in chunks.into_iter().enumerate() {
                    let (item, part) = Item::decode(&sealer, &chunk.key, chunk.value.concat()).unwrap();
                    assert_eq!(item.content, Content::Chunk { number: number as u32 });
                    whole.extend_from_slice(&part);
                }
                assert_eq!(whole, body, "{sizes:?} in chunks of {chunk_size}");
            }
        }
    }

    #[test]
    fn what_fits_into_an_item_is_not_split() {
        assert_eq!(chunk_size(900 << 10, 1 << 20), Some(512 << 10));
        assert_eq!(chunk_size(800 << 10, 1 << 20), None);
        assert_eq!(chunk_size(8 << 20, 16 << 20), None);
        assert_eq!(chunk_size(20 << 10, 32 << 10), Some(16 << 10));
    }
}
