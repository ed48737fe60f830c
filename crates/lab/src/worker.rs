//! A simulated worker: a queue, an application that serves one request after the other, a cache, a résumé.

use std::collections::VecDeque;

use crate::cache::Cache;
use crate::resume::WorkerResume;

/// One worker.
pub(crate) struct Worker {
    /// How many times longer than others it takes.
    pub(crate) slowness: f64,
    pub(crate) alive: bool,
    /// The requests given to it that it has not begun, by their places among those in flight.
    pub(crate) queue: VecDeque<u32>,
    /// The request it works on.
    pub(crate) busy: Option<u32>,
    /// When it will be done with that.
    pub(crate) until: u64,
    /// Changes when it dies, so that what it was to finish is not finished.
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
    /// The requests it has begun or will.
    pub(crate) fn in_flight(&self) -> u32 {
        self.queue.len() as u32 + u32::from(self.busy.is_some())
    }

    /// The name of this life.
    pub(crate) fn instance(&self, number: usize) -> String {
        format!("{number}.{}", self.life)
    }
}
