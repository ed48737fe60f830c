//! The access log in force, which a reload replaces or removes while cores write.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use sandarac_proxy::Record;

use super::Format;
use super::writer::{Batch, Counts, Destination, Log};

/// Destination and format. `None` is no access log at all.
pub type Target = Option<(Destination, Format)>;

/// The access log in force. Clones share it.
#[derive(Clone)]
pub struct AccessLog(Arc<Shared>);

struct Shared {
    /// Incremented with every replacement: cores check only this.
    turn: AtomicU64,
    current: Mutex<Opened>,
    counts: Arc<Counts>,
}

/// An access log that was opened, but is not in force yet.
pub struct Opened {
    target: Target,
    log: Option<Log>,
}

impl Opened {
    fn open(target: Target, counts: &Arc<Counts>) -> io::Result<Opened> {
        let open =
            |(destination, format): (Destination, Format)| Log::open(destination, format, Arc::clone(counts));
        let log = target.clone().map(open).transpose()?;
        Ok(Opened { target, log })
    }
}

impl AccessLog {
    /// Opens `target`. A file that cannot be opened is an error that names it.
    pub fn open(target: Target) -> io::Result<AccessLog> {
        let counts = Arc::default();
        let current = Mutex::new(Opened::open(target, &counts)?);
        Ok(AccessLog(Arc::new(Shared { turn: AtomicU64::new(0), current, counts })))
    }

    /// Opens `target` if it differs from the one in force; `None` if it is the same, and can still be opened.
    pub fn prepare(&self, target: Target) -> io::Result<Option<Opened>> {
        if self.0.current.lock().target == target {
            return target.map_or(Ok(None), |(destination, _)| destination.check().map(|()| None));
        }
        Opened::open(target, &self.0.counts).map(Some)
    }

    /// Puts `opened` in force. Earlier records are still written to the old one.
    pub fn exchange(&self, opened: Opened) {
        let before = std::mem::replace(&mut *self.0.current.lock(), opened);
        // A core that sees the new number finds the new log behind the lock.
        self.0.turn.fetch_add(1, Ordering::Release);
        drop(before);
    }

    /// Reopens the file, after a rotation.
    pub fn reopen(&self) {
        if let Some(log) = &self.0.current.lock().log {
            log.reopen();
        }
    }

    /// Waits for sent batches, even if others hold the log; with the timeout of shutdown.
    pub fn finish(&self) {
        if let Some(log) = &self.0.current.lock().log {
            log.finish();
        }
    }

    /// Lines lost since the start, because they arrived faster than they could be written, or could not be written at
    /// all.
    pub fn dropped(&self) -> u64 {
        self.0.counts.dropped()
    }

    /// A core's handle to the log. Each core keeps one.
    pub fn outlet(&self) -> Outlet {
        let (turn, batch) = self.batch();
        Outlet { access: self.clone(), turn, batch }
    }

    fn batch(&self) -> (u64, Option<Batch>) {
        let current = self.0.current.lock();
        let turn = self.0.turn.load(Ordering::Acquire);
        (turn, current.log.as_ref().map(|log| log.handle().batch()))
    }
}

/// One core's lines for the access log in force.
pub struct Outlet {
    access: AccessLog,
    turn: u64,
    batch: Option<Batch>,
}

impl Outlet {
    /// Whether there is an access log.
    pub fn is_open(&mut self) -> bool {
        self.keep_up();
        self.batch.is_some()
    }

    /// Appends one record, if there is an access log. The core MUST also call [`Outlet::send`] from time to time, when it
    /// is idle or every few hundred milliseconds, so that single lines do not linger.
    pub fn push(&mut self, record: &Record<'_>) {
        self.keep_up();
        if let Some(batch) = &mut self.batch {
            batch.push(record);
        }
    }

    /// Sends the lines, without waiting, and drops a log that is no longer in force.
    pub fn send(&mut self) {
        if let Some(batch) = &mut self.batch {
            batch.send();
        }
        self.keep_up();
    }

    /// Switches to the log in force if it has changed. Dropping the old batch sends its lines.
    fn keep_up(&mut self) {
        if self.access.0.turn.load(Ordering::Acquire) != self.turn {
            (self.turn, self.batch) = self.access.batch();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::example;
    use super::*;
    use sandarac_test_support::{TempDir, within};

    fn to(path: &Path, format: Format) -> Target {
        Some((Destination::File(path.to_owned()), format))
    }

    /// The lines at `path` once there are `count`.
    fn lines(path: &Path, count: usize) -> Vec<String> {
        let lines = within("the lines of the access log", || {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let lines: Vec<_> = text.lines().map(str::to_owned).collect();
            (lines.len() >= count).then_some(lines)
        });
        assert_eq!(lines.len(), count, "{lines:?}");
        lines
    }

    #[test]
    fn an_exchange_leaves_old_lines_where_they_belong() {
        let dir = TempDir::new();
        let (old, new) = (dir.join("old"), dir.join("new"));
        let access = AccessLog::open(to(&old, Format::Combined)).unwrap();
        let mut outlet = access.outlet();
        outlet.push(&example());
        let opened = access.prepare(to(&new, Format::Json)).unwrap().unwrap();
        access.exchange(opened);
        outlet.push(&example());
        outlet.send();
        assert!(!lines(&old, 1)[0].starts_with('{'));
        assert!(lines(&new, 1)[0].starts_with('{'));
    }

    #[test]
    fn it_can_be_turned_on_and_off() {
        let dir = TempDir::new();
        let path = dir.join("log");
        let access = AccessLog::open(None).unwrap();
        let mut outlet = access.outlet();
        assert!(!outlet.is_open());
        outlet.push(&example());
        access.exchange(access.prepare(to(&path, Format::Json)).unwrap().unwrap());
        assert!(outlet.is_open());
        outlet.push(&example());
        access.exchange(access.prepare(None).unwrap().unwrap());
        assert!(!outlet.is_open());
        lines(&path, 1);
    }

    #[test]
    fn what_is_the_same_or_cannot_be_opened_exchanges_nothing() {
        let dir = TempDir::new();
        let path = dir.join("log");
        let access = AccessLog::open(to(&path, Format::Json)).unwrap();
        assert!(access.prepare(to(&path, Format::Json)).unwrap().is_none());
        let error = access.prepare(to(&dir.join("no/dir"), Format::Json)).err().unwrap();
        assert!(error.to_string().contains("no/dir"), "{error}");
        let mut outlet = access.outlet();
        outlet.push(&example());
        outlet.send();
        lines(&path, 1);
    }
}
