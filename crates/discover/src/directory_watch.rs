//! A watch on the changes of a directory.

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// How often to look without a watch, because the system limits their number.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Watches a directory: its entries, their content and itself, but nothing below.
pub(super) struct DirectoryWatch {
    changed: Arc<Notify>,
    watcher: Option<RecommendedWatcher>,
}

/// How long to wait after a change before looking at it.
#[derive(Clone, Copy)]
pub(super) struct Settling {
    /// Until there was no change for this long.
    pub(super) quiet: Duration,
    /// But no longer than this.
    pub(super) at_most: Duration,
}

impl DirectoryWatch {
    /// Watches `directory`, or only `entry` in it if one is given. If it does not exist, the caller polls.
    pub(super) fn of(directory: &Path, entry: Option<&OsStr>) -> DirectoryWatch {
        let changed = Arc::new(Notify::new());
        let notified = changed.clone();
        let entry = entry.map(OsStr::to_owned);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // On any error, such as lost events, look once more.
            if event.is_ok_and(|event| !matters(&event, entry.as_deref())) {
                return;
            }
            notified.notify_one();
        });
        let watching = watcher.and_then(|mut watcher| {
            watcher.watch(directory, RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        DirectoryWatch { changed, watcher: watching.ok() }
    }

    /// Waits for a change and until it has settled, at most about `patience`.
    pub(super) async fn wait(&self, patience: Duration, settling: Settling) {
        let patience = if self.watcher.is_some() { patience } else { patience.min(POLL_INTERVAL) };
        if timeout(patience, self.changed.notified()).await.is_err() {
            return;
        }
        let end = Instant::now() + settling.at_most;
        while Instant::now() < end && timeout(settling.quiet, self.changed.notified()).await.is_ok() {}
    }
}

/// Whether an event concerns `entry`, or any entry if none is given.
fn matters(event: &notify::Event, entry: Option<&OsStr>) -> bool {
    let has_changed = match event.kind {
        // Other accesses are reads, such as our own.
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    };
    let is_about =
        |entry| event.paths.is_empty() || event.paths.iter().any(|path| path.file_name() == Some(entry));
    has_changed && entry.is_none_or(is_about)
}
