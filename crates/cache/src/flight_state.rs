//! The state of a fetch in progress, shared by its flight, its waiters and its shard.

use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;
use sandarac_message::range::RangeSpec;
use sandarac_message::vary::VaryKey;

use crate::standing::Standing;
use crate::wait_list::{Entries, Wake};
use crate::{Key, Object, Tag};

/// A fetch in progress, as its shard refers to it.
pub(crate) struct Flying {
    pub(crate) key: Key,
    /// What it fetches.
    pub(crate) errand: Errand,
    pub(crate) state: Mutex<State>,
}

/// The response that a fetch is for, among all that a key may have.
pub(crate) struct Errand {
    /// The variant, if the names of the fields it varies on are known.
    pub(crate) variant: Option<VaryKey>,
    /// The part to fetch; `None` for the whole representation.
    pub(crate) part: Option<RangeSpec>,
    /// Proxies that the request had passed through.
    pub(crate) passed: usize,
}

impl Errand {
    /// Whether the response to this fetch would serve `other`. The whole representation serves a request for
    /// a part. A request that has passed through more proxies may be this very fetch, looped back to us: it
    /// would wait for itself.
    pub(crate) fn serves(&self, other: &Errand) -> bool {
        let brings = self.part.is_none() || self.part == other.part;
        brings && self.variant == other.variant && self.passed >= other.passed
    }
}

pub(crate) struct State {
    pub(crate) stage: Stage,
    pub(crate) begun: Begun,
    /// The tag of the target that the response will carry, if any.
    pub(crate) target: Option<Tag>,
    /// Whether an earlier fetch brought no answer.
    pub(crate) failed: bool,
    pub(crate) candidate: Option<Arc<Object>>,
    pub(crate) waiters: Entries<Option<Waker>>,
}

pub(crate) enum Stage {
    /// A flight is under way.
    Open,
    /// The flight was dropped; this waiter is to take over.
    Offered(usize),
    /// The response, as far as it has arrived.
    Landed(Arc<Object>),
    /// The origin could not answer.
    Failed,
    /// The retry failed too: this many waiters may try by themselves.
    Released(usize),
    /// Nothing that would help the waiters.
    Over,
}

/// The purges and bans there had been when a fetch began. Later ones apply to its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    pub(crate) purges: u64,
    pub(crate) bans: u32,
}

impl Flying {
    pub(crate) fn new(key: Key, errand: Errand, begun: Begun, candidate: Option<Arc<Object>>) -> Arc<Flying> {
        let waiters = Entries::new();
        let state = State { stage: Stage::Open, begun, target: None, failed: false, candidate, waiters };
        Arc::new(Flying { key, errand, state: Mutex::new(state) })
    }

    pub(crate) fn begun(&self) -> Begun {
        self.state.lock().begun
    }

    pub(crate) fn target(&self) -> Option<Tag> {
        self.state.lock().target
    }

    pub(crate) fn waiters(&self) -> usize {
        self.state.lock().waiters.len()
    }

    /// Wakes all waiters with this stage. The flight MUST have left its shard.
    pub(crate) fn close(&self, stage: Stage) {
        let mut state = self.state.lock();
        if !matches!(stage, Stage::Released(_)) {
            state.candidate = None;
        }
        state.stage = stage;
        let mut wake = Wake::default();
        for (_, waker) in state.waiters.iter_mut() {
            wake.add(waker.take());
        }
        drop(state);
        wake.wake();
    }

    pub(crate) fn land(&self, object: Arc<Object>) {
        self.close(Stage::Landed(object));
    }

    pub(crate) fn over(&self) {
        self.close(Stage::Over);
    }

    /// Offers the flight to a waiter. The shard's lock is held.
    pub(crate) fn offer(&self, passing: Passing) -> Offer {
        let mut state = self.state.lock();
        if let Passing::Waiter(entry) = passing {
            state.waiters.remove(entry);
            if !matches!(state.stage, Stage::Offered(to) if to == entry) {
                return Offer::Unneeded;
            }
        }
        // The next waiter may get the number of the one that leaves.
        state.stage = Stage::Open;
        let Some((id, waker)) = state.waiters.iter_mut().next() else { return Offer::Nobody };
        let mut wake = Wake::default();
        wake.add(waker.take());
        state.stage = Stage::Offered(id);
        Offer::To(wake)
    }
}

/// The request that does not go on with a flight.
#[derive(Clone, Copy)]
pub(crate) enum Passing {
    /// Its leader.
    Leader,
    /// A waiter, with its number. The flight may have been offered to it.
    Waiter(usize),
}

/// The outcome of an offer.
pub(crate) enum Offer {
    /// The flight has a leader, or is offered to another waiter.
    Unneeded,
    /// It is offered to the waiter that this wakes.
    To(Wake),
    Nobody,
}

/// A flight that has its response.
pub(crate) struct LandedFlight {
    pub(crate) key: Key,
    pub(crate) begun: Begun,
    pub(crate) flying: Option<Arc<Flying>>,
    /// The standing of an object that comes from another store.
    pub(crate) standing: Option<Standing>,
}
