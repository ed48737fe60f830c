//! A queue of keys, from the oldest to the newest.

const END: u32 = u32::MAX;
const ABSENT: u32 = u32::MAX - 1;

/// A doubly linked list of keys. A key is in it at most once.
pub(super) struct List {
    /// The next older and the next newer key of each.
    links: Vec<(u32, u32)>,
    oldest: u32,
    newest: u32,
}

impl List {
    pub(super) fn new(keys: usize) -> List {
        List { links: vec![(ABSENT, ABSENT); keys], oldest: END, newest: END }
    }

    pub(super) fn contains(&self, key: u32) -> bool {
        self.links[key as usize].0 != ABSENT
    }

    pub(super) fn oldest(&self) -> Option<u32> {
        (self.oldest != END).then_some(self.oldest)
    }

    pub(super) fn newer(&self, key: u32) -> Option<u32> {
        let newer = self.links[key as usize].1;
        (newer != END).then_some(newer)
    }

    /// Adds a key, which MUST be absent, as the newest.
    pub(super) fn push(&mut self, key: u32) {
        assert!(!self.contains(key));
        self.links[key as usize] = (self.newest, END);
        match self.newest {
            END => self.oldest = key,
            newest => self.links[newest as usize].1 = key,
        }
        self.newest = key;
    }

    /// Removes a key, which MUST be present.
    pub(super) fn remove(&mut self, key: u32) {
        let (older, newer) = std::mem::replace(&mut self.links[key as usize], (ABSENT, ABSENT));
        assert!(older != ABSENT);
        match older {
            END => self.oldest = newer,
            older => self.links[older as usize].1 = newer,
        }
        match newer {
            END => self.newest = older,
            newer => self.links[newer as usize].0 = older,
        }
    }

    pub(super) fn pop(&mut self) -> Option<u32> {
        let oldest = self.oldest()?;
        self.remove(oldest);
        Some(oldest)
    }
}
