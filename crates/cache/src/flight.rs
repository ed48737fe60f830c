//! Flights: the sole right to fill a key, and those who wait for it.
//!
//! ```text
//!            Miss ── Flight ──┬── store ───── waiters get the object as it arrives
//!                             ├── refresh ─── waiters get the freshened object
//!                             ├── mark ────── waiters look up again
//!                             ├── fail ────── waiters are told
//!                             ├── release ─── one waiter takes over; the next time, some try at once
//!                             ├── scatter ─── waiters try for themselves
//!                             └── dropped ─── one waiter takes over
//! ```
//! Locks are taken in one order: the shard's, then the flight's.

use std::sync::Arc;
use std::task::{Context, Poll};

use sandarac_message::caching::{RequestDirectives, Reuse};
use sandarac_message::{FieldsBuf, Timestamp};

use crate::body_writer::BodyWriter;
use crate::combination::Combination;
use crate::flight_state::{Begun, Flying, LandedFlight, Stage};
use crate::new_object::NewObject;
use crate::query::Query;
use crate::store::Store;
use crate::wait_list::keep;
use crate::{Key, Mark, Object, Tag};

/// The right to fill a key. Dropped unused, it passes to one of those who wait.
#[must_use = "a dropped flight passes to another request"]
pub struct Flight {
    store: Arc<Store>,
    key: Key,
    begun: Begun,
    candidate: Option<Arc<Object>>,
    /// None where others may fill the key at the same time, and nobody waits for this.
    flying: Option<Arc<Flying>>,
}

impl Flight {
    pub(crate) fn new(store: Arc<Store>, key: Key, begun: Begun, candidate: Option<Arc<Object>>) -> Flight {
        Flight { store, key, begun, candidate: settled(candidate), flying: None }
    }

    pub(crate) fn of(
        store: Arc<Store>,
        flying: Arc<Flying>,
        begun: Begun,
        candidate: Option<Arc<Object>>,
    ) -> Flight {
        Flight { store, key: flying.key, begun, candidate: settled(candidate), flying: Some(flying) }
    }

    /// The key to fill.
    pub fn key(&self) -> Key {
        self.key
    }

    /// The stored object to validate, and to serve if the origin fails and its lifetimes allow it. It may be
    /// a part of what is wanted; see [`Object::range`].
    pub fn candidate(&self) -> Option<&Arc<Object>> {
        self.candidate.as_ref()
    }

    /// Tells which target the response will be of, where it will carry the [`Tag::target`] of one: who comes
    /// after a purge of that does not wait for it.
    pub fn aim(&self, target: Option<Tag>) {
        if let (Some(flying), Some(_)) = (&self.flying, target) {
            flying.state.lock().target = target;
        }
    }

    /// Stores a response whose body is to come. Those who wait get it now.
    pub fn store(mut self, new: NewObject<'_>) -> BodyWriter {
        let (store, landing) = self.leave();
        store.admit(landing, new, None)
    }

    /// Stores a response that carries a part, combined with a part that is stored: the object shares the bytes
    /// of the latter. `new` has the head and the range of both together; its `len` does not matter. The
    /// caller MUST have found that both share a strong validator (RFC 9111 §3.4).
    pub fn combine(mut self, new: NewObject<'_>, combination: Combination) -> BodyWriter {
        let (store, landing) = self.leave();
        let new = NewObject { len: Some(combination.combined_len()), ..new };
        store.admit(landing, new, Some(combination))
    }

    /// Stores a response whose body is whole: `body` in pieces of any size, which are copied. Where it cannot
    /// be stored the object is made all the same, for those who want it now.
    pub fn store_complete(
        mut self,
        new: NewObject<'_>,
        body: &[&[u8]],
        trailers: Option<&FieldsBuf>,
    ) -> Arc<Object> {
        let (store, landing) = self.leave();
        store.admit_whole(landing, new, body, trailers)
    }

    /// Freshens the candidate with the head and the lifetimes that a 304 makes of it: the same body, the
    /// range it had, and what else `new` says; its `len` and `limit` do not matter. `None` where there is no
    /// candidate.
    pub fn refresh(mut self, new: NewObject<'_>) -> Option<Arc<Object>> {
        let candidate = self.candidate.take()?;
        let (store, landing) = self.leave();
        Some(store.refresh(landing, candidate, new))
    }

    /// The same right, which leaves the candidate where it is, whatever becomes of it.
    pub fn sparing(mut self) -> Flight {
        self.candidate = None;
        self
    }

    /// Marks the key until then, so that nobody waits for the like of this response. The candidate leaves the
    /// store.
    pub fn mark(mut self, mark: Mark, until: Timestamp, now: Timestamp) {
        let candidate = self.candidate.take();
        let (store, landing) = self.leave();
        store.mark(landing, candidate, mark, until, now);
    }

    /// The origin could not answer: those who wait are told, instead of trying one after the other.
    pub fn fail(self) {
        self.end(Stage::Failed);
    }

    /// The origin could not answer, which may lie in this one request: one of those who wait takes over.
    /// Where that brings no answer either, up to `most` of them try for themselves, all at once, and the
    /// others look up again and wait for one of them.
    pub fn release(mut self, most: usize) {
        let (store, landing) = self.leave();
        let Some(flying) = landing.flying else { return };
        if std::mem::replace(&mut flying.state.lock().failed, true) {
            store.ground(&flying);
            flying.close(Stage::Released(most));
        } else {
            store.pass_on(&flying);
        }
    }

    /// The origin answered this one request with something that others may not get: all who wait try for
    /// themselves, at once.
    pub fn scatter(self) {
        self.end(Stage::Released(usize::MAX));
    }

    /// Leaves nothing, and tells those who wait.
    fn end(mut self, stage: Stage) {
        let (store, landing) = self.leave();
        if let Some(flying) = landing.flying {
            store.ground(&flying);
            flying.close(stage);
        }
    }

    /// Leaves the flight without passing it on.
    fn leave(&mut self) -> (Arc<Store>, LandedFlight) {
        (self.store.clone(), LandedFlight { key: self.key, begun: self.begun, flying: self.flying.take() })
    }
}

/// A body that is still arriving cannot be given to another head.
fn settled(candidate: Option<Arc<Object>>) -> Option<Arc<Object>> {
    candidate.filter(|object| object.body().is_whole())
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some(flying) = self.flying.take() {
            self.store.pass_on(&flying);
        }
    }
}

/// What a waiter is told.
#[must_use]
pub enum Waited {
    /// The response, which may still be arriving.
    Object(Arc<Object>),
    /// The fetch was given up, and this request takes it over, or failed, and this request tries for itself.
    Lead(Flight),
    /// The response does not answer this request, or was not worth waiting for: look up again.
    Again,
    /// The origin could not answer.
    Failed,
}

/// A request that waits for another's fetch.
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

    /// What has become of the fetch. `query` MUST be the one that was looked up. Once ready, it isn't to be
    /// polled again.
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
                let candidate = state.candidate.clone();
                Some(Waited::Lead(Flight::new(
                    self.store.clone(),
                    self.flying.key,
                    self.store.begun(),
                    candidate,
                )))
            }
            Stage::Landed(_) | Stage::Over | Stage::Released(_) => Some(Waited::Again),
            Stage::Failed => Some(Waited::Failed),
        };
        if let Some(entry) = self.entry.take() {
            state.waiters.remove(entry);
        }
        let Some(waited) = waited else {
            // What happened before this moment cannot taint a fetch that begins after it.
            let begun = self.store.begun();
            state.stage = Stage::Open;
            state.begun = begun;
            let candidate = state.candidate.clone();
            drop(state);
            let candidate = candidate.filter(|object| self.store.holds(object));
            let flight = Flight::of(self.store.clone(), self.flying.clone(), begun, candidate);
            return Poll::Ready(Waited::Lead(flight));
        };
        drop(state);
        if let Waited::Object(object) = &waited {
            self.store.count_hit(object);
        }
        Poll::Ready(waited)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let Some(entry) = self.entry.take() else { return };
        let mut state = self.flying.state.lock();
        state.waiters.remove(entry);
        let offered = matches!(state.stage, Stage::Offered(to) if to == entry);
        drop(state);
        if offered {
            self.store.pass_on(&self.flying);
        }
    }
}

/// Whether a response that has just arrived answers a request that waited for it. What the request asked of
/// stored responses (no-cache, max-age) is met by one that came after it.
fn answers(object: &Object, query: &Query<'_>, now: Timestamp) -> bool {
    let asked = RequestDirectives { no_cache: false, max_age: None, ..*query.directives };
    object.vary().matches(query.fields)
        && object.answers(query.part)
        && !matches!(object.lifetimes().reuse(&asked, now), Reuse::Revalidate | Reuse::Gone)
}
