//! S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023), Algorithm 1, in bytes.

use super::list::List;
use super::{Policy, When};

/// The most that an object's frequency counts.
const MOST: u8 = 3;

pub(super) struct S3Fifo {
    small: List,
    main: List,
    ghost: List,
    costs: Vec<u64>,
    frequencies: Vec<u8>,
    capacity: u64,
    small_bytes: u64,
    main_bytes: u64,
    ghost_bytes: u64,
}

impl S3Fifo {
    pub(super) fn new(capacity: u64, keys: usize) -> S3Fifo {
        S3Fifo {
            small: List::new(keys),
            main: List::new(keys),
            ghost: List::new(keys),
            costs: vec![0; keys],
            frequencies: vec![0; keys],
            capacity,
            small_bytes: 0,
            main_bytes: 0,
            ghost_bytes: 0,
        }
    }

    fn evict(&mut self) {
        if (self.small_bytes < self.capacity / 10 && self.main.oldest().is_some()) || !self.evict_small() {
            self.evict_main();
        }
    }

    /// Evicts an object of the small queue. False if all of them have moved to the main queue.
    fn evict_small(&mut self) -> bool {
        while let Some(key) = self.small.pop() {
            let cost = self.costs[key as usize];
            self.small_bytes -= cost;
            if std::mem::take(&mut self.frequencies[key as usize]) > 1 {
                self.main.push(key);
                self.main_bytes += cost;
                continue;
            }
            self.ghost.push(key);
            self.ghost_bytes += cost;
            while self.ghost_bytes > self.capacity / 10 * 9 {
                let forgotten = self.ghost.pop().expect("its bytes are those of its objects");
                self.ghost_bytes -= self.costs[forgotten as usize];
            }
            return true;
        }
        false
    }

    fn evict_main(&mut self) {
        loop {
            let key = self.main.pop().expect("the object fits an empty cache");
            let frequency = &mut self.frequencies[key as usize];
            if *frequency == 0 {
                self.main_bytes -= self.costs[key as usize];
                return;
            }
            *frequency -= 1;
            self.main.push(key);
        }
    }
}

impl Policy for S3Fifo {
    fn access(&mut self, key: u32, _: When) -> bool {
        let present = self.small.contains(key) || self.main.contains(key);
        if present {
            let frequency = &mut self.frequencies[key as usize];
            *frequency = MOST.min(*frequency + 1);
        }
        present
    }

    fn insert(&mut self, key: u32, cost: u64, _: When) {
        while self.small_bytes + self.main_bytes + cost > self.capacity {
            self.evict();
        }
        self.costs[key as usize] = cost;
        self.frequencies[key as usize] = 0;
        if self.ghost.contains(key) {
            self.ghost.remove(key);
            self.ghost_bytes -= cost;
            self.main.push(key);
            self.main_bytes += cost;
        } else {
            self.small.push(key);
            self.small_bytes += cost;
        }
    }
}
