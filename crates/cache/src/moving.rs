//! Objects that move to another store: that of a new process, or of the next one by way of a file.
//!
//! A moved object is a record: its key and what eviction knew of it, then an item in the
//! [format of the shared tier](sandarac_wire::entry), whose checksum covers both.
//!
//! ```text
//! "Sobj" │ bytes of the rest (4) │ their complement (4) │ key (16) │ standing (8) │ item
//! ```
//!
//! So a reader who loses its place in damaged records finds the next one.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use sandarac_message::Timestamp;
use sandarac_message::caching::RelativeLifetimes;
use sandarac_wire::entry::{
    Attributes, Coding, Content, EntryError, EntryKey, EntryKeys, Item, LocalKey, LogId, MAX_TTL, Position,
    Sealer, Token,
};

use crate::flight_state::{Begun, LandedFlight};
use crate::new_object::NewObject;
use crate::queue::Queue;
use crate::standing::Standing;
use crate::stats::Removal;
use crate::store::Store;
use crate::{Key, Object, Tag};

/// Bytes of a record up to its rest.
pub const RECORD_START: usize = 12;

const MAGIC: [u8; 4] = *b"Sobj";

/// Bytes of key and standing.
const BEFORE: usize = 24;

/// Objects that are taken out while a shard's lock is held once.
const BATCH: usize = 64;

/// Objects that are larger than this part of the store stay where they are, because a record is in memory as
/// a whole beside the object.
const LARGEST: usize = 16;

/// How far the objects of a store have been [taken out](Store::take_out).
#[derive(Default)]
pub struct TakenOut {
    /// The queues that are done, the most valuable first, and of the next one the shards that are done.
    queues: usize,
    shards: usize,
}

/// An object that has left its store for another one.
pub struct Moved {
    object: Arc<Object>,
    tags: Vec<Tag>,
    standing: Standing,
}

/// The queues, the most valuable objects first.
const ORDER: [Queue; 3] = [Queue::Main, Queue::Small, Queue::Arrivals];

impl Store {
    /// Takes out some objects, those that have proven their worth first. `None` if there are no more. What is
    /// still arriving stays, and so does what was purged or banned.
    pub fn take_out(&self, so_far: &mut TakenOut) -> Option<Vec<Moved>> {
        loop {
            let queue = *ORDER.get(so_far.queues)?;
            if so_far.shards == self.shards() {
                *so_far = TakenOut { queues: so_far.queues + 1, shards: 0 };
                continue;
            }
            let mut shard = self.shard(so_far.shards);
            let slots = shard.oldest(queue, BATCH, |object| object.body().is_whole());
            let take = |slot| {
                let tags = shard.tags.of(shard.object(slot)?.tags.load(Relaxed)).collect();
                let object = shard.remove(slot, Removal::Moved)?;
                let standing = Standing {
                    is_proven: queue == Queue::Main,
                    frequency: object.frequency.load(Relaxed),
                    hits: object.hits(),
                };
                Some(Moved { object, tags, standing })
            };
            let mut moved: Vec<Moved> = slots.into_iter().filter_map(take).collect();
            drop(shard);
            if moved.is_empty() {
                so_far.shards += 1;
                continue;
            }
            moved.retain(|moved| !moved.object.is_condemned() && !self.bans.meet(&moved.object));
            return Some(moved);
        }
    }

    /// The most bytes of a record.
    pub fn largest_record(&self) -> usize {
        self.settings().limit / LARGEST
    }

    /// Puts in an object from another store whose record was written `lain` ago. Purges and bans since `begun`
    /// apply to it; and what is known here already about the same requests is newer. Returns whether it
    /// entered.
    pub fn put_in(self: &Arc<Store>, arrived: Arrived, lain: Duration, begun: Begun, now: Timestamp) -> bool {
        let Arrived { key, standing, attributes, body, memory, transaction } = arrived;
        let lifetimes = attributes.lifetimes.at(now, lain);
        if lifetimes.dead(now) {
            return false;
        }
        let tags: Vec<Tag> = attributes.tags.iter().map(|&bits| Tag::from_bits(bits)).collect();
        let new = NewObject {
            head: attributes.head,
            lifetimes,
            vary: attributes.vary,
            host: &attributes.host,
            path: &attributes.path,
            tags: &tags,
            range: None,
            len: Some(body.len() as u64),
            limit: None,
            resumable: false,
            copy: None,
            transaction,
        };
        let landing = LandedFlight { key, begun, flying: None, standing: Some(standing) };
        let object = self.admit_shared(landing, new, (body, memory));
        self.holds(&object)
    }
}

/// The format of records.
pub struct Records {
    keys: EntryKeys,
    sealer: Sealer,
}

impl Default for Records {
    fn default() -> Records {
        let sealer = Sealer::checksum();
        Records { keys: EntryKeys::new(b"moved", &sealer), sealer }
    }
}

/// An object of another store, as its record says.
#[derive(Debug)]
pub struct Arrived {
    key: Key,
    standing: Standing,
    attributes: Attributes,
    body: Bytes,
    /// Bytes of the record, of which the body is a part.
    memory: usize,
    transaction: u64,
}

impl Records {
    /// The record of an object in pieces, written at `now`. `None` if the format does not take it: a part of a
    /// representation, a body that was joined from parts or has trailers, or one of more than `most` bytes.
    pub fn record(&self, moved: &Moved, most: usize, now: Timestamp) -> Option<Vec<Bytes>> {
        let Moved { object, tags, standing } = moved;
        let len = object.body().len()?;
        if object.range().is_some()
            || object.is_joined()
            || object.trailers().is_some()
            || usize::try_from(len).is_ok_and(|len| len > most)
        {
            return None;
        }
        let pieces: Option<Vec<Bytes>> = object.body().segments().map(|piece| piece.to_bytes()).collect();
        let pieces = pieces?;
        let attributes = Attributes {
            // There is no purge log that it could have a position in, and no server that forgets it.
            position: Position { log: LogId([0; 16]), offset: 0 },
            ttl: MAX_TTL,
            lifetimes: RelativeLifetimes::new(&object.lifetimes(), now),
            coding: Coding::Plain,
            tags: tags.iter().map(|tag| tag.bits()).collect(),
            host: Bytes::copy_from_slice(object.host()),
            path: Bytes::copy_from_slice(object.path()),
            vary: object.vary().clone(),
            head: object.head().clone(),
        };
        let item = Item { token: Token(object.transaction()), content: Content::Representation(attributes) };
        let (key, standing) = (object.key(), standing.to_bytes());
        let body: Vec<&[u8]> = pieces.iter().map(|piece| &**piece).collect();
        let head = item.encode(&self.sealer, &self.seal_key(key, standing), &body).ok()?;
        let rest = u32::try_from((BEFORE + head.len()) as u64 + len).ok()?;
        let mut record = Vec::with_capacity(RECORD_START + BEFORE + head.len());
        record.extend_from_slice(&Records::start(rest));
        record.extend_from_slice(&key.to_bytes());
        record.extend_from_slice(&standing);
        record.extend_from_slice(&head);
        Some(std::iter::once(Bytes::from(record)).chain(pieces).collect())
    }

    /// The start of a record with so many bytes after it. One of none ends a list of records.
    pub fn start(rest: u32) -> [u8; RECORD_START] {
        let mut start = [0; RECORD_START];
        start[..4].copy_from_slice(&MAGIC);
        start[4..8].copy_from_slice(&rest.to_le_bytes());
        start[8..].copy_from_slice(&(!rest).to_le_bytes());
        start
    }

    /// The bytes that follow the start of a record. `None` if it is no such start.
    pub fn rest(start: [u8; RECORD_START]) -> Option<u32> {
        let rest = u32::from_le_bytes([start[4], start[5], start[6], start[7]]);
        (start == Records::start(rest)).then_some(rest)
    }

    /// Reads a record without its start.
    pub fn read(&self, record: Bytes) -> Result<Arrived, EntryError> {
        let Some((key, rest)) = record.split_first_chunk() else { return Err(EntryError::Truncated) };
        let Some(standing) = rest.first_chunk() else { return Err(EntryError::Truncated) };
        let (key, standing) = (Key::from_bytes(*key), *standing);
        let seal_key = self.seal_key(key, standing);
        let (item, body) = Item::decode(&self.sealer, &seal_key, record.slice(BEFORE..))?;
        let Content::Representation(attributes) = item.content else {
            return Err(EntryError::UnexpectedKind);
        };
        if attributes.coding != Coding::Plain {
            return Err(EntryError::Coding);
        }
        let standing = Standing::of(standing);
        Ok(Arrived { key, standing, attributes, body, memory: record.len(), transaction: item.token.0 })
    }

    /// The key that the checksum covers: with it, all that is before the item.
    fn seal_key(&self, key: Key, standing: [u8; 8]) -> EntryKey {
        let mut rules = [0; 16];
        rules[..8].copy_from_slice(&standing);
        self.keys.entry(&LocalKey { key: key.to_bytes(), rules })
    }
}
