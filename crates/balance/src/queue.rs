//! The queue before a pool: requests that found every place taken, in the order they came.
//!
//! All cores share it, and so do the pools that follow each other over reloads. Its order rests on two rules: whoever
//! gives a place back looks afterwards whether someone waits; and whoever chooses while someone waits does so under
//! the lock, after those that wait have been served. A place is therefore free for a newcomer only if none of those
//! that wait may take it, as each of them was excluded from it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::pool::Inner;
use crate::{BackendId, NoBackend, Pick, Pool};

/// How many wait for a place at a pool, for people and monitoring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueReport {
    /// The requests that wait now.
    pub waiting: usize,
    /// The most that may wait; 0 where none may.
    pub limit: u32,
    /// The requests that had to wait, ever, also before reloads.
    pub queued: u64,
    /// The requests that found the queue full, ever, also before reloads.
    pub refused: u64,
}

#[derive(Default)]
pub(crate) struct Queue {
    /// The length of the line, to be read without the lock.
    waiting: AtomicUsize,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    /// The pool that serves, if a reload has put another in the place of the first. Not held: a pool holds its queue.
    newest: Weak<Inner>,
    next: u64,
    /// Who waits, by the number of the ticket.
    waiting: BTreeMap<u64, Waiter>,
    /// What was given to tickets that have not come for it yet.
    granted: BTreeMap<u64, Pick>,
    queued: u64,
    refused: u64,
}

struct Waiter {
    waker: Waker,
    class: Option<Box<[u8]>>,
    /// When it last asked.
    now: Duration,
    exclude: Vec<BackendId>,
}

/// Wakers to be called, or dropped, when the lock is no longer held: they run code that is not ours.
#[must_use]
struct Woken(Vec<Waker>);

impl Woken {
    fn wake(self) {
        self.0.into_iter().for_each(Waker::wake);
    }
}

impl Queue {
    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    pub(crate) fn report(&self, limit: u32) -> QueueReport {
        let line = self.lock();
        QueueReport { waiting: line.waiting.len(), limit, queued: line.queued, refused: line.refused }
    }

    /// Gives what is free at `pool` to those that wait. To be called after a place was given back.
    pub(crate) fn pass_on(&self, pool: &Pool) {
        if self.waiting() > 0 {
            self.after_those_waiting(pool, || ());
        }
    }

    /// Does `then` when all that wait have what they can get, and before anyone else can come to wait.
    pub(crate) fn after_those_waiting<T>(&self, pool: &Pool, then: impl FnOnce() -> T) -> T {
        let mut line = self.lock();
        let woken = self.serve(&mut line, pool);
        let done = then();
        drop(line);
        woken.wake();
        done
    }

    /// Lets `pool` serve from now on. All that wait ask again: it may have room, or nothing for them any more.
    pub(crate) fn follow(&self, pool: &Pool) {
        let mut line = self.lock();
        line.newest = pool.downgrade();
        let mut woken = self.serve(&mut line, pool);
        woken.0.extend(line.waiting.values().map(|waiter| waiter.waker.clone()));
        drop(line);
        woken.wake();
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives free places to those that wait, the first first; one that may not take any of them is passed over.
    fn serve(&self, line: &mut Line, pool: &Pool) -> Woken {
        let mut woken = Woken(Vec::new());
        let pool = line.serving(pool);
        let mut from = 0;
        while let Some((&number, waiter)) = line.waiting.range(from..).next()
            && pool.has_room()
        {
            if let Some(pick) = pool.take_any(waiter.class.as_deref(), waiter.now, &waiter.exclude) {
                line.granted.insert(number, pick);
                woken.0.extend(line.waiting.remove(&number).map(|waiter| waiter.waker));
            }
            from = number + 1;
        }
        self.count(line);
        woken
    }

    fn count(&self, line: &Line) {
        self.waiting.store(line.waiting.len(), Ordering::SeqCst);
    }
}

impl Line {
    /// The pool that serves: the newest; `pool`, which shares this queue, where that is gone or never was another.
    fn serving(&self, pool: &Pool) -> Pool {
        Pool::upgrade(&self.newest).unwrap_or_else(|| pool.clone())
    }
}

/// A request's turn at a pool. It waits from the first [`Ticket::poll_pick`] that finds no place, and dropping it
/// passes its turn on to the next.
#[derive(Debug)]
pub struct Ticket {
    pool: Pool,
    /// Its place in the queue, if it has one.
    number: Option<u64>,
}

impl Ticket {
    pub(crate) fn new(pool: Pool) -> Ticket {
        Ticket { pool, number: None }
    }

    /// Chooses a backend as [`Pool::pick`] does, or waits until there is a place, behind all that wait already.
    ///
    /// `class` is what it was first said to be. `exclude` is what it was last said to be; the turn is not lost when it changes. After a reload the pool that
    /// took this one's place serves. How long to wait is for the caller to limit, by dropping the ticket.
    ///
    /// # Errors
    /// [`NoBackend::Empty`] and [`NoBackend::AllTried`], for which waiting is no help; [`NoBackend::QueueFull`] where as
    /// many wait as may; [`NoBackend::AllFull`] where none may.
    pub fn poll_pick(
        &mut self,
        cx: &mut Context<'_>,
        class: Option<&[u8]>,
        now: Duration,
        exclude: &[BackendId],
    ) -> Poll<Result<Pick, NoBackend>> {
        if self.number.is_none() {
            match self.pool.pick(class, now, exclude) {
                Err(NoBackend::AllFull) if self.pool.queue_limit() > 0 => {}
                done => return Poll::Ready(done),
            }
        }
        let mut waker = cx.waker().clone();
        let queue = self.pool.line();
        let mut line = queue.lock();
        if let Some(pick) = self.number.and_then(|number| line.granted.remove(&number)) {
            drop(line);
            self.number = None;
            return Poll::Ready(Ok(pick));
        }
        let number = match self.number {
            Some(number) => {
                // It has not been granted a place, so it waits.
                if let Some(waiter) = line.waiting.get_mut(&number) {
                    std::mem::swap(&mut waiter.waker, &mut waker);
                    waiter.now = now;
                    waiter.exclude.clear();
                    waiter.exclude.extend_from_slice(exclude);
                }
                number
            }
            None if line.waiting.len() >= self.pool.queue_limit() as usize => {
                line.refused += 1;
                return Poll::Ready(Err(NoBackend::QueueFull));
            }
            None => {
                let number = line.next;
                line.next += 1;
                line.queued += 1;
                line.waiting.insert(
                    number,
                    Waiter {
                        waker: waker.clone(),
                        class: class.map(Box::from),
                        now,
                        exclude: exclude.to_vec(),
                    },
                );
                queue.count(&line);
                number
            }
        };
        // Whoever gives a place back and does not see this one waiting gave it back before what follows looks for it.
        fence(Ordering::SeqCst);
        let woken = queue.serve(&mut line, &self.pool);
        let done = match line.granted.remove(&number) {
            Some(pick) => Some(Ok(pick)),
            None => match line.serving(&self.pool).refusal(exclude) {
                NoBackend::AllFull => None,
                hopeless => Some(Err(hopeless)),
            },
        };
        let given_up = if done.is_some() { line.waiting.remove(&number) } else { None };
        queue.count(&line);
        drop(line);
        drop((given_up, waker));
        woken.wake();
        self.number = if done.is_some() { None } else { Some(number) };
        done.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let queue = self.pool.line();
        let mut line = queue.lock();
        let waiter = line.waiting.remove(&number);
        let granted = line.granted.remove(&number);
        queue.count(&line);
        drop(line);
        // Not under the lock: a pick that is dropped serves the next in the queue.
        drop((waiter, granted));
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
