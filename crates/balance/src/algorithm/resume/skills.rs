//! The skills of workers: an index from classes to workers.
//!
//! The classes are in shards by their key, each with its own lock. A choice holds a lock shared, while it
//! examines a few workers. A change of a skill holds it exclusively, while it moves some bytes. A whole
//! résumé is applied class by class, so that no choice waits for all of it.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::class::{Class, ClassKey, HORIZON, Shard, Skill};
use super::class_eviction::{self, ReportedClasses};
use crate::BackendId;
use crate::hash::mix;
use crate::load::Rate;

/// Enough that cores seldom contend for one lock.
const SHARDS: usize = 64;

/// Responses that a score follows if it is corrected by the balancer's observations: few enough that the
/// eviction of a class is noticed soon.
const FOLLOWED: f32 = 8.0;

/// The skills of all workers of a pool, shared by the pools that succeed each other over reloads.
pub(crate) struct Skills {
    shards: Box<[RwLock<Shard>]>,
    max_classes: usize,
    classes: AtomicUsize,
    skills: AtomicUsize,
    reported: ReportedClasses,
    forgotten: AtomicU64,
    forgotten_reported: AtomicU64,
    forgotten_for_requests: AtomicU64,
    refused: AtomicU64,
}

/// The number of known skills, and of those without room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkillCounts {
    /// Classes known.
    pub classes: usize,
    /// Known skills, over all classes and workers.
    pub skills: usize,
    /// Classes forgotten to make room for others, in total.
    pub forgotten: u64,
    /// Of these, the classes that a worker had reported.
    pub forgotten_reported: u64,
    /// Of these, the classes that made room for the class of a request.
    pub forgotten_for_requests: u64,
    /// Reported classes for which there was no room, in total.
    pub refused: u64,
}

impl Skills {
    pub(crate) fn new(max_classes: usize) -> Skills {
        Skills {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            max_classes,
            classes: AtomicUsize::new(0),
            skills: AtomicUsize::new(0),
            reported: ReportedClasses::default(),
            forgotten: AtomicU64::new(0),
            forgotten_reported: AtomicU64::new(0),
            forgotten_for_requests: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    fn place_of(&self, key: ClassKey) -> usize {
        // Not the bits that the map of a shard uses.
        (mix(key.0) >> 48) as usize % SHARDS
    }

    fn shard_of(&self, key: ClassKey) -> &RwLock<Shard> {
        &self.shards[self.place_of(key)]
    }

    pub(crate) fn read(&self, key: ClassKey) -> RwLockReadGuard<'_, Shard> {
        self.shard_of(key).read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, key: ClassKey) -> RwLockWriteGuard<'_, Shard> {
        self.shard_of(key).write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn counts(&self) -> SkillCounts {
        SkillCounts {
            classes: self.classes.load(Ordering::Relaxed),
            skills: self.skills.load(Ordering::Relaxed),
            forgotten: self.forgotten.load(Ordering::Relaxed),
            forgotten_reported: self.forgotten_reported.load(Ordering::Relaxed),
            forgotten_for_requests: self.forgotten_for_requests.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }

    /// The worker that has reported the most classes, and their number.
    pub(crate) fn most_reported(&self) -> Option<(BackendId, usize)> {
        self.reported.most()
    }

    /// Sets a worker's skill in a class, which MUST be the one of the key. Returns whether there was room for
    /// it.
    pub(crate) fn set(&self, key: ClassKey, name: &[u8], skill: Skill, now: u64) -> bool {
        let mut shard = self.write(key);
        if let Some(class) = shard.classes.get_mut(&key.0) {
            self.put(class, skill);
            return true;
        }
        if self.classes.load(Ordering::Relaxed) >= self.max_classes
            && !self.make_room(key, &mut shard, &skill, now)
        {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let mut class = Class {
            name: name.into(),
            skilled: Vec::with_capacity(1),
            asked: Rate::default(),
            tried: AtomicU32::new(0),
        };
        // An assumed skill comes from a request. A reported or restored one does not.
        if !skill.is_known() {
            class.asked.count(now, HORIZON);
        }
        self.put(&mut class, skill);
        shard.classes.insert(key.0, class);
        self.classes.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Sets a worker's skill in a class.
    fn put(&self, class: &mut Class, skill: Skill) {
        let was_reported = class.is_reported();
        let before = class.set(skill);
        self.skills.fetch_add(usize::from(before.is_none()), Ordering::Relaxed);
        self.reported.count_worker(
            skill.worker,
            before.is_some_and(|before| before.is_reported()),
            skill.is_reported(),
        );
        self.reported.count_class(was_reported, class.is_reported());
    }

    /// Removes a worker's skill in a class, if it has one.
    fn take(&self, class: &mut Class, worker: BackendId) {
        let was_reported = class.is_reported();
        let Some(before) = class.remove(worker) else { return };
        self.skills.fetch_sub(1, Ordering::Relaxed);
        self.reported.count_worker(worker, before.is_reported(), false);
        self.reported.count_class(was_reported, class.is_reported());
    }

    /// Forgets a class (see [`super::class_eviction`]) to make room for one that `newcomer` brings. It is of
    /// the shard of `key`, unless that has none to forget.
    fn make_room(&self, key: ClassKey, own: &mut Shard, newcomer: &Skill, now: u64) -> bool {
        let classes = self.classes.load(Ordering::Relaxed);
        let victim = |shard: &Shard| {
            class_eviction::victim(shard, classes, self.max_classes, &self.reported, newcomer, now)
        };
        if let Some(victim) = victim(own) {
            return self.forget(own, victim, newcomer);
        }
        // A worker that reports many classes finds another shard with the next of them.
        if newcomer.is_known() {
            return false;
        }
        let first = self.place_of(key);
        (1..SHARDS).any(|step| {
            // Does not block: of two threads that each hold a shard, neither gets the other's.
            let Ok(mut shard) = self.shards[(first + step) % SHARDS].try_write() else { return false };
            victim(&shard).is_some_and(|victim| self.forget(&mut shard, victim, newcomer))
        })
    }

    fn forget(&self, shard: &mut Shard, victim: u64, newcomer: &Skill) -> bool {
        let Some(mut class) = shard.classes.remove(&victim) else { return false };
        let was_reported = class.is_reported();
        while let Some(worker) = class.skilled.last().map(|skill| skill.worker) {
            self.take(&mut class, worker);
        }
        self.classes.fetch_sub(1, Ordering::Relaxed);
        self.forgotten.fetch_add(1, Ordering::Relaxed);
        self.forgotten_reported.fetch_add(u64::from(was_reported), Ordering::Relaxed);
        self.forgotten_for_requests.fetch_add(u64::from(!newcomer.is_known()), Ordering::Relaxed);
        true
    }

    /// Removes a worker's skill in a class.
    pub(crate) fn remove(&self, key: ClassKey, worker: BackendId) {
        self.remove_if(&mut self.write(key), key, worker, |_| true);
    }

    /// Removes the assumed skill of a worker in a class, unless another thread has the shard.
    pub(crate) fn remove_assumed(&self, key: ClassKey, worker: BackendId) {
        if let Ok(mut shard) = self.shards[self.place_of(key)].try_write() {
            self.remove_if(&mut shard, key, worker, |skill| !skill.is_known());
        }
    }

    fn remove_if(&self, shard: &mut Shard, key: ClassKey, worker: BackendId, which: impl Fn(&Skill) -> bool) {
        let Some(class) = shard.classes.get_mut(&key.0) else { return };
        if !class.of(worker).is_some_and(which) {
            return;
        }
        self.take(class, worker);
        if class.skilled.is_empty() {
            shard.classes.remove(&key.0);
            self.classes.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Removes all skills of a worker for which `keep` returns false.
    pub(crate) fn retain(&self, worker: BackendId, mut keep: impl FnMut(ClassKey, &Skill) -> bool) {
        for shard in &self.shards {
            let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
            let before = shard.classes.len();
            shard.classes.retain(|&key, class| {
                if class.of(worker).is_some_and(|skill| !keep(ClassKey(key), skill)) {
                    self.take(class, worker);
                }
                !class.skilled.is_empty()
            });
            self.classes.fetch_sub(before - shard.classes.len(), Ordering::Relaxed);
        }
    }

    /// Corrects the score of a worker after a response to a request of a class that took it `seconds`, by a
    /// mean over its recent such requests. A reported score is a mean over many more, and is the start of
    /// this one.
    pub(crate) fn learn(&self, key: ClassKey, worker: BackendId, seconds: f32) {
        // Does not block: if another core holds the lock, this response is ignored, and the next one counts.
        let Ok(mut shard) = self.shard_of(key).try_write() else { return };
        let Some(class) = shard.classes.get_mut(&key.0) else { return };
        let Some(&skill) = class.of(worker) else { return };
        // A worker that loads the data of a class is quicker with every request.
        let history = (skill.answers as f32 / 4.0).clamp(2.0, FOLLOWED);
        let before = if skill.is_reported() { history } else { skill.weight() };
        let before = before.min(history) * (1.0 - 1.0 / history);
        let took = if skill.is_known() { before / skill.score } else { 0.0 };
        let score = (before + 1.0) / (took + seconds);
        let weight = if skill.is_reported() { skill.weight } else { before + 1.0 };
        class.set(Skill { worker, score, weight, answers: skill.answers.saturating_add(1) });
    }

    /// Passes every class to `see`, one shard at a time.
    pub(crate) fn each(&self, mut see: impl FnMut(ClassKey, &Class)) {
        for shard in &self.shards {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            shard.classes.iter().for_each(|(&key, class)| see(ClassKey(key), class));
        }
    }
}
