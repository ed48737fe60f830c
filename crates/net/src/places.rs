//! Descriptors as counted places.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// So many descriptors for one use, of all that the process may have. What another use takes is not missing
/// here.
#[derive(Debug)]
pub struct Places {
    taken: AtomicUsize,
    most: AtomicUsize,
}

/// One of them, taken while this lives.
#[derive(Debug)]
pub struct Place(Arc<Places>);

impl Places {
    /// `most` places, all of them free.
    pub fn new(most: usize) -> Arc<Places> {
        Arc::new(Places { taken: AtomicUsize::new(0), most: AtomicUsize::new(most) })
    }

    /// Takes one; `None` if none is free.
    pub fn take(self: &Arc<Places>) -> Option<Place> {
        let most = self.most();
        let more = |taken: usize| Some(taken + 1).filter(|taken| *taken <= most);
        self.taken.fetch_update(Relaxed, Relaxed, more).ok().map(|_| Place(self.clone()))
    }

    /// The number of those that are taken.
    pub fn taken(&self) -> usize {
        self.taken.load(Relaxed)
    }

    /// The number of all.
    pub fn most(&self) -> usize {
        self.most.load(Relaxed)
    }

    /// Changes the number of all. Those that are taken beyond it stay so.
    pub fn set_most(&self, most: usize) {
        self.most.store(most, Relaxed);
    }

    /// Whether more than three quarters are taken, so that none should be kept without use.
    pub fn are_scarce(&self) -> bool {
        self.taken() > self.most() / 4 * 3
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_taken_until_it_is_dropped() {
        let places = Places::new(2);
        let first = places.take().expect("a place");
        let _second = places.take().expect("a place");
        assert!(places.take().is_none() && places.are_scarce());
        drop(first);
        assert!(places.take().is_some());
        places.set_most(1);
        assert!(places.take().is_none());
        assert_eq!((places.taken(), places.most()), (1, 1));
    }
}
