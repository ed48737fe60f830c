//! GreedyDual-Size-Frequency (Cherkasova, "Improving WWW proxies performance with greedy-dual-size-frequency
//! caching policy", 1998), with equal cost of all misses.

use std::collections::BTreeSet;

use super::{Policy, When};

pub(super) struct Gdsf {
    /// Priorities, as the bits of a positive number, and keys.
    order: BTreeSet<(u64, u32)>,
    entries: Vec<Entry>,
    /// The priority of the last victim.
    clock: f64,
    room: u64,
}

#[derive(Clone, Default)]
struct Entry {
    /// Requests since it was stored; zero if it is absent.
    frequency: u32,
    cost: u64,
    priority: u64,
}

impl Gdsf {
    pub(super) fn new(capacity: u64, keys: usize) -> Gdsf {
        Gdsf { order: BTreeSet::new(), entries: vec![Entry::default(); keys], clock: 0.0, room: capacity }
    }

    fn count(&mut self, key: u32) {
        let entry = &mut self.entries[key as usize];
        entry.frequency += 1;
        entry.priority = (self.clock + f64::from(entry.frequency) / entry.cost as f64).to_bits();
        self.order.insert((entry.priority, key));
    }
}

impl Policy for Gdsf {
    fn access(&mut self, key: u32, _: When) -> bool {
        let entry = &self.entries[key as usize];
        let present = entry.frequency > 0;
        if present {
            self.order.remove(&(entry.priority, key));
            self.count(key);
        }
        present
    }

    fn insert(&mut self, key: u32, cost: u64, _: When) {
        while self.room < cost {
            let (priority, victim) = self.order.pop_first().expect("the object fits an empty cache");
            self.clock = f64::from_bits(priority);
            let victim = &mut self.entries[victim as usize];
            victim.frequency = 0;
            self.room += victim.cost;
        }
        self.room -= cost;
        self.entries[key as usize].cost = cost;
        self.count(key);
    }
}
