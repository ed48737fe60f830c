//! One stream of a connection.

use super::incoming::Incoming;
use super::outgoing::Outgoing;
use crate::{Moment, RateGauge};
use sandarac_wire::h2::Priority;
use std::io;

/// A stream whose exchange, or whose response, has not ended.
#[derive(Default)]
pub(super) struct Stream {
    pub(super) priority: Priority,
    pub(super) outgoing: Outgoing,
    /// Bytes of the queue that belong to nothing else, such as the store.
    pub(super) copied: usize,
    /// Bytes of the response that wait with the backend's connection for room.
    pub(super) waiting: usize,
    pub(super) is_scheduled: bool,
    /// Whether only the window of this stream holds back what it has to send.
    pub(super) is_stalled: bool,
    /// The read by a thread of what it sends next from a file.
    pub(super) reading: Option<Reading>,
    /// Bytes of the body that were written.
    pub(super) sent: u64,
    /// Measures the client while the stream is stalled.
    pub(super) rate: RateGauge,
    /// Its request, for its exchange. None once that has ended, or if there was none.
    pub(super) request: Option<Box<Incoming>>,
    /// Why it was given up.
    pub(super) gone: Option<io::ErrorKind>,
}

/// A read by a thread.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub(super) since: Moment,
    /// The memory for what it reads, which is among the stream's copied bytes.
    pub(super) bytes: usize,
}

impl Stream {
    /// Whether bytes in memory of the process wait for the client, as those of files do not.
    pub(super) fn holds_memory(&self) -> bool {
        self.waiting > 0 || self.outgoing.holds_memory()
    }
}
