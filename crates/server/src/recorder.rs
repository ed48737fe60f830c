//! From the proxy's records to the access log and to those who watch.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use sandarac_proxy::{Record, Recorder};

use crate::logs::{Batch, Feed};

/// How long a line may wait for others before it is handed to the writer.
const LINGER: Duration = Duration::from_millis(200);

/// One worker's way to the log and the feed.
pub struct WorkerRecorder {
    batch: Option<Rc<RefCell<Batch>>>,
    feed: Feed,
}

impl WorkerRecorder {
    /// A recorder that writes to `batch`, if there is a log. MUST be made within the worker's runtime.
    pub fn new(batch: Option<Batch>, feed: Feed) -> WorkerRecorder {
        let batch = batch.map(|batch| Rc::new(RefCell::new(batch)));
        if let Some(batch) = &batch {
            let batch = Rc::downgrade(batch);
            tokio::task::spawn_local(async move {
                while let Some(batch) = batch.upgrade() {
                    batch.borrow_mut().send();
                    drop(batch);
                    tokio::time::sleep(LINGER).await;
                }
            });
        }
        WorkerRecorder { batch, feed }
    }
}

impl Recorder for WorkerRecorder {
    fn wants(&self) -> bool {
        self.batch.is_some() || self.feed.is_watched()
    }

    fn record(&self, record: &Record<'_>) {
        if let Some(batch) = &self.batch {
            batch.borrow_mut().push(record);
        }
        self.feed.publish(record);
    }
}
