//! The backends of a pool as seen by an algorithm: the eligible ones, with their load.

use std::time::Duration;

use crate::algorithm::resume::ClassKey;
use crate::backend::Availability;
use crate::ids::Places;
use crate::load::PoolLoad;
use crate::random::SharedRandom;
use crate::{Backend, BackendId};

/// The request that a backend is chosen for.
pub(crate) struct RequestContext<'a> {
    pub(crate) class: Option<&'a [u8]>,
    /// The algorithm's key of the class.
    pub(crate) key: Option<ClassKey>,
    pub(crate) now: Duration,
    /// How many backends were tried for it in vain.
    pub(crate) tried: usize,
}

/// The backends that an algorithm chooses from.
pub(crate) struct Candidates<'a> {
    pub(crate) backends: &'a [Backend],
    pub(crate) ids: &'a [BackendId],
    pub(crate) places: &'a Places,
    pub(crate) load: &'a PoolLoad,
    pub(crate) random: &'a SharedRandom,
    /// The sum of the weights of all backends.
    pub(crate) weights: f32,
    /// The length of a slow start, in milliseconds.
    pub(crate) slow_start: u64,
    /// In milliseconds, and in microseconds.
    pub(crate) now: u64,
    pub(crate) micros: u64,
    pub(crate) exclude: &'a [BackendId],
    /// Whether ejected backends are eligible, for lack of others.
    pub(crate) ejected_too: bool,
    /// Whether overdue backends are eligible, for lack of others.
    pub(crate) overdue_too: bool,
    /// Whether full backends are eligible, to wait for.
    pub(crate) full_too: bool,
    /// Whether backends of another version than the one in service are eligible, for lack of others.
    pub(crate) sidelined_too: bool,
}

impl Candidates<'_> {
    /// The number of backends, eligible or not.
    pub(crate) fn count(&self) -> usize {
        self.backends.len()
    }

    /// Every backend.
    pub(crate) fn all(&self) -> std::ops::Range<usize> {
        0..self.backends.len()
    }

    /// Whether a backend may take the request.
    pub(crate) fn eligible(&self, at: usize) -> bool {
        let backend = &self.backends[at];
        (self.full_too || backend.has_room())
            && (backend.state.serves() || self.sidelined_too && backend.state.takes_requests())
            && (self.overdue_too || !backend.state.is_overdue(self.now))
            && (self.ejected_too || backend.state.availability(self.now) != Availability::Ejected)
            && !self.exclude.contains(&self.ids[at])
    }

    /// From 0 to 1: the progress of a backend's slow start.
    pub(crate) fn warmth(&self, at: usize) -> f32 {
        if self.slow_start == 0 {
            return 1.0;
        }
        self.backends[at].state.warmth(self.now, self.slow_start)
    }

    /// The requests in hand with one more, by weight.
    pub(crate) fn load(&self, at: usize) -> f32 {
        (self.backends[at].in_hand() as f32 + 1.0) / self.part(at)
    }

    /// The requests in hand, by weight.
    pub(crate) fn load_now(&self, at: usize) -> f32 {
        self.backends[at].in_hand() as f32 / self.part(at)
    }

    /// The part of the load that a backend should have, relative to others: by its weight, and less in slow
    /// start.
    pub(crate) fn part(&self, at: usize) -> f32 {
        self.backends[at].weight() as f32 * self.warmth(at)
    }

    /// The requests in hand of all backends with one more.
    pub(crate) fn total_load(&self) -> f32 {
        self.load.in_hand() as f32 + 1.0
    }

    /// The part of the pool's load that a backend should have.
    pub(crate) fn share_of_all(&self, at: usize) -> f32 {
        self.part(at) / self.weights
    }

    /// Any candidate, drawn by weight.
    pub(crate) fn any(&self) -> Option<usize> {
        let weight = |at: usize| if self.eligible(at) { self.backends[at].weight() as usize } else { 0 };
        let sum: usize = self.all().map(weight).sum();
        if sum == 0 {
            return None;
        }
        let mut point = self.random.below(sum);
        // The second walk may see fewer than the first.
        self.all().find(|&at| {
            let weight = weight(at);
            let here = point < weight;
            point = point.saturating_sub(weight);
            here
        })
    }

    /// The candidate with the least load; of several, a random one, so that not all requests go to the first.
    pub(crate) fn least_loaded(&self) -> Option<usize> {
        let count = self.count();
        let start = self.random.below(count.max(1));
        (0..count)
            .map(|step| (start + step) % count)
            .filter(|&at| self.eligible(at))
            .min_by(|&one, &two| self.load(one).total_cmp(&self.load(two)))
    }
}
