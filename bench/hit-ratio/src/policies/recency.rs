//! FIFO and LRU.

use super::list::List;
use super::{Policy, When};

/// One queue. With LRU, a request moves an object to its end.
pub(super) struct Recency {
    queue: List,
    costs: Vec<u64>,
    room: u64,
    moves: bool,
}

impl Recency {
    pub(super) fn fifo(capacity: u64, keys: usize) -> Recency {
        Recency { queue: List::new(keys), costs: vec![0; keys], room: capacity, moves: false }
    }

    pub(super) fn lru(capacity: u64, keys: usize) -> Recency {
        Recency { moves: true, ..Recency::fifo(capacity, keys) }
    }
}

impl Policy for Recency {
    fn access(&mut self, key: u32, _: When) -> bool {
        let present = self.queue.contains(key);
        if present && self.moves {
            self.queue.remove(key);
            self.queue.push(key);
        }
        present
    }

    fn insert(&mut self, key: u32, cost: u64, _: When) {
        while self.room < cost {
            let victim = self.queue.pop().expect("the object fits an empty cache");
            self.room += self.costs[victim as usize];
        }
        self.room -= cost;
        self.costs[key as usize] = cost;
        self.queue.push(key);
    }
}
