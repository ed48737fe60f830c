//! The purge log of a server: a header, and records that nodes append.
//!
//! memcached appends atomically, so a record that is incomplete or does not verify is damage, and the whole
//! log is refused. Nothing in a record depends on its place, because a node appends without knowing it. So a
//! log that was cut between two records is a valid log; a reader knows it by a position beyond its end.

use super::frame::Frame;
use super::purge::Record;
use super::reader::Reader;
use super::{EntryError, EntryKey, Kind, LogId, Position, Sealer, Token};
use bytes::Bytes;

/// The header of a purge log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogHeader {
    /// A random number, new with each header. It changes when old records are dropped.
    pub token: Token,
    /// The log.
    pub id: LogId,
    /// The offset of the first record that is still there.
    pub base: u64,
}

impl LogHeader {
    /// The bytes of the header; records follow. They are as many for every header.
    pub fn encode(&self, sealer: &Sealer, key: &EntryKey) -> Result<Vec<u8>, EntryError> {
        let mut fields = Vec::new();
        Position { log: self.id, offset: self.base }.encode(&mut fields);
        sealer.frame(key, (Kind::PurgeLog, self.token), &fields, &[])
    }
}

/// A purge log as read from a server, its records verified.
#[derive(Clone, Debug)]
pub struct PurgeLog {
    header: LogHeader,
    /// The verified records: the last ones of the log.
    records: Bytes,
    /// Bytes of all records that are in the log.
    len: u64,
    is_sealed_anew: bool,
}

impl PurgeLog {
    /// Reads the log stored under `key`, and verifies its records from the position `from` on, or all of
    /// them. `from` MUST be the end of the log when it was read before. It is refused with
    /// [`EntryError::OtherLog`], [`EntryError::BeforeLog`] or [`EntryError::BeyondLog`] if the log does not
    /// continue there.
    pub fn decode(
        sealer: &Sealer,
        key: &EntryKey,
        bytes: impl Into<Bytes>,
        from: Option<&Position>,
    ) -> Result<PurgeLog, EntryError> {
        let Frame { kind, token, fields, body, rest: mut records, mut is_sealed_anew } =
            sealer.unframe(key, bytes.into())?;
        if kind != Kind::PurgeLog {
            return Err(EntryError::UnexpectedKind);
        }
        let mut reader = Reader::new(fields);
        let Position { log: id, offset: base } = Position::decode(&mut reader)?;
        reader.finish()?;
        if !body.is_empty() {
            return Err(EntryError::TrailingBytes);
        }
        let len = records.len() as u64;
        base.checked_add(len).ok_or(EntryError::TooLarge)?;
        let mut log =
            PurgeLog { header: LogHeader { token, id, base }, records: records.clone(), len, is_sealed_anew };
        if let Some(from) = from {
            log.check(from)?;
            records = records.slice((from.offset - base) as usize..);
            log.records = records.clone();
        }
        while !records.is_empty() {
            is_sealed_anew &= Record::verify(sealer, key, &id, &mut records)?;
        }
        log.is_sealed_anew = is_sealed_anew;
        Ok(log)
    }

    /// Whether the header and the verified records are sealed by the secret that seals now, and not by the
    /// second one.
    pub fn is_sealed_anew(&self) -> bool {
        self.is_sealed_anew
    }

    /// The header.
    pub fn header(&self) -> &LogHeader {
        &self.header
    }

    /// The position after the last record: where a fetch that begins now begins.
    pub fn end(&self) -> Position {
        Position { log: self.header.id, offset: self.header.base + self.len }
    }

    /// Whether every purge since `position` is in this log. Otherwise an entry with this position MUST NOT be
    /// used.
    pub fn check(&self, position: &Position) -> Result<(), EntryError> {
        if position.log != self.header.id {
            Err(EntryError::OtherLog)
        } else if position.offset < self.header.base {
            Err(EntryError::BeforeLog)
        } else if position.offset > self.end().offset {
            Err(EntryError::BeyondLog)
        } else {
            Ok(())
        }
    }

    /// The verified records in their order, each with its offset. A record applies to the entries whose
    /// position has this offset or a lower one.
    pub fn records(&self) -> impl Iterator<Item = (u64, Record)> {
        let mut records = self.records.clone();
        std::iter::from_fn(move || {
            let at = self.end().offset - records.len() as u64;
            Some((at, Record::take(&mut records).ok()?))
        })
    }
}
