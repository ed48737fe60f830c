//! The caches that are compared.
//!
//! All have the same bytes, and charge an object the same [`cost`]; Sandarac's store charges itself what it
//! takes. An object that alone is larger than the cache is not stored.

mod bound;
mod gdsf;
mod libraries;
mod list;
mod recency;
mod s3_fifo;
mod sieve;
#[cfg(test)]
mod tests;

use crate::cache::Cache;
use crate::cost::cost;
use crate::ours::Ours;
use crate::traces::{Request, Trace};

/// A cache policy, without lifetimes.
trait Policy {
    /// Records a request. Returns whether the object is present.
    fn access(&mut self, key: u32, when: When) -> bool;

    /// Stores an object that is absent, and may evict others. `cost` is at most the capacity.
    fn insert(&mut self, key: u32, cost: u64, when: When);
}

/// The place of a request in its trace.
#[derive(Clone, Copy)]
struct When {
    now: u32,
    /// The next request that could be a hit; [`NEVER`] if there is none. Only the bound may use it.
    next: u32,
}

const NEVER: u32 = u32::MAX;

/// The caches. All but the bound are online: they do not know later requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ours,
    Fifo,
    Lru,
    S3Fifo,
    Sieve,
    Gdsf,
    Moka,
    QuickCache,
    Bound,
}

impl Kind {
    pub(crate) const ALL: [Kind; 9] = [
        Kind::Ours,
        Kind::Fifo,
        Kind::Lru,
        Kind::S3Fifo,
        Kind::Sieve,
        Kind::Gdsf,
        Kind::Moka,
        Kind::QuickCache,
        Kind::Bound,
    ];

    /// The name on the command line and in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Ours => "ours",
            Kind::Fifo => "fifo",
            Kind::Lru => "lru",
            Kind::S3Fifo => "s3-fifo",
            Kind::Sieve => "sieve",
            Kind::Gdsf => "gdsf",
            Kind::Moka => "moka",
            Kind::QuickCache => "quick",
            Kind::Bound => "bound",
        }
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Kind::Ours => "the store of this repository",
            Kind::Fifo => "first in, first out",
            Kind::Lru => "least recently used",
            Kind::S3Fifo => "S3-FIFO as in the paper: small queue of 10 %, ghost of 90 % of the bytes",
            Kind::Sieve => "SIEVE",
            Kind::Gdsf => "GreedyDual-Size-Frequency, for object hits",
            Kind::Moka => "W-TinyLFU, by the crate moka",
            Kind::QuickCache => "the crate quick_cache (S3-FIFO and Clock), unsharded",
            Kind::Bound => {
                "offline: evicts the largest product of size and time to the next use; about the best"
            }
        }
    }

    pub(crate) fn is_online(self) -> bool {
        self != Kind::Bound
    }

    /// An empty cache for a trace.
    pub(crate) fn make(self, trace: &Trace) -> Box<dyn Cache> {
        let (capacity, keys) = (trace.capacity, trace.keys);
        let policy: Box<dyn Policy> = match self {
            Kind::Ours => return Box::new(Ours::new(capacity, trace.revalidates)),
            Kind::Fifo => Box::new(recency::Recency::fifo(capacity, keys)),
            Kind::Lru => Box::new(recency::Recency::lru(capacity, keys)),
            Kind::S3Fifo => Box::new(s3_fifo::S3Fifo::new(capacity, keys)),
            Kind::Sieve => Box::new(sieve::Sieve::new(capacity, keys)),
            Kind::Gdsf => Box::new(gdsf::Gdsf::new(capacity, keys)),
            Kind::Moka => Box::new(libraries::Moka::new(capacity)),
            Kind::QuickCache => Box::new(libraries::QuickCache::new(capacity)),
            Kind::Bound => Box::new(bound::Bound::new(capacity, keys)),
        };
        Box::new(Aging::new(policy, trace))
    }
}

/// A policy whose objects expire. An expired object stays where it is, and is made fresh by the next request
/// for it: by a 304, which is a hit, or by being fetched again, which is a miss.
struct Aging {
    policy: Box<dyn Policy>,
    capacity: u64,
    revalidates: bool,
    /// Until when each object is fresh, in milliseconds of the trace.
    fresh_until: Vec<u32>,
    /// The next request for the same object, and its time, for each request.
    next: Vec<(u32, u32)>,
}

impl Aging {
    fn new(policy: Box<dyn Policy>, trace: &Trace) -> Aging {
        let mut following = vec![(NEVER, NEVER); trace.keys];
        let mut next = vec![(NEVER, NEVER); trace.requests.len()];
        for (number, request) in trace.requests.iter().enumerate().rev() {
            let this = (number as u32, request.at);
            next[number] = std::mem::replace(&mut following[request.key as usize], this);
        }
        let (capacity, revalidates) = (trace.capacity, trace.revalidates);
        Aging { policy, capacity, revalidates, fresh_until: vec![0; trace.keys], next }
    }
}

impl Cache for Aging {
    fn request(&mut self, number: usize, request: &Request) -> bool {
        let until = &mut self.fresh_until[request.key as usize];
        let was_fresh = request.at < *until;
        // An expired object is made fresh by this request.
        let renewed = request.at.saturating_add(request.lifetime);
        let usable_until = if was_fresh { *until } else { renewed };
        let (next, next_at) = self.next[number];
        let visible = |until: u32| if self.revalidates || next_at < until { next } else { NEVER };
        let when = When { now: number as u32, next: visible(usable_until) };
        let present = self.policy.access(request.key, when);
        if present && was_fresh {
            return true;
        }
        *until = renewed;
        if !present {
            let cost = cost(request.size);
            if cost <= self.capacity {
                self.policy.insert(request.key, cost, When { next: visible(renewed), ..when });
            }
        }
        present && self.revalidates
    }
}
