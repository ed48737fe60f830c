//! The spool in every order in which its thread may come to write, beside one that appends, takes and closes.

use super::MAX_APPENDED;
use super::queue::Spool;
use super::space::SpoolSpace;
use crate::lender::Lender;
use sandarac_balance::Random;
use sandarac_cache::{Settings, Store};
use sandarac_message::Piece;
use sandarac_net::Account;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker, ready};
use tokio::runtime::{Builder, LocalOptions};

/// What becomes of the work of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Done,
    /// The thread panics, and what it had is lost.
    Panics,
}

/// Work that a thread has to do.
type Job = Box<dyn FnOnce(Work)>;

thread_local! {
    /// Work for threads that this test decides about; `None` where real threads work.
    static HELD: RefCell<Option<VecDeque<Job>>> = const { RefCell::new(None) };
}

/// [`sandarac_net::off_core`], or work that waits until the test has a thread do it.
pub(super) async fn off_core<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    if HELD.with_borrow(Option::is_none) {
        return sandarac_net::off_core(work).await;
    }
    // Not a channel of tokio: the runtime lets a task that polls often wait, and a test is one task.
    let outcome = Rc::new(Cell::new(None));
    let set = outcome.clone();
    let job = Box::new(move |fate| set.set(Some((fate == Work::Done).then(work))));
    HELD.with_borrow_mut(|held| held.as_mut().expect("it is held").push_back(job));
    poll_fn(|_| outcome.take().map_or(Poll::Pending, Poll::Ready)).await
}

/// Has a thread do the work that waits, if there is any.
fn work(fate: Work) {
    let job = HELD.with_borrow_mut(|held| held.as_mut().and_then(VecDeque::pop_front));
    if let Some(job) = job {
        job(fate);
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Appends so many bytes, if there is room.
    Append(usize),
    Take,
    Thread(Work),
    Close,
}

/// A spool, and what it should hold.
struct Play {
    spool: Spool,
    appended: usize,
    taken: usize,
    is_closed: bool,
}

/// The bytes of the body from a place on, at most [`MAX_APPENDED`] of them.
fn bytes(at: usize, len: usize) -> &'static [u8] {
    static PATTERN: LazyLock<Vec<u8>> =
        LazyLock::new(|| (0..=250).cycle().take(251 + MAX_APPENDED).collect());
    &PATTERN[at % 251..][..len]
}

impl Play {
    fn new(spool: Spool) -> Play {
        Play { spool, appended: 0, taken: 0, is_closed: false }
    }

    fn step(&mut self, step: Step) {
        let cx = &mut Context::from_waker(Waker::noop());
        match step {
            Step::Append(len) if !self.is_closed => {
                if let Poll::Ready(memory) = self.spool.poll_reserve(cx) {
                    self.spool.append(memory, bytes(self.appended, len));
                    self.appended += len;
                }
            }
            Step::Append(_) => {}
            Step::Take => _ = self.poll_take(cx),
            Step::Thread(fate) => work(fate),
            Step::Close => {
                self.is_closed = true;
                _ = self.spool.poll_closed(cx);
            }
        }
    }

    /// Takes one piece, which must be the next bytes of the body. Ready with `false` if nothing is left.
    fn poll_take(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let Some(piece) = ready!(self.spool.poll_next(cx)) else { return Poll::Ready(false) };
        let taken = match &piece {
            Piece::Bytes(bytes) => bytes.to_vec(),
            Piece::File(range) => {
                let mut bytes = vec![0; range.len];
                range.file.read_exact_at(&mut bytes, range.start).unwrap();
                bytes
            }
            Piece::Mapped(_) => unreachable!("the spool maps nothing"),
        };
        assert!(taken == bytes(self.taken, taken.len()), "{} bytes at {}", taken.len(), self.taken);
        self.taken += taken.len();
        Poll::Ready(true)
    }

    /// Takes the rest: all that was appended comes, unless a thread lost some.
    fn end(mut self) {
        let cx = &mut Context::from_waker(Waker::noop());
        // Each turn takes a piece or writes a block, and blocks have at least 8 KiB.
        for _ in 0..10_000 {
            _ = self.spool.poll_closed(cx);
            match self.poll_take(cx) {
                Poll::Ready(true) => {}
                Poll::Ready(false) => {
                    assert!(self.spool.is_lost() || self.taken == self.appended);
                    return;
                }
                Poll::Pending => work(Work::Done),
            }
        }
        panic!("stuck at {} of {}", self.taken, self.appended);
    }
}

/// Plays within a runtime, whose threads are held, and checks that nothing is charged afterwards.
fn play(memory: usize, directory: PathBuf, disk: u64, play: impl FnOnce(&dyn Fn(bool) -> Play)) {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(async {
        HELD.set(Some(VecDeque::new()));
        let store = Arc::new(Store::new(Settings::new(memory)));
        let space = SpoolSpace::new(store.clone());
        let holder = Account::new(Lender(store.clone())).connection();
        // A connection has an eighth of the disk.
        let disk = disk.saturating_mul(8);
        play(&|gathers| Play::new(Spool::new((&space, &holder), directory.clone(), disk, u64::MAX, gathers)));
        HELD.set(None);
        assert_eq!((space.memory(), space.disk(), holder.bytes(), store.lent()), (0, 0, 0, 0));
    });
}

/// Every sequence of six steps behind a beginning that fills the memory of one body and has a thread write.
#[test]
fn a_body_is_whole_in_every_order_of_its_steps_and_its_thread() {
    let steps = [Step::Append(90_000), Step::Take, Step::Thread(Work::Done), Step::Close];
    play(64 << 20, std::env::temp_dir(), u64::MAX, |new| {
        for number in 0..steps.len().pow(6) {
            let mut body = new(true);
            body.step(Step::Append(256 << 10));
            body.step(Step::Append(70_000));
            for place in 0..6 {
                body.step(steps[number / steps.len().pow(place) % steps.len()]);
            }
            body.end();
        }
    });
}

#[test]
fn a_body_is_whole_or_known_to_be_lost_whatever_becomes_of_memory_disk_and_threads() {
    let places = [(64 << 20, std::env::temp_dir(), u64::MAX), (4 << 20, std::env::temp_dir(), 300_000)];
    let missing = (16 << 20, PathBuf::from("/there/is/no/such/directory"), u64::MAX);
    for (memory, directory, disk) in places.into_iter().chain([missing]) {
        play(memory, directory, disk, |new| {
            let mut random = Random::new(38);
            for turn in 0..300 {
                let mut body = new(turn % 2 == 0);
                for _ in 0..random.below(60) {
                    let step = match random.below(20) {
                        0..8 => Step::Append(1 + random.below(256 << 10)),
                        8..13 => Step::Take,
                        13..18 => Step::Thread(Work::Done),
                        18 if turn % 5 == 0 => Step::Thread(Work::Panics),
                        18 => Step::Take,
                        _ => Step::Close,
                    };
                    body.step(step);
                }
                body.end();
            }
        });
    }
}
