//! The way to a known log: everything delivered, and read recently. Part of every machine, and by itself what
//! a node does for each server before `local_ttl` has passed, and after each purge.

use sandarac_message::Timestamp;

use crate::command::{Command, Reply};
use crate::rules::{Rule, holds};
use crate::server::{LogOperation, Server};

/// The most operations on the log in one run. Another node causes a repetition only by its own success.
const MAX_OPERATIONS: u32 = 12;

/// A run of operations on the log of one server.
#[derive(Debug)]
pub struct LogSync {
    fresh_after: Timestamp,
    again: Again,
    is_for_reading: bool,
    operations: u32,
    in_flight: Option<LogOperation>,
    failed: bool,
}

/// Whether the log is read once more, however new it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    No,
    Required,
    Sent,
}

impl LogSync {
    /// Delivers what is owed, and makes the log known as of `fresh_after`.
    pub fn new(fresh_after: Timestamp) -> LogSync {
        LogSync {
            fresh_after,
            again: Again::No,
            is_for_reading: false,
            operations: 0,
            in_flight: None,
            failed: false,
        }
    }

    /// The same, before entries are read at `now`.
    pub(crate) fn for_reading(now: Timestamp, server: &Server) -> LogSync {
        // A log that was read exactly `local_ttl` ago is too old.
        let fresh_after = now.minus(server.settings().local_ttl).plus(std::time::Duration::from_millis(1));
        LogSync { is_for_reading: true, ..LogSync::new(fresh_after) }
    }

    /// Requires that the log is read once more. A time cannot express that, because the clock may not tick
    /// between two packets.
    pub(crate) fn read_again(&mut self) {
        self.again = Again::Required;
    }

    /// Whether the log was read once more.
    pub(crate) fn was_read_again(&self) -> bool {
        self.again == Again::Sent
    }

    /// The entry is read now, and what was read before does not count.
    pub(crate) fn entry_is_read(&mut self) {
        self.again = Again::No;
    }

    /// The operation that is due. Its reply MUST be passed to [`LogSync::reply`] before the next call. `None`
    /// if nothing is due, or the server does not answer.
    pub fn next(&mut self, now: Timestamp, server: &mut Server) -> Option<Command> {
        if self.failed {
            return None;
        }
        let is_required = self.again == Again::Required;
        let fresh_after =
            if is_required { now.plus(std::time::Duration::from_millis(1)) } else { self.fresh_after };
        let (operation, command) = server.log_step(now, fresh_after)?;
        if self.is_for_reading && operation.is_append() && !holds(Rule::DeliverFirst) {
            return None;
        }
        self.operations += 1;
        if self.operations > MAX_OPERATIONS {
            self.failed = true;
            return None;
        }
        if is_required && operation.is_read() {
            self.again = Again::Sent;
        }
        self.in_flight = Some(operation);
        Some(command)
    }

    /// Whether entries may be read in the packet of the operation that was just returned.
    pub(crate) fn may_read_along(&self, server: &Server) -> bool {
        self.in_flight.as_ref().is_some_and(LogOperation::is_read) && !server.owes_any()
    }

    /// Whether an operation is in flight.
    pub(crate) fn is_waiting(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Takes the reply.
    pub fn reply(&mut self, now: Timestamp, reply: Reply, server: &mut Server) {
        if let Some(operation) = self.in_flight.take() {
            self.failed |= !server.log_reply(operation, reply, now);
        }
    }

    /// Whether the server did not answer, or other nodes were quicker too often.
    pub fn failed(&self) -> bool {
        self.failed
    }
}
