//! The ages of the requests in flight.
//!
//! A request that is given to a backend takes a place in a table and writes its start time there. The oldest
//! is found by scanning the table. Nothing is locked, and both ends of a request take only a few steps.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::BackendId;

/// The places of a group: the bits of a word.
const GROUP: usize = 64;

/// The most groups: 4096 requests of one pool are tracked at a time. Those beyond are not.
const GROUPS: usize = 64;

/// An empty place.
const NOBODY: u64 = u64::MAX;

/// The bits of a place that identify its backend. The others are the time in units of 1024 µs, enough for 35
/// years.
const WHOSE_BITS: u32 = 24;

/// Microseconds are stored without this many low bits.
const UNIT_BITS: u32 = 10;

const WHOSE: u64 = (1 << WHOSE_BITS) - 1;

/// The start times of the requests in flight.
#[derive(Debug)]
pub(crate) struct Ages {
    groups: [OnceLock<Box<Group>>; GROUPS],
    /// The group that had room at the last examination.
    current: AtomicUsize,
}

#[derive(Debug)]
struct Group {
    /// A bit for each place that is taken.
    taken: AtomicU64,
    places: [AtomicU64; GROUP],
}

/// A place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u16);

impl Default for Ages {
    fn default() -> Ages {
        Ages { groups: [const { OnceLock::new() }; GROUPS], current: AtomicUsize::new(0) }
    }
}

impl Default for Group {
    fn default() -> Group {
        Group { taken: AtomicU64::new(0), places: [const { AtomicU64::new(NOBODY) }; GROUP] }
    }
}

impl Group {
    /// Takes a place, if one is free.
    fn take(&self) -> Option<usize> {
        let mut taken = self.taken.load(Ordering::Relaxed);
        loop {
            let free = taken.trailing_ones();
            if free as usize == GROUP {
                return None;
            }
            let with = taken | 1 << free;
            match self.taken.compare_exchange_weak(taken, with, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(free as usize),
                Err(now) => taken = now,
            }
        }
    }
}

impl Ages {
    /// Notes that a request to `backend` began at `micros`. `None` if the table is full.
    pub(crate) fn begin(&self, backend: BackendId, micros: u64) -> Option<Place> {
        let at = self.current.load(Ordering::Relaxed);
        let (at, free) = match self.group(at).take() {
            Some(free) => (at, free),
            None => self.look(at)?,
        };
        let since = ((micros >> UNIT_BITS) << WHOSE_BITS) | u64::from(Ages::tag(backend));
        self.group(at).places[free].store(since, Ordering::Relaxed);
        Some(Place((at * GROUP + free) as u16))
    }

    /// Takes a place in another group than this one, which is full. The first with room is used, so that the
    /// table stays as small as possible.
    #[cold]
    fn look(&self, full: usize) -> Option<(usize, usize)> {
        let found = (0..GROUPS).find_map(|at| Some((at, self.group(at).take()?)))?;
        let _ = self.current.compare_exchange(full, found.0, Ordering::Relaxed, Ordering::Relaxed);
        Some(found)
    }

    /// Frees the place of a request that has ended.
    pub(crate) fn end(&self, Place(place): Place) {
        let (at, free) = (usize::from(place) / GROUP, usize::from(place) % GROUP);
        let group = self.group(at);
        group.places[free].store(NOBODY, Ordering::Relaxed);
        // The next owner of the place writes after this.
        group.taken.fetch_and(!(1 << free), Ordering::Release);
    }

    /// Passes each tracked request in flight to `see`: its backend, by [`Ages::tag`], and its start, in
    /// microseconds, early by a millisecond at most.
    pub(crate) fn each(&self, mut see: impl FnMut(u32, u64)) {
        for group in self.groups.iter().filter_map(OnceLock::get) {
            for place in &group.places {
                let since = place.load(Ordering::Relaxed);
                if since != NOBODY {
                    see((since & WHOSE) as u32, (since >> WHOSE_BITS) << UNIT_BITS);
                }
            }
        }
    }

    /// The identification of a backend in the table.
    pub(crate) fn tag(backend: BackendId) -> u32 {
        (u64::from(backend.0) & WHOSE) as u32
    }

    fn group(&self, at: usize) -> &Group {
        self.groups[at].get_or_init(Box::default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oldest(ages: &Ages) -> Option<(u32, u64)> {
        let mut oldest: Option<(u32, u64)> = None;
        ages.each(|whose, since| {
            if oldest.is_none_or(|(_, before)| since < before) {
                oldest = Some((whose, since));
            }
        });
        oldest
    }

    #[test]
    fn the_oldest_is_the_one_that_began_first_of_those_in_flight() {
        let ages = Ages::default();
        assert_eq!(oldest(&ages), None);
        let places: Vec<_> =
            (0..200).map(|n| ages.begin(BackendId(n), 1024 * u64::from(n)).unwrap()).collect();
        assert_eq!(oldest(&ages), Some((0, 0)));
        places[..150].iter().for_each(|&place| ages.end(place));
        assert_eq!(oldest(&ages), Some((150, 150 * 1024)));
        places[150..].iter().for_each(|&place| ages.end(place));
        assert_eq!(oldest(&ages), None);
    }

    #[test]
    fn a_full_table_follows_no_more_and_works_again_when_it_is_not() {
        let ages = Ages::default();
        let begin = |n: usize| ages.begin(BackendId(1), n as u64);
        let places: Vec<_> = (0..2 * GROUP * GROUPS).map_while(begin).collect();
        assert_eq!(places.len(), GROUP * GROUPS);
        let mut seen = 0;
        ages.each(|_, _| seen += 1);
        assert_eq!(seen, places.len());
        places.iter().for_each(|&place| ages.end(place));
        assert_eq!(oldest(&ages), None);
        assert!(begin(7).is_some());
    }

    #[test]
    fn cores_that_meet_in_the_table_take_different_places() {
        let ages = Ages::default();
        let seen = std::thread::scope(|scope| {
            let core = |core: u32| {
                let ages = &ages;
                move || {
                    let mut held = Vec::new();
                    for n in 0..20_000_u64 {
                        held.extend(ages.begin(BackendId(core), n));
                        if held.len() > 100 {
                            ages.end(held.swap_remove(n as usize % 100));
                        }
                    }
                    held.len()
                }
            };
            let threads: Vec<_> = (0..4).map(|n| scope.spawn(core(n))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
        });
        let mut in_flight = 0;
        ages.each(|_, _| in_flight += 1);
        assert_eq!(in_flight, seen);
    }
}
