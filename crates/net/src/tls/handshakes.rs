//! The handshakes of one core: how many there are, and which one may compute.

use crate::Moment;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The age from which a handshake, or a connection without any request, may be ended for the sake of another
/// connection. Most take less, so that under a load of clients that go on, handshakes are finished and not
/// replaced by newer ones.
pub(crate) const STALLED: Duration = Duration::from_secs(1);

/// The handshakes that run on one core.
#[derive(Debug)]
pub(crate) struct Handshakes {
    /// Those in progress, oldest first.
    running: RefCell<BTreeMap<u64, Entry>>,
    begun: Cell<u64>,
    /// One permit for each turn of the core's loop.
    turn: Rc<Semaphore>,
}

impl Default for Handshakes {
    fn default() -> Handshakes {
        let turn = Rc::new(Semaphore::new(1));
        Handshakes { running: RefCell::default(), begun: Cell::new(0), turn }
    }
}

impl Handshakes {
    /// Adds a handshake. If there are more than `most` then, ends the oldest: an attacker who leaves
    /// handshakes unfinished loses those, and clients that go on do not.
    pub(crate) fn enter(&self, most: usize, waker: &Waker) -> Running<'_> {
        let number = self.begun.get();
        self.begun.set(number + 1);
        let mut running = self.running.borrow_mut();
        running.insert(number, Entry { began: Moment::now(), waker: waker.clone() });
        if running.len() > most.max(1)
            && let Some((_, oldest)) = running.pop_first()
        {
            oldest.waker.wake();
        }
        Running { handshakes: self, number }
    }

    /// Ends the oldest handshake if it has taken long, for a connection that found no place.
    pub(crate) fn end_stalled(&self) {
        let mut running = self.running.borrow_mut();
        if let Some(oldest) = running.first_entry()
            && Moment::now().since(oldest.get().began) >= STALLED
        {
            oldest.remove().waker.wake();
        }
    }

    /// Waits for a turn of the core's loop in which no other handshake computes. Private-key operations take
    /// a millisecond and more; between two of them other ready connections are served.
    pub(super) async fn turn(&self) {
        let Ok(turn) = self.turn.acquire().await else { return };
        turn.forget();
        let turns = self.turn.clone();
        tokio::task::spawn_local(async move {
            // Goes on after the runtime has asked for ready connections.
            tokio::task::yield_now().await;
            turns.add_permits(1);
        });
    }
}

#[derive(Debug)]
struct Entry {
    began: Moment,
    waker: Waker,
}

/// A handshake in progress.
pub(crate) struct Running<'h> {
    handshakes: &'h Handshakes,
    number: u64,
}

impl Running<'_> {
    /// Whether it must end, because there are too many.
    pub(crate) fn is_ended(&self) -> bool {
        !self.handshakes.running.borrow().contains_key(&self.number)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.handshakes.running.borrow_mut().remove(&self.number);
    }
}
