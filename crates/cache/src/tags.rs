//! The index from tags to the objects of a shard.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::Tag;
use crate::slab::{NONE, Slab, Slot};

/// For every tag the list of slots whose objects carry it, and for every object the list of its tags.
pub(crate) struct TagIndex {
    first: HashTable<(Tag, u32)>,
    nodes: Slab<Node>,
}

/// One tag of one object.
struct Node {
    tag: Tag,
    slot: u32,
    /// Neighbours among the objects of the tag.
    before: u32,
    after: u32,
    /// The next tag of the object.
    sibling: u32,
}

impl Default for Node {
    fn default() -> Node {
        Node { tag: Tag::ZERO, slot: NONE, before: NONE, after: NONE, sibling: NONE }
    }
}

impl Slot for Node {
    fn link(&self) -> u32 {
        self.sibling
    }

    fn set_link(&mut self, next: u32) {
        self.sibling = next;
    }
}

impl TagIndex {
    pub(crate) fn new() -> TagIndex {
        TagIndex { first: HashTable::new(), nodes: Slab::new() }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        crate::budget::held(self.first.allocation_size()) + self.nodes.bytes()
    }

    /// Whether most of its memory is unused.
    pub(crate) fn is_slack(&self) -> bool {
        self.nodes.len() * 4 < self.nodes.end() as usize
    }

    /// Adds the object in `slot` under `tags`, which contain no duplicates. Returns the head of the object's
    /// list of tags.
    pub(crate) fn insert(&mut self, slot: u32, tags: &[Tag]) -> u32 {
        let mut sibling = NONE;
        for &tag in tags {
            let after = match self.first.find(tag.bits(), |entry| entry.0 == tag) {
                Some(&(_, first)) => first,
                None => NONE,
            };
            let node = self.nodes.insert(Node { tag, slot, before: NONE, after, sibling });
            if after != NONE {
                self.nodes.get_mut(after).before = node;
            }
            match self.first.entry(tag.bits(), |entry| entry.0 == tag, |entry| entry.0.bits()) {
                Entry::Occupied(mut entry) => entry.get_mut().1 = node,
                Entry::Vacant(entry) => _ = entry.insert((tag, node)),
            }
            sibling = node;
        }
        sibling
    }

    /// Removes an object by the head of its list of tags.
    pub(crate) fn remove(&mut self, mut node: u32) {
        while node != NONE {
            let Node { tag, before, after, sibling, .. } = self.nodes.remove(node);
            if after != NONE {
                self.nodes.get_mut(after).before = before;
            }
            if before != NONE {
                self.nodes.get_mut(before).after = after;
            } else if let Ok(mut entry) = self.first.find_entry(tag.bits(), |entry| entry.0 == tag) {
                if after == NONE {
                    entry.remove();
                } else {
                    entry.get_mut().1 = after;
                }
            }
            node = sibling;
        }
    }

    /// The slots of the objects that carry a tag.
    pub(crate) fn slots(&self, tag: Tag) -> Vec<u32> {
        let mut slots = Vec::new();
        let mut next = self.first.find(tag.bits(), |entry| entry.0 == tag).map_or(NONE, |entry| entry.1);
        while next != NONE {
            let node = self.nodes.get(next);
            slots.push(node.slot);
            next = node.after;
        }
        slots
    }

    /// The tags of an object, by the head of its list.
    pub(crate) fn of(&self, mut node: u32) -> impl Iterator<Item = Tag> {
        std::iter::from_fn(move || {
            let entry = (node != NONE).then(|| self.nodes.get(node))?;
            node = entry.sibling;
            Some(entry.tag)
        })
    }
}
