//! The choice of a class to forget when there is no room for another.
//!
//! Classes that no worker has reported, the balancer's own, have a quarter of the room, and reported ones the
//! rest, as far as there are both:
//!
//! - A class of a request always finds room. If the balancer's own classes exceed their quarter, one of them
//!   is forgotten, so that a flood of new classes evicts only its own kind; else a reported one is. Of a
//!   sample, it is the one least recently requested; classes that were never requested come first.
//! - A class that a worker reports takes the place of one of the balancer's own if these exceed their
//!   quarter; else of an unrequested one that is known only from workers with more reported classes. So no
//!   worker keeps the others out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::class::{Class, HORIZON, Shard, Skill};
use crate::BackendId;
use crate::ids::ByNumber;

/// The balancer's own classes may take one in this many places before they evict each other.
const OWN: usize = 4;

/// The number of classes examined to find suitable ones.
const LOOKED_AT: usize = 128;

/// The best of this many suitable ones is taken.
const SAMPLE: usize = 16;

/// Counts of the classes that workers have reported.
#[derive(Default)]
pub(super) struct ReportedClasses {
    classes: AtomicUsize,
    /// The count of each worker that has reported any.
    workers: Mutex<ByNumber<u32, usize>>,
}

impl ReportedClasses {
    /// Counts a worker's score in a class: whether it was reported, and is now.
    pub(super) fn count_worker(&self, worker: BackendId, before: bool, now: bool) {
        if before == now {
            return;
        }
        let mut workers = self.workers();
        let count = workers.entry(worker.0).or_default();
        *count = if now { *count + 1 } else { *count - 1 };
        if *count == 0 {
            workers.remove(&worker.0);
        }
    }

    /// Counts a class: whether any worker's score was reported, and is now.
    pub(super) fn count_class(&self, before: bool, now: bool) {
        match (before, now) {
            (false, true) => self.classes.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.classes.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
    }

    /// The worker that has reported the most classes, and their number.
    pub(super) fn most(&self) -> Option<(BackendId, usize)> {
        let workers = self.workers();
        let most = workers.iter().max_by_key(|&(&worker, &count)| (count, std::cmp::Reverse(worker)));
        most.map(|(&worker, &count)| (BackendId(worker), count))
    }

    fn workers(&self) -> MutexGuard<'_, ByNumber<u32, usize>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The class of `shard` to forget, of `classes` known and at most `most`, to make room for one that
/// `newcomer` brings: an assumed skill if it is a request. `None` if there is none.
pub(super) fn victim(
    shard: &Shard,
    classes: usize,
    most: usize,
    reported: &ReportedClasses,
    newcomer: &Skill,
    now: u64,
) -> Option<u64> {
    let too_many_own = classes.saturating_sub(reported.classes.load(Ordering::Relaxed)) > most / OWN;
    // The order of the map is as good as random: the keys are seeded hashes.
    let start = now as usize % shard.classes.len().max(1);
    let some = shard.classes.iter().skip(start).chain(shard.classes.iter().take(start)).take(LOOKED_AT);
    let suitable = some.filter(|(_, class)| class.is_reported() != too_many_own).take(SAMPLE);
    if too_many_own || !newcomer.is_known() {
        return longest_ago(suitable, now);
    }
    let workers = reported.workers();
    let count = |worker: BackendId| workers.get(&worker.0).copied().unwrap_or_default();
    let own = count(newcomer.worker);
    let is_theirs = |class: &Class| {
        let mut tellers = class.skilled.iter().filter(|skill| skill.is_reported());
        !is_asked_for(class, most, now) && tellers.all(|skill| count(skill.worker) > own + 1)
    };
    longest_ago(suitable.filter(|(_, class)| is_theirs(class)), now)
}

/// Whether a class is requested: at one of as many choices as there is room for classes.
fn is_asked_for(class: &Class, most: usize, now: u64) -> bool {
    class.asked.share(now, HORIZON) > 0.0 && age(class, now) as usize <= most
}

fn longest_ago<'c>(classes: impl Iterator<Item = (&'c u64, &'c Class)>, now: u64) -> Option<u64> {
    classes.max_by_key(|(_, class)| age(class, now)).map(|(&key, _)| key)
}

/// How many choices ago a class was last requested; all of them if it never was.
fn age(class: &Class, now: u64) -> u32 {
    (now as u32).wrapping_sub(class.asked.last())
}
