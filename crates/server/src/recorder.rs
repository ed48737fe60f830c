//! The recorder of a core, which passes the proxy's records to the access log and to watchers.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use sandarac_proxy::{Record, Recorder};

use crate::logs::{Feed, Outlet};

/// How long a line may wait before it is handed to the writer.
const SEND_INTERVAL: Duration = Duration::from_millis(200);

/// A core's recorder.
pub struct CoreRecorder {
    outlet: Rc<RefCell<Outlet>>,
    feed: Feed,
}

impl CoreRecorder {
    /// A recorder that writes to `outlet`. MUST be made within the core's runtime.
    pub fn new(outlet: Outlet, feed: Feed) -> CoreRecorder {
        let outlet = Rc::new(RefCell::new(outlet));
        let sent = Rc::downgrade(&outlet);
        tokio::task::spawn_local(async move {
            while let Some(outlet) = sent.upgrade() {
                outlet.borrow_mut().send();
                drop(outlet);
                tokio::time::sleep(SEND_INTERVAL).await;
            }
        });
        CoreRecorder { outlet, feed }
    }
}

impl Recorder for CoreRecorder {
    fn wants(&self) -> bool {
        self.outlet.borrow_mut().is_open() || self.feed.is_watched()
    }

    fn record(&self, record: &Record<'_>) {
        self.outlet.borrow_mut().push(record);
        self.feed.publish(record);
    }
}
