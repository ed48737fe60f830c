//! The record of when a backend was last heard of.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::load::DecayedMean;

/// When a backend was last heard of. Times are in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct LastHeard {
    /// The millisecond after it last began an answer; 0 where it never did.
    pub(crate) heard_at: AtomicU64,
    /// Whether it has passed a check, ever.
    pub(crate) passed_check: AtomicBool,
    /// How long its answers take, in milliseconds.
    pub(crate) took: DecayedMean,
    /// When the requests began that were given up unanswered, since it was last heard of.
    given_up: Mutex<Vec<u64>>,
}

impl LastHeard {
    pub(crate) fn given_up(&self) -> MutexGuard<'_, Vec<u64>> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
