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
pub(crate) struct InProgress(Mutex<HashMap<Recoding, Entry>>);

/// A recoding that is being made.
struct Entry {
    /// Keeps the address in the key from becoming that of another object.
    _object: Arc<Object>,
    cell: Arc<OnceCell<Made>>,
    /// How many exchanges wait for it. The last one removes it.
    waiters: usize,
}

/// The place where the result of one of them appears.
pub(super) struct Awaited<'a> {
    all: &'a InProgress,
    key: Recoding,
    pub(super) cell: Arc<OnceCell<Made>>,
}

impl InProgress {
    /// The place for a recoding of this very object.
    pub(super) fn of(&self, object: &Arc<Object>, coding: Option<Coding>) -> Awaited<'_> {
        let key = (Arc::as_ptr(object) as usize, coding);
        let mut all = self.0.lock();
        let entry = all.entry(key).or_insert_with(|| Entry {
            _object: object.clone(),
            cell: Arc::default(),
            waiters: 0,
        });
        entry.waiters += 1;
        Awaited { all: self, key, cell: entry.cell.clone() }
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        let Some(entry) = all.get_mut(&self.key) else { return };
        entry.waiters -= 1;
        let ended = if entry.waiters == 0 { all.remove(&self.key) } else { None };
        drop(all);
        // The object may be freed now, which takes other locks.
        drop(ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_cache::{Key, NewObject, Settings, Store};
    use sandarac_message::caching::Lifetimes;
    use sandarac_message::vary::VaryKey;
    use sandarac_message::{FieldsBuf, StoredHead, Timestamp};
    use std::time::Duration;

    /// Regression: two exchanges on two cores that ended at once took each other for one that still waits, because each still had its
    /// reference to the cell. Neither removed the entry, and its result was sent for the next object at the same address.
    #[test]
    fn the_last_exchange_removes_the_entry_while_another_still_has_the_cell() {
        let store = Arc::new(Store::new(Settings::new(1 << 20)));
        let object = store.open(Key::of(b"http", b"a.example", b"/")).store_complete(
            NewObject {
                head: StoredHead::new(200, b"OK", &FieldsBuf::new()).unwrap(),
                lifetimes: Lifetimes::fixed(
                    Timestamp::from_secs(0),
                    Duration::ZERO,
                    Duration::ZERO,
                    Duration::ZERO,
                ),
                vary: VaryKey::default(),
                host: b"a.example",
                path: b"/",
                tags: &[],
                range: None,
                len: None,
                limit: None,
                resumable: false,
                copy: None,
                transaction: 1,
            },
            &[b"body"],
            None,
        );
        let all = InProgress::default();
        let (one, other) = (all.of(&object, Some(Coding::Gzip)), all.of(&object, Some(Coding::Gzip)));
        let not_dropped_yet = one.cell.clone();
        drop(one);
        assert_eq!(all.0.lock().len(), 1, "the other still waits");
        drop(other);
        assert!(all.0.lock().is_empty());
        drop(not_dropped_yet);
    }
}
