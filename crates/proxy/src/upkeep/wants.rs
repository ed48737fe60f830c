//! Requests to the upkeep from cores that serve, and from changes of pools.

use sandarac_balance::BackendId;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Mutex, MutexGuard, Notify};

/// Wishes that wait. What does not fit is wished for again with the next response.
const LENGTH: usize = 256;

/// What is wanted of the upkeep.
pub(crate) struct Wants {
    resumes: Sender<(usize, BackendId)>,
    received: Mutex<Receiver<(usize, BackendId)>>,
    site: Notify,
}

impl Default for Wants {
    fn default() -> Wants {
        let (resumes, received) = channel(LENGTH);
        Wants { resumes, received: Mutex::new(received), site: Notify::new() }
    }
}

impl Wants {
    /// Wants the whole résumé of a worker of the pool at `place`.
    pub(crate) fn push(&self, place: usize, worker: BackendId) {
        let _ = self.resumes.try_send((place, worker));
    }

    /// Another configuration is to be looked after.
    pub(crate) fn change_site(&self) {
        self.site.notify_one();
    }

    /// Waits until another configuration is to be looked after.
    pub(super) async fn site_changed(&self) {
        self.site.notified().await;
    }

    /// The wishes for résumés.
    pub(super) async fn receive(&self) -> MutexGuard<'_, Receiver<(usize, BackendId)>> {
        self.received.lock().await
    }
}
