//! The state of a fetch in progress, which its flight, its waiters and its shard share.

use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;
use sandarac_message::range::RangeSpec;
use sandarac_message::vary::VaryKey;

use crate::wait_list::{Entries, Wake};
use crate::{Key, Object, Tag};

/// A fetch in progress, as its shard knows it.
pub(crate) struct Flying {
    pub(crate) key: Key,
    /// What it is for.
    pub(crate) errand: Errand,
    pub(crate) state: Mutex<State>,
}

/// What a fetch is for, of all that there may be of a key.
pub(crate) struct Errand {
    /// Which requests, where the names they vary on are known.
    pub(crate) variant: Option<VaryKey>,
    /// The part that it is to bring; `None` where that is all of the representation.
    pub(crate) part: Option<RangeSpec>,
    /// Proxies that the request had passed.
    pub(crate) passed: usize,
}

impl Errand {
    /// Whether what this fetch brings is what `other` would. All of the representation serves those who want
    /// a part of it. A request that passed more proxies may be this very fetch, come back to us, and would
    /// wait for itself.
    pub(crate) fn serves(&self, other: &Errand) -> bool {
        let brings = self.part.is_none() || self.part == other.part;
        brings && self.variant == other.variant && self.passed >= other.passed
    }
}

pub(crate) struct State {
    pub(crate) stage: Stage,
    pub(crate) begun: Begun,
    /// The tag of the target that the response will carry, if it will.
    pub(crate) target: Option<Tag>,
    /// Whether a fetch has brought no answer already.
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
    /// Nor could it here: so many waiters may try for themselves.
    Released(usize),
    /// Nothing that would help those who wait.
    Over,
}

/// Which purges and bans had happened when a fetch began: those after it count against what it brings.
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

    /// Tells all who wait. The flight MUST have left its shard.
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

    /// Offers the flight to one who waits. The shard's lock is held. `None` where nobody does.
    pub(crate) fn offer(&self) -> Option<Wake> {
        let mut state = self.state.lock();
        let (id, waker) = state.waiters.iter_mut().next()?;
        let mut wake = Wake::default();
        wake.add(waker.take());
        state.stage = Stage::Offered(id);
        Some(wake)
    }
}

/// A flight that has its response.
pub(crate) struct LandedFlight {
    pub(crate) key: Key,
    pub(crate) begun: Begun,
    pub(crate) flying: Option<Arc<Flying>>,
}
