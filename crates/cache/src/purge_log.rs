//! The log of purges: a response that was being fetched meanwhile is tested against it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::{Key, Tag};

/// Purges that are remembered. A fetch that began before all of these counts as purged.
const REMEMBERED: usize = 4096;

/// The last purges.
pub(crate) struct PurgeLog {
    /// The number of purges there have been.
    epoch: AtomicU64,
    recent: Mutex<Recent>,
}

struct Recent {
    entries: VecDeque<(u64, Purged)>,
    /// Every fetch begun before so many purges is met.
    all_before: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purged {
    Key(Key),
    Tag(Tag),
    /// A [`Tag::target`].
    Target(Tag),
}

impl PurgeLog {
    pub(crate) fn new() -> PurgeLog {
        let recent = Recent { entries: VecDeque::new(), all_before: 0 };
        PurgeLog { epoch: AtomicU64::new(0), recent: Mutex::new(recent) }
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Notes purges. They MUST be noted before the first shard is walked.
    pub(crate) fn note(&self, purged: impl IntoIterator<Item = Purged>) {
        let mut recent = self.recent.lock();
        let epoch = self.epoch() + 1;
        for entry in purged {
            if recent.entries.len() == REMEMBERED
                && let Some((forgotten, _)) = recent.entries.pop_front()
            {
                recent.all_before = forgotten;
            }
            recent.entries.push_back((epoch, entry));
        }
        self.epoch.store(epoch, Ordering::Release);
    }

    pub(crate) fn note_all(&self) {
        let mut recent = self.recent.lock();
        let epoch = self.epoch() + 1;
        recent.entries.clear();
        recent.all_before = epoch;
        self.epoch.store(epoch, Ordering::Release);
    }

    /// Whether a purge since `begun` meets what a fetch brought. The shard's lock MUST be held until it is
    /// stored.
    pub(crate) fn meets(&self, begun: u64, key: Key, tags: &[Tag]) -> bool {
        self.meets_any(begun, |purged| match purged {
            Purged::Key(purged) => *purged == key,
            Purged::Tag(tag) | Purged::Target(tag) => tags.contains(tag),
        })
    }

    /// Whether a purge since `begun` may meet what a fetch is to bring, of which nobody knows the tags yet,
    /// but that of its target, if it carries one.
    pub(crate) fn may_meet(&self, begun: u64, key: Key, target: Option<Tag>) -> bool {
        self.meets_any(begun, |purged| match purged {
            Purged::Key(purged) => *purged == key,
            Purged::Tag(_) => true,
            Purged::Target(tag) => target == Some(*tag),
        })
    }

    fn meets_any(&self, begun: u64, meets: impl Fn(&Purged) -> bool) -> bool {
        if self.epoch() == begun {
            return false;
        }
        let recent = self.recent.lock();
        let mut since = recent.entries.iter().rev().take_while(|(epoch, _)| *epoch > begun);
        begun < recent.all_before || since.any(|(_, purged)| meets(purged))
    }
}
