//! The sessions of one core: their number, which of them are idle, and whether they should end.

use crate::tls::{Handshakes, STALLED};
use crate::{Conn, ListenerId, Moment, Unread};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Waker;
use tokio::sync::Notify;

/// The most clients per core that were turned away with a response and are given time to read it. More are
/// closed at once: under a flood their descriptors are needed, above all for connections to backends.
const LINGERING: usize = 4;

/// How connections end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// After one more request of each: another process accepts the next. One that is idle need not be closed,
    /// and its client may be sending.
    AfterOne,
    /// Those that are idle at once, the others after their request.
    Now,
}

/// Bytes of a part of a request that are not in the way of others.
const LITTLE: usize = 4 << 10;

/// The sessions of one core.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    entries: RefCell<Slab<Entry>>,
    /// Their number, which other cores see.
    pub(crate) count: Arc<AtomicUsize>,
    /// The number of times that a session began to wait for a request.
    rests: Cell<u64>,
    /// Those that were idle when this was last made, the longest idle first: the slot, and [`Entry::rests`].
    longest_idle: RefCell<VecDeque<(usize, u64)>>,
    ending: Cell<Option<Ending>>,
    /// The listeners that are no more, but whose connections may be.
    gone: RefCell<Vec<ListenerId>>,
    lingering: Cell<usize>,
    pub(crate) handshakes: Handshakes,
    ends: Notify,
}

#[derive(Debug)]
struct Entry {
    waker: Waker,
    /// Since when a request is due: the connection was admitted then, or a later head began.
    since: Moment,
    /// The requests that it has had.
    requests: u32,
    /// [`Sessions::rests`] when it began to wait for a request; 0 while it does something else.
    rests: u64,
    /// Whether it has had a request before, and nothing of another one has come.
    is_kept: bool,
    /// Bytes of memory that the part of one takes that has come.
    part: usize,
    /// Whether it is to end as soon as it waits for a request, for the sake of another connection.
    gives_way: bool,
}

impl Entry {
    fn give_way(&mut self) {
        self.gives_way = true;
        self.waker.wake_by_ref();
    }
}

impl Sessions {
    /// Whether and how all of them end.
    #[inline]
    pub(crate) fn ending(&self) -> Option<Ending> {
        self.ending.get()
    }

    /// Whether connections accept no further request.
    #[inline]
    pub(crate) fn are_last(&self) -> bool {
        self.ending().is_some()
    }

    /// Whether those of this listener have to be told so: all end, or the listener is no more.
    pub(crate) fn have_to_leave(&self, listener: ListenerId) -> bool {
        self.are_last() || self.gone.borrow().contains(&listener)
    }

    /// The number of open connections.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// A session begins. It counts from now on, before its task is polled: a core that is draining would end
    /// without it.
    pub(crate) fn enter(self: &Rc<Sessions>) -> Membership {
        self.count.fetch_add(1, Relaxed);
        let entry = Entry {
            waker: Waker::noop().clone(),
            since: Moment::now(),
            requests: 0,
            rests: 0,
            is_kept: false,
            part: 0,
            gives_way: false,
        };
        Membership { slot: self.entries.borrow_mut().insert(entry), sessions: self.clone() }
    }

    /// Has the session end that has waited longest for another request, when it is polled next. Whether there
    /// is one.
    pub(crate) fn end_longest_idle(&self) -> bool {
        let (mut entries, mut longest_idle) = (self.entries.borrow_mut(), self.longest_idle.borrow_mut());
        for _ in 0..2 {
            while let Some((slot, rests)) = longest_idle.pop_front() {
                // It may have served a request since, or be another's slot.
                if let Some(entry) = entries.get_mut(slot)
                    && entry.rests == rests
                    && !entry.gives_way
                {
                    entry.give_way();
                    return true;
                }
            }
            let is_idle = |entry: &Entry| entry.rests > 0 && entry.is_kept && !entry.gives_way;
            let mut idle: Vec<_> = entries
                .iter()
                .filter(|(_, entry)| is_idle(entry))
                .map(|(slot, entry)| (slot, entry.rests))
                .collect();
            idle.sort_unstable_by_key(|(_, rests)| *rests);
            *longest_idle = idle.into();
        }
        false
    }

    /// The same for the oldest session whose request is due for longer than one is on its way.
    pub(crate) fn end_stalled(&self, now: Moment) -> bool {
        let mut entries = self.entries.borrow_mut();
        let is_stalled = |entry: &Entry| {
            entry.rests > 0 && !entry.is_kept && !entry.gives_way && now.since(entry.since) >= STALLED
        };
        let stalled = entries.iter_mut().map(|(_, entry)| entry).filter(|entry| is_stalled(entry));
        stalled.min_by_key(|entry| entry.rests).map(Entry::give_way).is_some()
    }

    /// The same for all sessions in which a part of a request has come and the rest is due for so long: where
    /// memory is scarce, theirs is for requests that are whole. Not of one that takes little.
    pub(crate) fn end_unfinished(&self, now: Moment) {
        let mut entries = self.entries.borrow_mut();
        let is_late =
            |entry: &Entry| entry.rests > 0 && entry.part > LITTLE && now.since(entry.since) >= STALLED;
        entries.iter_mut().filter(|(_, entry)| is_late(entry)).for_each(|(_, entry)| entry.give_way());
    }

    /// A place for one more turned-away client to linger in, if there is one.
    pub(crate) fn linger(self: &Rc<Sessions>) -> Option<Lingering> {
        let others = self.lingering.get();
        (others < LINGERING).then(|| {
            self.lingering.set(others + 1);
            Lingering(self.clone())
        })
    }

    /// Waits until they are to end.
    pub(crate) async fn ended(&self) {
        let notified = self.ends.notified();
        if !self.are_last() {
            notified.await;
        }
    }

    /// Has all of them end.
    pub(crate) fn end(&self, how: Ending) {
        self.ending.set(self.ending().max(Some(how)));
        self.ends.notify_waiters();
        self.wake();
    }

    /// Has those of a listener end that is no more.
    pub(crate) fn leave(&self, listener: ListenerId) {
        if self.count() > 0 {
            self.gone.borrow_mut().push(listener);
            self.wake();
        }
    }

    fn wake(&self) {
        for (_, entry) in self.entries.borrow().iter() {
            entry.waker.wake_by_ref();
        }
    }
}

/// A session's entry among those of its core.
pub(crate) struct Membership {
    slot: usize,
    pub(crate) sessions: Rc<Sessions>,
}

impl Membership {
    /// Sets the task that is woken when the session has to look.
    pub(crate) fn wakes(&self, waker: &Waker) {
        self.sessions.entries.borrow_mut()[self.slot].waker = waker.clone();
    }

    /// Notes that the session waits for a request, and nothing else. It has had so many, and `is_partial` is
    /// whether a part of the next one has come. Whether it has to end instead, for the sake of another
    /// connection. A request whose first bytes have arrived on `conn` saves it.
    #[inline]
    pub(crate) fn gives_way(&self, conn: &mut Conn, requests: u32, is_partial: bool) -> bool {
        if !self.rests(requests, is_partial, conn.input_memory()) {
            return false;
        }
        let is_saved = !is_partial && matches!(conn.unread(), Unread::Data);
        if is_saved {
            self.works();
        }
        !is_saved
    }

    #[inline]
    fn rests(&self, requests: u32, is_partial: bool, memory: usize) -> bool {
        let rests = self.sessions.rests.get() + 1;
        self.sessions.rests.set(rests);
        let entry = &mut self.sessions.entries.borrow_mut()[self.slot];
        if is_partial && (entry.is_kept || entry.requests != requests) {
            entry.since = Moment::now();
        }
        entry.is_kept = requests > 0 && !is_partial;
        entry.part = if is_partial { memory } else { 0 };
        (entry.rests, entry.requests) = (rests, requests);
        entry.gives_way
    }

    /// Notes that the session does not wait for a request any more. It keeps its place.
    #[inline]
    pub(crate) fn works(&self) {
        let entry = &mut self.sessions.entries.borrow_mut()[self.slot];
        (entry.rests, entry.gives_way) = (0, false);
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.sessions.count.fetch_sub(1, Relaxed);
        let mut entries = self.sessions.entries.borrow_mut();
        entries.remove(self.slot);
        if entries.is_empty() && entries.capacity() > 1024 {
            *entries = Slab::new();
            *self.sessions.longest_idle.borrow_mut() = VecDeque::new();
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

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_test_support::within;

    /// Bytes of a part that is in the way.
    const PART: usize = LITTLE + 1;

    /// Regression: heads that were not finished kept their places for ten seconds.
    /// Regression: it counted when its task was polled first, and a core that drained ended before that.
    #[test]
    fn a_session_counts_before_its_task_is_polled() {
        let sessions = Rc::new(Sessions::default());
        let session = sessions.enter();
        assert_eq!(sessions.count(), 1);
        drop(session);
        assert_eq!(sessions.count(), 0);
    }

    #[test]
    fn a_session_with_a_part_of_a_head_is_not_idle_and_its_request_is_due() {
        let sessions = Rc::new(Sessions::default());
        let session = sessions.enter();
        sessions.end_unfinished(Moment::now());
        assert!(!session.rests(0, true, PART));
        sessions.end_unfinished(Moment::now().plus(STALLED));
        assert!(session.rests(0, true, PART));
        session.works();
        // One that takes little is not in the way, and its client may be on a slow line.
        assert!(!session.rests(0, true, LITTLE));
        sessions.end_unfinished(Moment::now().plus(STALLED));
        assert!(!session.rests(0, true, LITTLE));
        session.works();
        let stalls = |moment: Moment| sessions.end_stalled(moment.plus(STALLED));
        let began = Moment::now();
        assert!(
            !session.rests(0, true, PART) && !sessions.end_longest_idle() && !sessions.end_stalled(began)
        );
        assert!(stalls(Moment::now()) && session.rests(0, true, PART));
        // A later request has as long, from its first byte on.
        session.works();
        assert!(!session.rests(1, false, PART));
        within("the clock to tick", || (Moment::now() > began).then_some(()));
        assert!(!session.rests(1, true, PART) && !stalls(began));
        assert!(!session.rests(1, true, PART) && stalls(Moment::now()));
    }

    #[test]
    fn the_session_that_has_rested_longest_gives_way_first() {
        let sessions = Rc::new(Sessions::default());
        let [first, second, third] = std::array::from_fn(|_| sessions.enter());
        assert!(!sessions.end_longest_idle(), "none rests");
        assert!(
            !first.rests(0, false, PART)
                && !sessions.end_longest_idle()
                && !sessions.end_stalled(Moment::now()),
            "its request may be on its way"
        );
        for session in [&first, &second, &third, &first] {
            assert!(!session.rests(1, false, PART));
        }
        third.works();
        assert!(sessions.end_longest_idle());
        assert!(second.rests(1, false, PART) && !third.rests(1, false, PART) && !first.rests(1, false, PART));
        assert_eq!(sessions.count.load(Relaxed), 3);
        drop(second);
        // Another takes its slot.
        let fourth = sessions.enter();
        assert!(!fourth.rests(1, false, PART));
        for session in [&third, &first, &fourth] {
            assert!(sessions.end_longest_idle() && session.rests(1, false, PART));
        }
        assert!(!sessions.end_longest_idle(), "each has been told once");
        fourth.works();
        assert!(!fourth.rests(1, false, PART), "one that was given a request stays");
        drop((first, third, fourth));
        assert_eq!((sessions.count(), sessions.count.load(Relaxed)), (0, 0));
    }
}
