//! The résumé of a worker, as described by the résumé protocol.

use std::collections::VecDeque;

/// Sets of changes kept for balancers that are behind.
const CHANGE_SETS: usize = 8;

/// A score is reported again when it differs from the reported one by more than this.
const TELLING: f64 = 0.05;

/// A worker's measurements, by class.
pub(crate) struct WorkerResume {
    history: u64,
    max_skill_age: u64,
    /// Requests served.
    served: u64,
    classes: Vec<Measured>,
    /// Starts at 1 with the first skill.
    pub(crate) revision: u64,
    /// The revision after each of the last changes, and the changed classes.
    changes: VecDeque<(u64, Vec<u32>)>,
}

#[derive(Clone, Copy, Default)]
struct Measured {
    /// When it was last served.
    last: u64,
    seconds: f64,
    count: f64,
    /// The reported score; 0 if there is none.
    told: f64,
}

impl WorkerResume {
    pub(crate) fn new(classes: u32, history: u64) -> WorkerResume {
        WorkerResume {
            history,
            max_skill_age: history * 10,
            served: 0,
            classes: vec![Measured::default(); classes as usize],
            revision: 1,
            changes: VecDeque::new(),
        }
    }

    /// Notes that a request of a class was served in `seconds`.
    pub(crate) fn served(&mut self, class: u32, seconds: f64) {
        self.served += 1;
        let measured = &mut self.classes[class as usize];
        let decay = (1.0 - 1.0 / self.history as f64).powi((self.served - measured.last) as i32);
        measured.seconds = measured.seconds * decay + seconds.max(1e-9);
        measured.count = measured.count * decay + 1.0;
        measured.last = self.served;
        // Early after the start, so that a new worker reports soon, and then once per history.
        let early = self.served < self.history && self.served.is_power_of_two();
        if early || self.served.is_multiple_of(self.history) {
            self.recompute();
        }
    }

    fn recompute(&mut self) {
        // The current request is one of them.
        let oldest = (self.served + 1).saturating_sub(self.max_skill_age);
        let mut changed = Vec::new();
        for (class, measured) in (0..).zip(&mut self.classes) {
            if measured.count == 0.0 {
                continue;
            }
            let score = if measured.last < oldest { 0.0 } else { measured.count / measured.seconds };
            if (score - measured.told).abs() > TELLING * measured.told {
                measured.told = score;
                changed.push(class);
            }
            if score == 0.0 {
                *measured = Measured::default();
            }
        }
        if !changed.is_empty() {
            self.revision += 1;
            self.changes.push_back((self.revision, changed));
            if self.changes.len() > CHANGE_SETS {
                self.changes.pop_front();
            }
        }
    }

    /// Every skill.
    pub(crate) fn whole(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        (0..)
            .zip(&self.classes)
            .filter(|(_, measured)| measured.told > 0.0)
            .map(|(class, measured)| (class, measured.told))
    }

    /// The changes since a revision, or `None` if that is too long ago.
    pub(crate) fn since(&self, revision: u64) -> Option<impl Iterator<Item = (u32, f64)> + '_> {
        let oldest = self.changes.front().map_or(self.revision + 1, |(revision, _)| *revision);
        (revision + 1 >= oldest).then(|| {
            let newer = self.changes.iter().filter(move |(to, _)| *to > revision);
            newer.flat_map(|(_, classes)| classes).map(|&class| (class, self.classes[class as usize].told))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_requests_per_second_of_late() {
        let mut resume = WorkerResume::new(2, 100);
        for _ in 0..4 {
            resume.served(1, 0.1);
        }
        assert_eq!(
            resume.whole().map(|(class, score)| (class, score.round())).collect::<Vec<_>>(),
            [(1, 10.0)]
        );
        let revision = resume.revision;
        for _ in 0..600 {
            resume.served(1, 0.01);
        }
        let changes: Vec<_> = resume.since(revision).expect("not long ago").collect();
        assert!(changes.last().is_some_and(|&(class, score)| class == 1 && score > 90.0), "{changes:?}");
    }

    /// Regression: it was dropped one request later than by real workers.
    #[test]
    fn a_class_is_dropped_when_so_many_requests_had_others() {
        let mut resume = WorkerResume::new(2, 10);
        (0..10).for_each(|_| resume.served(0, 0.1));
        (0..99).for_each(|_| resume.served(1, 0.1));
        assert_eq!(resume.whole().count(), 2);
        resume.served(1, 0.1);
        assert_eq!(resume.whole().map(|(class, _)| class).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_class_not_seen_for_long_is_dropped() {
        let mut resume = WorkerResume::new(2, 10);
        resume.served(0, 0.1);
        for _ in 0..200 {
            resume.served(1, 0.1);
        }
        assert_eq!(resume.whole().map(|(class, _)| class).collect::<Vec<_>>(), [1]);
    }
}
