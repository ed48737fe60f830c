//! A pool: backends that can all serve the same requests.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::algorithm::Chooser;
use crate::algorithm::resume::{Expected, Resume};
use crate::backend::Availability;
use crate::candidates::{Candidates, RequestContext};
use crate::choices::{Choices, Chosen};
use crate::durations::{micros, millis};
use crate::ids::Places;
use crate::load::PoolLoad;
use crate::queue::Queue;
use crate::random::SharedRandom;
use crate::request_ages::Ages;
use crate::{Algorithm, Backend, BackendId, ChoiceReason, NoBackend, QueueReport, Settings};

/// A pool of backends. Cloning it is cheap, and the clones are one pool.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

pub(crate) struct Inner {
    name: Box<str>,
    backends: Box<[Backend]>,
    /// The id of each backend.
    ids: Box<[BackendId]>,
    /// The position of each id.
    places: Places,
    /// The first id that neither this pool nor one before it has used.
    next_id: u32,
    settings: Settings,
    chooser: Chooser,
    random: SharedRandom,
    /// The sum of the weights.
    weights: f32,
    /// Held while a backend is ejected, so that two cores do not eject the last two at once.
    ejecting: Mutex<()>,
    /// This and the following fields are shared with preceding and succeeding pools.
    queue: Arc<Queue<Pool>>,
    load: Arc<PoolLoad>,
    choices: Arc<Choices>,
    ages: Arc<Ages>,
    /// The version in service, if only one may serve.
    serving: Arc<Mutex<Option<Box<str>>>>,
}

impl Pool {
    /// A pool called `name` that chooses among `backends` by `settings`, or by the defaults of an
    /// [`Algorithm`].
    pub fn new(name: &str, backends: Vec<Backend>, settings: impl Into<Settings>) -> Pool {
        let ids: Vec<_> = (0..backends.len() as u32).map(BackendId).collect();
        let next_id = ids.len() as u32;
        Pool::made(name, backends, ids, next_id, settings.into(), None)
    }

    /// A pool of these backends that succeeds this one under the same name, for a reload or a change of
    /// backends. A backend under the same address keeps its requests in flight, health and skills. Requests
    /// that wait for a place at this one are served by the new pool. The new pool MUST replace this one, and
    /// backends that are not in it are forgotten.
    pub fn succeeded_by(&self, backends: Vec<Backend>, settings: impl Into<Settings>) -> Pool {
        let before = &*self.0;
        let mut next_id = before.next_id;
        let carry_on = |backend: Backend| {
            let same = before.backends.iter().position(|other| other.address() == backend.address());
            match same {
                Some(at) => (before.ids[at], backend.with_state_of(&before.backends[at])),
                None => {
                    let id = BackendId(next_id);
                    next_id = next_id.wrapping_add(1);
                    backend.state.warm_up();
                    backend.state.load.renew();
                    (id, backend)
                }
            }
        };
        let (ids, backends): (Vec<_>, Vec<_>) = backends.into_iter().map(carry_on).unzip();
        let pool = Pool::made(&before.name, backends, ids, next_id, settings.into(), Some(before));
        pool.0.elect();
        pool.0.queue.follow(&pool);
        pool
    }

    fn made(
        name: &str,
        backends: Vec<Backend>,
        ids: Vec<BackendId>,
        next_id: u32,
        settings: Settings,
        before: Option<&Inner>,
    ) -> Pool {
        let chooser = Chooser::new(&settings, &backends, before.map(|before| &before.chooser));
        let places = Places::new(&ids);
        if let (Some(before), Some(resume)) = (before, chooser.resume()) {
            resume.follow(before.chooser.resume(), &before.ids, &places, &backends);
        }
        // A pool that did not count its load has none to pass on.
        let load = before.filter(|before| before.chooser.counts_load()).map(|before| before.load.clone());
        Pool(Arc::new(Inner {
            name: name.into(),
            places,
            ids: ids.into(),
            next_id,
            weights: backends.iter().map(|backend| backend.weight() as f32).sum(),
            backends: backends.into(),
            chooser,
            random: SharedRandom::new(settings.seed),
            settings,
            ejecting: Mutex::new(()),
            queue: before.map_or_else(Arc::default, |before| before.queue.clone()),
            load: load.unwrap_or_default(),
            choices: before.map_or_else(Arc::default, |before| before.choices.clone()),
            ages: before.map_or_else(Arc::default, |before| before.ages.clone()),
            serving: before.map_or_else(Arc::default, |before| before.serving.clone()),
        }))
    }

    /// The pool's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The algorithm of the pool.
    pub fn algorithm(&self) -> Algorithm {
        self.0.settings.algorithm
    }

    /// The settings of the pool.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The backends, in the order they were given.
    pub fn backends(&self) -> &[Backend] {
        &self.0.backends
    }

    /// Notes that another backend answered a request first, and that this one was given up after this time:
    /// it would have taken longer. Without that, an algorithm that chooses by latency would take a backend
    /// that always loses for an unused one.
    pub fn overtaken(&self, backend: BackendId, after: Duration, now: Duration) {
        if let (Chooser::PeakEwma(_), Some(backend)) = (&self.0.chooser, self.backend(backend)) {
            backend.state.latency.add(after.as_secs_f32() * 1000.0, millis(now));
        }
    }

    /// Whether sticky sessions stay at a backend: it is in service, possibly full, or draining.
    pub fn holds_sessions(&self, backend: BackendId, now: Duration) -> bool {
        self.0.places.of(backend).is_some_and(|at| self.keeps_sessions(at, now))
    }

    pub(crate) fn keeps_sessions(&self, at: usize, now: Duration) -> bool {
        let state = &self.0.backends[at].state;
        state.availability(millis(now)) == Availability::InService && !state.sidelined.load(Ordering::Relaxed)
    }

    /// The choice for a session that sticks to a backend, if it stays there.
    pub(crate) fn sticking(&self, backend: BackendId, now: Duration) -> Option<Chosen> {
        let at = self.0.places.of(backend).filter(|&at| self.keeps_sessions(at, now))?;
        Some(Chosen::new(at, ChoiceReason::Sticky))
    }

    /// The backend with this [`Backend::key`].
    pub fn with_key(&self, key: u64) -> Option<BackendId> {
        let at = self.0.backends.iter().position(|backend| backend.key() == key)?;
        Some(self.0.ids[at])
    }

    /// The backend of an id, if the pool has it.
    pub fn backend(&self, id: BackendId) -> Option<&Backend> {
        self.0.places.of(id).map(|at| &self.0.backends[at])
    }

    /// The id of each backend, in the order they were given.
    pub fn ids(&self) -> &[BackendId] {
        &self.0.ids
    }

    /// The state of the queue for a place.
    pub fn queue_report(&self) -> QueueReport {
        self.0.queue.report(self.0.settings.queue_limit)
    }

    pub(crate) fn queue_limit(&self) -> u32 {
        self.0.settings.queue_limit
    }

    pub(crate) fn queue_before(&self) -> &Queue<Pool> {
        &self.0.queue
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    pub(crate) fn downgrade(&self) -> Weak<Inner> {
        Arc::downgrade(&self.0)
    }

    pub(crate) fn upgrade(inner: &Weak<Inner>) -> Option<Pool> {
        inner.upgrade().map(Pool)
    }

    /// Whether a request of this class may wait for a place at one backend while others have places.
    pub(crate) fn may_wait_for_one(&self, class: Option<&[u8]>) -> bool {
        class.is_some() && self.0.settings.queue_limit > 0 && self.0.chooser.tells_classes_apart()
    }

    /// A request of this class, at `now`, that `tried` backends failed.
    pub(crate) fn request_context<'a>(
        &self,
        class: Option<&'a [u8]>,
        now: Duration,
        tried: usize,
    ) -> RequestContext<'a> {
        RequestContext { class, key: self.0.chooser.key(class), now, tried }
    }

    /// Whether any backend in service has a free place; any backend at all if none is in service.
    pub(crate) fn has_room(&self, now: Duration) -> bool {
        let anyone = !self.any_in_service(now, &[]);
        let now = millis(now);
        let mut backends = self.0.backends.iter();
        backends.any(|backend| backend.has_room() && (anyone || backend.is_in_service(now)))
    }

    /// Whether any backend except those in `exclude` is in service, full or not.
    fn any_in_service(&self, now: Duration, exclude: &[BackendId]) -> bool {
        let now = millis(now);
        let mut backends = self.0.backends.iter().zip(&self.0.ids);
        backends.any(|(backend, id)| backend.is_in_service(now) && !exclude.contains(id))
    }

    /// The best backend for a request, full or not.
    pub(crate) fn best(&self, request: &RequestContext<'_>, exclude: &[BackendId]) -> Option<Chosen> {
        self.choose(request, exclude, true, Some)
    }

    /// The result of `take` for a chosen backend. If that is `None`, another backend is chosen.
    pub(crate) fn choose<T>(
        &self,
        request: &RequestContext<'_>,
        exclude: &[BackendId],
        full_too: bool,
        mut take: impl FnMut(Chosen) -> Option<T>,
    ) -> Option<T> {
        let inner = &*self.0;
        if inner.backends.is_empty() {
            return None;
        }
        // Another core may take a free place before it is reserved: choose again, but not for ever.
        const ATTEMPTS: usize = 8;
        // Until the absence of a whole version is noticed, a request that has tried it in vain is served by
        // another version rather than by none.
        for (ejected_too, sidelined_too) in [(false, false), (true, false), (true, true)] {
            if sidelined_too && !(inner.settings.single_version && self.all_tried(exclude)) {
                break;
            }
            // A backend in service that is only full is worth waiting for.
            if ejected_too && self.any_in_service(request.now, exclude) {
                break;
            }
            let mut candidates = inner.candidates(ejected_too, request.now, exclude);
            candidates.sidelined_too = sidelined_too;
            candidates.full_too = full_too;
            for _ in 0..ATTEMPTS {
                let Some(chosen) = inner.chooser.choose(&candidates, request.key) else {
                    let overdue = |backend: &Backend| backend.state.is_overdue(candidates.now);
                    if candidates.overdue_too || !inner.backends.iter().any(overdue) {
                        break;
                    }
                    candidates.overdue_too = true;
                    continue;
                };
                let reason = match chosen.reason {
                    _ if inner.backends.len() == 1 => ChoiceReason::OnlyOne,
                    _ if ejected_too || candidates.overdue_too => ChoiceReason::ForWantOfOthers,
                    reason => reason,
                };
                if let Some(taken) = take(Chosen { reason, ..chosen }) {
                    return Some(taken);
                }
            }
        }
        None
    }

    /// Counts a request as a backend's from now on. Returns the expectation.
    pub(crate) fn assign(&self, at: usize, request: &RequestContext<'_>) -> Expected {
        let inner = &*self.0;
        if inner.chooser.counts_load() {
            inner.load.begin();
        }
        inner.chooser.resume().map_or_else(Expected::default, |resume| {
            let (backend, id) = (&inner.backends[at], inner.ids[at]);
            let class = request.key.zip(request.class);
            resume.begun(backend, id, &inner.load, inner.backends.len(), class, micros(request.now))
        })
    }

    /// No longer counts a request with this expectation as the backend's.
    pub(crate) fn unassign(&self, at: usize, expected: Expected) {
        let inner = &*self.0;
        if inner.chooser.counts_load() {
            inner.load.end();
        }
        if let Some(resume) = inner.chooser.resume() {
            resume.ended(&inner.backends[at], expected);
        }
    }

    /// Whether all backends in service are excluded.
    fn all_tried(&self, exclude: &[BackendId]) -> bool {
        let mut backends = self.0.backends.iter().zip(&self.0.ids);
        backends.all(|(backend, id)| !backend.state.serves() || exclude.contains(id))
    }

    /// The reason why there is no pick.
    pub(crate) fn refusal(&self, exclude: &[BackendId]) -> NoBackend {
        if self.0.backends.is_empty() {
            NoBackend::Empty
        } else if !self.0.backends.iter().any(|backend| backend.state.serves()) {
            NoBackend::NoneServes
        } else if self.all_tried(exclude) {
            NoBackend::AllTried
        } else {
            NoBackend::AllFull
        }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("name", &self.0.name)
            .field("algorithm", &self.0.settings.algorithm)
            .field("backends", &self.0.backends)
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn candidates<'a>(
        &'a self,
        ejected_too: bool,
        now: Duration,
        exclude: &'a [BackendId],
    ) -> Candidates<'a> {
        Candidates {
            backends: &self.backends,
            ids: &self.ids,
            places: &self.places,
            load: &self.load,
            random: &self.random,
            weights: self.weights,
            slow_start: millis(self.settings.slow_start),
            now: millis(now),
            micros: micros(now),
            exclude,
            ejected_too,
            overdue_too: false,
            full_too: false,
            sidelined_too: false,
        }
    }

    pub(crate) fn backends(&self) -> &[Backend] {
        &self.backends
    }

    pub(crate) fn ids(&self) -> &[BackendId] {
        &self.ids
    }

    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn load(&self) -> &PoolLoad {
        &self.load
    }

    pub(crate) fn resume(&self) -> Option<&Resume> {
        self.chooser.resume()
    }

    pub(crate) fn choices(&self) -> &Choices {
        &self.choices
    }

    pub(crate) fn ages(&self) -> &Ages {
        &self.ages
    }

    pub(crate) fn serving(&self) -> &Mutex<Option<Box<str>>> {
        &self.serving
    }

    pub(crate) fn chooser(&self) -> &Chooser {
        &self.chooser
    }

    pub(crate) fn ejecting(&self) -> &Mutex<()> {
        &self.ejecting
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
