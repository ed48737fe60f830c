//! Inferred skills of backends that have left a pool, kept for their return.

use sandarac_balance::{Pool, SavedSkills, SavedWorker};
use std::collections::{HashMap, HashSet};
use std::time::{SystemTime, UNIX_EPOCH};

/// The longest absence after which skills are kept, in seconds: a night, or the repair of a machine.
const MAX_ABSENCE: u64 = 24 * 60 * 60;

/// The most absent backends whose skills are kept: as many as a source may name. The longest absent are
/// dropped first.
const MAX_BACKENDS: usize = 1000;

/// Skills of absent backends. A backend that returns under the same address gets them back.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AbsentSkills {
    /// The fingerprint of the classifier that all these skills belong to.
    pub(crate) classifier: u64,
    pub(crate) absent: Vec<AbsentWorker>,
}

/// The skills of one absent backend.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AbsentWorker {
    pub(crate) worker: SavedWorker,
    /// When it left, in seconds since 1970.
    pub(crate) since: u64,
}

impl AbsentSkills {
    /// Keeps the skills of the backends that leave `pool`: all but those whose addresses `stay`.
    pub(crate) fn leave(&mut self, pool: &Pool, stay: &HashSet<String>, now: u64) {
        if pool.backends().iter().all(|backend| stay.contains(&backend.address().to_string())) {
            return;
        }
        let SavedSkills { classifier, mut workers } = pool.save_skills();
        workers.retain(|worker| !stay.contains(&worker.address));
        let absent = workers.into_iter().map(|worker| AbsentWorker { worker, since: now }).collect();
        self.take(AbsentSkills { classifier, absent });
        self.forget(now);
    }

    /// Adds the skills of `others`. A backend that is already here keeps its own.
    pub(crate) fn take(&mut self, others: AbsentSkills) {
        if self.classifier != others.classifier && !others.absent.is_empty() {
            *self = AbsentSkills { classifier: others.classifier, absent: Vec::new() };
        }
        let known: HashSet<String> = self.absent.iter().map(|absent| absent.worker.address.clone()).collect();
        self.absent
            .extend(others.absent.into_iter().filter(|absent| !known.contains(&absent.worker.address)));
    }

    /// Gives `pool` the skills of the backends that have returned.
    pub(crate) fn give_back(&mut self, pool: &Pool) {
        if self.absent.is_empty() || pool.settings().resume.classifier != self.classifier {
            return;
        }
        let here: HashSet<String> =
            pool.backends().iter().map(|backend| backend.address().to_string()).collect();
        let back = self.absent.extract_if(.., |absent| here.contains(&absent.worker.address));
        let mut workers: Vec<SavedWorker> = back.map(|absent| absent.worker).collect();
        if !workers.is_empty() {
            leave_out(&mut workers, &pool.save_skills().workers);
            pool.restore_skills(&SavedSkills { classifier: self.classifier, workers });
        }
    }

    /// Forgets absences longer than [`MAX_ABSENCE`], and the longest of those beyond [`MAX_BACKENDS`].
    pub(crate) fn forget(&mut self, now: u64) {
        self.absent.retain(|absent| now.saturating_sub(absent.since) < MAX_ABSENCE);
        if self.absent.len() > MAX_BACKENDS {
            self.absent.sort_by_key(|absent| std::cmp::Reverse(absent.since));
            self.absent.truncate(MAX_BACKENDS);
        }
    }
}

/// Drops the classes that the pool has learnt since, because newer skills count more.
fn leave_out(workers: &mut [SavedWorker], known: &[SavedWorker]) {
    let known: HashMap<&str, HashSet<&[u8]>> = known
        .iter()
        .map(|worker| (&*worker.address, worker.skills.iter().map(|(class, ..)| &**class).collect()))
        .collect();
    for worker in workers {
        if let Some(known) = known.get(&*worker.address) {
            worker.skills.retain(|(class, ..)| !known.contains(&**class));
        }
    }
}

/// The current time in seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absences_of_a_day_and_those_beyond_the_bound_are_forgotten() {
        let absent = |n: u64| {
            let worker = SavedWorker { address: format!("http://{n}"), skills: Vec::new() };
            AbsentWorker { worker, since: n }
        };
        let mut skills = AbsentSkills { classifier: 1, absent: (0..1500).map(absent).collect() };
        skills.forget(1500);
        let since: Vec<u64> = skills.absent.iter().map(|absent| absent.since).collect();
        assert_eq!((since.len(), since[0], since[999]), (1000, 1499, 500));
        skills.forget(MAX_ABSENCE + 1000);
        assert_eq!(skills.absent.len(), 499);
    }
}
