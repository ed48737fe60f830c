//! Classes of requests, and the workers skilled in them.

use std::sync::atomic::AtomicU32;

use crate::BackendId;
use crate::hash::hash;
use crate::ids::ByNumber;
use crate::load::Rate;

/// The longest name of a class, in bytes.
pub const MAX_CLASS_BYTES: usize = 256;

/// A class, by a hash of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClassKey(pub(crate) u64);

impl ClassKey {
    /// The key of the class at every balancer.
    pub(crate) fn shared(class: &[u8]) -> ClassKey {
        ClassKey(hash(class, 0))
    }
}

/// The number of recent choices that the share of a class, and the classes given to a worker, are measured
/// over.
pub(crate) const HORIZON: f32 = 4096.0;

/// After this many responses a worker has loaded the data of a class. It loads later only what it lost or
/// what was changed.
const LOADED: u32 = 40;

/// A worker's skill in a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Skill {
    pub(crate) worker: BackendId,
    /// Requests per second; 0 until it is known.
    pub(crate) score: f32,
    /// The number of responses behind an inferred score; negative if the worker reported the score itself.
    pub(super) weight: f32,
    /// The responses that the balancer saw.
    pub(super) answers: u32,
}

impl Skill {
    pub(crate) const fn reported(worker: BackendId, score: f32) -> Skill {
        Skill { worker, score, weight: -1.0, answers: 0 }
    }

    pub(crate) const fn inferred(worker: BackendId, score: f32, weight: f32) -> Skill {
        Skill { worker, score, weight, answers: 0 }
    }

    /// The skill of a worker that was given the class and has not responded yet.
    pub(crate) const fn assumed(worker: BackendId) -> Skill {
        Skill { worker, score: 0.0, weight: 0.0, answers: 0 }
    }

    /// Whether there is a score: the worker reported it, or has responded.
    pub(crate) fn is_known(&self) -> bool {
        self.weight != 0.0
    }

    /// Whether the worker reported the score, rather than the balancer inferring it.
    pub(crate) fn is_reported(&self) -> bool {
        self.weight < 0.0
    }

    /// The number of responses behind an inferred score.
    pub(crate) fn weight(&self) -> f32 {
        self.weight.max(0.0)
    }

    /// Whether the worker has served the class often enough to have loaded its data.
    pub(crate) fn is_loaded(&self) -> bool {
        self.answers >= LOADED
    }
}

/// A class of requests.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) name: Box<[u8]>,
    /// The best first.
    pub(crate) skilled: Vec<Skill>,
    /// How often it is requested.
    pub(crate) asked: Rate,
    /// One plus the number of the worker that is tried at it; 0 if none is.
    pub(crate) tried: AtomicU32,
}

impl Class {
    pub(crate) fn of(&self, worker: BackendId) -> Option<&Skill> {
        self.skilled.iter().find(|skill| skill.worker == worker)
    }

    /// Whether any worker has reported a score in the class.
    pub(super) fn is_reported(&self) -> bool {
        self.skilled.iter().any(Skill::is_reported)
    }

    /// Sets a worker's skill and keeps the order. Returns the previous one.
    pub(super) fn set(&mut self, mut skill: Skill) -> Option<Skill> {
        let before = self.remove(skill.worker);
        skill.answers = skill.answers.max(before.map_or(0, |before| before.answers));
        let at = self.skilled.partition_point(|other| other.score >= skill.score);
        self.skilled.insert(at, skill);
        before
    }

    pub(super) fn remove(&mut self, worker: BackendId) -> Option<Skill> {
        let at = self.skilled.iter().position(|skill| skill.worker == worker)?;
        Some(self.skilled.remove(at))
    }
}

/// The classes of one shard.
#[derive(Default)]
pub(crate) struct Shard {
    pub(super) classes: ByNumber<u64, Class>,
}

impl Shard {
    pub(crate) fn get(&self, key: ClassKey) -> Option<&Class> {
        self.classes.get(&key.0)
    }
}
