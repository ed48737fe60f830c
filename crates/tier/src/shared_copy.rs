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
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    copy: LocalCopy,
    /// Requests that wait for the check in flight.
    waiters: Vec<Waker>,
}

impl SharedCopy {
    /// Shares a copy. The first request for it asks.
    pub fn new(copy: LocalCopy) -> SharedCopy {
        let state = State { copy, waiters: Vec::new() };
        SharedCopy { trusted_until: AtomicU64::new(0), state: Mutex::new(state) }
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
