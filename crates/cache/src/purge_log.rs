//! The log of purges, against which a response is tested that was being fetched meanwhile.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::atomic::{AtomicU64, Ordering};
use crate::{Key, Tag};

/// The number of purges remembered. A fetch that began before all of them counts as purged.
const REMEMBERED: usize = 4096;

/// The last purges.
pub(crate) struct PurgeLog {
    /// The number of purges so far.
    epoch: AtomicU64,
    /// The purges that have ended, and so have all before them.
    ended: AtomicU64,
    recent: Mutex<Recent>,
}

struct Recent {
    entries: VecDeque<(u64, Purged)>,
    /// Every fetch that began before this many purges counts as purged.
    all_before: u64,
    /// The purges that still walk the shards.
    walking: Vec<u64>,
}

/// A purge that walks the shards. It ends when this is dropped.
#[must_use = "a purge ends when its walk is dropped"]
pub(crate) struct Walk<'a> {
    log: &'a PurgeLog,
    epoch: u64,
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        let mut recent = self.log.recent.lock();
        recent.walking.retain(|epoch| *epoch != self.epoch);
        let ended = recent.walking.iter().min().map_or(self.log.epoch(), |first| first - 1);
        self.log.ended.store(ended, Ordering::Release);
    }
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
        let recent = Recent { entries: VecDeque::new(), all_before: 0, walking: Vec::new() };
        PurgeLog { epoch: AtomicU64::new(0), ended: AtomicU64::new(0), recent: Mutex::new(recent) }
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// The purges that do not apply to a fetch which begins now. A purge that has not ended applies to it: what the fetch builds
    /// on, such as a stored object that it validates, may be removed yet.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
    }

    /// Records purges. MUST be called before the first shard is walked, and the walk be kept until the last one was.
    pub(crate) fn note(&self, purged: impl IntoIterator<Item = Purged>) -> Walk<'_> {
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
        self.walk(&mut recent, epoch)
    }

    /// Records a purge of everything, as [`PurgeLog::note`] does.
    pub(crate) fn note_all(&self) -> Walk<'_> {
        let mut recent = self.recent.lock();
        let epoch = self.epoch() + 1;
        recent.entries.clear();
        recent.all_before = epoch;
        self.walk(&mut recent, epoch)
    }

    fn walk(&self, recent: &mut Recent, epoch: u64) -> Walk<'_> {
        recent.walking.push(epoch);
        self.epoch.store(epoch, Ordering::Release);
        Walk { log: self, epoch }
    }

    /// Whether a purge since `begun` matches a fetched response. The shard's lock MUST be held until the
    /// response is stored.
    pub(crate) fn meets(&self, begun: u64, key: Key, tags: &[Tag]) -> bool {
        self.meets_any(begun, |purged| match purged {
            Purged::Key(purged) => *purged == key,
            Purged::Tag(tag) | Purged::Target(tag) => tags.contains(tag),
        })
    }

    /// Whether a purge since `begun` may match the response to a fetch. Its tags are not known yet, except
    /// the one of its target, if it carries one.
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
