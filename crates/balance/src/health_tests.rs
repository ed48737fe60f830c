//! Tests of ejection by responses, of checks and of draining.

use std::time::Duration;

use crate::*;

const NOW: Duration = Duration::from_secs(1000);

fn at(ms: u64) -> Duration {
    NOW + Duration::from_millis(ms)
}

fn pool(count: usize, ejection: Ejection) -> Pool {
    let backend = |n: usize| Backend::new(format!("http://10.0.0.{n}:80").parse().unwrap());
    let settings = Settings { ejection, ..Settings::default() };
    Pool::new("app", (0..count).map(backend).collect(), settings)
}

fn answer(pool: &Pool, id: u32, outcome: AttemptOutcome, now: Duration) {
    let others: Vec<_> = pool.ids().iter().copied().filter(|other| other.0 != id).collect();
    let mut pick = pool.pick(None, now, &others).unwrap();
    if matches!(outcome, AttemptOutcome::Answered | AttemptOutcome::ServerError) {
        pick.responded(now);
    }
    pick.finish(outcome, now);
}

fn out(pool: &Pool, now: Duration) -> Vec<u32> {
    let report = pool.report(now).into_iter();
    report.filter(|report| report.ejected_for.is_some() || report.down).map(|report| report.id.0).collect()
}

#[test]
fn answers_eject_nobody_unless_asked_to() {
    let pool = pool(3, Ejection::default());
    (0..200).for_each(|_| answer(&pool, 1, AttemptOutcome::ServerError, NOW));
    assert_eq!(out(&pool, NOW), []);
}

#[test]
fn a_backend_that_fails_more_than_the_others_is_ejected_until_a_trial_succeeds() {
    let pool = pool(3, Ejection { fault_percent: 50, ..Ejection::default() });
    (0..5).for_each(|_| answer(&pool, 1, AttemptOutcome::ServerError, NOW));
    assert_eq!(out(&pool, NOW), [], "a few are no share");
    (0..40).for_each(|_| answer(&pool, 1, AttemptOutcome::ServerError, NOW));
    assert_eq!(out(&pool, NOW), [1]);
    // The trial fails, and the next ejection lasts twice as long.
    answer(&pool, 1, AttemptOutcome::ServerError, at(1000));
    assert_eq!(out(&pool, at(2900)), vec![1]);
    assert_eq!(out(&pool, at(3000)), vec![]);
    answer(&pool, 1, AttemptOutcome::Answered, at(3000));
    answer(&pool, 1, AttemptOutcome::ServerError, at(3001));
    assert_eq!(out(&pool, at(3001)), []);
}

#[test]
fn what_all_backends_do_is_nobodys_fault() {
    let pool = pool(3, Ejection { fault_percent: 50, ..Ejection::default() });
    for _ in 0..100 {
        (0..3).for_each(|id| answer(&pool, id, AttemptOutcome::Broken, NOW));
    }
    assert_eq!(out(&pool, NOW), []);
}

/// Regression: a backend that responds to nothing was back in service when its trial timed out.
#[test]
fn a_trial_without_an_answer_brings_nobody_back() {
    let pool = pool(3, Ejection::default());
    (0..3).for_each(|_| answer(&pool, 1, AttemptOutcome::ConnectFailed, NOW));
    answer(&pool, 1, AttemptOutcome::Broken, at(1000));
    assert_eq!(out(&pool, at(2900)), vec![1]);
    assert_eq!(out(&pool, at(3000)), vec![]);
    answer(&pool, 1, AttemptOutcome::Answered, at(3000));
    assert_eq!(pool.report(at(3000))[1].state(), BackendState::Healthy);
}

/// Regression: a timeout interrupted a row of connect failures.
#[test]
fn no_answer_does_not_end_a_row_of_failures() {
    let pool = pool(3, Ejection::default());
    for outcome in [
        AttemptOutcome::ConnectFailed,
        AttemptOutcome::Broken,
        AttemptOutcome::ConnectFailed,
        AttemptOutcome::Broken,
    ] {
        answer(&pool, 1, outcome, NOW);
    }
    answer(&pool, 1, AttemptOutcome::ConnectFailed, NOW);
    assert_eq!(out(&pool, NOW), [1]);
}

/// Regression: while a trial hung, another request was tried each second, whatever the current back-off.
#[test]
fn a_trial_that_hangs_is_followed_by_another_after_the_next_back_off() {
    let pool = pool(2, Ejection::default());
    (0..3).for_each(|_| answer(&pool, 1, AttemptOutcome::ConnectFailed, NOW));
    let trial = pool.pick(None, at(1000), &[BackendId(0)]).unwrap();
    assert_eq!(trial.id(), BackendId(1));
    assert_eq!(out(&pool, at(2900)), vec![1]);
    assert_eq!(out(&pool, at(3000)), vec![]);
}

/// Regression: a third of two backends was none, and neither was ever taken out of service.
#[test]
fn one_backend_may_be_out_in_the_smallest_pool() {
    for (max_percent, expected) in [(30, Checked::Down), (0, Checked::Spared)] {
        let pool = pool(2, Ejection { max_percent, ..Ejection::default() });
        let check = || pool.checked(BackendId(1), false);
        assert_eq!([check(), check(), check()], [Checked::Same, Checked::Same, expected]);
    }
}

/// Regression: with a limit, an ejected backend got requests that should have waited for those in service.
#[test]
fn full_backends_are_waited_for_where_others_are_out() {
    let backend = |n: usize| Backend::new(format!("http://10.0.0.{n}:80").parse().unwrap()).max_in_flight(1);
    let pool = Pool::new("app", (0..2).map(backend).collect(), Settings::default());
    (0..3).for_each(|_| {
        let _ = pool.checked(BackendId(1), false);
    });
    let held = pool.pick(None, NOW, &[]).unwrap();
    assert_eq!(held.id(), BackendId(0));
    assert_eq!(pool.pick(None, NOW, &[]).unwrap_err(), NoBackend::AllFull);
    let last = pool.pick(None, NOW, &[BackendId(0)]).unwrap();
    assert_eq!(last.id(), BackendId(1), "who tried all others is served by any");
}

#[test]
fn checks_in_a_row_change_the_standing() {
    let pool = pool(3, Ejection::default());
    let id = pool.ids()[1];
    let check = |passed: &str| passed.chars().fold(Checked::Same, |_, mark| pool.checked(id, mark == '+'));
    assert_eq!(check("--+--"), Checked::Same);
    assert_eq!(check("-"), Checked::Down);
    assert_eq!(out(&pool, NOW), [1]);
    assert!((0..50).all(|_| pool.pick(None, NOW, &[]).unwrap().id() != id));
    assert_eq!(check("+-+"), Checked::Same);
    assert_eq!(check("+"), Checked::Up);
    assert_eq!(out(&pool, NOW), []);
    assert_eq!(pool.checked(BackendId(9), false), Checked::Same);
}

#[test]
fn checks_never_take_the_last_backend() {
    let pool = pool(3, Ejection::default());
    let fail = |id: u32| (0..3).fold(Checked::Same, |_, _| pool.checked(BackendId(id), false));
    assert_eq!([fail(0), fail(1), fail(2)], [Checked::Down, Checked::Down, Checked::Spared]);
    assert_eq!(pool.pick(None, NOW, &[]).unwrap().id(), BackendId(2));
}

/// Regression: it was reported as healthy.
#[test]
fn a_backend_whose_checks_fail_is_failing_where_it_is_kept() {
    let pool = pool(2, Ejection::default());
    let fail = |id: u32| (0..3).fold(Checked::Same, |_, _| pool.checked(BackendId(id), false));
    let state = |at: usize| pool.report(NOW)[at].state();
    assert_eq!([fail(0), fail(1)], [Checked::Down, Checked::Spared]);
    assert_eq!([state(0), state(1)], [BackendState::Down, BackendState::Failing]);
    // Regression: the recovery was no change, so nothing was logged.
    assert_eq!(pool.checked(BackendId(1), true), Checked::Recovered);
    assert_eq!(pool.checked(BackendId(1), true), Checked::Same);
    assert_eq!(state(1), BackendState::Healthy, "one that passes is no failure");
    assert_eq!(fail(1), Checked::Spared);
    assert_eq!(state(1), BackendState::Failing);
    // Once another is back, it is no longer spared.
    for _ in 0..2 {
        let _ = pool.checked(BackendId(0), true);
    }
    assert_eq!(pool.checked(BackendId(1), false), Checked::Down);
    assert_eq!([state(0), state(1)], [BackendState::Healthy, BackendState::Down]);
    for _ in 0..2 {
        let _ = pool.checked(BackendId(1), true);
    }
    assert_eq!(state(1), BackendState::Healthy);
    assert_eq!([fail(0), fail(1)], [Checked::Down, Checked::Spared]);
    pool.unchecked();
    assert_eq!(state(1), BackendState::Healthy, "nobody checks it any more");
}

#[test]
fn what_checks_said_holds_no_longer_than_there_are_checks() {
    let pool = pool(3, Ejection::default());
    let _: Vec<_> = (0..3).map(|_| pool.checked(BackendId(1), false)).collect();
    assert_eq!(out(&pool, NOW), [1]);
    pool.unchecked();
    assert_eq!(out(&pool, NOW), []);
    (0..2).for_each(|_| {
        assert_eq!(pool.checked(BackendId(1), false), Checked::Same, "it is as if never checked")
    });
}
