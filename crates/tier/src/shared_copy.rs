//! The copy of an object as all its requests share it: trusted for a while, then asked about.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use sandarac_message::Timestamp;
use sandarac_wire::entry::Token;

use crate::local_copy::{Hit, LocalCopy};
use crate::server::Server;

/// A [`LocalCopy`] that belongs to an object in RAM. Most hits read one number of it.
///
/// Locks are taken in one order: that of the server, then that of the copy.
#[derive(Debug)]
pub struct SharedCopy {
    /// The time until which the object is served without a question, in milliseconds.
    trusted_until: AtomicU64,
    /// The token of the index that the entry belongs to; zero if it is no variant.
    index: AtomicU64,
    /// Whether the object came from the tier.
    is_found: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    copy: LocalCopy,
    /// Requests that wait for the check in flight.
    waiters: Vec<Waker>,
}

impl SharedCopy {
    /// Shares the copy of a response that was fetched. The first request for it asks. `index` is the token of the
    /// index, for a variant.
    pub fn fetched(copy: LocalCopy, index: Option<Token>) -> SharedCopy {
        SharedCopy { is_found: false, ..SharedCopy::found(copy, index) }
    }

    /// The same for an entry that was found.
    pub fn found(copy: LocalCopy, index: Option<Token>) -> SharedCopy {
        let index = AtomicU64::new(index.map_or(0, |token| token.0));
        let state = State { copy, waiters: Vec::new() };
        SharedCopy { trusted_until: AtomicU64::new(0), index, is_found: true, state: Mutex::new(state) }
    }

    /// Whether the object came from the tier, and not from the origin.
    pub fn is_found(&self) -> bool {
        self.is_found
    }

    /// The token of the index that the entry belongs to, if it is a variant.
    pub fn index(&self) -> Option<Token> {
        Some(self.index.load(Relaxed)).filter(|token| *token != 0).map(Token)
    }

    /// Notes the index that the entry belongs to.
    pub fn belongs_to(&self, index: Option<Token>) {
        self.index.store(index.map_or(0, |token| token.0), Relaxed);
    }

    /// Whether the object may be served without a question.
    pub fn is_trusted(&self, now: Timestamp) -> bool {
        now.as_millis() < self.trusted_until.load(Relaxed)
    }

    /// The handling of a request at `now`; see [`LocalCopy::hit`].
    pub fn hit(&self, now: Timestamp, server: &Server, reachable: bool) -> Hit {
        let copy = &mut self.state.lock().copy;
        let hit = copy.hit(now, server, reachable);
        self.trusted_until.store(copy.trusted_until(now, server, hit).as_millis(), Relaxed);
        hit
    }

    /// The token of the entry.
    pub fn token(&self) -> Token {
        self.state.lock().copy.token
    }

    /// Works on the copy.
    pub fn with<T>(&self, work: impl FnOnce(&mut LocalCopy) -> T) -> T {
        work(&mut self.state.lock().copy)
    }

    /// Ends a check, with a result or without: the copy is asked about again, and those who wait are woken.
    pub fn end_check(&self) {
        let mut state = self.state.lock();
        state.copy.end_check();
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        waiters.into_iter().for_each(Waker::wake);
    }

    /// Ready when no check is in flight.
    pub fn poll_checked(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if !state.copy.is_being_checked() {
            return Poll::Ready(());
        }
        if !state.waiters.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.waiters.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
