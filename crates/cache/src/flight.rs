//! Flights: the sole right to fill a key, and the waiters for it.
//!
//! ```text
//!            Miss ── Flight ──┬── store ───── waiters get the object as it arrives
//!                             ├── refresh ─── waiters get the freshened object
//!                             ├── mark ────── waiters look up again
//!                             ├── fail ────── waiters fail too
//!                             ├── release ─── one waiter takes over; the next time, some try at once
//!                             ├── scatter ─── waiters try by themselves
//!                             └── dropped ─── one waiter takes over
//! ```
//! Locks are taken in one order: the shard's, then the flight's.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use parking_lot::MutexGuard;
use sandarac_message::caching::Reuse;
use sandarac_message::{FieldsBuf, Timestamp};

use crate::body_writer::BodyWriter;
use crate::combination::Combination;
use crate::flight_state::{Begun, Flying, LandedFlight, Passing, Stage, State};
use crate::new_object::NewObject;
use crate::query::Query;
use crate::store::Store;
use crate::wait_list::keep;
use crate::{Key, Mark, Object, Tag};

/// The right to fill a key. If it is dropped unused, it passes to a waiter.
#[must_use = "a dropped flight passes to another request"]
pub struct Flight {
    store: Arc<Store>,
    key: Key,
    begun: Begun,
    candidate: Option<Arc<Object>>,
    /// None if other requests may fill the key at the same time; there are no waiters then.
    flying: Option<Arc<Flying>>,
    /// Whether a mark records that the previous response could not be shared.
    is_marked: bool,
}

impl Flight {
    pub(crate) fn new(store: Arc<Store>, key: Key, begun: Begun, candidate: Option<Arc<Object>>) -> Flight {
        Flight { store, key, begun, candidate: settled(candidate), flying: None, is_marked: false }
    }

    pub(crate) fn of(
        store: Arc<Store>,
        flying: Arc<Flying>,
        begun: Begun,
        candidate: Option<Arc<Object>>,
    ) -> Flight {
        Flight {
            store,
            key: flying.key,
            begun,
            candidate: settled(candidate),
            flying: Some(flying),
            is_marked: false,
        }
    }

    pub(crate) fn after_mark(mut self) -> Flight {
        self.is_marked = true;
        self
    }

    /// Whether a mark records that the previous response could not be shared ([`Mark::HitForMiss`](crate::Mark)).
    pub fn is_marked(&self) -> bool {
        self.is_marked
    }

    /// The key to fill.
    pub fn key(&self) -> Key {
        self.key
    }

    /// The stored object to validate, and to serve if the origin fails and its lifetimes allow it. It may be
    /// a part of what was requested; see [`Object::range`].
    pub fn candidate(&self) -> Option<&Arc<Object>> {
        self.candidate.as_ref()
    }

    /// Sets the [`Tag::target`] that the response will carry, if any. After a purge of that tag, new requests
    /// do not wait for this flight.
    pub fn aim(&self, target: Option<Tag>) {
        if let (Some(flying), Some(_)) = (&self.flying, target) {
            flying.state.lock().target = target;
        }
    }

    /// Stores a response whose body is to follow. The waiters get it now.
    pub fn store(mut self, new: NewObject<'_>) -> BodyWriter {
        let (store, landing) = self.leave();
        store.admit(landing, new, None)
    }

    /// Stores a partial response, combined with a stored part: the object shares the bytes of the latter.
    /// `new` has the head and the range of both together; its `len` is ignored. The caller MUST have found
    /// that both share a strong validator (RFC 9111 §3.4).
    pub fn combine(mut self, new: NewObject<'_>, combination: Combination) -> BodyWriter {
        let (store, landing) = self.leave();
        let new = NewObject { len: Some(combination.combined_len()), ..new };
        store.admit(landing, new, Some(combination))
    }

    /// Stores a response whose body is whole: `body` in pieces of any size, which are copied. If it cannot be
    /// stored, the object is made all the same, for this request and the waiters.
    pub fn store_complete(
        mut self,
        new: NewObject<'_>,
        body: &[&[u8]],
        trailers: Option<&FieldsBuf>,
    ) -> Arc<Object> {
        let (store, landing) = self.leave();
        store.admit_whole(landing, new, body, trailers)
    }

    /// The same with a body in memory of `memory` bytes, which nothing but `body` and what is short-lived keeps
    /// in use. A body that has pages of its own is not copied.
    pub fn store_shared(mut self, new: NewObject<'_>, body: Bytes, memory: usize) -> Arc<Object> {
        let (store, landing) = self.leave();
        store.admit_shared(landing, new, (body, memory))
    }

    /// Freshens the candidate with the head and the lifetimes updated by a 304: it keeps its body and range
    /// and takes the rest from `new`, whose `len` and `limit` are ignored. `None` if there is no candidate.
    pub fn refresh(mut self, new: NewObject<'_>) -> Option<Arc<Object>> {
        let candidate = self.candidate.take()?;
        let (store, landing) = self.leave();
        Some(store.refresh(landing, candidate, new))
    }

    /// The same right, whose fetch begins only now: purges and bans before `begun` do not apply to its response.
    /// A candidate that one of these removed is none.
    pub fn begun(mut self, begun: Begun) -> Flight {
        self.begun = begun;
        self.candidate = self.store.unremoved(self.candidate.take());
        if let Some(flying) = &self.flying {
            let mut state = flying.state.lock();
            state.begun = begun;
            state.candidate.clone_from(&self.candidate);
        }
        self
    }

    /// The same right, with an object to validate, if there was none, and it is whole and in the store.
    pub fn adopt(mut self, candidate: Arc<Object>) -> Flight {
        let store = &self.store;
        self.candidate =
            self.candidate.take().or(settled(Some(candidate)).filter(|object| store.holds(object)));
        self
    }

    /// The same right, but the candidate stays in the store whatever the outcome.
    pub fn sparing(mut self) -> Flight {
        self.candidate = None;
        self
    }

    /// Marks the key until `until`, so that no request waits for such a response. The candidate leaves the
    /// store.
    pub fn mark(mut self, mark: Mark, until: Timestamp, now: Timestamp) {
        let candidate = self.candidate.take();
        let (store, landing) = self.leave();
        store.mark(landing, candidate, mark, until, now);
    }

    /// Ends the flight because the origin could not answer. All waiters fail, instead of trying one after the
    /// other.
    pub fn fail(self) {
        self.end(Stage::Failed);
    }

    /// Ends the flight because the origin could not answer, perhaps because of this one request: one waiter
    /// takes over. If that fetch brings no answer either, up to `most` waiters try by themselves at once, and
    /// the others look up again and wait for one of them.
    pub fn release(mut self, most: usize) {
        let (store, landing) = self.leave();
        let Some(flying) = landing.flying else { return };
        if std::mem::replace(&mut flying.state.lock().failed, true) {
            store.ground(&flying);
            flying.close(Stage::Released(most));
        } else {
            store.pass_on(&flying, Passing::Leader);
        }
    }

    /// Ends the flight because the response may not be shared: all waiters try by themselves, at once.
    pub fn scatter(self) {
        self.end(Stage::Released(usize::MAX));
    }

    /// Stores nothing, and wakes the waiters.
    fn end(mut self, stage: Stage) {
        let (store, landing) = self.leave();
        if let Some(flying) = landing.flying {
            store.ground(&flying);
            flying.close(stage);
        }
    }

    /// Ends the flight without passing it on.
    fn leave(&mut self) -> (Arc<Store>, LandedFlight) {
        let flying = self.flying.take();
        (self.store.clone(), LandedFlight { key: self.key, begun: self.begun, flying, standing: None })
    }
}

/// The candidate, if it is whole: a body that is still arriving cannot be given another head.
fn settled(candidate: Option<Arc<Object>>) -> Option<Arc<Object>> {
    candidate.filter(|object| object.body().is_whole())
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some(flying) = self.flying.take() {
            self.store.pass_on(&flying, Passing::Leader);
        }
    }
}

/// The outcome for a waiter.
#[must_use]
pub enum Waited {
    /// The response, which may still be arriving.
    Object(Arc<Object>),
    /// The fetch was given up and this request takes it over, or it failed and this request tries by itself.
    Lead(Flight),
    /// The response does not answer this request, or was not worth waiting for: look up again.
    Again,
    /// The origin could not answer.
    Failed,
}

/// A request that waits for another request's fetch.
pub struct Waiter {
    store: Arc<Store>,
    flying: Arc<Flying>,
    entry: Option<usize>,
}

impl Waiter {
    pub(crate) fn new(store: Arc<Store>, flying: Arc<Flying>) -> Waiter {
        Waiter { store, flying, entry: None }
    }

    /// Whether the fetch validates something that is stored.
    pub fn validates(&self) -> bool {
        self.flying.state.lock().candidate.is_some()
    }

    /// Ready with the outcome of the fetch. `query` MUST be the one that was looked up. MUST NOT be polled
    /// again once ready.
    pub fn poll(&mut self, cx: &mut Context<'_>, query: &Query<'_>, now: Timestamp) -> Poll<Waited> {
        let mut state = self.flying.state.lock();
        let waited = match &mut state.stage {
            Stage::Offered(entry) if Some(*entry) == self.entry => None,
            Stage::Open | Stage::Offered(_) => {
                let entry = *self.entry.get_or_insert_with(|| state.waiters.insert(None));
                if let Some(place) = state.waiters.get_mut(entry) {
                    keep(place, cx);
                }
                return Poll::Pending;
            }
            Stage::Landed(object) if answers(object, query, now) => Some(Waited::Object(object.clone())),
            Stage::Released(left) if *left > 0 => {
                *left -= 1;
                None
            }
            Stage::Landed(_) | Stage::Over | Stage::Released(_) => Some(Waited::Again),
            Stage::Failed => Some(Waited::Failed),
        };
        if let Some(entry) = self.entry.take() {
            state.waiters.remove(entry);
        }
        let Some(waited) = waited else { return Poll::Ready(Waited::Lead(self.lead(state))) };
        drop(state);
        if let Waited::Object(object) = &waited {
            self.store.count_hit(object);
        }
        Poll::Ready(waited)
    }

    /// The right to fetch from now on: that of the flight, if it was offered to this waiter, or one of its own.
    fn lead(&self, mut state: MutexGuard<'_, State>) -> Flight {
        let takes_over = matches!(state.stage, Stage::Offered(_));
        // Purges and bans before this moment do not apply to a fetch that begins after it, so the candidate is tested against
        // them.
        let begun = self.store.begun();
        if takes_over {
            state.stage = Stage::Open;
            state.begun = begun;
        }
        let candidate = state.candidate.clone();
        drop(state);
        let candidate = self.store.unremoved(candidate);
        if !takes_over {
            return Flight::new(self.store.clone(), self.flying.key, begun, candidate);
        }
        self.flying.state.lock().candidate.clone_from(&candidate);
        Flight::of(self.store.clone(), self.flying.clone(), begun, candidate)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.store.pass_on(&self.flying, Passing::Waiter(entry));
        }
    }
}

/// Whether a response that has just arrived answers a request that waited for it. It meets the request's
/// directives for stored responses (no-cache, max-age), because it is newer than the request, unless it was found
/// in the shared tier.
fn answers(object: &Object, query: &Query<'_>, now: Timestamp) -> bool {
    let asked = match object.copy() {
        Some(copy) if copy.is_found() => *query.directives,
        _ => query.directives.of_newer_response(),
    };
    object.vary().matches(query.fields)
        && object.answers(query.part)
        && !matches!(object.lifetimes().reuse(&asked, now), Reuse::Revalidate | Reuse::Gone)
}
