//! A clock that the test sets forward.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use sandarac_message::Timestamp;

/// The time since the epoch in milliseconds. It stands still but for [`FakeClock::pass`].
#[derive(Clone)]
pub(crate) struct FakeClock(Arc<AtomicU64>);

impl FakeClock {
    /// A clock that shows today's noon, so that no test crosses a day by itself.
    pub(crate) fn new() -> FakeClock {
        let day = Timestamp::from(SystemTime::now()).as_secs() / 86_400;
        FakeClock(Arc::new(AtomicU64::new((day * 86_400 + 43_200) * 1000)))
    }

    /// A clock that stands at `time`.
    pub(crate) fn at(time: Timestamp) -> FakeClock {
        FakeClock(Arc::new(AtomicU64::new(time.as_millis())))
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_millis()).expect("not that long"), Ordering::SeqCst);
    }
}
