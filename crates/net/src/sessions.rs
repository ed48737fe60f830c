//! The sessions of one core: their number, and whether they should end.

use crate::tls::Handshakes;
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use tokio::sync::Notify;

/// The most clients per core that were turned away with a response and are given time to read it. More are
/// closed at once: under a flood their descriptors are needed, above all for connections to backends.
const LINGERING: usize = 4;

/// The sessions of one core.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    wakers: RefCell<Slab<Waker>>,
    draining: Cell<bool>,
    lingering: Cell<usize>,
    pub(crate) handshakes: Handshakes,
    drained: Notify,
}

impl Sessions {
    /// Whether connections accept no further request.
    pub(crate) fn draining(&self) -> bool {
        self.draining.get()
    }

    /// The number of open connections.
    pub(crate) fn count(&self) -> usize {
        self.wakers.borrow().len()
    }

    pub(crate) fn enter(self: &Rc<Sessions>, waker: &Waker) -> Membership {
        Membership { slot: self.wakers.borrow_mut().insert(waker.clone()), sessions: self.clone() }
    }

    /// A place for one more turned-away client to linger in, if there is one.
    pub(crate) fn linger(self: &Rc<Sessions>) -> Option<Lingering> {
        let others = self.lingering.get();
        (others < LINGERING).then(|| {
            self.lingering.set(others + 1);
            Lingering(self.clone())
        })
    }

    /// Waits until draining begins.
    pub(crate) async fn drained(&self) {
        let notified = self.drained.notified();
        if !self.draining() {
            notified.await;
        }
    }

    pub(crate) fn drain(&self) {
        self.draining.set(true);
        self.drained.notify_waiters();
        for (_, waker) in self.wakers.borrow().iter() {
            waker.wake_by_ref();
        }
    }
}

/// A session's entry among those of its core.
pub(crate) struct Membership {
    slot: usize,
    sessions: Rc<Sessions>,
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut wakers = self.sessions.wakers.borrow_mut();
        wakers.remove(self.slot);
        if wakers.is_empty() && wakers.capacity() > 1024 {
            *wakers = Slab::new();
        }
    }
}

/// A place in which a turned-away client may linger.
pub(crate) struct Lingering(Rc<Sessions>);

impl Drop for Lingering {
    fn drop(&mut self) {
        self.0.lingering.set(self.0.lingering.get() - 1);
    }
}
