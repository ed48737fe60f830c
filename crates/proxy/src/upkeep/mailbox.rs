//! The mailbox of the upkeep: requests of serving cores for résumés, and the notice of another configuration.

use crate::tier::{Inspected, Inspection};
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
    inspections: Sender<InspectionOrder>,
    inspections_received: Mutex<Receiver<InspectionOrder>>,
}

/// An inspection of the shared tier, and where its result goes.
pub(crate) type InspectionOrder = (Inspection, std::sync::mpsc::Sender<Inspected>);

impl Default for Mailbox {
    fn default() -> Mailbox {
        let (resumes, received) = channel(CAPACITY);
        let (inspections, inspections_received) = channel(CAPACITY);
        Mailbox {
            resumes,
            received: Mutex::new(received),
            site: Notify::new(),
            tier: Notify::new(),
            inspections,
            inspections_received: Mutex::new(inspections_received),
        }
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

    /// Orders an inspection of the shared tier. One beyond those that are queued is dropped.
    pub(crate) fn inspect(&self, order: InspectionOrder) {
        let _ = self.inspections.try_send(order);
    }

    /// The next inspection.
    pub(super) async fn inspection(&self) -> Option<InspectionOrder> {
        self.inspections_received.lock().await.recv().await
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
