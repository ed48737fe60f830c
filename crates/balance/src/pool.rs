//! A pool: backends that can all answer the same requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::backend::{Standing, millis};
use crate::random::Random;
use crate::{Algorithm, Backend, Ejection};

/// A pool of backends. Cloning it is cheap, and the clones are one pool.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

struct Inner {
    name: Box<str>,
    backends: Box<[Backend]>,
    algorithm: Algorithm,
    ejection: Ejection,
    random: Random,
    turn: AtomicUsize,
    /// Held while a backend is ejected, so that two cores do not eject the last two at once.
    ejecting: Mutex<()>,
}

/// A backend of one pool. It means nothing to another pool, also not to the one that takes its place on a reload.
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
}

impl std::fmt::Display for NoBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NoBackend::Empty => "the pool has no backend",
            NoBackend::AllTried => "every backend was tried",
            NoBackend::AllFull => "every backend has as many requests in flight as it may have",
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
}

impl Pool {
    /// A pool called `name` that chooses among `backends` by `algorithm`, with the default [`Ejection`] and seed 0.
    pub fn new(name: &str, backends: Vec<Backend>, algorithm: Algorithm) -> Pool {
        Pool::with(name, backends, algorithm, Ejection::default(), 0)
    }

    /// A pool with everything stated. Equal seeds and equal calls give equal choices.
    pub fn with(
        name: &str,
        backends: Vec<Backend>,
        algorithm: Algorithm,
        ejection: Ejection,
        seed: u64,
    ) -> Pool {
        Pool(Arc::new(Inner {
            name: name.into(),
            backends: backends.into(),
            algorithm,
            ejection,
            random: Random::new(seed),
            turn: AtomicUsize::new(0),
            ejecting: Mutex::new(()),
        }))
    }

    /// A pool like this one, where each backend that `before` had under the same address carries on from there:
    /// what is in flight to it and what is known of its health. For a reload.
    pub fn succeeding(&self, before: &Pool, seed: u64) -> Pool {
        let carry_on = |backend: &Backend| {
            let same = before.0.backends.iter().find(|other| other.address() == backend.address());
            same.map_or_else(|| backend.clone(), |same| backend.clone().with_state_of(same))
        };
        let backends = self.0.backends.iter().map(carry_on).collect();
        Pool::with(&self.0.name, backends, self.0.algorithm, self.0.ejection, seed)
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
    pub fn pick(
        &self,
        class: Option<&[u8]>,
        now: Duration,
        exclude: &[BackendId],
    ) -> Result<Pick, NoBackend> {
        let _ = class;
        let inner = &*self.0;
        let now = millis(now);
        // A place seen free may be taken before it is reserved, by another core: choose again, but not for ever.
        const ATTEMPTS: usize = 8;
        for ejected_too in [false, true] {
            for _ in 0..ATTEMPTS {
                let Some(at) = inner.choose(ejected_too, now, exclude) else { break };
                if let Some(trial) = inner.take(at, now) {
                    return Ok(Pick { pool: self.clone(), at, trial });
                }
            }
        }
        Err(if inner.backends.is_empty() {
            NoBackend::Empty
        } else if (0..inner.backends.len()).all(|at| exclude.contains(&BackendId(at as u32))) {
            NoBackend::AllTried
        } else {
            NoBackend::AllFull
        })
    }

    /// What is known of every backend.
    pub fn report(&self, now: Duration) -> Vec<BackendReport> {
        let now = millis(now);
        let report = |(at, backend): (usize, &Backend)| {
            let state = &backend.state;
            let left = state.ejected_until.load(Ordering::Relaxed).saturating_sub(now);
            BackendReport {
                id: BackendId(at as u32),
                address: backend.address().to_string(),
                in_flight: backend.in_flight(),
                picks: state.picks.load(Ordering::Relaxed),
                connect_failures: state.connect_failures.load(Ordering::Relaxed),
                ejected_for: (left > 0).then(|| Duration::from_millis(left)),
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
                && !exclude.contains(&BackendId(at as u32))
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
        BackendId(self.at as u32)
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
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
