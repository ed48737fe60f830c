//! A worker's object cache: the most recently used objects, up to a number.

const NONE: u32 = u32::MAX;

/// The objects that a worker holds. The least recently used is evicted first.
pub(crate) struct Cache {
    /// The slot of each object of the scenario, or [`NONE`].
    places: Vec<u32>,
    slots: Vec<Slot>,
    capacity: usize,
    /// The most recently used slot, and the least recently used.
    newest: u32,
    oldest: u32,
}

#[derive(Clone, Copy)]
struct Slot {
    object: u32,
    version: u32,
    newer: u32,
    older: u32,
}

impl Cache {
    /// An empty cache for `capacity` of `objects` objects; at least one.
    pub(crate) fn new(capacity: u32, objects: u32) -> Cache {
        Cache {
            places: vec![NONE; objects as usize],
            slots: Vec::new(),
            capacity: capacity.max(1) as usize,
            newest: NONE,
            oldest: NONE,
        }
    }

    /// Uses an object, and stores it in this version. Returns whether it was there already.
    pub(crate) fn touch(&mut self, object: u32, version: u32) -> bool {
        let place = self.places[object as usize];
        if place != NONE {
            let slot = &mut self.slots[place as usize];
            let fresh = slot.version == version;
            slot.version = version;
            if place != self.newest {
                self.unlink(place);
                self.push(place);
            }
            return fresh;
        }
        let place = if self.slots.len() < self.capacity {
            self.slots.push(Slot { object, version, newer: NONE, older: NONE });
            self.slots.len() as u32 - 1
        } else {
            let place = self.oldest;
            self.unlink(place);
            let slot = &mut self.slots[place as usize];
            self.places[slot.object as usize] = NONE;
            (slot.object, slot.version) = (object, version);
            place
        };
        self.places[object as usize] = place;
        self.push(place);
        false
    }

    /// Whether it holds an object in this version.
    pub(crate) fn holds(&self, object: u32, version: u32) -> bool {
        let place = self.places[object as usize];
        place != NONE && self.slots[place as usize].version == version
    }

    /// Every object held.
    pub(crate) fn objects(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots.iter().map(|slot| slot.object)
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.places.fill(NONE);
        self.slots.clear();
        (self.newest, self.oldest) = (NONE, NONE);
    }

    fn unlink(&mut self, place: u32) {
        let Slot { newer, older, .. } = self.slots[place as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
    }

    fn push(&mut self, place: u32) {
        let older = self.newest;
        let slot = &mut self.slots[place as usize];
        (slot.newer, slot.older) = (NONE, older);
        match older {
            NONE => self.oldest = place,
            older => self.slots[older as usize].newer = place,
        }
        self.newest = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn holds_what_a_list_of_the_last_used_would(
            capacity in 1_u32..6,
            uses in prop::collection::vec((0_u32..10, 0_u32..2), 0..200),
        ) {
            let mut cache = Cache::new(capacity, 10);
            let mut list: Vec<(u32, u32)> = Vec::new();
            for (object, version) in uses {
                let known = list.iter().position(|&(other, _)| other == object).map(|at| list.remove(at));
                prop_assert_eq!(cache.touch(object, version), known == Some((object, version)));
                list.push((object, version));
                if list.len() > capacity as usize {
                    list.remove(0);
                }
                let mut held: Vec<_> = cache.objects().collect();
                let mut expected: Vec<_> = list.iter().map(|&(object, _)| object).collect();
                held.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(held, expected);
            }
        }
    }
}
