//! One backend: its limits, its load, and whether it is trusted with requests.

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
    /// Elsewhere, as choices look at many backends and at no address.
    address: Arc<Address>,
    max_in_flight: u32,
    weight: u32,
    key: u64,
    pub(crate) state: Arc<State>,
}

impl Backend {
    /// The most that a backend weighs.
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

    /// The same backend, weighing `weight`, which is taken as 1 at least and [`Backend::MAX_WEIGHT`] at most.
    pub fn weighing(self, weight: u32) -> Backend {
        Backend { weight: weight.clamp(1, Backend::MAX_WEIGHT), ..self }
    }

    /// The same backend, with the load and the health of `other`, shared from now on.
    pub(crate) fn with_state_of(self, other: &Backend) -> Backend {
        Backend { state: other.state.clone(), ..self }
    }

    /// Where it is found.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// What names the backend in the cookie of a session that sticks to it: the same for the same address,
    /// everywhere.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Its share of the load relative to others.
    pub fn weight(&self) -> u32 {
        self.weight
    }

    /// The requests it is answering now.
    pub fn in_flight(&self) -> u32 {
        self.state.in_flight.load(Ordering::Relaxed)
    }

    /// Whether the last connection to it failed, or the last request had no answer in time, and it has
    /// answered nothing since.
    pub fn is_failing(&self) -> bool {
        self.state.failures.load(Ordering::Relaxed) != 0
    }

    /// Whether it gets no requests because another version serves than the one it last announced.
    pub fn is_sidelined(&self) -> bool {
        self.state.sidelined.load(Ordering::Relaxed)
    }

    /// The requests it is answering, and those that wait for a place at it.
    pub(crate) fn in_hand(&self) -> u32 {
        self.in_flight().saturating_add(self.state.claims.load(Ordering::Relaxed))
    }

    /// Whether it gets no new requests, by order.
    pub fn is_draining(&self) -> bool {
        self.state.draining.load(Ordering::Relaxed)
    }

    /// Whether it gets requests before those do that are ejected.
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

    /// Gives back a place that [`Backend::reserve`] took. The caller looks afterwards whether someone waits
    /// for it.
    pub(crate) fn release(&self) {
        // In one order with that look, and with those who come to wait and then look for a place.
        let before = self.state.in_flight.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0, "a place is given back once");
    }
}

/// What is known of a backend. It outlives the pool it was made for, so that a reload forgets nothing.
///
/// What a choice reads comes first, in two lines of memory: it looks at many backends, and waits for memory
/// most.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct State {
    pub(crate) in_flight: AtomicU32,
    /// Requests that wait for a place at it.
    pub(crate) claims: AtomicU32,
    /// When the ejection ends, in milliseconds; 0 where there is none.
    pub(crate) ejected_until: AtomicU64,
    /// Whether it gets no new requests, by order.
    pub(crate) draining: AtomicBool,
    /// Whether active checks have it out of service.
    pub(crate) down: AtomicBool,
    /// Whether it is of another version than the one that serves.
    pub(crate) sidelined: AtomicBool,
    /// Whether its checks fail, and it is in service all the same, as no more of the pool may be out.
    pub(crate) spared: AtomicBool,
    /// Requests in flight of whose answer nothing has come.
    pub(crate) unanswered: AtomicU32,
    /// How many requests were given up since it was last heard of.
    pub(crate) given_up: AtomicU32,
    /// When it is overdue, in milliseconds, if it answers none of its requests until then.
    pub(crate) overdue_at: AtomicU64,
    /// What `resume` goes by.
    pub(crate) load: WorkerLoad,
    /// Since when nothing was heard of it.
    pub(crate) last_heard: LastHeard,
    /// Failures to connect, and to answer in time, since the last answer.
    pub(crate) failures: AtomicU32,
    /// Ejections since the last answer.
    pub(crate) ejections: AtomicU32,
    /// Ejections, ever; one that goes on after a trial is one.
    pub(crate) ejected: AtomicU64,
    /// Requests given to it, ever.
    pub(crate) picks: AtomicU64,
    /// Connect failures, ever.
    pub(crate) connect_failures: AtomicU64,
    /// Checks in a row that speak against its standing.
    pub(crate) checks: AtomicU32,
    /// Whether it was ejected for its answers, not its connections.
    pub(crate) faulty: AtomicBool,
    /// When its slow start began, in milliseconds; 0 where it needs none, the largest number where it begins
    /// when it is next looked at.
    warming_since: AtomicU64,
    /// What `peak_ewma` goes by.
    pub(crate) latency: PeakLatency,
}

/// Whether a backend should be given requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    InService,
    /// Its ejection, which ended at this time, is over; one request shall find out whether it is back.
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

    /// Whether it would get requests if its version were the one that serves.
    pub(crate) fn takes_requests(&self) -> bool {
        !self.draining.load(Ordering::Relaxed)
    }

    /// It comes into service now, and starts slowly if its pool says so.
    pub(crate) fn warm_up(&self) {
        self.warming_since.store(u64::MAX, Ordering::Relaxed);
    }

    /// From nearly 0 to 1 in the `slow_start` milliseconds after it came into service.
    pub(crate) fn warmth(&self, now: u64, slow_start: u64) -> f32 {
        // Not 0: what gets no request at all is not warmed by any.
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

    /// Makes the caller the one to try a backend whose ejection ended at `until`; the others see it ejected
    /// until the trial is over, or for `millis` more where nothing is heard of it: as long as if the trial
    /// had failed.
    pub(crate) fn claim_trial(&self, until: u64, now: u64, millis: u64) -> bool {
        let next = now.saturating_add(millis);
        self.ejected_until.compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The backend has answered: all is forgiven.
    pub(crate) fn answered(&self) {
        // Read first: on the usual path nothing is to be written, and the line stays shared between cores.
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
            self.ejections.store(0, Ordering::Relaxed);
            if self.ejected_until.swap(0, Ordering::Relaxed) != 0 {
                self.warm_up();
            }
        }
    }
}
