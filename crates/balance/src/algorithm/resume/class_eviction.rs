//! The choice of a class to forget when there is no room for another.
//!
//! Classes that no worker has told of, the balancer's own, have a quarter of the room, and those that workers
//! told of the rest, as far as there are both:
//!
//! - A class that a request is of always finds room. Where the balancer's own take more than their quarter
//!   one of them goes, so that a flood of new classes drives out its own kind; else one that workers told of.
//!   Of a few it is the one asked for longest ago, and before all others one that nobody ever asked for.
//! - A class that a worker tells of takes the place of one of the balancer's own where these take more than
//!   their quarter; else of one that nobody asks for and only workers have told of that told of more. So no
//!   worker keeps the others out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::class::{Class, HORIZON, Shard, Skill};
use crate::BackendId;
use crate::ids::ByNumber;

/// One in so many classes may be the balancer's own before they drive out each other.
const OWN: usize = 4;

/// As many classes are looked at, of which a suitable one is to be found.
const LOOKED_AT: usize = 128;

/// Of so many suitable ones the best is taken.
const SAMPLE: usize = 16;

/// Counts of the classes that workers have reported.
#[derive(Default)]
pub(super) struct ReportedClasses {
    classes: AtomicUsize,
    /// Each that has told of any.
    workers: Mutex<ByNumber<u32, usize>>,
}

impl ReportedClasses {
    /// A worker's score in a class was told, or is now.
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

    /// Some worker's score in a class was told, or is now.
    pub(super) fn count_class(&self, before: bool, now: bool) {
        match (before, now) {
            (false, true) => self.classes.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.classes.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
    }

    /// The worker that has told of most classes, and of how many.
    pub(super) fn most(&self) -> Option<(BackendId, usize)> {
        let workers = self.workers();
        let most = workers.iter().max_by_key(|&(&worker, &count)| (count, std::cmp::Reverse(worker)));
        most.map(|(&worker, &count)| (BackendId(worker), count))
    }

    fn workers(&self) -> MutexGuard<'_, ByNumber<u32, usize>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The class of `shard` to be forgotten, of `classes` that are known of `most`, to make room for one that
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
    // The order of the map is as good as chance: the keys are seeded hashes.
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

/// Whether a class is asked for: at one of as many choices as there is room for classes.
fn is_asked_for(class: &Class, most: usize, now: u64) -> bool {
    class.asked.share(now, HORIZON) > 0.0 && age(class, now) as usize <= most
}

fn longest_ago<'c>(classes: impl Iterator<Item = (&'c u64, &'c Class)>, now: u64) -> Option<u64> {
    classes.max_by_key(|(_, class)| age(class, now)).map(|(&key, _)| key)
}

/// How many choices ago a class was asked for; all of them where it never was.
fn age(class: &Class, now: u64) -> u32 {
    (now as u32).wrapping_sub(class.asked.last())
}
