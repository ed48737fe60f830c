//! The last sign of life of a backend.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::load::DecayedMean;

/// The last sign of life of a backend. Times are in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct LastHeard {
    /// The millisecond after it last began a response; 0 if it never did.
    pub(crate) heard_at: AtomicU64,
    /// Whether it has passed a check, ever.
    pub(crate) passed_check: AtomicBool,
    /// The duration of its responses, in milliseconds.
    pub(crate) took: DecayedMean,
    /// When the requests were sent that were given up without a response, since its last sign of life.
    given_up: Mutex<Vec<u64>>,
}

impl LastHeard {
    pub(crate) fn given_up(&self) -> MutexGuard<'_, Vec<u64>> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
