//! Inferred skills of backends that are not there at present.

use sandarac_balance::{Pool, SavedSkills, SavedWorker};
use std::collections::{HashMap, HashSet};

/// How long they are kept, in seconds: over a night, or until somebody has looked after a machine.
const KEPT: u64 = 24 * 60 * 60;

/// Of how many backends, at most: as many as a source may name. Those that have been away for longest go first.
const MOST: usize = 1000;

/// Skills of backends that are not there at present. They are given back to whoever returns under the address.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Away {
    /// The fingerprint of the classifier that all of them were seen under.
    pub(crate) classifier: u64,
    pub(crate) absent: Vec<Absent>,
}

/// The skills of one, and since when it is away, in seconds since 1970.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Absent {
    pub(crate) worker: SavedWorker,
    pub(crate) since: u64,
}

impl Away {
    /// Keeps the skills of those backends of a pool that are about to leave it.
    pub(crate) fn leave(&mut self, pool: &Pool, stay: &HashSet<String>, now: u64) {
        if pool.backends().iter().all(|backend| stay.contains(&backend.address().to_string())) {
            return;
        }
        let SavedSkills { classifier, mut workers } = pool.save_skills();
        workers.retain(|worker| !stay.contains(&worker.address));
        let absent = workers.into_iter().map(|worker| Absent { worker, since: now }).collect();
        self.take(Away { classifier, absent });
        self.forget(now);
    }

    /// Keeps others as well, unless more is known of them.
    pub(crate) fn take(&mut self, others: Away) {
        if self.classifier != others.classifier && !others.absent.is_empty() {
            *self = Away { classifier: others.classifier, absent: Vec::new() };
        }
        let known: HashSet<String> = self.absent.iter().map(|absent| absent.worker.address.clone()).collect();
        self.absent
            .extend(others.absent.into_iter().filter(|absent| !known.contains(&absent.worker.address)));
    }

    /// Gives `pool` the skills of those who are back.
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

    /// Forgets those who have been away for too long, and those beyond the bound.
    pub(crate) fn forget(&mut self, now: u64) {
        self.absent.retain(|absent| now.saturating_sub(absent.since) < KEPT);
        if self.absent.len() > MOST {
            self.absent.sort_by_key(|absent| std::cmp::Reverse(absent.since));
            self.absent.truncate(MOST);
        }
    }
}

/// Leaves out the classes that are `known` by now: what was learnt since counts more.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_away_for_a_day_is_forgotten_and_so_are_those_beyond_the_bound() {
        let absent = |n: u64| {
            let worker = SavedWorker { address: format!("http://{n}"), skills: Vec::new() };
            Absent { worker, since: n }
        };
        let mut away = Away { classifier: 1, absent: (0..1500).map(absent).collect() };
        away.forget(1500);
        let since: Vec<u64> = away.absent.iter().map(|absent| absent.since).collect();
        assert_eq!((since.len(), since[0], since[999]), (1000, 1499, 500));
        away.forget(KEPT + 1000);
        assert_eq!(away.absent.len(), 499);
    }
}
