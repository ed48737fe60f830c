//! A core's cache of files: open descriptors, small contents, and names without a file.
//!
//! It belongs to one configuration on one core. All that was found is in use for `files_valid` after its tree was looked at;
//! the tree is looked at again by the first request after that.

use super::resolve::Resolution;
use super::tree::Tree;
use hashbrown::{Equivalent, HashMap};
use sandarac_net::{Moment, Places};
use sandarac_policy::RouteId;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;

/// The most entries. One without a descriptor costs little.
const MAX_ENTRIES: usize = 4096;

/// The most bytes of memory for heads and small contents.
const MAX_BYTES: usize = 16 << 20;

/// The most descriptors of a core, if the limit on open files is no concern.
const MAX_DESCRIPTORS: usize = 1024;

/// A route, and what its responses depend on: the path, and the host and target if an edit uses them.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Key {
    route: RouteId,
    text: Box<[u8]>,
}

/// A [`Key`], borrowed.
#[derive(Clone, Copy, Hash)]
pub(super) struct KeyOf<'a> {
    pub(super) route: RouteId,
    pub(super) text: &'a [u8],
}

impl Equivalent<Key> for KeyOf<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.route == key.route && *self.text == *key.text
    }
}

impl KeyOf<'_> {
    fn to_key(self) -> Key {
        Key { route: self.route, text: self.text.into() }
    }
}

/// What a core knows of files.
pub(crate) struct FileCache {
    known: RefCell<Known>,
    /// The descriptors of files.
    places: Arc<Places>,
    cores: usize,
}

#[derive(Default)]
struct Known {
    trees: Vec<(RouteId, KnownTree)>,
    entries: HashMap<Rc<Key>, Entry>,
    /// The keys in the order in which they are considered for removal.
    clock: VecDeque<Rc<Key>>,
    descriptors: usize,
    bytes: usize,
    /// Files that a thread is opening, and the requests that wait for them.
    opening: HashMap<Key, Rc<Notify>>,
}

impl Equivalent<Rc<Key>> for KeyOf<'_> {
    fn equivalent(&self, key: &Rc<Key>) -> bool {
        self.equivalent(&**key)
    }
}

/// A tree as it was last looked at.
struct KnownTree {
    tree: Arc<Tree>,
    looked: Moment,
    /// Counts how often it was looked at.
    turn: u64,
}

struct Entry {
    resolution: Arc<Resolution>,
    /// The turn of its tree in which it was found.
    turn: u64,
    /// Whether it was used since it was last considered for removal.
    is_used: Cell<bool>,
    descriptors: usize,
    bytes: usize,
}

/// What is known of a file.
pub(super) enum Looked {
    /// It can be used.
    Valid(Arc<Resolution>),
    /// It has to be looked at again, in this tree and turn.
    Old(Option<Arc<Resolution>>, Arc<Tree>, u64),
    /// Its tree has to be looked at again first, if it is known.
    Due(Option<Arc<Tree>>),
}

/// The right to open a file, while other requests for it wait. Dropping it wakes them.
pub(super) struct Opening<'c> {
    cache: &'c FileCache,
    key: Option<Key>,
    waiters: Rc<Notify>,
}

impl FileCache {
    /// The cache of one of `cores`.
    pub(crate) fn new(places: Arc<Places>, cores: usize) -> FileCache {
        FileCache { known: RefCell::default(), places, cores: cores.max(1) }
    }

    /// The most descriptors that it keeps. All cores together have half of the places: the others are for
    /// files that are only being sent.
    fn max_descriptors(&self) -> usize {
        (self.places.most() / 2 / self.cores).clamp(1, MAX_DESCRIPTORS)
    }

    /// The descriptors of files.
    pub(super) fn places(&self) -> &Arc<Places> {
        &self.places
    }

    /// The tree of a route was looked at, at the time `looked` or later.
    pub(super) fn looked_at(&self, route: RouteId, tree: Arc<Tree>, looked: Moment) {
        let mut known = self.known.borrow_mut();
        match known.trees.iter_mut().find(|(other, _)| *other == route) {
            Some((_, known)) => *known = KnownTree { tree, looked, turn: known.turn + 1 },
            None => known.trees.push((route, KnownTree { tree, looked, turn: 0 })),
        }
    }

    /// What is known of a file.
    pub(super) fn look(&self, key: KeyOf<'_>, now: Moment) -> Looked {
        let known = self.known.borrow();
        match known.trees.iter().find(|(other, _)| *other == key.route) {
            None => Looked::Due(None),
            Some((_, tree)) if now.since(tree.looked) >= tree.tree.rule.valid => {
                Looked::Due(Some(tree.tree.clone()))
            }
            Some((_, tree)) => known.look(key, tree),
        }
    }

    /// The same after [`FileCache::looked_at`].
    pub(super) fn look_again(&self, key: KeyOf<'_>) -> Looked {
        let known = self.known.borrow();
        let tree = known.trees.iter().find(|(other, _)| *other == key.route);
        tree.map_or(Looked::Due(None), |(_, tree)| known.look(key, tree))
    }

    /// Keeps what was found in a `turn` of its tree, and makes room for it.
    pub(super) fn keep(&self, key: KeyOf<'_>, resolution: Arc<Resolution>, turn: u64) {
        let mut known = self.known.borrow_mut();
        let (descriptors, held) = (resolution.descriptors(), resolution.held());
        let bytes = held + key.text.len() + size_of::<Entry>();
        let entry = Entry { resolution, turn, is_used: Cell::new(false), descriptors, bytes };
        known.descriptors += descriptors;
        known.bytes += bytes;
        let before = match known.entries.get_mut(&key) {
            Some(known) => {
                entry.is_used.set(known.is_used.get());
                Some(std::mem::replace(known, entry))
            }
            None => {
                let key = Rc::new(key.to_key());
                known.clock.push_back(key.clone());
                known.entries.insert(key, entry)
            }
        };
        if let Some(before) = before {
            known.descriptors -= before.descriptors;
            known.bytes -= before.bytes;
        }
        while known.descriptors > self.max_descriptors()
            || known.bytes > MAX_BYTES
            || known.entries.len() > MAX_ENTRIES
        {
            known.remove_one();
        }
    }

    /// Closes half of the files, because there are no descriptors left.
    pub(super) fn close_half(&self) {
        let mut known = self.known.borrow_mut();
        let most = known.descriptors / 2;
        while known.descriptors > most {
            known.remove_one();
        }
    }

    /// The right to open a file; `Err` with the one to wait for if another request opens it.
    pub(super) fn open(&self, key: KeyOf<'_>) -> Result<Opening<'_>, Rc<Notify>> {
        let mut known = self.known.borrow_mut();
        if let Some(waiters) = known.opening.get(&key) {
            return Err(waiters.clone());
        }
        let waiters = Rc::new(Notify::new());
        known.opening.insert(key.to_key(), waiters.clone());
        Ok(Opening { cache: self, key: Some(key.to_key()), waiters })
    }
}

impl Known {
    fn look(&self, key: KeyOf<'_>, tree: &KnownTree) -> Looked {
        let entry = self.entries.get(&key);
        if let Some(entry) = entry {
            entry.is_used.set(true);
            if entry.turn == tree.turn {
                return Looked::Valid(entry.resolution.clone());
            }
        }
        Looked::Old(entry.map(|entry| entry.resolution.clone()), tree.tree.clone(), tree.turn)
    }

    /// Removes the first entry that was not used since it was last considered. MUST have entries.
    fn remove_one(&mut self) {
        while let Some(key) = self.clock.pop_front() {
            let Some(entry) = self.entries.get(&key) else { continue };
            if entry.is_used.replace(false) {
                self.clock.push_back(key);
                continue;
            }
            self.descriptors -= entry.descriptors;
            self.bytes -= entry.bytes;
            self.entries.remove(&key);
            return;
        }
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.cache.known.borrow_mut().opening.remove(&key);
        }
        self.waiters.notify_waiters();
    }
}
