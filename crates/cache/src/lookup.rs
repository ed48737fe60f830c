//! Lookups: what the store has for a request, or the right to ask the origin for it.

use std::sync::Arc;

use sandarac_message::caching::Reuse;
use sandarac_message::vary::VaryKey;
use sandarac_message::{Fields, Name, Timestamp};

use crate::flight::{Flight, Waiter};
use crate::flight_state::{Begun, Errand, Flying};
use crate::query::{Intent, Query};
use crate::shard::{Found, Shard};
use crate::shards::Locked;
use crate::stats::Removal;
use crate::store::Store;
use crate::{Key, Mark, Object};

/// The number of passed proxies is compared only up to this one, because clients can claim any number.
const MOST_PASSED: usize = 8;

/// The result of a lookup.
#[must_use]
pub enum Lookup {
    /// An object to serve: fresh, or as fresh as the request requires. Its body may be arriving.
    Hit(Arc<Object>),
    /// A stale object to serve at once. The first request to find it gets the right to validate it in the
    /// background.
    Stale(Arc<Object>, Option<Flight>),
    /// Nothing to serve without asking the origin, and the right to ask.
    Miss(Flight),
    /// Another request is asking the origin.
    Wait(Waiter),
    /// The key's responses are not shared: ask the origin without waiting for others, and, for
    /// [`Mark::HitForMiss`], store what turns out to be storable.
    Marked(Mark, Flight),
    /// For [`Intent::Peek`]: nothing to serve without asking the origin. The object, if any, would be
    /// validated.
    Absent(Option<Arc<Object>>),
}

impl Store {
    /// What the store has for a request. A hit allocates nothing and takes one lock.
    pub fn lookup(self: &Arc<Store>, key: Key, query: &Query<'_>, now: Timestamp) -> Lookup {
        if self.is_behind(now) {
            // All that is stored, and all that is being fetched, may have been purged.
            return match query.intent {
                Intent::Peek => Lookup::Absent(None),
                Intent::Fill => Lookup::Miss(self.open(key)),
            };
        }
        loop {
            let mut shard = self.lock(key);
            let (object, whole) = match shard.find(key, query.fields, query.part) {
                Found::Object(slot) => (shard.object(slot), true),
                Found::Partial(slot) => (shard.object(slot), false),
                Found::Nothing => (None, false),
            };
            let Some(object) = object.cloned() else {
                let begun = self.begun();
                return self.miss(shard, key, query, begun, None, now);
            };
            if !self.bans.are_tested(&object) {
                drop(shard);
                if self.bans.meet(&object) {
                    self.discard(&object, Removal::Banned);
                }
                continue;
            }
            let reuse = match object.lifetimes().reuse(query.directives, now) {
                Reuse::Gone => Reuse::Gone,
                _ if !whole => Reuse::Revalidate,
                reuse => reuse,
            };
            if matches!(reuse, Reuse::Fresh | Reuse::MaxStale) {
                object.hit();
                shard.counters().hits += 1;
                return Lookup::Hit(object);
            }
            let begun = self.begun();
            if !self.bans.are_tested(&object) {
                // A ban that does not apply to a fetch which begins now has to be tested against what that validates.
                continue;
            }
            return match reuse {
                Reuse::Fresh | Reuse::MaxStale => unreachable!("it was a hit"),
                Reuse::StaleWhileRevalidate => {
                    object.hit();
                    shard.counters().stale += 1;
                    // All that is stored is validated, whatever part of it was requested.
                    let stored = Query { part: object.range().map(|held| held.spec()), ..*query };
                    let flight = match query.intent {
                        Intent::Fill => self.take_off(&mut shard, key, &stored, begun, Some(&object)).ok(),
                        Intent::Peek => None,
                    };
                    Lookup::Stale(object, flight)
                }
                Reuse::Revalidate => self.miss(shard, key, query, begun, Some(object), now),
                Reuse::Gone => self.miss(shard, key, query, begun, None, now),
            };
        }
    }

    /// The right to store a response for a key that others may be filling too: a response from another tier,
    /// or to a request that was not looked up.
    pub fn open(self: &Arc<Store>, key: Key) -> Flight {
        Flight::new(self.clone(), key, self.begun(), None)
    }

    /// The right to freshen a stored object by a response other than a 304, such as the response to HEAD (RFC
    /// 9111 §4.3.5).
    pub fn open_for(self: &Arc<Store>, object: &Arc<Object>) -> Flight {
        Flight::new(self.clone(), object.key(), self.begun(), Some(object.clone()))
    }

    fn miss(
        self: &Arc<Store>,
        mut shard: Locked<'_>,
        key: Key,
        query: &Query<'_>,
        begun: Begun,
        candidate: Option<Arc<Object>>,
        now: Timestamp,
    ) -> Lookup {
        if query.intent == Intent::Peek {
            return Lookup::Absent(candidate);
        }
        if let Some(mark) = self.marked(&shard, key, query, now) {
            shard.counters().marked += 1;
            let flight = Flight::new(self.clone(), key, begun, candidate).after_mark();
            return Lookup::Marked(mark, flight);
        }
        let alone = candidate.as_ref().is_some_and(|object| !object.is_shareable());
        if alone {
            shard.counters().misses += 1;
            return Lookup::Miss(Flight::new(self.clone(), key, begun, candidate));
        }
        match self.take_off(&mut shard, key, query, begun, candidate.as_ref()) {
            Ok(flight) => {
                shard.counters().misses += 1;
                Lookup::Miss(flight)
            }
            Err(flying) => {
                shard.counters().waits += 1;
                Lookup::Wait(Waiter::new(self.clone(), flying))
            }
        }
    }

    fn marked(&self, shard: &Shard, key: Key, query: &Query<'_>, now: Timestamp) -> Option<Mark> {
        if !shard.marks.any() {
            return None;
        }
        shard.marks.get(key, now).or_else(|| {
            let variant = variant(shard, key, query.fields)?;
            shard.marks.get(key.variant(&variant), now)
        })
    }

    /// A flight for a request, or an existing one that will answer it.
    fn take_off(
        self: &Arc<Store>,
        shard: &mut Shard,
        key: Key,
        query: &Query<'_>,
        begun: Begun,
        candidate: Option<&Arc<Object>>,
    ) -> Result<Flight, Arc<Flying>> {
        let whole = candidate.is_some_and(|object| object.range().is_none());
        let errand = Errand {
            variant: variant(shard, key, query.fields),
            part: query.part.filter(|part| !whole && !part.is_whole()),
            passed: query.fields.list(Name::Via).count().min(MOST_PASSED),
        };
        let hash = u64::from(key.hash());
        let candidate = candidate.cloned();
        let eq = |flying: &Arc<Flying>| flying.key == key && flying.errand.serves(&errand);
        if let Some(flying) = shard.flights.find_mut(hash, eq) {
            // A fetch that began before a purge or a ban may bring what that should remove. While a purge walks, a fetch that
            // began since is as good as one that begins now.
            let before = flying.begun();
            let is_purged =
                || before.purges != begun.purges && self.purges.may_meet(before.purges, key, flying.target());
            if before.bans == begun.bans && !is_purged() {
                return Err(flying.clone());
            }
            *flying = Flying::new(key, errand, begun, candidate.clone());
            return Ok(Flight::of(self.clone(), flying.clone(), begun, candidate));
        }
        let flying = Flying::new(key, errand, begun, candidate.clone());
        shard.flights.insert_unique(hash, flying.clone(), |flying| u64::from(flying.key.hash()));
        Ok(Flight::of(self.clone(), flying, begun, candidate))
    }
}

/// The variant of a key that a request selects, if the newest object of the key varies.
fn variant(shard: &Shard, key: Key, request: Fields<'_>) -> Option<VaryKey> {
    let (_, newest) = shard.variants(key).find(|(_, object)| !object.vary().is_empty())?;
    Some(newest.vary().names().key(request))
}
