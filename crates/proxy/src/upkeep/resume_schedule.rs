//! The schedule of résumé fetches: which workers are wanted, being fetched from, or paused, and for how long.

use sandarac_balance::{BackendId, Backoff};
use sandarac_net::Moment;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// A worker of a pool, and the position of that pool in the site.
pub(super) type Worker = (usize, BackendId);

/// The pauses after failed fetches from one worker.
const RETRY_AFTER: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60) };

/// Fetches from one worker in a row, because a worker may restart or learn much at once.
const BURST: u32 = 4;

/// The interval of the fetches beyond a [`BURST`], because a worker may announce résumés that it never sends.
const INTERVAL: Duration = Duration::from_secs(1);

/// The outcome of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FetchOutcome {
    /// The résumé is known now, or the pool does not need it.
    Known,
    /// The worker was absent, possibly starting, or had no résumé. A response that announces one ends the
    /// pause at once.
    Unavailable,
    /// The résumé was unusable or late, which was expensive. The worker stays paused, whatever it announces.
    Unusable,
}

/// The wanted workers, and when each may be asked.
#[derive(Default)]
pub(super) struct ResumeSchedule {
    wanted: HashSet<Worker>,
    asked: HashSet<Worker>,
    failed: HashMap<Worker, Failure>,
    /// When the next fetch from each would be due at an even [`INTERVAL`].
    paced: HashMap<Worker, Moment>,
}

struct Failure {
    times: u32,
    not_before: Moment,
    outcome: FetchOutcome,
}

impl ResumeSchedule {
    /// Requests the résumé of a worker.
    pub(super) fn want(&mut self, worker: Worker) {
        self.wanted.insert(worker);
    }

    /// Requests the résumé that a response of the worker announced. Returns whether that is within the
    /// worker's pace.
    pub(super) fn announced(&mut self, worker: Worker, now: Moment) -> bool {
        if self.failed.get(&worker).is_some_and(|failure| failure.outcome == FetchOutcome::Unavailable) {
            self.failed.remove(&worker);
        }
        self.want(worker);
        self.is_paced(worker, now)
    }

    /// Whether the last fetch from the worker failed.
    pub(super) fn failed(&self, worker: &Worker) -> bool {
        self.failed.contains_key(worker)
    }

    /// Takes the workers to fetch from now, so that `most` are being fetched from. They count as such until
    /// [`ResumeSchedule::done`].
    ///
    /// Workers whose last fetch failed come last, and take half of the places at most: each that hangs takes
    /// one for as long as a fetch may last, and others are not to wait for that.
    pub(super) fn due(&mut self, most: usize, now: Moment) -> Vec<Worker> {
        self.paced.retain(|_, due| *due > now);
        let may = |worker: &Worker| {
            !self.asked.contains(worker)
                && self.is_paced(*worker, now)
                && self.failed.get(worker).is_none_or(|failure| now >= failure.not_before)
        };
        let (again, first): (Vec<Worker>, Vec<Worker>) =
            self.wanted.iter().copied().filter(may).partition(|worker| self.failed(worker));
        let failed = self.asked.iter().filter(|worker| self.failed(worker)).count();
        let again = again.into_iter().take((most / 2).saturating_sub(failed));
        let room = most.saturating_sub(self.asked.len());
        let due: Vec<Worker> = first.into_iter().chain(again).take(room).collect();
        for &worker in &due {
            self.wanted.remove(&worker);
            self.asked.insert(worker);
            let next = self.paced.get(&worker).map_or(now, |&due| due.max(now)).plus(INTERVAL);
            self.paced.insert(worker, next);
        }
        // Paused workers are requested again at the next occasion.
        self.wanted.retain(|worker| !self.failed.contains_key(worker) && !self.asked.contains(worker));
        due
    }

    /// Ends the fetch from a worker.
    pub(super) fn done(&mut self, worker: Worker, outcome: FetchOutcome, now: Moment) {
        self.asked.remove(&worker);
        if outcome == FetchOutcome::Known {
            self.failed.remove(&worker);
            return;
        }
        let earlier = self.failed.get(&worker).map_or(0, |failure| failure.times);
        let not_before = now.plus(RETRY_AFTER.pause(earlier));
        self.failed.insert(worker, Failure { times: earlier.saturating_add(1), not_before, outcome });
    }

    /// Forgets the failures of workers that have left.
    pub(super) fn retain(&mut self, is_there: impl Fn(&Worker) -> bool) {
        self.failed.retain(|worker, _| is_there(worker));
    }

    fn is_paced(&self, worker: Worker, now: Moment) -> bool {
        self.paced.get(&worker).is_none_or(|&due| due < now.plus(INTERVAL * BURST))
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

    /// Asks `worker` as often as it may be asked in so many seconds, and reschedule after which of them.
    fn asked_over(
        schedule: &mut ResumeSchedule,
        worker: Worker,
        start: Moment,
        seconds: u64,
        outcome: FetchOutcome,
    ) -> Vec<u64> {
        let mut asked = Vec::new();
        for second in 0..seconds {
            let now = start.plus(Duration::from_secs(second));
            schedule.want(worker);
            if schedule.due(4, now) == [worker] {
                asked.push(second);
                schedule.done(worker, outcome, now);
            }
        }
        asked
    }

    #[test]
    fn a_worker_that_fails_is_asked_after_growing_pauses() {
        for outcome in [FetchOutcome::Unavailable, FetchOutcome::Unusable] {
            let asked = asked_over(&mut ResumeSchedule::default(), worker(), Moment::now(), 300, outcome);
            assert_eq!(asked, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243], "{outcome:?}");
        }
    }

    #[test]
    fn a_worker_that_was_away_is_asked_as_soon_as_it_announces_a_resume() {
        let (mut schedule, worker, start) = (ResumeSchedule::default(), worker(), Moment::now());
        asked_over(&mut schedule, worker, start, 100, FetchOutcome::Unavailable);
        let now = start.plus(Duration::from_secs(100));
        schedule.want(worker);
        assert_eq!(schedule.due(4, now), []);
        assert!(schedule.announced(worker, now));
        assert_eq!(schedule.due(4, now), [worker]);
        schedule.done(worker, FetchOutcome::Known, now);
        assert!(!schedule.failed(&worker));
    }

    #[test]
    fn a_worker_with_an_unusable_resume_waits_whatever_it_announces() {
        let (mut schedule, worker, start) = (ResumeSchedule::default(), worker(), Moment::now());
        asked_over(&mut schedule, worker, start, 100, FetchOutcome::Unusable);
        let asked: Vec<u64> = (100..200)
            .filter(|&second| {
                let now = start.plus(Duration::from_secs(second));
                schedule.announced(worker, now);
                let due = schedule.due(4, now) == [worker];
                if due {
                    schedule.done(worker, FetchOutcome::Unusable, now);
                }
                due
            })
            .collect();
        assert_eq!(asked, [123, 183]);
    }

    #[test]
    fn a_worker_that_announces_a_resume_and_never_gives_it_is_asked_once_a_second() {
        let (mut schedule, worker, start) = (ResumeSchedule::default(), worker(), Moment::now());
        let mut asked = 0;
        let mut too_often = 0;
        for tenth in 0..100 {
            let now = start.plus(Duration::from_millis(tenth * 100));
            too_often += u32::from(!schedule.announced(worker, now));
            if schedule.due(4, now) == [worker] {
                asked += 1;
                schedule.done(worker, FetchOutcome::Unavailable, now);
            }
        }
        assert_eq!(asked, 4 + 10);
        assert!(too_often > 80, "{too_often}");
    }

    #[test]
    fn a_worker_is_asked_one_question_at_a_time_and_no_more_workers_than_there_is_room_for() {
        let backend = |n: usize| Backend::new(format!("http://10.0.0.{n}:8000").parse().unwrap());
        let pool = Pool::new("app", (1..=6).map(backend).collect(), Algorithm::Resume);
        let (mut schedule, now) = (ResumeSchedule::default(), Moment::now());
        pool.ids().iter().for_each(|&id| schedule.want((0, id)));
        let first = schedule.due(4, now);
        assert_eq!(first.len(), 4);
        schedule.want(first[0]);
        assert_eq!(schedule.due(4, now), []);
        first.iter().for_each(|&worker| schedule.done(worker, FetchOutcome::Known, now));
        assert_eq!(schedule.due(4, now).len(), 2);
        assert_eq!(schedule.due(4, now), []);
    }

    /// Regression: workers that hung on the request for their résumé took all places again and again, and
    /// those that had not been asked yet waited behind them.
    #[test]
    fn workers_that_failed_leave_places_to_those_that_were_not_asked_yet() {
        let backend = |n: usize| Backend::new(format!("http://10.0.0.{n}:8000").parse().unwrap());
        let pool = Pool::new("app", (1..=40).map(backend).collect(), Algorithm::Resume);
        let (hang, honest) = pool.ids().split_at(20);
        let (mut schedule, mut now) = (ResumeSchedule::default(), Moment::now());
        let want = |schedule: &mut ResumeSchedule, ids: &[BackendId]| {
            ids.iter().for_each(|&id| schedule.want((0, id)));
        };
        // All of them have failed three times, and are asked again after pauses that are over.
        want(&mut schedule, hang);
        for _ in 0..3 {
            hang.iter().for_each(|&id| schedule.done((0, id), FetchOutcome::Unusable, now));
            now = now.plus(Duration::from_secs(60));
        }
        want(&mut schedule, hang);
        want(&mut schedule, honest);
        let asked = schedule.due(4, now);
        assert!(asked.iter().all(|(_, id)| honest.contains(id)), "{asked:?}");
        asked.iter().for_each(|&worker| schedule.done(worker, FetchOutcome::Known, now));
        for _ in 0..10 {
            want(&mut schedule, hang);
            schedule.due(4, now).iter().filter(|(_, id)| honest.contains(id)).for_each(|&worker| {
                schedule.done(worker, FetchOutcome::Known, now);
            });
        }
        // Those that hang have taken half of the places by now.
        want(&mut schedule, &honest[..1]);
        assert_eq!(schedule.due(4, now.plus(INTERVAL * 9)), [(0, honest[0])]);
    }
}
