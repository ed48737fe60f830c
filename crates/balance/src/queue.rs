//! The queue of a pool: requests that found no place, in order of arrival.
//!
//! A request whose class one backend knows better than others waits for a place there and claims it, even
//! while others have places. The algorithm decides that, because the backlog of each backend includes its
//! waiters. A request whose session sticks to a backend waits for that one, whatever the algorithm. All other
//! requests wait for any place. A free place goes to the first waiter for this backend or for any. No waiter
//! is passed over for long: after a number of later requests were served, or after a time, it gives up its
//! claim, and gets the next place, because it came first.
//!
//! All cores share the queue, and so do the pools that succeed each other over reloads. Its order rests on
//! two rules. A thread that gives a place back then checks for waiters. A thread that chooses while there are
//! waiters does so under the lock, after the waiters for the same place have been served. A place is
//! therefore free for a newcomer only if no waiter would take it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::{BackendId, NoBackend};

/// A waiter for its own backend takes any place after so many later requests were served, for each backend of
/// the pool and for each waiter. With fewer, classes spread over backends when many wait (docs/balancing.md).
const PASSED_OVER_PER_BACKEND: u64 = 8;
const PASSED_OVER_PER_WAITING: u64 = 2;

/// The state of the queue of a pool, for people and monitoring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueReport {
    /// The current waiters.
    pub waiting: usize,
    /// The most requests that may wait; 0 if none may.
    pub limit: u32,
    /// The requests that had to wait, in total, also before reloads.
    pub queued: u64,
    /// The requests that found the queue full, in total, also before reloads.
    pub refused: u64,
}

/// The queue's view of a pool. It holds no more, because a pool holds its queue, and a pick from the queue
/// holds the pool.
pub(crate) trait QueuedPool: Clone {
    /// A weak reference to the pool.
    type Weak;
    /// A claim to a place at a backend; dropping it gives it up.
    type Claim;
    /// A place that was taken.
    type Pick;

    fn downgrade(&self) -> Self::Weak;
    fn upgrade(weak: &Self::Weak) -> Option<Self>;

    /// The ids of the backends, in their order.
    fn ids(&self) -> &[BackendId];
    /// The position of an id in that order.
    fn position(&self, id: BackendId) -> Option<usize>;
    /// Whether the backend at this position has a free place.
    fn has_room_at(&self, at: usize) -> bool;
    /// Whether any backend in service has a free place; any backend at all if none is in service.
    fn has_room(&self, now: Duration) -> bool;
    /// The most requests that may wait.
    fn queue_limit(&self) -> usize;
    /// How long a request waits for one backend at most.
    fn patience(&self) -> Duration;

    /// A claim to the backend that a request sticks to, or to the best one for its class; `None` if it should
    /// wait for any.
    fn claim(
        &self,
        class: Option<&[u8]>,
        now: Duration,
        exclude: &[BackendId],
        sticks_to: Option<BackendId>,
    ) -> Option<Self::Claim>;
    /// The backend of a claim.
    fn claimed(claim: &Self::Claim) -> BackendId;
    /// Takes the claimed place, for a request that `tried` backends failed; `None` if that is impossible.
    fn honour(
        &self,
        claim: Self::Claim,
        class: Option<&[u8]>,
        now: Duration,
        tried: usize,
    ) -> Option<Self::Pick>;
    /// Takes any place.
    fn take_any(&self, class: Option<&[u8]>, now: Duration, exclude: &[BackendId]) -> Option<Self::Pick>;
    /// The reason why there is no place.
    fn refusal(&self, exclude: &[BackendId]) -> NoBackend;
}

/// The requests that wait for a place at a pool.
pub(crate) struct Queue<P: QueuedPool> {
    /// The length of the queue, readable without the lock.
    waiting: AtomicUsize,
    state: Mutex<QueueState<P>>,
}

impl<P: QueuedPool> Default for Queue<P> {
    fn default() -> Queue<P> {
        let state = QueueState {
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
        Queue { waiting: AtomicUsize::new(0), state: Mutex::new(state) }
    }
}

/// The entry of one request in the queue.
#[derive(Debug, Default)]
pub(crate) struct QueueEntry {
    /// Its position in the queue, if it has one.
    number: Option<u64>,
    /// The backend that its session sticks to.
    pub(crate) sticks_to: Option<BackendId>,
}

struct QueueState<P: QueuedPool> {
    /// The pool in force, if a reload has replaced the first. A weak reference, because a pool holds its
    /// queue.
    newest: Option<P::Weak>,
    /// How many requests came, in total.
    came: u64,
    /// The waiters, by how many came before.
    waiting: BTreeMap<u64, Waiter<P::Claim>>,
    /// The backend that each of them waits for; `None` for any.
    wanted: BTreeSet<(Option<BackendId>, u64)>,
    /// The latest time that was seen.
    now: Duration,
    /// All waiters before this number take any place.
    settled: u64,
    /// Places granted to tickets that have not been polled since.
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

/// Wakers to be called or dropped after the lock is released, because they run foreign code.
#[derive(Default)]
#[must_use]
struct PendingWakers(Vec<Waker>);

impl PendingWakers {
    fn wake(self) {
        self.0.into_iter().for_each(Waker::wake);
    }
}

impl<P: QueuedPool> Queue<P> {
    /// The number of waiters.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    pub(crate) fn report(&self, limit: u32) -> QueueReport {
        let state = self.lock();
        QueueReport { waiting: state.waiting.len(), limit, queued: state.queued, refused: state.refused }
    }

    /// Gives the free places at a backend of `pool`, or at any if none is named, to waiters. MUST be called
    /// after a place was given back.
    pub(crate) fn pass_on(&self, pool: &P, freed: Option<BackendId>, now: Duration) {
        if self.waiting() > 0 {
            self.after_those_waiting(pool, freed, now, || ());
        }
    }

    /// Runs `then` after all waiters for a place at a backend, or at any if none is named, have been served,
    /// and before another request can begin to wait.
    pub(crate) fn after_those_waiting<T>(
        &self,
        pool: &P,
        freed: Option<BackendId>,
        now: Duration,
        then: impl FnOnce() -> T,
    ) -> T {
        let mut state = self.lock();
        state.now = state.now.max(now);
        let pool = state.serving(pool);
        let wakers = state.serve(&pool, freed);
        self.count(&state);
        let done = then();
        drop(state);
        wakers.wake();
        done
    }

    /// Puts `pool` in force. All waiters are placed again: it may have room, or no longer have their
    /// backends.
    pub(crate) fn follow(&self, pool: &P) {
        let mut state = self.lock();
        state.newest = Some(pool.downgrade());
        let numbers: Vec<u64> = state.waiting.keys().copied().collect();
        // Previous backends may be gone.
        numbers.iter().for_each(|&number| state.want(number, None));
        let mut wakers = PendingWakers::default();
        numbers.iter().for_each(|&number| state.place(pool, number, &mut wakers));
        self.count(&state);
        wakers.0.extend(state.waiting.values().map(|waiter| waiter.waker.clone()));
        drop(state);
        wakers.wake();
    }

    /// Lets the waiters for a backend choose again, because it gets no new requests.
    pub(crate) fn forsake(&self, pool: &P, id: BackendId) {
        if self.waiting() == 0 {
            return;
        }
        let mut state = self.lock();
        let pool = state.serving(pool);
        let mut wakers = PendingWakers::default();
        let all: Vec<u64> =
            state.wanted.range((Some(id), 0)..=(Some(id), u64::MAX)).map(|&(_, number)| number).collect();
        for number in all {
            state.want(number, None);
            state.place(&pool, number, &mut wakers);
        }
        self.count(&state);
        drop(state);
        wakers.wake();
    }

    /// Gives a request the place that it waits for, or lets it wait; see
    /// [`Ticket::poll_pick`](crate::Ticket::poll_pick).
    pub(crate) fn poll(
        &self,
        pool: &P,
        entry: &mut QueueEntry,
        cx: &mut Context<'_>,
        class: Option<&[u8]>,
        now: Duration,
        exclude: &[BackendId],
    ) -> Poll<Result<P::Pick, NoBackend>> {
        let mut waker = cx.waker().clone();
        let mut state = self.lock();
        state.now = state.now.max(now);
        let pool = state.serving(pool);
        if let Some(pick) = entry.number.and_then(|number| state.granted.remove(&number)) {
            drop(state);
            entry.number = None;
            return Poll::Ready(Ok(pick));
        }
        let mut wakers = PendingWakers::default();
        let (number, news) = match entry.number {
            Some(number) => {
                // No place was granted, so it waits.
                let mut news = false;
                if let Some(waiter) = state.waiting.get_mut(&number) {
                    std::mem::swap(&mut waiter.waker, &mut waker);
                    news = waiter.exclude != exclude;
                    waiter.exclude.clear();
                    waiter.exclude.extend_from_slice(exclude);
                }
                (number, news)
            }
            None if state.waiting.len() >= pool.queue_limit() => {
                let wakers = state.serve(&pool, None);
                let pick = pool.take_any(class, now, exclude);
                state.refused += u64::from(pick.is_none());
                self.count(&state);
                drop(state);
                wakers.wake();
                return Poll::Ready(pick.ok_or(NoBackend::QueueFull));
            }
            None => {
                let number = state.came;
                state.came += 1;
                let waiter = Waiter {
                    waker: waker.clone(),
                    class: class.map(Box::from),
                    since: state.now,
                    exclude: exclude.to_vec(),
                    sticks_to: entry.sticks_to,
                    claim: None,
                };
                state.waiting.insert(number, waiter);
                state.wanted.insert((None, number));
                self.count(&state);
                (number, true)
            }
        };
        // A thread that gives a place back without seeing this waiter gave it back before the following
        // check.
        fence(Ordering::SeqCst);
        if news {
            state.want(number, None);
            state.place(&pool, number, &mut wakers);
        } else {
            state.serve_all(&pool, &mut wakers);
        }
        let done = match state.granted.remove(&number) {
            Some(pick) => Some(Ok(pick)),
            None => match pool.refusal(exclude) {
                NoBackend::AllFull => None,
                hopeless => Some(Err(hopeless)),
            },
        };
        let given_up = if done.is_some() { state.leave(number) } else { None };
        state.queued += u64::from(entry.number.is_none() && done.is_none());
        self.count(&state);
        drop(state);
        drop((given_up, waker));
        wakers.wake();
        entry.number = if done.is_some() { None } else { Some(number) };
        done.map_or(Poll::Pending, Poll::Ready)
    }

    /// Counts a request that was refused because the queue is disabled.
    pub(crate) fn refuse(&self) {
        self.lock().refused += 1;
    }

    /// Removes a request from the queue.
    pub(crate) fn leave(&self, entry: &QueueEntry) {
        let Some(number) = entry.number else { return };
        let mut state = self.lock();
        let waiter = state.leave(number);
        let granted = state.granted.remove(&number);
        self.count(&state);
        drop(state);
        // Not under the lock: dropping a pick serves the next waiter.
        drop((waiter, granted));
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, state: &QueueState<P>) {
        self.waiting.store(state.waiting.len(), Ordering::SeqCst);
    }
}

impl<P: QueuedPool> QueueState<P> {
    /// The pool in force: the newest one, or `pool`, which shares this queue, if that is gone or there was no
    /// other.
    fn serving(&self, pool: &P) -> P {
        self.newest.as_ref().and_then(P::upgrade).unwrap_or_else(|| pool.clone())
    }

    /// Gives free places at a backend, or at any if none is named, to the waiters in order.
    fn serve(&mut self, pool: &P, freed: Option<BackendId>) -> PendingWakers {
        let mut wakers = PendingWakers::default();
        if self.waiting.is_empty() {
            return wakers;
        }
        match freed {
            Some(id) => self.serve_at(pool, id, &mut wakers),
            None => self.serve_all(pool, &mut wakers),
        }
        wakers
    }

    fn serve_all(&mut self, pool: &P, wakers: &mut PendingWakers) {
        self.settle(pool, wakers);
        let mut from = 0;
        while let Some(number) = self.first(None, from)
            && pool.has_room(self.now)
        {
            self.grant(pool, number, wakers);
            from = number + 1;
        }
        for (at, &id) in pool.ids().iter().enumerate() {
            if pool.has_room_at(at) && self.first(Some(id), 0).is_some() {
                self.serve_at(pool, id, wakers);
            }
        }
    }

    /// Gives free places at a backend to the waiters for it or for any. A waiter that may not take it is
    /// passed over.
    fn serve_at(&mut self, pool: &P, id: BackendId, wakers: &mut PendingWakers) {
        let Some(at) = pool.position(id) else { return };
        self.settle(pool, wakers);
        let mut from = 0;
        while pool.has_room_at(at) {
            let first = self.first(Some(id), 0).into_iter().chain(self.first(None, from)).min();
            let Some(number) = first else { return };
            if !self.grant(pool, number, wakers) {
                // It has no claim any more, and the place may be for others.
                from = number + 1;
            }
            self.settle(pool, wakers);
        }
    }

    /// The first from this number on that waits for a backend, or for any if none is named.
    fn first(&self, wanted: Option<BackendId>, from: u64) -> Option<u64> {
        self.wanted.range((wanted, from)..=(wanted, u64::MAX)).next().map(|&(_, number)| number)
    }

    /// Lets the waiters that were passed over often enough, or waited for long enough, take any place.
    fn settle(&mut self, pool: &P, wakers: &mut PendingWakers) {
        while let Some((&number, waiter)) = self.waiting.range(self.settled..).next()
            && (self.passed_over(number) >= self.most_passed_over(pool)
                || self.now.saturating_sub(waiter.since) >= pool.patience())
        {
            self.settled = number + 1;
            self.want(number, None);
            if pool.has_room(self.now) {
                self.grant(pool, number, wakers);
            }
        }
    }

    /// How many requests that came after the first waiter have left the queue. All that came before it have
    /// left too, and its number counts them. For another waiter, this is a lower bound.
    fn passed_over(&self, number: u64) -> u64 {
        (self.came - self.waiting.len() as u64).saturating_sub(number)
    }

    /// After so many, a waiter takes any place.
    fn most_passed_over(&self, pool: &P) -> u64 {
        pool.ids().len() as u64 * PASSED_OVER_PER_BACKEND
            + self.waiting.len() as u64 * PASSED_OVER_PER_WAITING
    }

    /// Gives a waiter the place that it has a claim to, or else any, and returns whether there was one. A
    /// claim that cannot be honoured is given up.
    fn grant(&mut self, pool: &P, number: u64, wakers: &mut PendingWakers) -> bool {
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
                wakers.0.extend(self.waiting.remove(&number).map(|waiter| waiter.waker));
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

    /// From now on, a waiter waits for the backend of `claim`, or for any.
    fn want(&mut self, number: u64, claim: Option<P::Claim>) {
        let Some(waiter) = self.waiting.get_mut(&number) else { return };
        let before = waiter.claim.as_ref().map(P::claimed);
        self.wanted.remove(&(before, number));
        self.wanted.insert((claim.as_ref().map(P::claimed), number));
        waiter.claim = claim;
    }

    /// Decides what a waiter waits for, and serves the waiters for the same.
    fn place(&mut self, pool: &P, number: u64, wakers: &mut PendingWakers) {
        let now = self.now;
        let Some(waiter) = self.waiting.get(&number) else { return };
        let class = waiter.class.as_deref();
        let patient = number >= self.settled;
        let claim = patient.then(|| pool.claim(class, now, &waiter.exclude, waiter.sticks_to)).flatten();
        match claim {
            Some(claim) => {
                let id = P::claimed(&claim);
                self.want(number, Some(claim));
                self.serve_at(pool, id, wakers);
            }
            None => self.serve_all(pool, wakers),
        }
    }

    /// Removes a request from the queue.
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
