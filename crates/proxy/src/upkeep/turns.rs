//! The order in which résumés are fetched: the workers that are wanted, being asked, or waiting, and for how long.

use sandarac_balance::{BackendId, Backoff};
use sandarac_net::Moment;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// A worker of a pool, which is told by its place among the site's.
pub(super) type Worker = (usize, BackendId);

/// How long after a failure a worker is asked again.
const RETRY_AFTER: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60) };

/// How many résumés of one worker are fetched in a row, and after what time each one more: several where it restarts or learns
/// much at once, and no more where it never means what it says.
const PACE: (u32, Duration) = (4, Duration::from_secs(1));

/// How asking a worker went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Its résumé is known.
    Well,
    /// It was not there, or had none to give: it may have been away, or starting. A response that tells of a résumé ends the
    /// wait at once.
    InVain,
    /// What it gave is of no use, or did not come in time, which was dear enough: it has to wait, whatever it says.
    Badly,
}

/// The workers that are wanted, and when each may be asked.
#[derive(Default)]
pub(super) struct Turns {
    wanted: HashSet<Worker>,
    asked: HashSet<Worker>,
    failed: HashMap<Worker, Failure>,
    /// When those would be due that were asked at an even [`PACE`].
    paced: HashMap<Worker, Moment>,
}

struct Failure {
    times: u32,
    not_before: Moment,
    how: Asked,
}

impl Turns {
    /// Somebody would like to know the résumé of the worker.
    pub(super) fn want(&mut self, worker: Worker) {
        self.wanted.insert(worker);
    }

    /// A response of the worker told of a résumé that is not known. Whether it has not been asked more often than is good.
    pub(super) fn told(&mut self, worker: Worker, now: Moment) -> bool {
        if self.failed.get(&worker).is_some_and(|failure| failure.how == Asked::InVain) {
            self.failed.remove(&worker);
        }
        self.want(worker);
        self.is_paced(worker, now)
    }

    /// Whether asking the worker failed, and nothing has come of it since.
    pub(super) fn failed(&self, worker: &Worker) -> bool {
        self.failed.contains_key(worker)
    }

    /// Those to be asked now, `most` at most; they are being asked from now on.
    pub(super) fn due(&mut self, most: usize, now: Moment) -> Vec<Worker> {
        self.paced.retain(|_, due| *due > now);
        let may = |worker: &Worker| {
            !self.asked.contains(worker)
                && self.is_paced(*worker, now)
                && self.failed.get(worker).is_none_or(|failure| now >= failure.not_before)
        };
        let due: Vec<Worker> = self.wanted.iter().copied().filter(may).take(most).collect();
        for &worker in &due {
            self.wanted.remove(&worker);
            self.asked.insert(worker);
            let next = self.paced.get(&worker).map_or(now, |&due| due.max(now)).plus(PACE.1);
            self.paced.insert(worker, next);
        }
        // Those who have to wait are wanted again when they are next heard of.
        self.wanted.retain(|worker| !self.failed.contains_key(worker) && !self.asked.contains(worker));
        due
    }

    /// The worker was asked.
    pub(super) fn done(&mut self, worker: Worker, how: Asked, now: Moment) {
        self.asked.remove(&worker);
        if how == Asked::Well {
            self.failed.remove(&worker);
            return;
        }
        let earlier = self.failed.get(&worker).map_or(0, |failure| failure.times);
        let not_before = now.plus(RETRY_AFTER.pause(earlier));
        self.failed.insert(worker, Failure { times: earlier.saturating_add(1), not_before, how });
    }

    /// Forgets the failures of workers that are no longer there.
    pub(super) fn retain(&mut self, is_there: impl Fn(&Worker) -> bool) {
        self.failed.retain(|worker, _| is_there(worker));
    }

    fn is_paced(&self, worker: Worker, now: Moment) -> bool {
        self.paced.get(&worker).is_none_or(|&due| due < now.plus(PACE.1 * PACE.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_balance::{Algorithm, Backend, Pool};

    fn worker() -> Worker {
        let backend = Backend::new("http://10.0.0.1:8000".parse().unwrap());
        (0, Pool::new("app", vec![backend], Algorithm::Resume).ids()[0])
    }

    /// Asks `worker` as often as it may be asked in so many seconds, and returns after which of them.
    fn asked_over(turns: &mut Turns, worker: Worker, start: Moment, seconds: u64, how: Asked) -> Vec<u64> {
        let mut asked = Vec::new();
        for second in 0..seconds {
            let now = start.plus(Duration::from_secs(second));
            turns.want(worker);
            if turns.due(4, now) == [worker] {
                asked.push(second);
                turns.done(worker, how, now);
            }
        }
        asked
    }

    #[test]
    fn a_worker_that_fails_is_asked_after_growing_pauses() {
        for how in [Asked::InVain, Asked::Badly] {
            let asked = asked_over(&mut Turns::default(), worker(), Moment::now(), 300, how);
            assert_eq!(asked, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243], "{how:?}");
        }
    }

    #[test]
    fn one_that_was_away_for_long_is_asked_as_soon_as_it_speaks() {
        let (mut turns, worker, start) = (Turns::default(), worker(), Moment::now());
        asked_over(&mut turns, worker, start, 100, Asked::InVain);
        let now = start.plus(Duration::from_secs(100));
        turns.want(worker);
        assert_eq!(turns.due(4, now), []);
        assert!(turns.told(worker, now));
        assert_eq!(turns.due(4, now), [worker]);
        turns.done(worker, Asked::Well, now);
        assert!(!turns.failed(&worker));
    }

    #[test]
    fn one_that_gave_nonsense_waits_whatever_it_says() {
        let (mut turns, worker, start) = (Turns::default(), worker(), Moment::now());
        asked_over(&mut turns, worker, start, 100, Asked::Badly);
        let asked: Vec<u64> = (100..200)
            .filter(|&second| {
                let now = start.plus(Duration::from_secs(second));
                turns.told(worker, now);
                let due = turns.due(4, now) == [worker];
                if due {
                    turns.done(worker, Asked::Badly, now);
                }
                due
            })
            .collect();
        assert_eq!(asked, [123, 183]);
    }

    #[test]
    fn one_that_speaks_of_a_resume_and_never_gives_it_is_asked_once_a_second() {
        let (mut turns, worker, start) = (Turns::default(), worker(), Moment::now());
        let mut asked = 0;
        let mut too_often = 0;
        for tenth in 0..100 {
            let now = start.plus(Duration::from_millis(tenth * 100));
            too_often += u32::from(!turns.told(worker, now));
            if turns.due(4, now) == [worker] {
                asked += 1;
                turns.done(worker, Asked::InVain, now);
            }
        }
        assert_eq!(asked, 4 + 10);
        assert!(too_often > 80, "{too_often}");
    }

    #[test]
    fn a_worker_is_asked_one_question_at_a_time_and_no_more_workers_than_there_is_room_for() {
        let backend = |n: usize| Backend::new(format!("http://10.0.0.{n}:8000").parse().unwrap());
        let pool = Pool::new("app", (1..=6).map(backend).collect(), Algorithm::Resume);
        let (mut turns, now) = (Turns::default(), Moment::now());
        pool.ids().iter().for_each(|&id| turns.want((0, id)));
        let first = turns.due(4, now);
        assert_eq!(first.len(), 4);
        turns.want(first[0]);
        assert_eq!(turns.due(4, now).len(), 2);
        assert_eq!(turns.due(4, now), []);
    }
}
