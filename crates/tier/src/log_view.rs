//! The state of a server's purge log, as a node last read it.

use sandarac_message::Timestamp;
use sandarac_wire::entry::{Effect, LogHeader, LogId, Position, PurgeLog, Record, Token};

use crate::purge_index::{PurgeIndex, Subject};
use crate::reason::Refusal;

/// The state of a log that was read.
#[derive(Debug)]
pub(crate) struct LogView {
    pub(crate) id: LogId,
    pub(crate) token: Token,
    pub(crate) cas: u64,
    /// Bytes of the value on the server.
    pub(crate) size: u64,
    /// The offset of the first record that is there.
    pub(crate) base: u64,
    /// The offset after the last record.
    pub(crate) end: u64,
    /// The offset from which on this node knows all records, those included that were dropped since.
    pub(crate) floor: u64,
    pub(crate) index: PurgeIndex,
    /// Whether something in it is sealed by the second secret.
    pub(crate) is_sealed_old: bool,
    /// When the last read, or the last write that this node knows the outcome of, was sent.
    pub(crate) read_at: Timestamp,
    /// When its reply came.
    pub(crate) received: Timestamp,
}

impl LogView {
    /// A log with this header, and what is known of it at its end.
    pub(crate) fn new(header: &LogHeader, end: u64) -> LogView {
        LogView {
            id: header.id,
            token: header.token,
            cas: 0,
            size: 0,
            base: header.base,
            end,
            floor: header.base,
            index: PurgeIndex::default(),
            is_sealed_old: false,
            read_at: Timestamp::default(),
            received: Timestamp::default(),
        }
    }

    /// The end of the log.
    pub(crate) fn position(&self) -> Position {
        Position { log: self.id, offset: self.end }
    }

    /// Adds a record of `len` bytes at the end.
    pub(crate) fn push(&mut self, record: Record, len: u64) {
        self.index.push(self.end, record);
        self.end += len;
        self.size += len;
    }

    /// Takes over a log that was read whole or from [`LogView::end`] on.
    pub(crate) fn advance(&mut self, log: &PurgeLog) {
        let header = log.header();
        self.token = header.token;
        self.end = log.end().offset;
        self.is_sealed_old |= !log.is_sealed_anew();
        self.rebase(header.base);
    }

    /// Notes that the records before `base` have been dropped.
    pub(crate) fn rebase(&mut self, base: u64) {
        if base > self.base {
            self.base = base;
            self.index.drop_before(base);
        }
    }

    /// The effect of the purges since a position, or why it cannot be known. `from_floor` is for copies in
    /// RAM, to which all records from the floor on have been applied.
    pub(crate) fn effect(
        &self,
        position: &Position,
        from_floor: bool,
        subject: &Subject<'_>,
    ) -> Result<Option<Effect>, Refusal> {
        let oldest = if from_floor { self.floor } else { self.base };
        if position.log != self.id {
            Err(Refusal::OtherLog)
        } else if position.offset < oldest {
            Err(Refusal::BeforeLog)
        } else if position.offset > self.end {
            Err(Refusal::BeyondLog)
        } else {
            Ok(self.index.effect(position.offset, subject))
        }
    }
}
