//! The mailbox of the upkeep: requests of serving cores for résumés, and the notice of another configuration.

use sandarac_balance::BackendId;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Mutex, MutexGuard, Notify};

/// The most requests that are queued. One beyond these is dropped, and made again with the next response.
const CAPACITY: usize = 256;

/// Messages to the upkeep.
pub(crate) struct Mailbox {
    resumes: Sender<(usize, BackendId)>,
    received: Mutex<Receiver<(usize, BackendId)>>,
    site: Notify,
    tier: Notify,
}

impl Default for Mailbox {
    fn default() -> Mailbox {
        let (resumes, received) = channel(CAPACITY);
        Mailbox { resumes, received: Mutex::new(received), site: Notify::new(), tier: Notify::new() }
    }
}

impl Mailbox {
    /// Requests the whole résumé of a worker of the pool at `place`.
    pub(crate) fn want_resume(&self, place: usize, worker: BackendId) {
        let _ = self.resumes.try_send((place, worker));
    }

    /// Reports that another configuration is to be worked on.
    pub(crate) fn change_site(&self) {
        self.site.notify_one();
    }

    /// Reports that servers of the shared tier are owed purges.
    pub(crate) fn tier_is_owed(&self) {
        self.tier.notify_one();
    }

    /// Waits until servers of the shared tier are owed purges.
    pub(super) async fn tier_owed(&self) {
        self.tier.notified().await;
    }

    /// Waits for another configuration to work on.
    pub(super) async fn site_changed(&self) {
        self.site.notified().await;
    }

    /// The requests for résumés.
    pub(super) async fn resumes(&self) -> MutexGuard<'_, Receiver<(usize, BackendId)>> {
        self.received.lock().await
    }
}
