//! The knowledge of a node about one server: its purge log, and the purges that it is owed.
//!
//! [`Server::log_step`] says which operation on the log is due. Any number of machines may carry out its
//! operations at the same time over different connections. A reply that was overtaken by another changes
//! nothing.

mod verdict;

pub use verdict::Verdict;

use bytes::Bytes;
use sandarac_balance::Random;
use sandarac_message::Timestamp;
use sandarac_wire::entry::{
    EntryError, EntryKey, LogHeader, LogId, Position, PurgeLog, Record, RecordId, Sealer, Token,
};

use crate::command::{Command, Condition, Reply, StoredItem};
use crate::deliveries::Deliveries;
use crate::log_view::LogView;
use crate::settings::Settings;

/// The knowledge of a node about one server.
#[derive(Debug)]
pub struct Server {
    settings: Settings,
    sealer: Sealer,
    log_key: EntryKey,
    random: Random,
    view: Option<LogView>,
    need: Need,
    deliveries: Deliveries,
    /// Records that the node's RAM has not been told of.
    unapplied: Vec<Record>,
    /// The fault of the log when it was last read.
    log_fault: Option<EntryError>,
    /// Whether the log may be sealed anew. That happens once for each configuration, because nodes that are to
    /// change their secrets would seal it by the old one again.
    may_reseal: bool,
}

/// An operation that the log needs before it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    /// A read of the whole value.
    ReadValue,
    /// There is none.
    Creation,
    /// It is damaged, and has this CAS value.
    Repair(u64),
}

/// An operation on the log that was begun.
#[derive(Debug)]
pub struct LogOperation {
    sent: Timestamp,
    kind: OperationKind,
}

#[derive(Debug)]
enum OperationKind {
    Read,
    /// Records are appended to the log with this CAS value.
    Append {
        cas: u64,
        records: Vec<Encoded>,
    },
    /// The log is created or replaced.
    Write {
        condition: Condition,
        header: LogHeader,
        /// Bytes of the header in the log.
        header_len: u64,
        records: Vec<Encoded>,
        /// Records for which there is no place. Nothing that they apply to can be used, because it is older
        /// than the base.
        dropped: Vec<Record>,
    },
}

/// A record, and its bytes in the log.
#[derive(Debug)]
struct Encoded {
    record: Record,
    len: u64,
}

impl LogOperation {
    /// Whether it reads, so that entries may be read in the same packet.
    pub fn is_read(&self) -> bool {
        matches!(self.kind, OperationKind::Read)
    }

    /// Whether it appends what the server is owed.
    pub(crate) fn is_append(&self) -> bool {
        matches!(self.kind, OperationKind::Append { .. })
    }
}

impl Server {
    /// A server that nothing is known about. `log_key` is that of purge logs.
    pub fn new(settings: Settings, sealer: Sealer, log_key: EntryKey, seed: u64) -> Server {
        Server {
            settings,
            sealer,
            log_key,
            random: Random::new(seed),
            view: None,
            need: Need::ReadValue,
            deliveries: Deliveries::default(),
            unapplied: Vec::new(),
            log_fault: None,
            may_reseal: true,
        }
    }

    /// Takes over other settings. The log is read again; under another key it is another log, which is owed
    /// everything that this node knows.
    pub fn configure(&mut self, settings: Settings, sealer: Sealer, log_key: EntryKey) {
        if log_key != self.log_key {
            self.view = None;
            self.deliveries.lost();
        }
        (self.settings, self.sealer, self.log_key) = (settings, sealer, log_key);
        (self.need, self.may_reseal) = (Need::ReadValue, true);
        if let Some(view) = &mut self.view {
            // The whole log is read, to see by which secret it is sealed.
            view.is_sealed_old = self.sealer.is_keyed();
        }
    }

    /// The times and bounds.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Seals and verifies items.
    pub fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    /// Notes a purge of this node, which MUST NOT have been applied to its RAM yet: until the server has it, entries that it is
    /// for are refused, and one that was read in between would enter RAM behind it.
    pub fn owe(&mut self, record: Record, now: Timestamp) {
        self.deliveries.owe(record, now, self.settings.max_owed);
    }

    /// Whether the server has not acknowledged this purge.
    pub fn owes(&self, id: &RecordId) -> bool {
        self.deliveries.owes(id)
    }

    /// Whether the server is owed any purge.
    pub fn owes_any(&self) -> bool {
        self.deliveries.owes_any()
    }

    /// The records that were read since the last call, each once, without those of this node. The caller MUST
    /// apply them to RAM and to fetches in flight before it serves anything from this server.
    pub fn take_unapplied(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.unapplied)
    }

    /// The end of the log as far as it is known: the position of a fetch that begins now.
    pub fn position(&self) -> Option<Position> {
        self.view.as_ref().map(LogView::position)
    }

    /// The fault of the log when it was last read. A log of another version or secret is left alone, and the
    /// server is used as if it did not answer; a damaged one is replaced.
    pub fn log_fault(&self) -> Option<EntryError> {
        self.log_fault
    }

    /// When the log was last known to be as it is known; `None` if it was never read.
    pub fn read_at(&self) -> Option<Timestamp> {
        self.view.as_ref().map(|view| view.read_at)
    }

    /// Whether the log was read within `local_ttl`, and nothing is known to have changed since.
    pub fn is_current(&self, now: Timestamp) -> bool {
        self.need == Need::Nothing
            && self.read_at().is_some_and(|read_at| now.since(read_at) < self.settings.local_ttl)
    }

    /// The operation on the log that is due, if the log shall be known as of `fresh_after`, and with
    /// everything delivered. `None` if nothing is due.
    pub fn log_step(&mut self, now: Timestamp, fresh_after: Timestamp) -> Option<(LogOperation, Command)> {
        self.deliveries.expire(now, self.settings.purge_memory);
        let is_old = self.view.as_ref().is_none_or(|view| view.read_at < fresh_after);
        match (self.need, &self.view) {
            (Need::Creation, _) => Some(self.write_new(now, Condition::Absent)),
            (Need::Repair(cas), _) => Some(self.write_new(now, Condition::Cas(cas))),
            (Need::Nothing, Some(view)) if !is_old => {
                if view.is_sealed_old && self.may_reseal {
                    self.may_reseal = false;
                    // As large as it was: only what does not fit is dropped.
                    Some(self.rewrite(now, self.settings.log_bound))
                } else if view.size > self.settings.log_bound as u64 {
                    // Half of the bound, so that the next append does not cause the next replacement.
                    Some(self.rewrite(now, self.settings.log_bound / 2))
                } else if self.deliveries.owes_any() {
                    Some(self.append(now))
                } else {
                    None
                }
            }
            (need, view) => {
                let value = need == Need::ReadValue || view.is_none();
                Some((
                    LogOperation { sent: now, kind: OperationKind::Read },
                    Command::Get { key: self.log_key, value },
                ))
            }
        }
    }

    /// Takes the reply to an operation on the log. Returns false if the server did not answer, or has a log
    /// that is not for this node ([`Server::log_fault`]).
    pub fn log_reply(&mut self, operation: LogOperation, reply: Reply, now: Timestamp) -> bool {
        let LogOperation { sent, kind } = operation;
        match (kind, reply) {
            (_, Reply::Unavailable(_)) => {
                // The operation may have been executed.
                self.need = Need::ReadValue;
                return false;
            }
            (OperationKind::Read, Reply::Item(item)) => return self.read(sent, item, now),
            (OperationKind::Read, _) => {
                if !self.is_overtaken(sent) {
                    (self.need, self.log_fault) = (Need::Creation, None);
                }
            }
            (OperationKind::Append { cas, records }, Reply::Stored(new)) => {
                self.appended(sent, now, (cas, new), records);
            }
            (
                OperationKind::Write { condition, header, header_len, records, dropped },
                Reply::Stored(cas),
            ) => {
                for record in &dropped {
                    self.deliveries.found(record, now);
                }
                self.written(sent, now, condition, (header, header_len, cas), records);
            }
            // Another node was quicker.
            _ => self.need = Need::ReadValue,
        }
        true
    }

    /// Whether a reply to what was sent at this time may be older than what is known.
    fn is_overtaken(&mut self, sent: Timestamp) -> bool {
        let overtaken = self.view.as_ref().is_some_and(|view| sent < view.received);
        if overtaken {
            self.need = Need::ReadValue;
        }
        overtaken
    }

    /// Returns false if the log is not for this node.
    fn read(&mut self, sent: Timestamp, item: StoredItem, now: Timestamp) -> bool {
        if let Some(view) = &mut self.view
            && (view.cas, view.size, view.token.flags()) == (item.cas, item.size, item.flags)
        {
            view.read_at = view.read_at.max(sent);
            view.received = now;
            (self.need, self.log_fault) = (Need::Nothing, None);
            return true;
        }
        if item.value.is_empty() && item.size > 0 {
            self.need = Need::ReadValue;
            return true;
        }
        let end = self.view.as_ref().map(LogView::position);
        let decode = |from| PurgeLog::decode(&self.sealer, &self.log_key, item.value.clone(), from);
        // A log that goes on where this node stopped is verified from there on. Records between may be
        // missing, or it is another log: then it is read whole.
        let (log, goes_on) = match decode(end.as_ref()) {
            Err(EntryError::OtherLog | EntryError::BeforeLog) => (decode(None), false),
            log => (log, true),
        };
        self.log_fault = log.as_ref().err().copied();
        match log {
            Ok(log) => {
                if goes_on || !self.is_overtaken(sent) {
                    self.take_over(sent, now, &item, &log, goes_on);
                }
            }
            Err(error) if is_foreign(error) => {
                self.need = Need::ReadValue;
                return false;
            }
            Err(_) => {
                if !self.is_overtaken(sent) {
                    self.need = Need::Repair(item.cas);
                }
            }
        }
        true
    }

    /// Takes over a log that was read. `goes_on` if it holds the records after those that are known.
    fn take_over(
        &mut self,
        sent: Timestamp,
        now: Timestamp,
        item: &StoredItem,
        log: &PurgeLog,
        goes_on: bool,
    ) {
        let header = *log.header();
        let same_id = self.view.as_ref().is_some_and(|view| view.id == header.id);
        if !same_id {
            self.deliveries.lost();
        }
        let mut view = match self.view.take() {
            Some(view) if goes_on => view,
            _ => LogView::new(&header, log.end().offset),
        };
        for (offset, record) in log.records() {
            if self.deliveries.found(&record, now) {
                self.unapplied.push(record.clone());
            }
            view.index.push(offset, record);
        }
        view.advance(log);
        (view.cas, view.size) = (item.cas, item.size);
        (view.read_at, view.received) = (view.read_at.max(sent), now);
        self.view = Some(view);
        self.need = Need::Nothing;
    }

    /// Encodes records for a log. One that cannot be encoded takes no bytes.
    fn encode(&self, records: Vec<Record>, log: &LogId) -> (Vec<Encoded>, Vec<Vec<u8>>) {
        let encode = |record: Record| {
            let bytes = record.encode(&self.sealer, &self.log_key, log).unwrap_or_default();
            (Encoded { record, len: bytes.len() as u64 }, bytes)
        };
        records.into_iter().map(encode).unzip()
    }

    fn append(&mut self, now: Timestamp) -> (LogOperation, Command) {
        let view = self.view.as_ref().expect("a log is appended to after it was read");
        let (records, encoded) = self.encode(self.deliveries.owed().cloned().collect(), &view.id);
        let (key, cas) = (self.log_key, view.cas);
        let operation = LogOperation { sent: now, kind: OperationKind::Append { cas, records } };
        (operation, Command::Append { key, cas, value: encoded.concat().into() })
    }

    fn appended(&mut self, sent: Timestamp, now: Timestamp, (old, new): (u64, u64), records: Vec<Encoded>) {
        let Some(view) = self.view.as_mut().filter(|view| view.cas == old) else {
            self.need = Need::ReadValue;
            return;
        };
        for Encoded { record, len } in records {
            self.deliveries.found(&record, now);
            view.push(record, len);
        }
        (view.cas, view.read_at, view.received) = (new, view.read_at.max(sent), now);
        self.need = Need::Nothing;
    }

    /// A new log with everything that this node knows.
    fn write_new(&mut self, now: Timestamp, condition: Condition) -> (LogOperation, Command) {
        self.deliveries.lost();
        let id = LogId(std::array::from_fn(|_| self.random.bits() as u8));
        let records = self.deliveries.owed().cloned().collect();
        self.write(now, condition, (id, 0), records, self.settings.log_bound)
    }

    /// The known log, sealed anew, with the owed records and without the oldest ones if it is larger than `bound`.
    fn rewrite(&mut self, now: Timestamp, bound: usize) -> (LogOperation, Command) {
        let view = self.view.as_ref().expect("a log is rewritten after it was read");
        let (id, base, condition) = (view.id, view.base, Condition::Cas(view.cas));
        let records = view.index.records().map(|(_, record)| record).chain(self.deliveries.owed());
        let records = records.cloned().collect();
        self.write(now, condition, (id, base), records, bound)
    }

    /// A log with these records. If they have more than `bound` bytes, those that were made `purge_memory`
    /// before the newest are left out, and then the oldest.
    fn write(
        &mut self,
        now: Timestamp,
        condition: Condition,
        (id, mut base): (LogId, u64),
        records: Vec<Record>,
        bound: usize,
    ) -> (LogOperation, Command) {
        let newest = records.iter().map(|record| record.made).max().unwrap_or_default();
        let oldest = newest.minus(self.settings.purge_memory);
        let (mut records, mut encoded) = self.encode(records, &id);
        let mut size: u64 = records.iter().map(|encoded| encoded.len).sum();
        let bound = bound as u64;
        let is_large = size > bound;
        let mut count = 0;
        while count < records.len() && is_large && (records[count].record.made < oldest || size > bound) {
            base += records[count].len;
            size -= records[count].len;
            count += 1;
        }
        let dropped = records.drain(..count).map(|encoded| encoded.record).collect();
        encoded.drain(..count);
        let header = LogHeader { token: Token(self.random.bits()), id, base };
        let head = header.encode(&self.sealer, &self.log_key).expect("a header has no lists");
        let header_len = head.len() as u64;
        let value = std::iter::once(Bytes::from(head)).chain(encoded.into_iter().map(Bytes::from)).collect();
        let (key, flags) = (self.log_key, header.token.flags());
        let kind = OperationKind::Write { condition, header, header_len, records, dropped };
        (LogOperation { sent: now, kind }, Command::Set { key, condition, ttl: None, flags, value })
    }

    fn written(
        &mut self,
        sent: Timestamp,
        now: Timestamp,
        condition: Condition,
        (header, header_len, cas): (LogHeader, u64, u64),
        records: Vec<Encoded>,
    ) {
        let goes_on = self
            .view
            .as_ref()
            .is_some_and(|view| view.id == header.id && condition == Condition::Cas(view.cas));
        if !goes_on && self.is_overtaken(sent) {
            return;
        }
        let mut view = LogView::new(&header, header.base);
        if goes_on {
            view.floor = self.view.as_ref().map_or(header.base, |view| view.floor);
        }
        view.size = header_len;
        for Encoded { record, len } in records {
            self.deliveries.found(&record, now);
            view.push(record, len);
        }
        (view.cas, view.read_at, view.received) = (cas, sent, now);
        self.view = Some(view);
        self.need = Need::Nothing;
    }
}

/// Whether a log is not damaged but written for other nodes. Nodes that replaced each other's logs would
/// empty the server again and again.
fn is_foreign(error: EntryError) -> bool {
    matches!(
        error,
        EntryError::Version
            | EntryError::Sealed
            | EntryError::Unsealed
            | EntryError::UnknownSecret
            | EntryError::Purge
    )
}
