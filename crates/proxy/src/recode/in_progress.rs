//! The recodings that are being made: each by one exchange, for which the others wait.

use hashbrown::HashMap;
use parking_lot::Mutex;
use sandarac_cache::Object;
use sandarac_message::codings::Coding;
use sandarac_message::recoding::Uncompressed;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The result: an object, nothing if it would be too long to be kept, or the reason why there is none.
pub(super) type Made = Result<Option<Arc<Object>>, Uncompressed>;

/// The address of an object, and the coding it is put into.
type Recoding = (usize, Option<Coding>);

/// The recodings that are being made.
#[derive(Default)]
pub(crate) struct InProgress(Mutex<HashMap<Recoding, Arc<OnceCell<Made>>>>);

/// The place where the result of one of them appears.
pub(super) struct Awaited<'a> {
    all: &'a InProgress,
    key: Recoding,
    pub(super) cell: Arc<OnceCell<Made>>,
}

impl InProgress {
    /// The place for a recoding of this very object, which the caller keeps alive.
    pub(super) fn of(&self, object: &Arc<Object>, coding: Option<Coding>) -> Awaited<'_> {
        let key = (Arc::as_ptr(object) as usize, coding);
        let cell = self.0.lock().entry(key).or_default().clone();
        Awaited { all: self, key, cell }
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        // Only this one and the map refer to it: nobody else waits.
        if Arc::strong_count(&self.cell) == 2 {
            all.remove(&self.key);
        }
    }
}
