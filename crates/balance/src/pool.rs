//! A pool: backends that can all answer the same requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::backend::{Standing, millis};
use crate::queue::Queue;
use crate::random::Random;
use crate::{Algorithm, Backend, Ejection, QueueReport, Ticket};

/// A pool of backends. Cloning it is cheap, and the clones are one pool.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

pub(crate) struct Inner {
    name: Box<str>,
    backends: Box<[Backend]>,
    /// The id of each backend.
    ids: Box<[BackendId]>,
    /// The first id that neither this pool nor one before it has used.
    next_id: u32,
    algorithm: Algorithm,
    ejection: Ejection,
    random: Random,
    turn: AtomicUsize,
    /// Held while a backend is ejected, so that two cores do not eject the last two at once.
    ejecting: Mutex<()>,
    /// The most that may wait for a place.
    queue_limit: u32,
    /// Shared with the pools before and after this one.
    queue: Arc<Queue>,
}

/// A backend of one pool, and the same backend of the pools that take its place on reloads. It means nothing to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BackendId(u32);

/// Why no backend takes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoBackend {
    /// The pool has none.
    Empty,
    /// Every backend was excluded by the caller, having been tried.
    AllTried,
    /// Every backend that was not excluded has as many requests in flight as it may have.
    AllFull,
    /// Every backend is full, and as many requests wait for a place as may.
    QueueFull,
}

impl std::fmt::Display for NoBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NoBackend::Empty => "the pool has no backend",
            NoBackend::AllTried => "every backend was tried",
            NoBackend::AllFull => "every backend has as many requests in flight as it may have",
            NoBackend::QueueFull => "every backend is full, and so is the queue before them",
        })
    }
}

impl std::error::Error for NoBackend {}

/// How a request ended at its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A whole response came, whatever its status.
    Answered,
    /// No connection could be made.
    ConnectFailed,
    /// The connection was there, but no whole response came over it in time.
    Broken,
    /// The request was given up for reasons that are not the backend's.
    Aborted,
}

/// What is known of a backend, for people and monitoring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendReport {
    /// The backend.
    pub id: BackendId,
    /// Its address.
    pub address: String,
    /// The requests it is answering now.
    pub in_flight: u32,
    /// The requests it was given, ever.
    pub picks: u64,
    /// The failures to connect to it, ever.
    pub connect_failures: u64,
    /// For how much longer it is ejected; `None` where it is not.
    pub ejected_for: Option<Duration>,
    /// Whether it has failed as often in a row as ejects a backend, and has not answered since: it is ejected, on trial, or
    /// the last one left.
    pub failing: bool,
}

impl Pool {
    /// How many may wait for a place, where nothing else is said. A thousand are a second of work for a pool that
    /// answers each in 10 ms at ten places: a burst is waited out, while what comes on top of a lasting overload is
    /// refused before its client has gone. At some 100 bytes here and a connection each, they are cheap to hold.
    pub const QUEUE_LIMIT: u32 = 1000;

    /// A pool called `name` that chooses among `backends` by `algorithm`, with the default [`Ejection`],
    /// [`Pool::QUEUE_LIMIT`] and seed 0.
    pub fn new(name: &str, backends: Vec<Backend>, algorithm: Algorithm) -> Pool {
        Pool::with(name, backends, algorithm, Ejection::default(), Pool::QUEUE_LIMIT, 0)
    }

    /// A pool with everything stated. At most `queue_limit` requests wait for a place; 0 means that none does.
    /// Equal seeds and equal calls give equal choices.
    pub fn with(
        name: &str,
        backends: Vec<Backend>,
        algorithm: Algorithm,
        ejection: Ejection,
        queue_limit: u32,
        seed: u64,
    ) -> Pool {
        Pool(Arc::new(Inner {
            name: name.into(),
            ids: (0..backends.len() as u32).map(BackendId).collect(),
            next_id: backends.len() as u32,
            backends: backends.into(),
            algorithm,
            ejection,
            random: Random::new(seed),
            turn: AtomicUsize::new(0),
            ejecting: Mutex::new(()),
            queue_limit,
            queue: Arc::default(),
        }))
    }

    /// A pool like this one, where each backend that `before` had under the same address carries on from there:
    /// what is in flight to it and what is known of its health. Requests that wait for a place at `before` are served
    /// by the new pool. For a reload; the new pool must be put in the place of `before`.
    pub fn succeeding(&self, before: &Pool, seed: u64) -> Pool {
        let mut next_id = before.0.next_id;
        let carry_on = |backend: &Backend| {
            let same = before.0.backends.iter().position(|other| other.address() == backend.address());
            match same {
                Some(at) => (before.0.ids[at], backend.clone().with_state_of(&before.0.backends[at])),
                None => {
                    let id = BackendId(next_id);
                    next_id = next_id.wrapping_add(1);
                    (id, backend.clone())
                }
            }
        };
        let (ids, backends): (Vec<_>, Vec<_>) = self.0.backends.iter().map(carry_on).unzip();
        let pool = Pool(Arc::new(Inner {
            name: self.0.name.clone(),
            ids: ids.into(),
            next_id,
            backends: backends.into(),
            algorithm: self.0.algorithm,
            ejection: self.0.ejection,
            random: Random::new(seed),
            turn: AtomicUsize::new(0),
            ejecting: Mutex::new(()),
            queue_limit: self.0.queue_limit,
            queue: before.0.queue.clone(),
        }));
        pool.0.queue.follow(&pool);
        pool
    }

    /// The pool's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// How the pool chooses.
    pub fn algorithm(&self) -> Algorithm {
        self.0.algorithm
    }

    /// The backends, in the order they were given.
    pub fn backends(&self) -> &[Backend] {
        &self.0.backends
    }

    /// Chooses a backend and takes a place at it until the [`Pick`] is finished or dropped.
    ///
    /// `class` is the request class, for algorithms that tell requests apart; none of the present ones does.
    /// Backends in `exclude` are not chosen; those that are ejected only where no other can take the request.
    /// It does not wait, and does not overtake requests that do; [`Pool::queue`] is for those that shall wait.
    ///
    /// # Errors
    /// All but [`NoBackend::QueueFull`].
    pub fn pick(
        &self,
        class: Option<&[u8]>,
        now: Duration,
        exclude: &[BackendId],
    ) -> Result<Pick, NoBackend> {
        let _ = class;
        let queue = &*self.0.queue;
        let now = millis(now);
        let pick = if queue.waiting() == 0 {
            let pick = self.take_any(now, exclude);
            // On the way it may have taken a place and given it back, while someone came to wait for it.
            queue.pass_on(self);
            pick
        } else if self.has_room() {
            queue.after_those_waiting(self, || self.take_any(now, exclude))
        } else {
            None
        };
        pick.ok_or_else(|| self.refusal(exclude))
    }

    /// A turn at this pool, for a request that waits for a place where all are taken.
    pub fn queue(&self) -> Ticket {
        Ticket::new(self.clone())
    }

    /// How many wait for a place.
    pub fn queue_report(&self) -> QueueReport {
        self.0.queue.report(self.0.queue_limit)
    }

    pub(crate) fn queue_limit(&self) -> u32 {
        self.0.queue_limit
    }

    pub(crate) fn line(&self) -> &Queue {
        &self.0.queue
    }

    pub(crate) fn downgrade(&self) -> Weak<Inner> {
        Arc::downgrade(&self.0)
    }

    pub(crate) fn upgrade(inner: &Weak<Inner>) -> Option<Pool> {
        inner.upgrade().map(Pool)
    }

    /// Whether any backend has a place free.
    pub(crate) fn has_room(&self) -> bool {
        self.0.backends.iter().any(Backend::has_room)
    }

    /// A pick if there is one to be had, whoever waits. `now` is in milliseconds.
    pub(crate) fn take_any(&self, now: u64, exclude: &[BackendId]) -> Option<Pick> {
        let inner = &*self.0;
        // A place seen free may be taken before it is reserved, by another core: choose again, but not for ever.
        const ATTEMPTS: usize = 8;
        for ejected_too in [false, true] {
            for _ in 0..ATTEMPTS {
                let Some(at) = inner.choose(ejected_too, now, exclude) else { break };
                if let Some(trial) = inner.take(at, now) {
                    return Some(Pick { pool: self.clone(), at, trial });
                }
            }
        }
        None
    }

    /// Why there is no pick to be had.
    pub(crate) fn refusal(&self, exclude: &[BackendId]) -> NoBackend {
        if self.0.backends.is_empty() {
            NoBackend::Empty
        } else if self.0.ids.iter().all(|id| exclude.contains(id)) {
            NoBackend::AllTried
        } else {
            NoBackend::AllFull
        }
    }

    /// What is known of every backend.
    pub fn report(&self, now: Duration) -> Vec<BackendReport> {
        let now = millis(now);
        let report = |(at, backend): (usize, &Backend)| {
            let state = &backend.state;
            let left = state.ejected_until.load(Ordering::Relaxed).saturating_sub(now);
            BackendReport {
                id: self.0.ids[at],
                address: backend.address().to_string(),
                in_flight: backend.in_flight(),
                picks: state.picks.load(Ordering::Relaxed),
                connect_failures: state.connect_failures.load(Ordering::Relaxed),
                ejected_for: (left > 0).then(|| Duration::from_millis(left)),
                failing: state.failures.load(Ordering::Relaxed) >= self.0.ejection.failures.max(1),
            }
        };
        self.0.backends.iter().enumerate().map(report).collect()
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("name", &self.0.name)
            .field("algorithm", &self.0.algorithm)
            .field("backends", &self.0.backends)
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// Chooses among the backends that may take the request, without taking a place.
    fn choose(&self, ejected_too: bool, now: u64, exclude: &[BackendId]) -> Option<usize> {
        let count = self.backends.len();
        if count == 0 {
            return None;
        }
        let eligible = |at: usize| {
            let backend = &self.backends[at];
            backend.has_room()
                && (ejected_too || backend.state.standing(now) != Standing::Ejected)
                && !exclude.contains(&self.ids[at])
        };
        match self.algorithm {
            Algorithm::RoundRobin => {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                (0..count).map(|step| turn.wrapping_add(step) % count).find(|&at| eligible(at))
            }
            Algorithm::Random => {
                let at = self.random.below(count);
                if eligible(at) { Some(at) } else { self.any(eligible) }
            }
            Algorithm::LeastRequests => {
                let one = self.random.below(count);
                // Another than `one`, each of the rest with equal chances; the same where there is no other.
                let two = (one + 1 + self.random.below((count - 1).max(1))) % count;
                let load = |at: usize| self.backends[at].in_flight();
                match (eligible(one), eligible(two)) {
                    (true, true) => Some(if load(two) < load(one) { two } else { one }),
                    (true, false) => Some(one),
                    (false, true) => Some(two),
                    (false, false) => (0..count).filter(|&at| eligible(at)).min_by_key(|&at| load(at)),
                }
            }
        }
    }

    /// Any eligible backend, with equal chances.
    fn any(&self, eligible: impl Fn(usize) -> bool) -> Option<usize> {
        let all = 0..self.backends.len();
        let count = all.clone().filter(|&at| eligible(at)).count();
        // The second walk may see fewer than the first.
        (count > 0).then(|| all.filter(|&at| eligible(at)).nth(self.random.below(count))).flatten()
    }

    /// Takes a place at a backend, and its trial where one is due. Says whether the request is a trial.
    fn take(&self, at: usize, now: u64) -> Option<bool> {
        let backend = &self.backends[at];
        if !backend.reserve() {
            return None;
        }
        let trial = match backend.state.standing(now) {
            Standing::OnTrial(until) => {
                if !backend.state.claim_trial(until, now, self.ejection.millis(0)) {
                    backend.release();
                    return None;
                }
                true
            }
            Standing::InService | Standing::Ejected => false,
        };
        backend.state.picks.fetch_add(1, Ordering::Relaxed);
        Some(trial)
    }

    fn connect_failed(&self, at: usize, trial: bool, now: u64) {
        let state = &self.backends[at].state;
        state.connect_failures.fetch_add(1, Ordering::Relaxed);
        let failures = state.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if failures < self.ejection.failures.max(1) {
            return;
        }
        let _alone = self.ejecting.lock().unwrap_or_else(PoisonError::into_inner);
        // Failures of requests that were under way when it was ejected say nothing new.
        if !trial && state.standing(now) != Standing::InService {
            return;
        }
        // One that waits for its trial has not answered yet, and counts as ejected.
        let out = |backend: &Backend| backend.state.standing(now) != Standing::InService;
        let others = self.backends.iter().enumerate().filter(|&(other, backend)| other != at && out(backend));
        if others.count() < self.ejection.at_most(self.backends.len()) {
            let earlier = state.ejections.fetch_add(1, Ordering::Relaxed);
            let until = now.saturating_add(self.ejection.millis(earlier));
            state.ejected_until.store(until, Ordering::Relaxed);
        } else {
            state.ejected_until.store(0, Ordering::Relaxed);
        }
    }
}

/// A backend chosen for one request, with a place taken at it. Dropping it counts as [`Outcome::Aborted`].
#[derive(Debug)]
pub struct Pick {
    pool: Pool,
    at: usize,
    /// Whether this request finds out if an ejected backend is back.
    trial: bool,
}

impl Pick {
    /// Which backend it is; to be excluded from the next pick of this request if it fails.
    pub fn id(&self) -> BackendId {
        self.pool.0.ids[self.at]
    }

    /// The backend.
    pub fn backend(&self) -> &Backend {
        &self.pool.0.backends[self.at]
    }

    /// Gives the place back and tells how the request ended.
    pub fn finish(self, outcome: Outcome, now: Duration) {
        match outcome {
            Outcome::Answered => self.backend().state.answered(),
            Outcome::ConnectFailed => self.pool.0.connect_failed(self.at, self.trial, millis(now)),
            Outcome::Broken | Outcome::Aborted => {}
        }
    }
}

impl Drop for Pick {
    fn drop(&mut self) {
        self.backend().release();
        self.pool.0.queue.pass_on(&self.pool);
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
