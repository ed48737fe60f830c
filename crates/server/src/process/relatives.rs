//! Purges while one process takes over from another: each forgets what the other was told to forget.
//!
//! The newest process has the cache, and accepts. An older one may have objects left, and clients whose next
//! request is their last one there. It tells the newest of each purge, and waits until that has happened. The
//! other way round nobody waits: all have a marker in shared memory, which the newest changes before a purge
//! is acknowledged. An older process that finds another marker than the one it knew no longer answers from
//! what it has stored.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, memfd_create};
use sandarac_cache::{Forgotten, Others, Purge, Store};
use sandarac_net::wall;

use crate::stderr::print_line;
use crate::takeover::{Line, Message, What};

/// How long the newest process may take to forget something.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tags in a message.
const TAGS: usize = 10_000;

/// The processes of which each has taken over from the one before, as one of them sees them.
pub(super) struct Relatives {
    marker: Mutex<Marker>,
    /// Whether others may know the marker.
    has_older: bool,
    leaving: OnceLock<Leaving>,
}

/// Eight bytes of memory that all share.
struct Marker(File);

impl Marker {
    fn read(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, 0)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Changes it. Only the newest process does.
    fn change(&self) -> io::Result<()> {
        self.0.write_all_at(&self.read()?.wrapping_add(1).to_le_bytes(), 0)
    }
}

/// The knowledge of a process from which another one takes over.
struct Leaving {
    /// The marker when the other one had not begun to serve.
    marker: u64,
    is_behind: AtomicBool,
    /// The line to the newest process, and what says that it has forgotten something. None if it does not
    /// answer.
    newest: Mutex<Option<(Arc<Line>, Receiver<()>)>>,
}

impl Relatives {
    /// The relatives of a process that starts, with the marker of the one that it takes over from.
    pub(super) fn new(marker: Option<OwnedFd>) -> io::Result<Relatives> {
        let has_older = marker.is_some();
        let marker = match marker {
            Some(marker) => File::from(marker),
            None => {
                let marker = File::from(memfd_create("sandarac-marker", MemfdFlags::CLOEXEC)?);
                marker.write_all_at(&[0; 8], 0)?;
                marker
            }
        };
        Ok(Relatives { marker: Mutex::new(Marker(marker)), has_older, leaving: OnceLock::new() })
    }

    /// The marker, for a process that takes over.
    pub(super) fn marker(&self) -> io::Result<OwnedFd> {
        self.marker.lock().0.as_fd().try_clone_to_owned()
    }

    /// Another process takes over: from here on it is told over `line` of what is forgotten here. `heard` gets
    /// something each time when it has done so. MUST be called before that process serves.
    pub(super) fn leave(&self, line: Arc<Line>, heard: Receiver<()>) -> io::Result<()> {
        let marker = self.marker.lock().read()?;
        let newest = Mutex::new(Some((line, heard)));
        _ = self.leaving.set(Leaving { marker, is_behind: AtomicBool::new(false), newest });
        Ok(())
    }
}

impl Leaving {
    fn tell(&self, what: What, is_soft: bool) {
        let mut newest = self.newest.lock();
        let Some((line, heard)) = &*newest else { return };
        let told = line.send(&Message::Forget { what, is_soft }, &[]);
        match told.map(|()| heard.recv_timeout(PATIENCE)) {
            Ok(Ok(())) => {}
            Err(_) | Ok(Err(RecvTimeoutError::Disconnected)) => *newest = None,
            Ok(Err(RecvTimeoutError::Timeout)) => {
                print_line("sandarac: the process that has taken over does not hear of purges any more");
                *newest = None;
            }
        }
    }
}

impl Others for Relatives {
    fn have_forgotten(&self) -> bool {
        let Some(leaving) = self.leaving.get() else { return false };
        if leaving.is_behind.load(Relaxed) {
            return true;
        }
        let is_behind = self.marker.lock().read().map_or(true, |marker| marker != leaving.marker);
        leaving.is_behind.fetch_or(is_behind, Relaxed);
        is_behind
    }

    fn forget(&self, what: &Forgotten, purge: Purge) {
        let is_soft = purge == Purge::Soft;
        if let Some(leaving) = self.leaving.get() {
            match what {
                Forgotten::Tags(tags) => tags
                    .chunks(TAGS)
                    .for_each(|tags| leaving.tell(What::of(&Forgotten::Tags(tags.to_vec())), is_soft)),
                what => leaving.tell(What::of(what), is_soft),
            }
        } else if self.has_older
            && let Err(error) = self.marker.lock().change()
        {
            print_line(format_args!("sandarac: older processes do not hear of a purge: {error}"));
        }
    }
}

/// The threads that hear what older processes forget.
#[derive(Default)]
pub(super) struct ListeningToOlder {
    is_over: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl ListeningToOlder {
    pub(super) fn begin(&self, line: Line, store: Arc<Store>) {
        let is_over = self.is_over.clone();
        self.threads.lock().extend(spawn("older", move || {
            while let Some(message) = line.next(|| is_over.load(Relaxed)) {
                let Message::Forget { what, is_soft } = message else { continue };
                let purge = if is_soft { Purge::Soft } else { Purge::Hard };
                store.forget(&what.into(), purge, wall());
                if line.send(&Message::Forgotten, &[]).is_err() {
                    return;
                }
            }
        }));
    }

    /// Leaves it to another process, which has the same lines.
    pub(super) fn stop(&self) {
        self.is_over.store(true, Relaxed);
        for thread in self.threads.lock().drain(..) {
            _ = thread.join();
        }
    }
}

/// Starts a thread whose work can be missed.
pub(super) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map_err(|error| print_line(format_args!("sandarac: cannot start the thread {name}: {error}"))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_cache::{Key, Settings};
    use std::sync::mpsc::channel;

    fn store() -> Arc<Store> {
        Arc::new(Store::new(Settings::new(1 << 20)))
    }

    /// An older process and the one that has taken over from it.
    fn family() -> (Arc<Relatives>, Arc<Relatives>, Line) {
        let older = Arc::new(Relatives::new(None).unwrap());
        let newest = Arc::new(Relatives::new(Some(older.marker().unwrap())).unwrap());
        let (line, other) = Line::pair().unwrap();
        let (line, other) = (Arc::new(line), Line::from(other));
        let (tells, heard) = channel();
        older.leave(line.clone(), heard).unwrap();
        std::thread::spawn(move || {
            while let Some(message) = line.next(|| false) {
                assert!(matches!(message, Message::Forgotten));
                _ = tells.send(());
            }
        });
        (older, newest, other)
    }

    #[test]
    fn an_older_process_is_behind_once_the_newest_has_forgotten_something() {
        let (older, newest, _line) = family();
        assert!(!older.have_forgotten());
        newest.forget(&Forgotten::All, Purge::Soft);
        assert!(older.have_forgotten() && older.have_forgotten());
        assert!(!newest.have_forgotten());
    }

    #[test]
    fn the_newest_has_forgotten_when_an_older_process_has_told_it() {
        let (older, newest, line) = family();
        let (there, told) = (store(), Arc::new(ToldOf::default()));
        there.join(told.clone());
        let listening = ListeningToOlder::default();
        listening.begin(line.copy().unwrap(), there);
        let many: Vec<_> = (0..TAGS as u64 + 1).map(sandarac_cache::Tag::from_bits).collect();
        let all = [
            Forgotten::Key(Key::of(b"http", b"a", b"/")),
            Forgotten::Tags(many[..TAGS].to_vec()),
            Forgotten::Tags(many[TAGS..].to_vec()),
            Forgotten::Target(sandarac_cache::Tag::target(b"a", b"/")),
            Forgotten::Ban("status == 404".to_owned()),
            Forgotten::All,
        ];
        older.forget(&all[0], Purge::Soft);
        older.forget(&Forgotten::Tags(many), Purge::Soft);
        all[3..].iter().for_each(|what| older.forget(what, Purge::Hard));
        assert_eq!(*told.0.lock(), all);
        listening.stop();
        drop(newest);
    }

    #[test]
    fn an_older_process_whose_newest_is_gone_does_not_wait() {
        let (older, _newest, line) = family();
        drop(line);
        older.forget(&Forgotten::All, Purge::Hard);
        older.forget(&Forgotten::All, Purge::Hard);
    }

    /// Notes what a store forgets.
    #[derive(Default)]
    struct ToldOf(Mutex<Vec<Forgotten>>);

    impl Others for ToldOf {
        fn have_forgotten(&self) -> bool {
            false
        }

        fn forget(&self, what: &Forgotten, _: Purge) {
            self.0.lock().push(what.clone());
        }
    }
}
