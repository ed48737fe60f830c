//! SIEVE (Zhang et al., "SIEVE is simpler than LRU", NSDI 2024).

use super::list::List;
use super::{Policy, When};

pub(super) struct Sieve {
    queue: List,
    costs: Vec<u64>,
    visited: Vec<bool>,
    /// Where the search for the next victim begins; the oldest object if `None`.
    hand: Option<u32>,
    room: u64,
}

impl Sieve {
    pub(super) fn new(capacity: u64, keys: usize) -> Sieve {
        let (costs, visited) = (vec![0; keys], vec![false; keys]);
        Sieve { queue: List::new(keys), costs, visited, hand: None, room: capacity }
    }

    fn evict(&mut self) {
        loop {
            let key = self.hand.or(self.queue.oldest()).expect("the object fits an empty cache");
            self.hand = self.queue.newer(key);
            if !std::mem::take(&mut self.visited[key as usize]) {
                self.queue.remove(key);
                self.room += self.costs[key as usize];
                return;
            }
        }
    }
}

impl Policy for Sieve {
    fn access(&mut self, key: u32, _: When) -> bool {
        let present = self.queue.contains(key);
        self.visited[key as usize] |= present;
        present
    }

    fn insert(&mut self, key: u32, cost: u64, _: When) {
        while self.room < cost {
            self.evict();
        }
        self.room -= cost;
        self.costs[key as usize] = cost;
        self.queue.push(key);
    }
}
