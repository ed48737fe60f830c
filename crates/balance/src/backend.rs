//! One backend: its limits, its load, and its availability.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::Address;
use crate::algorithm::resume::WorkerLoad;
use crate::hash::hash;
use crate::last_heard::LastHeard;
use crate::latency::PeakLatency;

/// A backend of a pool: an address, a limit, a weight, and the state that all cores share.
#[derive(Clone, Debug)]
pub struct Backend {
    /// Boxed, because choices examine many backends and no address.
    address: Arc<Address>,
    max_in_flight: u32,
    weight: u32,
    key: u64,
    pub(crate) state: Arc<State>,
}

impl Backend {
    /// The highest weight of a backend.
    pub const MAX_WEIGHT: u32 = 1000;

    /// A backend without a limit, of weight 1.
    pub fn new(address: Address) -> Backend {
        let key = hash(address.to_string().as_bytes(), 2);
        Backend { address: address.into(), max_in_flight: u32::MAX, weight: 1, key, state: Arc::default() }
    }

    /// The same backend, given at most `limit` requests at a time.
    pub fn max_in_flight(self, limit: u32) -> Backend {
        Backend { max_in_flight: limit, ..self }
    }

    /// The same backend with `weight`, clamped to between 1 and [`Backend::MAX_WEIGHT`].
    pub fn weighing(self, weight: u32) -> Backend {
        Backend { weight: weight.clamp(1, Backend::MAX_WEIGHT), ..self }
    }

    /// The same backend, with the load and the health of `other`, shared from now on.
    pub(crate) fn with_state_of(self, other: &Backend) -> Backend {
        Backend { state: other.state.clone(), ..self }
    }

    /// Its address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The key of the backend in the cookie of a sticky session: the same for the same address, everywhere.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Its share of the load, relative to other backends.
    pub fn weight(&self) -> u32 {
        self.weight
    }

    /// The requests in flight to it.
    pub fn in_flight(&self) -> u32 {
        self.state.in_flight.load(Ordering::Relaxed)
    }

    /// Whether the last connection to it failed, or the last request had no response in time, and it has sent
    /// no response since.
    pub fn is_failing(&self) -> bool {
        self.state.failures.load(Ordering::Relaxed) != 0
    }

    /// Whether it gets no requests because another version serves than the one it last announced.
    pub fn is_sidelined(&self) -> bool {
        self.state.sidelined.load(Ordering::Relaxed)
    }

    /// The requests in flight to it, and those that wait for a place at it.
    pub(crate) fn in_hand(&self) -> u32 {
        self.in_flight().saturating_add(self.state.claims.load(Ordering::Relaxed))
    }

    /// Whether it gets no new requests, by order.
    pub fn is_draining(&self) -> bool {
        self.state.draining.load(Ordering::Relaxed)
    }

    /// Whether it gets requests before ejected ones do.
    pub(crate) fn is_in_service(&self, now: u64) -> bool {
        self.state.serves() && self.state.availability(now) != Availability::Ejected
    }

    pub(crate) fn has_room(&self) -> bool {
        self.in_flight() < self.max_in_flight
    }

    /// Takes a place, unless all are taken.
    pub(crate) fn reserve(&self) -> bool {
        let one_more = |taken: u32| (taken < self.max_in_flight).then(|| taken + 1);
        self.state.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    /// Gives back a place that [`Backend::reserve`] took. The caller then checks for waiters.
    pub(crate) fn release(&self) {
        // Ordered with that check, and with waiters that register and then look for a place.
        let before = self.state.in_flight.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0, "a place is given back once");
    }
}

/// The state of a backend. It outlives its pool, so that a reload forgets nothing.
///
/// Fields that a choice reads come first, in two cache lines: a choice examines many backends, and mostly
/// waits for memory.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct State {
    pub(crate) in_flight: AtomicU32,
    /// Requests that wait for a place at it.
    pub(crate) claims: AtomicU32,
    /// When the ejection ends, in milliseconds; 0 if there is none.
    pub(crate) ejected_until: AtomicU64,
    /// Whether it gets no new requests, by order.
    pub(crate) draining: AtomicBool,
    /// Whether active checks keep it out of service.
    pub(crate) down: AtomicBool,
    /// Whether it is of another version than the one that serves.
    pub(crate) sidelined: AtomicBool,
    /// Whether its checks fail, but it stays in service because no more of the pool may be out.
    pub(crate) spared: AtomicBool,
    /// Requests in flight whose response has not begun.
    pub(crate) unanswered: AtomicU32,
    /// How many requests were given up since its last sign of life.
    pub(crate) given_up: AtomicU32,
    /// When it is overdue, in milliseconds, if it responds to none of its requests until then.
    pub(crate) overdue_at: AtomicU64,
    /// The state of `resume`.
    pub(crate) load: WorkerLoad,
    /// Its last sign of life.
    pub(crate) last_heard: LastHeard,
    /// Failures to connect, and to respond in time, since the last response.
    pub(crate) failures: AtomicU32,
    /// Ejections since the last response.
    pub(crate) ejections: AtomicU32,
    /// Ejections in total; one that continues after a trial counts once.
    pub(crate) ejected: AtomicU64,
    /// Requests given to it in total.
    pub(crate) picks: AtomicU64,
    /// Connect failures in total.
    pub(crate) connect_failures: AtomicU64,
    /// Consecutive checks that contradict its state.
    pub(crate) checks: AtomicU32,
    /// Whether it was ejected for its responses rather than its connections.
    pub(crate) faulty: AtomicBool,
    /// When its slow start began, in milliseconds; 0 if it needs none, the largest number if it begins at the
    /// next examination.
    warming_since: AtomicU64,
    /// The state of `peak_ewma`.
    pub(crate) latency: PeakLatency,
}

/// Whether a backend should get requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    InService,
    /// Its ejection ended at this time; one request is to find out whether it is back.
    OnTrial(u64),
    Ejected,
}

impl State {
    /// Whether it is ejected, or waits for its trial.
    pub(crate) fn is_ejected(&self) -> bool {
        self.ejected_until.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn availability(&self, now: u64) -> Availability {
        if self.down.load(Ordering::Relaxed) {
            return Availability::Ejected;
        }
        match self.ejected_until.load(Ordering::Relaxed) {
            0 => Availability::InService,
            until if until <= now => Availability::OnTrial(until),
            _ => Availability::Ejected,
        }
    }

    /// Whether it gets requests at all.
    pub(crate) fn serves(&self) -> bool {
        self.takes_requests() && !self.sidelined.load(Ordering::Relaxed)
    }

    /// Whether it would get requests if its version were the one in service.
    pub(crate) fn takes_requests(&self) -> bool {
        !self.draining.load(Ordering::Relaxed)
    }

    /// Notes that it comes into service, and starts slowly if its pool is configured so.
    pub(crate) fn warm_up(&self) {
        self.warming_since.store(u64::MAX, Ordering::Relaxed);
    }

    /// From nearly 0 to 1 in the `slow_start` milliseconds after it came into service.
    pub(crate) fn warmth(&self, now: u64, slow_start: u64) -> f32 {
        // Not 0, because a backend without requests never warms up.
        const COLDEST: f32 = 0.05;
        match self.warming_since.load(Ordering::Relaxed) {
            0 => 1.0,
            u64::MAX => {
                self.warming_since.store(now.max(1), Ordering::Relaxed);
                COLDEST
            }
            since => (now.saturating_sub(since) as f32 / slow_start as f32).clamp(COLDEST, 1.0),
        }
    }

    /// Makes the caller the one to try a backend whose ejection ended at `until`. For others it stays ejected
    /// until the trial is over, or for `millis` more if the trial has no result: as long as if it had failed.
    pub(crate) fn claim_trial(&self, until: u64, now: u64, millis: u64) -> bool {
        let next = now.saturating_add(millis);
        self.ejected_until.compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Notes a response of the backend, which clears its failures.
    pub(crate) fn answered(&self) {
        // Read first: on the usual path nothing is written, and the cache line stays shared between cores.
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
            self.ejections.store(0, Ordering::Relaxed);
            if self.ejected_until.swap(0, Ordering::Relaxed) != 0 {
                self.warm_up();
            }
        }
    }
}
