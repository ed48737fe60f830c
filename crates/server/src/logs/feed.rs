//! Records for live watchers. Without watchers, publishing costs one load.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use bytes::Bytes;
use sandarac_proxy::Record;
use tokio::sync::mpsc;

use super::{Filter, Format};

/// One JSON line of a record, with its line feed.
pub type Line = Bytes;

/// The most lines that wait for one watcher, and their bytes; more are skipped and counted. Clients choose how long a line is.
const MAX_WAITING_LINES: usize = 4096;
const MAX_WAITING_BYTES: usize = 512 << 10;

/// The most watchers at a time: each adds work to every exchange, and holds one of the admin interface's connections,
/// which other callers need too.
const MAX_WATCHERS: usize = 16;

/// The most read-only watchers: the other places are for operators.
const MAX_READERS: usize = 12;

/// A watcher's other permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// Full access.
    Operator,
    /// Read-only access.
    Reader,
}

/// Delivers records to all watchers. Clones share their watchers.
#[derive(Clone, Default)]
pub struct Feed(Arc<Shared>);

#[derive(Default)]
struct Shared {
    watching: AtomicUsize,
    watchers: Mutex<Vec<Watcher>>,
    next: AtomicU64,
}

struct Watcher {
    number: u64,
    viewer: Viewer,
    lines: mpsc::Sender<Line>,
    waiting: Arc<AtomicUsize>,
    skipped: Arc<AtomicU64>,
    /// The most lines in a second; more are skipped before they are formatted.
    limit: u64,
    /// Records that do not match are not sent to this watcher, and not counted as skipped.
    filter: Filter,
    second: u64,
    in_second: u64,
}

impl Watcher {
    fn wants(&mut self, second: u64) -> bool {
        if second > self.second {
            (self.second, self.in_second) = (second, 0);
        }
        self.in_second += 1;
        self.in_second <= self.limit
    }

    /// Sends it a line, if not too many wait.
    fn send(&self, line: &Line) -> bool {
        let sent = self.waiting.load(Relaxed) + line.len() <= MAX_WAITING_BYTES;
        if sent {
            self.waiting.fetch_add(line.len(), Relaxed);
            if self.lines.try_send(line.clone()).is_err() {
                self.waiting.fetch_sub(line.len(), Relaxed);
                return false;
            }
        }
        sent
    }
}

impl Feed {
    /// A feed without watchers.
    pub fn new() -> Feed {
        Feed::default()
    }

    /// Whether there is a watcher.
    pub fn is_watched(&self) -> bool {
        self.0.watching.load(Relaxed) > 0
    }

    /// Sends `record` to all watchers. It never waits: records that a watcher cannot take are counted as skipped for
    /// it.
    pub fn publish(&self, record: &Record<'_>) {
        if !self.is_watched() {
            return;
        }
        let mut watchers = match self.0.watchers.try_lock() {
            Ok(watchers) => watchers,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another core holds the lock. Its watchers miss this line, and get the number of skipped lines anyway.
            Err(TryLockError::WouldBlock) => return,
        };
        let second = record.time.plus(record.duration).as_secs();
        let mut line: Option<Line> = None;
        for watcher in watchers.iter_mut().filter(|watcher| watcher.filter.takes(record)) {
            let sent = watcher.wants(second) && {
                let line = line.get_or_insert_with(|| {
                    let mut bytes = Vec::with_capacity(512);
                    Format::Json.write(record, &mut bytes);
                    bytes.into()
                });
                watcher.send(line)
            };
            if !sent {
                watcher.skipped.fetch_add(1, Relaxed);
            }
        }
    }

    /// Begins to watch records that match `filter`, at most `limit` a second; `None` if there are too many watchers.
    pub fn subscribe(&self, viewer: Viewer, limit: u64, filter: Filter) -> Option<Subscription> {
        let (lines, receiver) = mpsc::channel(MAX_WAITING_LINES);
        let number = self.0.next.fetch_add(1, Relaxed);
        let skipped = Arc::new(AtomicU64::new(0));
        let waiting = Arc::new(AtomicUsize::new(0));
        let watcher = Watcher {
            number,
            viewer,
            lines,
            waiting: waiting.clone(),
            skipped: skipped.clone(),
            limit,
            filter,
            second: 0,
            in_second: 0,
        };
        let mut watchers = self.watchers();
        let readers = watchers.iter().filter(|watcher| watcher.viewer == Viewer::Reader).count();
        if watchers.len() >= MAX_WATCHERS || (viewer == Viewer::Reader && readers >= MAX_READERS) {
            return None;
        }
        watchers.push(watcher);
        self.0.watching.store(watchers.len(), Relaxed);
        drop(watchers);
        Some(Subscription { feed: self.clone(), number, receiver, waiting, skipped })
    }

    fn watchers(&self) -> MutexGuard<'_, Vec<Watcher>> {
        self.0.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watcher's handle. Dropping it ends the watch.
pub struct Subscription {
    feed: Feed,
    number: u64,
    receiver: mpsc::Receiver<Line>,
    waiting: Arc<AtomicUsize>,
    skipped: Arc<AtomicU64>,
}

impl Subscription {
    /// Polls for the next line; ready with `None` when the feed is gone.
    pub fn poll_next(&mut self, context: &mut std::task::Context<'_>) -> std::task::Poll<Option<Line>> {
        let next = self.receiver.poll_recv(context);
        if let std::task::Poll::Ready(Some(line)) = &next {
            self.waiting.fetch_sub(line.len(), Relaxed);
        }
        next
    }

    /// How many records this watcher missed because of its limit or because it was slow.
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Relaxed)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut watchers = self.feed.watchers();
        watchers.retain(|watcher| watcher.number != self.number);
        self.feed.0.watching.store(watchers.len(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    fn next(subscription: &mut Subscription) -> Option<Line> {
        subscription.receiver.try_recv().ok()
    }

    #[test]
    fn each_watcher_gets_its_lines_up_to_its_limit() {
        let feed = Feed::new();
        feed.publish(&example());
        let (mut all, mut few) = (
            feed.subscribe(Viewer::Operator, 100, Filter::default()).unwrap(),
            feed.subscribe(Viewer::Operator, 2, Filter::default()).unwrap(),
        );
        (0..5).for_each(|_| feed.publish(&example()));
        assert_eq!(std::iter::from_fn(|| next(&mut all)).count(), 5);
        assert_eq!(std::iter::from_fn(|| next(&mut few)).count(), 2);
        assert_eq!(few.skipped(), 3);
        let later = Record { time: example().time.plus(std::time::Duration::from_secs(1)), ..example() };
        feed.publish(&later);
        assert!(next(&mut few).unwrap().ends_with(b"}\n"));
    }

    /// Regression: 4096 lines of 28 KB, whose length a client chose, waited for a watcher that did not read.
    #[test]
    fn for_a_watcher_that_does_not_read_a_bounded_number_of_bytes_waits() {
        let feed = Feed::new();
        let mut slow = feed.subscribe(Viewer::Operator, u64::MAX, Filter::default()).unwrap();
        (0..MAX_WAITING_LINES).for_each(|_| feed.publish(&example()));
        let waiting = slow.waiting.load(Relaxed);
        assert!(waiting <= MAX_WAITING_BYTES && slow.skipped() > 0, "{waiting}");
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        while slow.poll_next(&mut context).is_ready() {}
        assert_eq!(slow.waiting.load(Relaxed), 0);
        let skipped = slow.skipped();
        feed.publish(&example());
        assert_eq!(slow.skipped(), skipped);
    }

    #[test]
    fn nothing_is_left_of_a_watcher_that_has_gone() {
        let feed = Feed::new();
        let all: Vec<_> = (0..MAX_WATCHERS)
            .map(|_| feed.subscribe(Viewer::Operator, 1, Filter::default()).unwrap())
            .collect();
        assert!(feed.subscribe(Viewer::Operator, 1, Filter::default()).is_none());
        drop(all);
        assert_eq!(feed.0.watching.load(Relaxed), 0);
        assert!(feed.watchers().is_empty());
    }
}
