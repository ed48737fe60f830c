//! A simulated worker: a queue, an application that serves one request at a time, a cache, a résumé.

use std::collections::VecDeque;

use crate::cache::Cache;
use crate::resume::WorkerResume;

/// One worker.
pub(crate) struct Worker {
    /// How many times slower than others it is.
    pub(crate) slowness: f64,
    pub(crate) alive: bool,
    /// The requests given to it that it has not begun, by their positions among those in flight.
    pub(crate) queue: VecDeque<u32>,
    /// The request it works on.
    pub(crate) busy: Option<u32>,
    /// When it will finish that.
    pub(crate) until: u64,
    /// Changes when it dies, so that its unfinished request is not finished.
    pub(crate) life: u32,
    pub(crate) cache: Cache,
    pub(crate) resume: WorkerResume,
    /// Requests served in the present window and in the present phase.
    pub(crate) served_window: u64,
    pub(crate) served_phase: u64,
    /// Microseconds worked in the present phase.
    pub(crate) worked: u64,
}

impl Worker {
    /// The requests that it has begun or will begin.
    pub(crate) fn in_flight(&self) -> u32 {
        self.queue.len() as u32 + u32::from(self.busy.is_some())
    }

    /// The name of this life.
    pub(crate) fn instance(&self, number: usize) -> String {
        format!("{number}.{}", self.life)
    }
}
