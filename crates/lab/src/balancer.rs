//! A balancer of a simulation: a pool of the shipping crate, or an algorithm for comparison.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use sandarac_balance::{
    AttemptOutcome, Backend, BackendId, Heard, NoBackend, Pick, Pool, Settings, Ticket, WorkerState,
};

use crate::lard::Lard;
use crate::published::Published;
use crate::scenario::{Algorithm, AlgorithmKind, Workers};
use crate::worker::Worker;

/// A balancer.
pub(crate) enum Balancer {
    Pool(Box<Pooled>),
    Lard(Lard),
    Published(Published),
    /// Sees the objects and the work of every worker, and charges this price for each second of loading.
    Oracle(f64),
}

/// A pool, and the worker of each of its backends.
pub(crate) struct Pooled {
    pool: Pool,
    workers: HashMap<BackendId, usize>,
    /// The backend of each worker.
    ids: Vec<BackendId>,
    settings: Settings,
    /// The most requests in flight to each worker.
    limit: Option<u32>,
    /// The tickets of the requests that wait for a place at a worker, by their positions among those in
    /// flight.
    waiting: BTreeMap<u32, Ticket>,
    /// The woken ones among them.
    woken: Arc<Woken>,
    /// Whether it stops learning at the end of the warm-up.
    freezes: bool,
    frozen: bool,
    /// Whether it uses only the reports of workers.
    uncorrected: bool,
}

/// The destination of a request, and the handle that ends it.
pub(crate) enum Placed {
    Pick(Pick),
    Lard(usize),
    Published(usize),
    Oracle,
}

/// A request to be sent.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    /// Its position among those in flight.
    pub(crate) place: u32,
    pub(crate) class: u32,
    /// The name of the class; empty if there is none.
    pub(crate) name: &'a [u8],
    /// The workers that failed it.
    pub(crate) tried: &'a [usize],
}

/// The result of sending a request.
pub(crate) enum Sent {
    /// It goes to this worker.
    To(usize, Placed),
    /// It waits for a place, and is among [`Balancer::woken`] when it must poll again.
    Waits {
        /// Whether it began to wait now.
        new: bool,
    },
    /// No worker takes it.
    Nowhere,
}

/// Requests that must poll again.
#[derive(Default)]
struct Woken(Mutex<Vec<u32>>);

/// Wakes one request.
struct Waking {
    place: u32,
    woken: Arc<Woken>,
}

impl Wake for Waking {
    fn wake(self: Arc<Waking>) {
        self.woken.0.lock().unwrap_or_else(PoisonError::into_inner).push(self.place);
    }
}

impl Balancer {
    /// A balancer for `workers`.
    pub(crate) fn new(algorithm: &Algorithm, workers: &Workers, classes: u32, seed: u64) -> Balancer {
        let count = workers.count as usize;
        match &algorithm.kind {
            AlgorithmKind::Lard(settings) => Balancer::Lard(Lard::new(*settings, classes, count)),
            AlgorithmKind::Published => Balancer::Published(Published::new(classes, count)),
            AlgorithmKind::Oracle { price } => Balancer::Oracle(*price),
            AlgorithmKind::Pool { algorithm, load_factor, resume, frozen, uncorrected } => {
                let settings = Settings {
                    algorithm: *algorithm,
                    load_factor: *load_factor,
                    resume: resume.clone(),
                    seed,
                    ..Settings::default()
                };
                Balancer::Pool(Box::new(Pooled {
                    freezes: *frozen,
                    uncorrected: *uncorrected,
                    limit: workers.max_in_flight,
                    ..Pooled::new(settings, count, workers.max_in_flight, None)
                }))
            }
        }
    }

    /// Sends a request to a worker that has not failed it. `sight` is an oracle's view of a worker: the
    /// microseconds until it is done, and those that it would spend on the request.
    pub(crate) fn send(
        &mut self,
        asking: Asking<'_>,
        now: u64,
        alive: &[Worker],
        sight: impl Fn(&Worker) -> (f64, f64),
    ) -> Sent {
        let sent = match self {
            Balancer::Pool(pooled) => return pooled.send(asking, Duration::from_micros(now)),
            Balancer::Oracle(price) => {
                let seen: Vec<_> = alive.iter().map(|worker| worker.alive.then(|| sight(worker))).collect();
                let least = seen.iter().flatten().map(|(_, own)| *own).fold(f64::MAX, f64::min);
                let cost = |(at, seen): (usize, &Option<(f64, f64)>)| {
                    seen.map(|(wait, own)| (wait + own + *price * (own - least), at))
                };
                let costs = seen.iter().enumerate().filter_map(cost);
                let least = costs.min_by(|one, two| {
                    let idler = || alive[one.1].served_phase.cmp(&alive[two.1].served_phase);
                    one.0.total_cmp(&two.0).then_with(idler)
                });
                least.map(|(_, at)| (at, Placed::Oracle))
            }
            // Its caller excludes dead workers.
            Balancer::Lard(lard) => lard
                .pick(asking.class, now, |at| alive[at].alive)
                .map(|worker| (worker, Placed::Lard(worker))),
            Balancer::Published(published) => published
                .pick(asking.class, |at| alive[at].alive)
                .map(|worker| (worker, Placed::Published(worker))),
        };
        sent.map_or(Sent::Nowhere, |(worker, placed)| Sent::To(worker, placed))
    }

    /// Whether a request waits for a place.
    pub(crate) fn waits(&self, place: u32) -> bool {
        matches!(self, Balancer::Pool(pooled) if pooled.waiting.contains_key(&place))
    }

    /// Takes the requests that must poll again, if they still wait.
    pub(crate) fn woken(&mut self) -> Vec<u32> {
        match self {
            Balancer::Pool(pooled) => {
                std::mem::take(&mut pooled.woken.0.lock().unwrap_or_else(PoisonError::into_inner))
            }
            Balancer::Lard(_) | Balancer::Published(_) | Balancer::Oracle(_) => Vec::new(),
        }
    }

    /// Ends a request.
    pub(crate) fn done(&mut self, placed: Placed, outcome: AttemptOutcome, now: u64) {
        match (self, placed) {
            (Balancer::Pool(pooled), Placed::Pick(mut pick)) => {
                let now = Duration::from_micros(now);
                if outcome == AttemptOutcome::Answered {
                    pick.responded(now);
                }
                // Nothing is learnt from an aborted request.
                let silent = (pooled.frozen || pooled.uncorrected) && outcome == AttemptOutcome::Answered;
                pick.finish(if silent { AttemptOutcome::Aborted } else { outcome }, now);
            }
            (Balancer::Lard(lard), Placed::Lard(worker)) => lard.done(worker),
            (Balancer::Published(published), Placed::Published(worker)) => published.done(worker),
            (Balancer::Oracle(_), Placed::Oracle) => {}
            _ => unreachable!("a request ends at the balancer where it began"),
        }
    }

    /// Takes the report in a worker's response.
    pub(crate) fn hear(
        &mut self,
        number: usize,
        worker: &Worker,
        classifier: u64,
        names: &[Vec<u8>],
        now: u64,
    ) {
        if let Balancer::Published(published) = self {
            published.hear(number, &worker.resume);
        }
        let Balancer::Pool(pooled) = self else { return };
        let (Some(resumes), false) = (pooled.pool.resumes(), pooled.frozen) else { return };
        let id = pooled.ids[number];
        let revision = worker.resume.revision;
        let instance = worker.instance(number);
        let state = WorkerState {
            instance: &instance,
            revision,
            in_flight: Some(worker.in_flight()),
            concurrency: Some(worker.concurrency),
            version: None,
        };
        let known = || resumes.known(id).map_or(0, |known| known.revision);
        let named = |(class, score): (u32, f64)| (names[class as usize].as_slice(), score);
        // A rejected report means that the balancer is behind: it fetches the whole.
        let whole =
            || drop(resumes.whole(id, classifier, &instance, revision, worker.resume.whole().map(named)));
        match resumes.heard(id, &state, Duration::from_micros(now)) {
            Heard::Current | Heard::NotAsked => {}
            Heard::Unknown => whole(),
            Heard::Behind => match worker.resume.since(known()) {
                Some(changes) => {
                    drop(resumes.changed(id, classifier, &instance, revision, changes.map(named)))
                }
                None => whole(),
            },
        }
    }

    /// Notes the end of the warm-up.
    pub(crate) fn warmed_up(&mut self) {
        if let Balancer::Pool(pooled) = self {
            pooled.frozen = pooled.freezes;
        }
    }

    /// Notes that a worker has joined.
    pub(crate) fn joined(&mut self, workers: usize) {
        match self {
            Balancer::Lard(lard) => lard.joined(),
            Balancer::Published(published) => published.joined(),
            Balancer::Oracle(_) => {}
            Balancer::Pool(pooled) => pooled.succeed(workers),
        }
    }

    /// Notes that the classifier changed, so that classes consist of other requests.
    pub(crate) fn reclassified(&mut self, classifier: u64, workers: usize) {
        match self {
            Balancer::Pool(pooled) => {
                pooled.settings.resume.classifier = classifier;
                pooled.succeed(workers);
            }
            Balancer::Published(published) => published.forget(),
            Balancer::Lard(_) | Balancer::Oracle(_) => {}
        }
    }
}

impl Pooled {
    fn new(settings: Settings, workers: usize, limit: Option<u32>, before: Option<&Pool>) -> Pooled {
        let address =
            |number: usize| format!("unix:/workers/{number}").parse().expect("a path is an address");
        let backend = |number| Backend::new(address(number)).max_in_flight(limit.unwrap_or(u32::MAX));
        let backends = (0..workers).map(backend).collect();
        let pool = match before {
            Some(before) => before.succeeded_by(backends, settings.clone()),
            None => Pool::new("simulated", backends, settings.clone()),
        };
        let ids = pool.ids().to_vec();
        Pooled {
            workers: ids.iter().copied().zip(0..).collect(),
            pool,
            ids,
            settings,
            limit,
            waiting: BTreeMap::new(),
            woken: Arc::default(),
            freezes: false,
            frozen: false,
            uncorrected: false,
        }
    }

    /// Replaces the pool by one for `workers` workers.
    fn succeed(&mut self, workers: usize) {
        let pooled = Pooled::new(self.settings.clone(), workers, self.limit, Some(&self.pool));
        *self = Pooled {
            waiting: std::mem::take(&mut self.waiting),
            woken: self.woken.clone(),
            freezes: self.freezes,
            frozen: self.frozen,
            uncorrected: self.uncorrected,
            ..pooled
        };
    }

    fn send(&mut self, asking: Asking<'_>, now: Duration) -> Sent {
        let tried: Vec<_> = asking.tried.iter().map(|&at| self.ids[at]).collect();
        let class = Some(asking.name).filter(|name| !name.is_empty());
        let waiting = self.waiting.remove(&asking.place);
        let new = waiting.is_none();
        let mut ticket = match waiting {
            Some(ticket) => ticket,
            None => match self.pool.pick_patiently(class, now, &tried) {
                Ok(pick) => return Sent::To(self.workers[&pick.id()], Placed::Pick(pick)),
                Err(NoBackend::AllFull) => self.pool.queue(),
                Err(_) => return Sent::Nowhere,
            },
        };
        let waker = Waker::from(Arc::new(Waking { place: asking.place, woken: self.woken.clone() }));
        match ticket.poll_pick(&mut Context::from_waker(&waker), class, now, &tried) {
            Poll::Ready(Ok(pick)) => Sent::To(self.workers[&pick.id()], Placed::Pick(pick)),
            Poll::Ready(Err(_)) => Sent::Nowhere,
            Poll::Pending => {
                self.waiting.insert(asking.place, ticket);
                Sent::Waits { new }
            }
        }
    }
}
