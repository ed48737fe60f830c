//! Purges while one process takes over from another: each forgets what the other was told to forget.
//!
//! The newest process has the cache, and accepts. An older one may have objects left, and clients whose next
//! request is their last one there. It tells the newest of each purge, and waits until that has happened. The
//! other way round nobody waits: all have two marks in shared memory. The newest changes the first one before
//! a purge is acknowledged; an older process that finds another one than it knew no longer answers from what
//! it has stored. An older process that cannot tell the newest of a purge in time changes the second one; the
//! newest, which looks at it at each lookup, then forgets everything. So a process that is stopped, or has
//! died and been started again, cannot serve what was purged meanwhile.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, memfd_create};
use sandarac_cache::{Forgotten, Others, Purge, Standing, Store};
use sandarac_net::wall;

use crate::stderr::print_line;
use crate::takeover::{Line, Message, What, random};

/// How long the newest process may take to forget something.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tags in a message.
const TAGS: usize = 10_000;

/// The processes of which each has taken over from the one before, as one of them sees them.
pub(super) struct Relatives {
    marks: Mutex<Marks>,
    /// Whether others may know the marks, and change the second one.
    has_older: AtomicBool,
    /// The second mark, as far as everything has been forgotten that it stands for.
    caught_up: AtomicU64,
    leaving: OnceLock<Leaving>,
}

/// Two numbers in memory that all share.
struct Marks(File);

/// One of them.
#[derive(Clone, Copy)]
enum Mark {
    /// Changed by the newest process, when it has forgotten something.
    Forgotten,
    /// Changed by an older one that could not tell the newest of something.
    Untold,
}

impl Marks {
    fn read(&self, mark: Mark) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, mark as u64 * 8)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Gives it a number that it has not had.
    fn change(&self, mark: Mark) -> io::Result<()> {
        // Several older processes may change it at the same time.
        self.0.write_all_at(&random()?.to_le_bytes(), mark as u64 * 8)
    }
}

/// The knowledge of a process from which another one takes over.
struct Leaving {
    /// The first mark when the other one had not begun to serve.
    forgotten: u64,
    is_behind: AtomicBool,
    newest: Mutex<Newest>,
}

/// The line to the newest process, and what says that it has forgotten something.
struct Newest {
    line: Arc<Line>,
    heard: Receiver<u64>,
    /// The number of the last message.
    number: u64,
    /// Whether it answered the last one.
    answers: bool,
}

impl Relatives {
    /// The relatives of a process that starts, with the marks of the one that it takes over from.
    pub(super) fn new(marks: Option<OwnedFd>) -> io::Result<Relatives> {
        let has_older = AtomicBool::new(marks.is_some());
        let marks = match marks {
            Some(marks) => Marks(File::from(marks)),
            None => {
                let marks = File::from(memfd_create("sandarac-marks", MemfdFlags::CLOEXEC)?);
                marks.write_all_at(&[0; 16], 0)?;
                Marks(marks)
            }
        };
        // It has nothing stored yet.
        let caught_up = AtomicU64::new(marks.read(Mark::Untold)?);
        Ok(Relatives { marks: Mutex::new(marks), has_older, caught_up, leaving: OnceLock::new() })
    }

    /// The marks, for a process that takes over.
    pub(super) fn marks(&self) -> io::Result<OwnedFd> {
        self.marks.lock().0.as_fd().try_clone_to_owned()
    }

    /// Another process takes over: from here on it is told over `line` of what is forgotten here. `heard`
    /// gets the number of each message that it has followed. MUST be called before that process serves.
    pub(super) fn leave(&self, line: Arc<Line>, heard: Receiver<u64>) -> io::Result<()> {
        let forgotten = self.marks.lock().read(Mark::Forgotten)?;
        let newest = Mutex::new(Newest { line, heard, number: 0, answers: true });
        _ = self.leaving.set(Leaving { forgotten, is_behind: AtomicBool::new(false), newest });
        Ok(())
    }

    /// All older processes have ended: none will change the second mark.
    pub(super) fn older_are_gone(&self, store: &Store) {
        if self.leaving.get().is_none() && !matches!(self.lost(), Ok(None)) {
            store.purge_all(Purge::Hard, wall());
        }
        self.has_older.store(false, Relaxed);
    }

    fn change(&self, mark: Mark) {
        if let Err(error) = self.marks.lock().change(mark) {
            print_line(format_args!("sandarac: other processes do not hear of a purge: {error}"));
        }
    }

    /// Whether the newest process has not been told of something.
    fn lost(&self) -> io::Result<Option<u64>> {
        let untold = self.marks.lock().read(Mark::Untold)?;
        Ok((untold != self.caught_up.load(Relaxed)).then_some(untold))
    }
}

impl Newest {
    /// Whether the newest process has forgotten this. One that has not answered the last message is sent no
    /// other.
    fn tell(&mut self, what: What, is_soft: bool) -> bool {
        while let Ok(heard) = self.heard.try_recv() {
            self.answers |= heard == self.number;
        }
        if !self.answers {
            return false;
        }
        self.number += 1;
        let number = self.number;
        let deadline = Instant::now() + PATIENCE;
        let patience = || deadline.saturating_duration_since(Instant::now());
        self.answers = self.line.send(&Message::Forget { what, is_soft, number }, &[]).is_ok()
            && std::iter::from_fn(|| self.heard.recv_timeout(patience()).ok()).any(|heard| heard == number);
        self.answers
    }
}

impl Others for Relatives {
    fn have_forgotten(&self) -> Standing {
        if let Some(leaving) = self.leaving.get() {
            if leaving.is_behind.load(Relaxed) {
                return Standing::Behind;
            }
            let mark = self.marks.lock().read(Mark::Forgotten);
            let is_behind = mark.map_or(true, |mark| mark != leaving.forgotten);
            leaving.is_behind.fetch_or(is_behind, Relaxed);
            return if is_behind { Standing::Behind } else { Standing::Current };
        }
        if !self.has_older.load(Relaxed) {
            return Standing::Current;
        }
        match self.lost() {
            Ok(None) => Standing::Current,
            Ok(Some(untold)) => Standing::Lost(untold),
            Err(_) => Standing::Behind,
        }
    }

    fn caught_up(&self, lost: u64) {
        self.caught_up.store(lost, Relaxed);
    }

    fn forget(&self, what: &Forgotten, purge: Purge) {
        let is_soft = purge == Purge::Soft;
        if let Some(leaving) = self.leaving.get() {
            let mut newest = leaving.newest.lock();
            let is_told = match what {
                Forgotten::Tags(tags) => tags
                    .chunks(TAGS)
                    .all(|tags| newest.tell(What::of(&Forgotten::Tags(tags.to_vec())), is_soft)),
                what => newest.tell(What::of(what), is_soft),
            };
            if !is_told {
                self.change(Mark::Untold);
            }
        } else if self.has_older.load(Relaxed) {
            self.change(Mark::Forgotten);
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
                let Message::Forget { what, is_soft, number } = message else { continue };
                let purge = if is_soft { Purge::Soft } else { Purge::Hard };
                store.forget(&what.into(), purge, wall());
                if line.send(&Message::Forgotten { number }, &[]).is_err() {
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
        let newest = Arc::new(Relatives::new(Some(older.marks().unwrap())).unwrap());
        let (line, other) = Line::pair().unwrap();
        let (line, other) = (Arc::new(line), Line::from(other));
        let (tells, heard) = channel();
        older.leave(line.clone(), heard).unwrap();
        std::thread::spawn(move || {
            while let Some(message) = line.next(|| false) {
                let Message::Forgotten { number } = message else { panic!("{message:?}") };
                _ = tells.send(number);
            }
        });
        (older, newest, other)
    }

    #[test]
    fn an_older_process_is_behind_once_the_newest_has_forgotten_something() {
        let (older, newest, _line) = family();
        assert_eq!(older.have_forgotten(), Standing::Current);
        newest.forget(&Forgotten::All, Purge::Soft);
        assert_eq!([older.have_forgotten(), older.have_forgotten()], [Standing::Behind; 2]);
        assert_eq!(newest.have_forgotten(), Standing::Current);
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

    /// Regression: a purge at an older process was acknowledged after a second, although the newest one,
    /// which was stopped meanwhile, never heard of it, nor of any later one.
    #[test]
    fn what_the_newest_does_not_hear_has_it_forget_everything() {
        let (older, newest, line) = family();
        older.forget(&Forgotten::Ban("status == 404".to_owned()), Purge::Hard);
        let Standing::Lost(lost) = newest.have_forgotten() else { panic!("it was told of nothing") };
        newest.caught_up(lost);
        assert_eq!(newest.have_forgotten(), Standing::Current);
        // It goes on, and catches up.
        let there = store();
        let listening = ListeningToOlder::default();
        listening.begin(line.copy().unwrap(), there.clone());
        sandarac_test_support::within("a purge to be heard again", || {
            older.forget(&Forgotten::Ban("status == 410".to_owned()), Purge::Hard);
            (there.bans().len() >= 2 && newest.have_forgotten() == Standing::Current).then_some(()).or_else(
                || {
                    if let Standing::Lost(lost) = newest.have_forgotten() {
                        newest.caught_up(lost);
                    }
                    None
                },
            )
        });
        // It is gone, and another one has its place, and the marks.
        listening.stop();
        drop(line);
        let other = Relatives::new(Some(older.marks().unwrap())).unwrap();
        older.forget(&Forgotten::All, Purge::Hard);
        assert!(matches!(other.have_forgotten(), Standing::Lost(_)));
    }

    /// Notes what a store forgets.
    #[derive(Default)]
    struct ToldOf(Mutex<Vec<Forgotten>>);

    impl Others for ToldOf {
        fn have_forgotten(&self) -> Standing {
            Standing::Current
        }

        fn caught_up(&self, _: u64) {}

        fn forget(&self, what: &Forgotten, _: Purge) {
            self.0.lock().push(what.clone());
        }
    }
}
