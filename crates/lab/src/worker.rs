//! A simulated worker: a queue, an application that serves one request or some at a time, a cache, a résumé.

use std::collections::VecDeque;

use crate::cache::Cache;
use crate::resume::WorkerResume;

/// One worker.
pub(crate) struct Worker {
    /// How many times slower than others it is.
    pub(crate) slowness: f64,
    /// The requests that it works on at a time.
    pub(crate) concurrency: u32,
    pub(crate) alive: bool,
    /// The requests given to it that it has not begun, by their positions among those in flight.
    pub(crate) queue: VecDeque<u32>,
    /// The requests it works on, likewise, and when it will finish each.
    pub(crate) busy: Vec<(u32, u64)>,
    /// Changes when it dies, so that its unfinished requests are not finished.
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
        (self.queue.len() + self.busy.len()) as u32
    }

    /// The name of this life.
    pub(crate) fn instance(&self, number: usize) -> String {
        format!("{number}.{}", self.life)
    }
}
