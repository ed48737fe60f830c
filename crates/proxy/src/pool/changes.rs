//! Changes of the pools of a site, and the wait for them.

use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Changes of the pools of a site, for the tasks and threads that wait for them.
#[derive(Default)]
pub(crate) struct PoolChanges {
    /// Notified when the backends of a pool change.
    backends: Notify,
    /// Counts the changes that may make a pool ready. Innermost of all locks, because pools report changes
    /// while they hold theirs.
    count: Mutex<u64>,
    counted: Condvar,
}

impl PoolChanges {
    /// Reports that the backends of a pool have changed.
    pub(super) fn backends_changed(&self) {
        self.backends.notify_one();
        self.readiness_changed();
    }

    /// Reports that a pool may have become ready. The change must be visible to other threads already.
    pub(super) fn readiness_changed(&self) {
        *self.count.lock() += 1;
        self.counted.notify_all();
    }

    /// Waits until the backends of a pool change. Only one task may wait.
    pub(crate) async fn backends(&self) {
        self.backends.notified().await;
    }

    /// Blocks the thread until `is_ready`, at most for `patience`.
    pub(crate) fn wait_until(&self, is_ready: impl Fn() -> bool, patience: Duration) {
        let deadline = Instant::now() + patience;
        loop {
            // Read first, so that a change after the check ends the wait at once.
            let seen = *self.count.lock();
            if is_ready() || Instant::now() >= deadline {
                return;
            }
            self.counted.wait_while_until(&mut self.count.lock(), |count| *count == seen, deadline);
        }
    }
}
