//! A pool: backends that can all answer the same requests.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::ages::{Ages, Place};
use crate::algorithm::Chooser;
use crate::algorithm::resume::{ClassKey, Expected, Resume};
use crate::backend::{Standing, millis};
use crate::candidates::Candidates;
use crate::choices::{Choices, Chosen};
use crate::claim::Claim;
use crate::ids::Places;
use crate::load::PoolLoad;
use crate::queue::Queue;
use crate::random::SharedRandom;
use crate::{
    Algorithm, Backend, BackendId, ChoiceReason, QueueReport, Resumes, SavedSkills, Settings, SkillSource,
    Ticket,
};

/// A pool of backends. Cloning it is cheap, and the clones are one pool.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

pub(crate) struct Inner {
    name: Box<str>,
    backends: Box<[Backend]>,
    /// The id of each backend.
    ids: Box<[BackendId]>,
    /// Where the backend of an id is.
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
    /// Shared with the pools before and after this one, as is what follows.
    queue: Arc<Queue>,
    load: Arc<PoolLoad>,
    choices: Arc<Choices>,
    ages: Arc<Ages>,
    /// The version that serves, where only one does.
    serving: Arc<Mutex<Option<Box<str>>>>,
}

/// Why no backend takes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoBackend {
    /// The pool has none.
    Empty,
    /// Every backend is draining.
    NoneServes,
    /// Every backend that serves was excluded by the caller, having been tried.
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
            NoBackend::NoneServes => "every backend is draining",
            NoBackend::AllTried => "every backend was tried",
            NoBackend::AllFull => "every backend has as many requests in flight as it may have",
            NoBackend::QueueFull => "every backend is full, and so is the queue before them",
        })
    }
}

impl std::error::Error for NoBackend {}

/// What a choice has to know of a request.
pub(crate) struct Asked<'a> {
    pub(crate) class: Option<&'a [u8]>,
    /// The key by which the algorithm knows the class.
    pub(crate) key: Option<ClassKey>,
    pub(crate) now: Duration,
    /// How many backends were tried for it in vain.
    pub(crate) tried: usize,
}

/// How a request ended at its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A whole response came, whose status blames no server.
    Answered,
    /// A whole response came, of status 5xx.
    ServerError,
    /// No connection could be made, or a new one ended without a byte of a response: nobody is at work there.
    ConnectFailed,
    /// The connection was there, but no whole response came over it; or it had been kept, and ended by itself.
    Broken,
    /// No response came in time.
    Late,
    /// The request was given up for reasons that are not the backend's.
    Aborted,
}

impl Pool {
    /// A pool called `name` that chooses among `backends` as `settings` say, or as is usual for an [`Algorithm`].
    pub fn new(name: &str, backends: Vec<Backend>, settings: impl Into<Settings>) -> Pool {
        let ids: Vec<_> = (0..backends.len() as u32).map(BackendId).collect();
        let next_id = ids.len() as u32;
        Pool::made(name, backends, ids, next_id, settings.into(), None)
    }

    /// A pool of these backends that takes the place of this one, of the same name. Each backend that this one had under the
    /// same address carries on from there: what is in flight to it and what is known of its health and its skills. Requests
    /// that wait for a place at this one are served by the new pool. For a reload, and for backends that come and go; the
    /// new pool must be put in the place of this one, and backends that are not in it are forgotten.
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
        // One that did not count its load has none to hand on.
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

    /// How the pool chooses.
    pub fn algorithm(&self) -> Algorithm {
        self.0.settings.algorithm
    }

    /// How the pool is set up.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The backends, in the order they were given.
    pub fn backends(&self) -> &[Backend] {
        &self.0.backends
    }

    /// Chooses a backend and takes a place at it until the [`Pick`] is finished or dropped.
    ///
    /// `class` is the request class, for algorithms that tell requests apart: `resume`, `consistent_hash`, `maglev`.
    /// Backends in `exclude` are not chosen; those that are ejected only where no other is in service.
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
        let queue = &*self.0.queue;
        let pick = if queue.waiting() == 0 {
            let pick = self.take_any(class, now, exclude);
            // On the way it may have taken a place and given it back, while someone came to wait for it.
            queue.pass_on(self, None, now);
            pick
        } else if self.has_room(now) {
            queue.after_those_waiting(self, None, now, || self.take_any(class, now, exclude))
        } else {
            None
        };
        pick.ok_or_else(|| self.refusal(exclude))
    }

    /// Chooses a backend as [`Pool::pick`] does, for a request that may wait: where the backend that is best for it is full
    /// but worth waiting for, no other is taken.
    ///
    /// # Errors
    /// All but [`NoBackend::QueueFull`]; [`NoBackend::AllFull`] where [`Pool::queue`] is the next to be asked.
    pub fn pick_patiently(
        &self,
        class: Option<&[u8]>,
        now: Duration,
        exclude: &[BackendId],
    ) -> Result<Pick, NoBackend> {
        if !self.may_wait_for_one(class) {
            return self.pick(class, now, exclude);
        }
        let queue = &*self.0.queue;
        if queue.waiting() > 0 {
            return Err(self.refusal(exclude));
        }
        let asked = self.asked(class, now, exclude.len());
        let pick = self.choose(&asked, exclude, true, |chosen| {
            // One that is taken by another core meanwhile is chosen again, and found to be full.
            if self.0.backends[chosen.at].has_room() {
                self.take(chosen, &asked).map(Some)
            } else {
                Some(None)
            }
        });
        queue.pass_on(self, None, now);
        pick.flatten().ok_or_else(|| self.refusal(exclude))
    }

    /// Takes a place at the backend that a session sticks to, if that is in service and has one that nobody waits for. It may
    /// be draining: sessions end where they began.
    pub fn pick_sticky(&self, backend: BackendId, class: Option<&[u8]>, now: Duration) -> Option<Pick> {
        let at = self.0.places.of(backend).filter(|&at| self.keeps_sessions(at, now))?;
        let asked = self.asked(class, now, 0);
        let take = || self.take(Chosen::new(at, ChoiceReason::Sticky), &asked);
        match self.0.queue.waiting() {
            0 => take(),
            _ => self.0.queue.after_those_waiting(self, Some(backend), now, take),
        }
    }

    /// A request to a backend was answered by another one first, and given up there after so long: it would have taken longer.
    /// Who chooses by latency has to know, or a backend that never wins would look like one that is never asked.
    pub fn overtaken(&self, backend: BackendId, after: Duration, now: Duration) {
        if let (Chooser::PeakEwma(_), Some(backend)) = (&self.0.chooser, self.backend(backend)) {
            backend.state.latency.add(after.as_secs_f32() * 1000.0, millis(now));
        }
    }

    /// Whether sessions that stick to a backend are to stay there: it is in service, though it may be full, or draining.
    pub fn holds_sessions(&self, backend: BackendId, now: Duration) -> bool {
        self.0.places.of(backend).is_some_and(|at| self.keeps_sessions(at, now))
    }

    fn keeps_sessions(&self, at: usize, now: Duration) -> bool {
        let state = &self.0.backends[at].state;
        state.standing(millis(now)) == Standing::InService && !state.sidelined.load(Ordering::Relaxed)
    }

    /// What is chosen for a session that sticks to a backend, if it is to stay there.
    pub(crate) fn sticking(&self, backend: BackendId, now: Duration) -> Option<Chosen> {
        let at = self.0.places.of(backend).filter(|&at| self.keeps_sessions(at, now))?;
        Some(Chosen::new(at, ChoiceReason::Sticky))
    }

    /// The backend whose [`Backend::key`] this is.
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

    /// What workers say of themselves, where the pool chooses by that.
    pub fn resumes(&self) -> Option<Resumes<'_>> {
        self.0.chooser.resume().map(|resume| Resumes { pool: &self.0, resume })
    }

    /// The same, where workers keep their résumés themselves.
    pub fn reported_resumes(&self) -> Option<Resumes<'_>> {
        self.resumes().filter(|_| self.0.settings.resume.skills == SkillSource::Reported)
    }

    /// The skills that were inferred, to be saved.
    pub fn save_skills(&self) -> SavedSkills {
        let save = |resume: &Resume| resume.save(&self.0.backends, &self.0.ids);
        self.0.chooser.resume().map(save).unwrap_or_default()
    }

    /// Takes skills back that were saved. Returns how many that were: what was seen under another classifier or at
    /// backends that are gone, and scores that cannot be, are passed over.
    pub fn restore_skills(&self, saved: &SavedSkills) -> usize {
        self.0.chooser.resume().map_or(0, |resume| resume.restore(saved, &self.0.backends, &self.0.ids))
    }

    /// A turn at this pool, for a request that waits for a place where all are taken.
    pub fn queue(&self) -> Ticket {
        Ticket::new(self.clone())
    }

    /// How many wait for a place.
    pub fn queue_report(&self) -> QueueReport {
        self.0.queue.report(self.0.settings.queue_limit)
    }

    pub(crate) fn queue_limit(&self) -> u32 {
        self.0.settings.queue_limit
    }

    pub(crate) fn line(&self) -> &Queue {
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
    pub(crate) fn asked<'a>(&self, class: Option<&'a [u8]>, now: Duration, tried: usize) -> Asked<'a> {
        Asked { class, key: self.0.chooser.key(class), now, tried }
    }

    /// Whether any backend has a place free that is in service; any at all where none is.
    pub(crate) fn has_room(&self, now: Duration) -> bool {
        let anyone = !self.any_in_service(now, &[]);
        let now = millis(now);
        let mut backends = self.0.backends.iter();
        backends.any(|backend| backend.has_room() && (anyone || backend.is_in_service(now)))
    }

    /// Whether any backend but those is in service, be it full or not.
    fn any_in_service(&self, now: Duration, exclude: &[BackendId]) -> bool {
        let now = millis(now);
        let mut backends = self.0.backends.iter().zip(&self.0.ids);
        backends.any(|(backend, id)| backend.is_in_service(now) && !exclude.contains(id))
    }

    /// A pick if there is one to be had, whoever waits.
    pub(crate) fn take_any(
        &self,
        class: Option<&[u8]>,
        now: Duration,
        exclude: &[BackendId],
    ) -> Option<Pick> {
        let asked = self.asked(class, now, exclude.len());
        self.choose(&asked, exclude, false, |chosen| self.take(chosen, &asked))
    }

    /// The backend that is best for a request, be it full or not.
    pub(crate) fn best(&self, asked: &Asked<'_>, exclude: &[BackendId]) -> Option<Chosen> {
        self.choose(asked, exclude, true, Some)
    }

    /// What `take` makes of a backend that is chosen, of another one where it makes nothing of that.
    fn choose<T>(
        &self,
        asked: &Asked<'_>,
        exclude: &[BackendId],
        full_too: bool,
        mut take: impl FnMut(Chosen) -> Option<T>,
    ) -> Option<T> {
        let inner = &*self.0;
        if inner.backends.is_empty() {
            return None;
        }
        // A place seen free may be taken before it is reserved, by another core: choose again, but not for ever.
        const ATTEMPTS: usize = 8;
        // Until it is noticed that all of a version are gone, a request that has tried them in vain is served by another one
        // rather than by none.
        for (ejected_too, sidelined_too) in [(false, false), (true, false), (true, true)] {
            if sidelined_too && !(inner.settings.single_version && self.all_tried(exclude)) {
                break;
            }
            // One that is in service and only full is worth waiting for.
            if ejected_too && self.any_in_service(asked.now, exclude) {
                break;
            }
            let mut candidates = inner.candidates(ejected_too, asked.now, exclude);
            candidates.sidelined_too = sidelined_too;
            candidates.full_too = full_too;
            for _ in 0..ATTEMPTS {
                let Some(chosen) = inner.chooser.choose(&candidates, asked.key) else {
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

    /// Takes a place at a backend, and its trial where one is due.
    fn take(&self, chosen: Chosen, asked: &Asked<'_>) -> Option<Pick> {
        let trial = self.0.take(chosen.at, millis(asked.now))?;
        let expected = self.assign(chosen.at, asked);
        Some(self.taken(chosen, trial, expected, asked))
    }

    /// Takes a place at the backend of a claim, if that is in service; else the claim is given up.
    pub(crate) fn honour(&self, claim: Claim, asked: &Asked<'_>) -> Option<Pick> {
        let chosen = claim.chosen;
        let serves = match chosen.reason {
            ChoiceReason::Sticky => self.keeps_sessions(chosen.at, asked.now),
            _ => self.0.backends[chosen.at].is_in_service(millis(asked.now)),
        };
        if !serves && chosen.reason != ChoiceReason::ForWantOfOthers {
            return None;
        }
        let trial = self.0.take(chosen.at, millis(asked.now))?;
        Some(self.taken(chosen, trial, claim.honoured(), asked))
    }

    /// The pick of a request for which a place was taken.
    fn taken(&self, chosen: Chosen, trial: bool, expected: Expected, asked: &Asked<'_>) -> Pick {
        let inner = &*self.0;
        let at = chosen.at;
        let (id, begun) = (inner.ids[at], micros(asked.now));
        if inner.chooser.resume().is_some() && inner.backends[at].in_flight() <= 1 {
            inner.backends[at].state.load.wakes(begun);
        }
        inner.choices.record(chosen, asked.class, id, asked.tried, begun);
        Pick {
            pool: self.clone(),
            at,
            trial,
            class: asked.key,
            begun,
            ended: begun,
            awaited: false,
            responded: None,
            place: inner.ages.begin(id, begun),
            expected,
        }
    }

    /// A request counts as a backend's from now on. Returns what is expected of it.
    pub(crate) fn assign(&self, at: usize, asked: &Asked<'_>) -> Expected {
        let inner = &*self.0;
        if inner.chooser.counts_load() {
            inner.load.begin();
        }
        inner.chooser.resume().map_or_else(Expected::default, |resume| {
            let (backend, id) = (&inner.backends[at], inner.ids[at]);
            resume.begun(backend, id, &inner.load, inner.backends.len(), asked.key.zip(asked.class))
        })
    }

    /// A request of which this was expected does not count as the backend's any more.
    pub(crate) fn unassign(&self, at: usize, expected: Expected) {
        let inner = &*self.0;
        if inner.chooser.counts_load() {
            inner.load.end();
        }
        if let Some(resume) = inner.chooser.resume() {
            resume.ended(&inner.backends[at], &inner.load, expected);
        }
    }

    /// Whether all backends that serve are excluded.
    fn all_tried(&self, exclude: &[BackendId]) -> bool {
        let mut backends = self.0.backends.iter().zip(&self.0.ids);
        backends.all(|(backend, id)| !backend.state.serves() || exclude.contains(id))
    }

    /// Why there is no pick to be had.
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

    /// Takes a place at a backend, and its trial where one is due. Says whether the request is a trial.
    fn take(&self, at: usize, now: u64) -> Option<bool> {
        let backend = &self.backends[at];
        if !backend.reserve() {
            return None;
        }
        let trial = match backend.state.standing(now) {
            Standing::OnTrial(until) => {
                let ejections = backend.state.ejections.load(Ordering::Relaxed);
                if !backend.state.claim_trial(until, now, self.settings.ejection.millis(ejections)) {
                    backend.release();
                    return None;
                }
                true
            }
            Standing::InService | Standing::Ejected => false,
        };
        backend.state.picks.fetch_add(1, Ordering::Relaxed);
        backend.state.asked(now);
        Some(trial)
    }

    pub(crate) fn ejecting(&self) -> &Mutex<()> {
        &self.ejecting
    }
}

/// A backend chosen for one request, with a place taken at it. Dropping it counts as [`Outcome::Aborted`].
#[derive(Debug)]
pub struct Pick {
    pool: Pool,
    at: usize,
    /// Whether this request finds out if an ejected backend is back.
    trial: bool,
    class: Option<ClassKey>,
    /// When it was chosen, in microseconds.
    begun: u64,
    /// When it was last heard of, in microseconds.
    ended: u64,
    /// Whether the request was sent, and what became of it was not told.
    awaited: bool,
    /// When the response came, in microseconds.
    responded: Option<u64>,
    /// Where it is written when the request began.
    place: Option<Place>,
    /// For `resume`.
    expected: Expected,
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

    /// The response has come: what follows is up to the client, and no measure of the backend.
    pub fn responded(&mut self, now: Duration) {
        self.ended = micros(now);
        if self.responded.is_none() {
            self.responded = Some(self.ended);
            self.backend().state.heard(millis(now));
        }
    }

    /// How long the response took to come, from the choice of the backend; `None` before it has.
    pub fn took(&self) -> Option<Duration> {
        Some(Duration::from_micros(self.responded?.saturating_sub(self.begun)))
    }

    /// The request was sent whole: what is missing is the backend's answer. If it is given up before that comes, it counts as not
    /// answered in time once that time is over, unless the backend is heard of meanwhile.
    pub fn awaits_answer(&mut self) {
        self.awaited = true;
    }

    /// Gives the place back and tells how the request ended.
    pub fn finish(mut self, outcome: Outcome, now: Duration) {
        self.ended = micros(now);
        self.awaited &= outcome == Outcome::Aborted;
        let inner = &self.pool.0;
        let state = &self.backend().state;
        let failed = match outcome {
            Outcome::Aborted => return,
            Outcome::Answered => false,
            Outcome::ServerError | Outcome::ConnectFailed | Outcome::Broken | Outcome::Late => true,
        };
        state.load.failed(failed, self.ended);
        match outcome {
            Outcome::ConnectFailed => inner.connect_failed(self.at, self.trial, millis(now)),
            Outcome::Broken => inner.broke_off(self.at, self.trial, millis(now)),
            Outcome::Late => inner.unanswered(self.at, self.trial, self.begun / 1000, millis(now)),
            _ => inner.answered(self.at, self.trial, failed, millis(now)),
        }
        if failed {
            if let (Outcome::ServerError, Chooser::Resume(resume), Some(class)) =
                (outcome, &inner.chooser, self.class)
            {
                resume.failed(self.id(), class);
            }
            return;
        }
        let end = self.responded.unwrap_or(self.ended);
        let took = end.saturating_sub(self.begun) as f32 / 1000.0;
        state.took(took);
        match &inner.chooser {
            Chooser::PeakEwma(_) => state.latency.add(took, millis(now)),
            Chooser::Resume(resume) => {
                let took = state.load.finished(self.begun, end);
                if let Some(class) = self.class {
                    resume.answered(self.id(), &state.load, class, took, self.expected);
                }
            }
            _ => {}
        }
    }
}

impl Drop for Pick {
    fn drop(&mut self) {
        let inner = &self.pool.0;
        if self.responded.is_none() {
            self.backend().state.unheard(self.awaited.then_some(self.begun / 1000));
        }
        self.backend().release();
        if let Some(place) = self.place {
            inner.ages.end(place);
        }
        self.pool.unassign(self.at, self.expected);
        inner.queue.pass_on(&self.pool, Some(self.id()), Duration::from_micros(self.ended));
    }
}

pub(crate) fn micros(now: Duration) -> u64 {
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
