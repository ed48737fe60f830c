//! About the best that any policy can do for object hits, with knowledge of later requests.
//!
//! Belady's rule, weighted by size: the victim has the largest product of cost and time to its next use. With
//! objects of different sizes the best choice is not computable in practice (NP-hard), and this rule is only
//! near it. The victim is the best of a sample.

use super::{NEVER, Policy, When};
use crate::random::Random;

/// Objects that are compared for each eviction.
const SAMPLE: usize = 128;

pub(super) struct Bound {
    present: Vec<Entry>,
    /// The place of each key in `present`.
    places: Vec<u32>,
    room: u64,
    random: Random,
}

struct Entry {
    key: u32,
    next: u32,
    cost: u64,
}

impl Entry {
    /// The largest goes first.
    fn score(&self, now: u32) -> u64 {
        u64::from(self.next.saturating_sub(now)) * self.cost
    }
}

const ABSENT: u32 = u32::MAX;

impl Bound {
    pub(super) fn new(capacity: u64, keys: usize) -> Bound {
        Bound { present: Vec::new(), places: vec![ABSENT; keys], room: capacity, random: Random::new(1) }
    }

    fn remove(&mut self, place: usize) {
        let entry = self.present.swap_remove(place);
        self.room += entry.cost;
        self.places[entry.key as usize] = ABSENT;
        if let Some(moved) = self.present.get(place) {
            self.places[moved.key as usize] = place as u32;
        }
    }

    fn victim(&mut self, now: u32) -> usize {
        let count = self.present.len();
        let score = |&place: &usize| self.present[place].score(now);
        if count <= SAMPLE {
            return (0..count).max_by_key(score).expect("the object fits an empty cache");
        }
        let random = &mut self.random;
        (0..SAMPLE).map(|_| random.below(count)).max_by_key(score).unwrap_or_default()
    }
}

impl Policy for Bound {
    fn access(&mut self, key: u32, when: When) -> bool {
        let place = self.places[key as usize];
        let Some(entry) = self.present.get_mut(place as usize) else { return false };
        entry.next = when.next;
        if when.next == NEVER {
            self.remove(place as usize);
        }
        true
    }

    fn insert(&mut self, key: u32, cost: u64, when: When) {
        let entry = Entry { key, next: when.next, cost };
        if when.next == NEVER {
            return;
        }
        while self.room < cost {
            let victim = self.victim(when.now);
            if self.present[victim].score(when.now) <= entry.score(when.now) {
                return;
            }
            self.remove(victim);
        }
        self.room -= cost;
        self.places[key as usize] = self.present.len() as u32;
        self.present.push(entry);
    }
}
