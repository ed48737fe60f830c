//! The queue before a pool: requests that found no place, in the order they came.
//!
//! A request whose class one backend knows better than others waits for a place there and lays claim to it,
//! even while others have places; the algorithm decides that, which sees in the backlog of each backend those
//! that wait for it. A request whose session sticks to a backend waits for that one, whatever the algorithm.
//! All other requests wait for any place. A place that becomes free goes to the first of those that wait for
//! this one or for any. Nobody is passed over for long: a request that waits while so many that came later
//! are served, or for so long, gives up its claim, and as it came before all those others, the next place is
//! its own.
//!
//! All cores share the queue, and so do the pools that follow each other over reloads. Its order rests on two
//! rules: whoever gives a place back looks afterwards whether someone waits; and whoever chooses while
//! someone waits does so under the lock, after those that wait for the same place have been served. A place
//! is therefore free for a newcomer only if none of those that wait would take it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::{BackendId, NoBackend};

/// A request that waits for its own backend takes any place when so many requests that came later have been
/// served, for each backend of the pool and for each request that waits. With fewer, classes spread over
/// backends where many wait (docs/balancing.md).
const PASSED_OVER_PER_BACKEND: u64 = 8;
const PASSED_OVER_PER_WAITING: u64 = 2;

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

/// A pool, as far as its queue knows it. The queue knows no more, because a pool holds its queue, and what
/// the queue gives out holds the pool.
pub(crate) trait QueuedPool: Clone {
    /// The pool, not held.
    type Weak;
    /// A claim to a place at a backend; dropping it gives it up.
    type Claim;
    /// A place that was taken.
    type Pick;

    fn downgrade(&self) -> Self::Weak;
    fn upgrade(weak: &Self::Weak) -> Option<Self>;

    /// The ids of the backends, in their order.
    fn ids(&self) -> &[BackendId];
    /// Where the backend of an id is in that order.
    fn position(&self, id: BackendId) -> Option<usize>;
    /// Whether the backend at this position has a place free.
    fn has_room_at(&self, at: usize) -> bool;
    /// Whether any backend has a place free that is in service; any at all where none is.
    fn has_room(&self, now: Duration) -> bool;
    /// The most requests that may wait.
    fn queue_limit(&self) -> usize;
    /// How long a request waits at most for a certain backend.
    fn patience(&self) -> Duration;

    /// A claim to the backend that a request sticks to, or to the one that is best for its class; `None`
    /// where it is to wait for any.
    fn claim(
        &self,
        class: Option<&[u8]>,
        now: Duration,
        exclude: &[BackendId],
        sticks_to: Option<BackendId>,
    ) -> Option<Self::Claim>;
    /// The backend of a claim.
    fn claimed(claim: &Self::Claim) -> BackendId;
    /// Takes the place that a claim is to, for a request that `tried` backends failed; `None` where it cannot
    /// be had.
    fn honour(
        &self,
        claim: Self::Claim,
        class: Option<&[u8]>,
        now: Duration,
        tried: usize,
    ) -> Option<Self::Pick>;
    /// Takes any place.
    fn take_any(&self, class: Option<&[u8]>, now: Duration, exclude: &[BackendId]) -> Option<Self::Pick>;
    /// Why there is none to be had.
    fn refusal(&self, exclude: &[BackendId]) -> NoBackend;
}

/// The requests that wait for a place at a pool.
pub(crate) struct Queue<P: QueuedPool> {
    /// The length of the line, to be read without the lock.
    waiting: AtomicUsize,
    line: Mutex<Line<P>>,
}

impl<P: QueuedPool> Default for Queue<P> {
    fn default() -> Queue<P> {
        let line = Line {
            newest: None,
            came: 0,
            waiting: BTreeMap::new(),
            wanted: BTreeSet::new(),
            now: Duration::ZERO,
            settled: 0,
            granted: BTreeMap::new(),
            queued: 0,
            refused: 0,
        };
        Queue { waiting: AtomicUsize::new(0), line: Mutex::new(line) }
    }
}

/// The turn of one request.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Its place in the queue, if it has one.
    number: Option<u64>,
    /// The backend that its session sticks to.
    pub(crate) sticks_to: Option<BackendId>,
}

struct Line<P: QueuedPool> {
    /// The pool that serves, if a reload has put another in the place of the first. Not held: a pool holds
    /// its queue.
    newest: Option<P::Weak>,
    /// How many came, ever.
    came: u64,
    /// Who waits, by how many came before.
    waiting: BTreeMap<u64, Waiter<P::Claim>>,
    /// For which backend each of them waits; for any where that is none.
    wanted: BTreeSet<(Option<BackendId>, u64)>,
    /// The latest that was heard.
    now: Duration,
    /// All that came before this one take any place.
    settled: u64,
    /// What was given to tickets that have not come for it yet.
    granted: BTreeMap<u64, P::Pick>,
    queued: u64,
    refused: u64,
}

struct Waiter<C> {
    waker: Waker,
    class: Option<Box<[u8]>>,
    /// When it came.
    since: Duration,
    exclude: Vec<BackendId>,
    /// The backend that its session sticks to.
    sticks_to: Option<BackendId>,
    claim: Option<C>,
}

/// Wakers to be called, or dropped, when the lock is no longer held: they run code that is not ours.
#[derive(Default)]
#[must_use]
struct Woken(Vec<Waker>);

impl Woken {
    fn wake(self) {
        self.0.into_iter().for_each(Waker::wake);
    }
}

impl<P: QueuedPool> Queue<P> {
    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    pub(crate) fn report(&self, limit: u32) -> QueueReport {
        let line = self.lock();
        QueueReport { waiting: line.waiting.len(), limit, queued: line.queued, refused: line.refused }
    }

    /// Gives what is free at a backend of `pool`, or at any where none is named, to those that wait. To be
    /// called after a place was given back.
    pub(crate) fn pass_on(&self, pool: &P, freed: Option<BackendId>, now: Duration) {
        if self.waiting() > 0 {
            self.after_those_waiting(pool, freed, now, || ());
        }
    }

    /// Does `then` when all that wait for a place at a backend, or at any where none is named, have what they
    /// can get, and before anyone else can come to wait.
    pub(crate) fn after_those_waiting<T>(
        &self,
        pool: &P,
        freed: Option<BackendId>,
        now: Duration,
        then: impl FnOnce() -> T,
    ) -> T {
        let mut line = self.lock();
        line.now = line.now.max(now);
        let pool = line.serving(pool);
        let woken = line.serve(&pool, freed);
        self.count(&line);
        let done = then();
        drop(line);
        woken.wake();
        done
    }

    /// Lets `pool` serve from now on. All that wait ask again: it may have room, or nothing for them any
    /// more.
    pub(crate) fn follow(&self, pool: &P) {
        let mut line = self.lock();
        line.newest = Some(pool.downgrade());
        let numbers: Vec<u64> = line.waiting.keys().copied().collect();
        // Backends of before may be gone.
        numbers.iter().for_each(|&number| line.want(number, None));
        let mut woken = Woken::default();
        numbers.iter().for_each(|&number| line.place(pool, number, &mut woken));
        self.count(&line);
        woken.0.extend(line.waiting.values().map(|waiter| waiter.waker.clone()));
        drop(line);
        woken.wake();
    }

    /// Lets those that wait for a backend choose anew, as it gets no new requests.
    pub(crate) fn forsake(&self, pool: &P, id: BackendId) {
        if self.waiting() == 0 {
            return;
        }
        let mut line = self.lock();
        let pool = line.serving(pool);
        let mut woken = Woken::default();
        let all: Vec<u64> =
            line.wanted.range((Some(id), 0)..=(Some(id), u64::MAX)).map(|&(_, number)| number).collect();
        for number in all {
            line.want(number, None);
            line.place(&pool, number, &mut woken);
        }
        self.count(&line);
        drop(line);
        woken.wake();
    }

    /// Gives a request the place that it waits for, or lets it wait, see
    /// [`Ticket::poll_pick`](crate::Ticket::poll_pick).
    pub(crate) fn poll(
        &self,
        pool: &P,
        turn: &mut Turn,
        cx: &mut Context<'_>,
        class: Option<&[u8]>,
        now: Duration,
        exclude: &[BackendId],
    ) -> Poll<Result<P::Pick, NoBackend>> {
        let mut waker = cx.waker().clone();
        let mut line = self.lock();
        line.now = line.now.max(now);
        let pool = line.serving(pool);
        if let Some(pick) = turn.number.and_then(|number| line.granted.remove(&number)) {
            drop(line);
            turn.number = None;
            return Poll::Ready(Ok(pick));
        }
        let mut woken = Woken::default();
        let (number, news) = match turn.number {
            Some(number) => {
                // It has not been granted a place, so it waits.
                let mut news = false;
                if let Some(waiter) = line.waiting.get_mut(&number) {
                    std::mem::swap(&mut waiter.waker, &mut waker);
                    news = waiter.exclude != exclude;
                    waiter.exclude.clear();
                    waiter.exclude.extend_from_slice(exclude);
                }
                (number, news)
            }
            None if line.waiting.len() >= pool.queue_limit() => {
                let woken = line.serve(&pool, None);
                let pick = pool.take_any(class, now, exclude);
                line.refused += u64::from(pick.is_none());
                self.count(&line);
                drop(line);
                woken.wake();
                return Poll::Ready(pick.ok_or(NoBackend::QueueFull));
            }
            None => {
                let number = line.came;
                line.came += 1;
                let waiter = Waiter {
                    waker: waker.clone(),
                    class: class.map(Box::from),
                    since: line.now,
                    exclude: exclude.to_vec(),
                    sticks_to: turn.sticks_to,
                    claim: None,
                };
                line.waiting.insert(number, waiter);
                line.wanted.insert((None, number));
                self.count(&line);
                (number, true)
            }
        };
        // Whoever gives a place back and does not see this one waiting gave it back before what follows looks
        // for it.
        fence(Ordering::SeqCst);
        if news {
            line.want(number, None);
            line.place(&pool, number, &mut woken);
        } else {
            line.serve_all(&pool, &mut woken);
        }
        let done = match line.granted.remove(&number) {
            Some(pick) => Some(Ok(pick)),
            None => match pool.refusal(exclude) {
                NoBackend::AllFull => None,
                hopeless => Some(Err(hopeless)),
            },
        };
        let given_up = if done.is_some() { line.leave(number) } else { None };
        line.queued += u64::from(turn.number.is_none() && done.is_none());
        self.count(&line);
        drop(line);
        drop((given_up, waker));
        woken.wake();
        turn.number = if done.is_some() { None } else { Some(number) };
        done.map_or(Poll::Pending, Poll::Ready)
    }

    /// A request was refused, because none may wait.
    pub(crate) fn refuse(&self) {
        self.lock().refused += 1;
    }

    /// A request gives up its turn.
    pub(crate) fn leave(&self, turn: &Turn) {
        let Some(number) = turn.number else { return };
        let mut line = self.lock();
        let waiter = line.leave(number);
        let granted = line.granted.remove(&number);
        self.count(&line);
        drop(line);
        // Not under the lock: a pick that is dropped serves the next in the queue.
        drop((waiter, granted));
    }

    fn lock(&self) -> MutexGuard<'_, Line<P>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, line: &Line<P>) {
        self.waiting.store(line.waiting.len(), Ordering::SeqCst);
    }
}

impl<P: QueuedPool> Line<P> {
    /// The pool that serves: the newest; `pool`, which shares this queue, where that is gone or never was
    /// another.
    fn serving(&self, pool: &P) -> P {
        self.newest.as_ref().and_then(P::upgrade).unwrap_or_else(|| pool.clone())
    }

    /// Gives free places at a backend, or at any where none is named, to those that wait, the first first.
    fn serve(&mut self, pool: &P, freed: Option<BackendId>) -> Woken {
        let mut woken = Woken::default();
        if self.waiting.is_empty() {
            return woken;
        }
        match freed {
            Some(id) => self.serve_at(pool, id, &mut woken),
            None => self.serve_all(pool, &mut woken),
        }
        woken
    }

    fn serve_all(&mut self, pool: &P, woken: &mut Woken) {
        self.settle(pool, woken);
        let mut from = 0;
        while let Some(number) = self.first(None, from)
            && pool.has_room(self.now)
        {
            self.grant(pool, number, woken);
            from = number + 1;
        }
        for (at, &id) in pool.ids().iter().enumerate() {
            if pool.has_room_at(at) && self.first(Some(id), 0).is_some() {
                self.serve_at(pool, id, woken);
            }
        }
    }

    /// Gives free places at a backend to those that wait for it or for any; one that may not take it is
    /// passed over.
    fn serve_at(&mut self, pool: &P, id: BackendId, woken: &mut Woken) {
        let Some(at) = pool.position(id) else { return };
        self.settle(pool, woken);
        let mut from = 0;
        while pool.has_room_at(at) {
            let first = self.first(Some(id), 0).into_iter().chain(self.first(None, from)).min();
            let Some(number) = first else { return };
            if !self.grant(pool, number, woken) {
                // It has no claim any more, and the place may be for others.
                from = number + 1;
            }
            self.settle(pool, woken);
        }
    }

    /// The first from this number on that waits for a backend, or for any where none is named.
    fn first(&self, wanted: Option<BackendId>, from: u64) -> Option<u64> {
        self.wanted.range((wanted, from)..=(wanted, u64::MAX)).next().map(|&(_, number)| number)
    }

    /// Lets those that have been passed over often enough, or wait for long enough, take any place.
    fn settle(&mut self, pool: &P, woken: &mut Woken) {
        while let Some((&number, waiter)) = self.waiting.range(self.settled..).next()
            && (self.passed_over(number) >= self.most_passed_over(pool)
                || self.now.saturating_sub(waiter.since) >= pool.patience())
        {
            self.settled = number + 1;
            self.want(number, None);
            if pool.has_room(self.now) {
                self.grant(pool, number, woken);
            }
        }
    }

    /// How many that came after the first that waits have left the queue: all that did, but for those before
    /// it, which are as many as its number says. Where it is not the first, there may have been more.
    fn passed_over(&self, number: u64) -> u64 {
        (self.came - self.waiting.len() as u64).saturating_sub(number)
    }

    /// After so many, it takes any place.
    fn most_passed_over(&self, pool: &P) -> u64 {
        pool.ids().len() as u64 * PASSED_OVER_PER_BACKEND
            + self.waiting.len() as u64 * PASSED_OVER_PER_WAITING
    }

    /// Gives a waiting request the place that it has a claim to, or else any, and says whether there was one.
    /// A claim to a place that it cannot have is given up.
    fn grant(&mut self, pool: &P, number: u64, woken: &mut Woken) -> bool {
        let now = self.now;
        let Some(waiter) = self.waiting.get_mut(&number) else { return false };
        let class = waiter.class.as_deref();
        let claim = waiter.claim.take();
        let wanted = claim.as_ref().map(P::claimed);
        let pick = claim
            .and_then(|claim| pool.honour(claim, class, now, waiter.exclude.len()))
            .or_else(|| pool.take_any(class, now, &waiter.exclude));
        match pick {
            Some(pick) => {
                self.wanted.remove(&(wanted, number));
                woken.0.extend(self.waiting.remove(&number).map(|waiter| waiter.waker));
                self.granted.insert(number, pick);
                true
            }
            None => {
                self.wanted.remove(&(wanted, number));
                self.wanted.insert((None, number));
                false
            }
        }
    }

    /// From now on, a waiting request waits for the backend of `claim`, or for any.
    fn want(&mut self, number: u64, claim: Option<P::Claim>) {
        let Some(waiter) = self.waiting.get_mut(&number) else { return };
        let before = waiter.claim.as_ref().map(P::claimed);
        self.wanted.remove(&(before, number));
        self.wanted.insert((claim.as_ref().map(P::claimed), number));
        waiter.claim = claim;
    }

    /// Decides what a waiting request waits for, and serves those that wait for the same.
    fn place(&mut self, pool: &P, number: u64, woken: &mut Woken) {
        let now = self.now;
        let Some(waiter) = self.waiting.get(&number) else { return };
        let class = waiter.class.as_deref();
        let patient = number >= self.settled;
        let claim = patient.then(|| pool.claim(class, now, &waiter.exclude, waiter.sticks_to)).flatten();
        match claim {
            Some(claim) => {
                let id = P::claimed(&claim);
                self.want(number, Some(claim));
                self.serve_at(pool, id, woken);
            }
            None => self.serve_all(pool, woken),
        }
    }

    /// Takes a request out of the queue.
    fn leave(&mut self, number: u64) -> Option<Waiter<P::Claim>> {
        let waiter = self.waiting.remove(&number)?;
        self.wanted.remove(&(waiter.claim.as_ref().map(P::claimed), number));
        Some(waiter)
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "claim_tests.rs"]
mod claim_tests;
