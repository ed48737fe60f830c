//! The judgement of objects when room is needed: which keep their place, and what that costs them
//! (docs/decisions/0008).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::Object;
use crate::object::HIT;

/// Times the mean weight above which an object takes the place of several.
pub(crate) const MUCH_HEAVIER: usize = 4;

/// An object that takes more than this part of the store is a large one.
const LARGE: usize = 64;

/// How eviction judges objects.
#[derive(Clone, Copy)]
pub(crate) struct Judge {
    pub(crate) limit: usize,
    /// Whether nothing could be freed so far. Hits do not count then.
    pub(crate) desperate: bool,
}

impl Judge {
    /// Whether an object of so many bytes takes a large part of the store.
    pub(crate) fn is_large(self, bytes: usize) -> bool {
        bytes > self.limit / LARGE
    }

    /// Whether an object has enough hits to keep its place. Those above the `mean` weight need more, because
    /// they take the place of several.
    pub(crate) fn earned(self, object: &Object, mean: usize) -> bool {
        let weight = object.weight();
        let levels = [weight > mean + mean / 4, weight > MUCH_HEAVIER * mean, self.is_large(weight)];
        let needed = 1 + levels.into_iter().map(u8::from).sum::<u8>();
        !self.desperate && object.frequency.load(Relaxed) >= needed * HIT
    }

    /// The part of its hits that an object in the main queue pays to keep its place. A light one pays less,
    /// because its eviction would free little.
    pub(crate) fn cost(self, object: &Object, mean: usize) -> u8 {
        match object.weight() {
            weight if weight < mean * 2 / 5 => HIT / 4,
            weight if weight < mean * 4 / 5 => HIT / 2,
            _ => HIT,
        }
    }

    /// Whether an object is whole and being read.
    pub(crate) fn is_held(self, object: &Arc<Object>) -> bool {
        !self.desperate && Arc::strong_count(object) > 1 && object.body().is_whole()
    }
}
