//! Tickets: the turns of requests that wait for a place at a pool.

use std::sync::Weak;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::claim::Claim;
use crate::pool::{Inner, Pool};
use crate::queue::{QueueEntry, QueuedPool};
use crate::{BackendId, NoBackend, Pick};

/// A request's turn at a pool. It waits from the first [`Ticket::poll_pick`] that finds no place, and
/// dropping it passes its turn on to the next.
#[derive(Debug)]
pub struct Ticket {
    pool: Pool,
    entry: QueueEntry,
}

impl Pool {
    /// A ticket of this pool, for a request that waits if all places are taken.
    pub fn queue(&self) -> Ticket {
        Ticket { pool: self.clone(), entry: QueueEntry::default() }
    }
}

impl Ticket {
    /// The ticket of a request whose session sticks to `backend`. It waits for a place there, even while
    /// others have places, and for any when its [`Settings::patience`](crate::Settings::patience) is over or
    /// that backend goes out of service.
    pub fn sticking_to(mut self, backend: BackendId) -> Ticket {
        self.entry.sticks_to = Some(backend);
        self
    }

    /// Chooses a backend as [`Pool::pick_patiently`] does, or waits for a place behind all earlier waiters
    /// for the same.
    ///
    /// `class` counts as passed to the first call. `exclude` counts as passed to the last one; the turn is
    /// kept when it changes. After a reload the succeeding pool serves. The caller limits the wait, by
    /// dropping the ticket. It MUST poll again when [`Settings::patience`](crate::Settings::patience) is
    /// over, because nothing else may wake it.
    ///
    /// # Errors
    /// [`NoBackend::Empty`] and [`NoBackend::AllTried`], for which waiting does not help;
    /// [`NoBackend::QueueFull`] if the queue is full; [`NoBackend::AllFull`] if the queue is disabled.
    pub fn poll_pick(
        &mut self,
        cx: &mut Context<'_>,
        class: Option<&[u8]>,
        now: Duration,
        exclude: &[BackendId],
    ) -> Poll<Result<Pick, NoBackend>> {
        let queue = self.pool.queue_before();
        if self.pool.queue_limit() == 0 {
            let picked = self.pool.pick(class, now, exclude);
            if matches!(picked, Err(NoBackend::AllFull)) {
                queue.refuse();
            }
            return Poll::Ready(picked);
        }
        queue.poll(&self.pool, &mut self.entry, cx, class, now, exclude)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.pool.queue_before().leave(&self.entry);
    }
}

impl QueuedPool for Pool {
    type Weak = Weak<Inner>;
    type Claim = Claim;
    type Pick = Pick;

    fn downgrade(&self) -> Weak<Inner> {
        Pool::downgrade(self)
    }

    fn upgrade(weak: &Weak<Inner>) -> Option<Pool> {
        Pool::upgrade(weak)
    }

    fn ids(&self) -> &[BackendId] {
        Pool::ids(self)
    }

    fn position(&self, id: BackendId) -> Option<usize> {
        self.inner().places().of(id)
    }

    fn has_room_at(&self, at: usize) -> bool {
        self.backends()[at].has_room()
    }

    fn has_room(&self, now: Duration) -> bool {
        Pool::has_room(self, now)
    }

    fn queue_limit(&self) -> usize {
        Pool::queue_limit(self) as usize
    }

    fn patience(&self) -> Duration {
        self.settings().patience
    }

    fn claim(
        &self,
        class: Option<&[u8]>,
        now: Duration,
        exclude: &[BackendId],
        sticks_to: Option<BackendId>,
    ) -> Option<Claim> {
        let request = self.request_context(class, now, exclude.len());
        let sticks_to = sticks_to.filter(|id| !exclude.contains(id));
        let sticking = sticks_to.and_then(|id| self.sticking(id, now));
        let best = || self.may_wait_for_one(class).then(|| self.best(&request, exclude)).flatten();
        sticking.or_else(best).map(|chosen| Claim::new(self, chosen, &request))
    }

    fn claimed(claim: &Claim) -> BackendId {
        claim.id()
    }

    fn honour(&self, claim: Claim, class: Option<&[u8]>, now: Duration, tried: usize) -> Option<Pick> {
        Pool::honour(self, claim, &self.request_context(class, now, tried))
    }

    fn take_any(&self, class: Option<&[u8]>, now: Duration, exclude: &[BackendId]) -> Option<Pick> {
        Pool::take_any(self, class, now, exclude)
    }

    fn refusal(&self, exclude: &[BackendId]) -> NoBackend {
        Pool::refusal(self, exclude)
    }
}
