//! Tests of pools.

use super::*;
use crate::{AttemptOutcome, BackendReport, Ejection, Pick};
use proptest::prelude::*;

const NOW: Duration = Duration::from_secs(1000);

fn at(ms: u64) -> Duration {
    NOW + Duration::from_millis(ms)
}

fn backend(n: usize) -> Backend {
    Backend::new(format!("http://10.0.0.{n}:80").parse().unwrap())
}

fn pool(count: usize, algorithm: Algorithm) -> Pool {
    Pool::new("app", (0..count).map(backend).collect(), algorithm)
}

fn pick(pool: &Pool, now: Duration) -> Pick {
    pool.pick(None, now, &[]).unwrap()
}

/// Makes `count` connections to `id` fail.
fn fail(pool: &Pool, id: u32, count: usize, now: Duration) {
    let others: Vec<_> =
        (0..pool.backends().len() as u32).filter(|&other| other != id).map(BackendId).collect();
    for _ in 0..count {
        let pick = pool.pick(None, now, &others).unwrap();
        pick.finish(AttemptOutcome::ConnectFailed, now);
    }
}

fn ejected(pool: &Pool, now: Duration) -> Vec<Option<u64>> {
    let millis = |report: BackendReport| report.ejected_for.map(|left| left.as_millis() as u64);
    pool.report(now).into_iter().map(millis).collect()
}

#[test]
fn round_robin_takes_each_in_turn_and_skips_the_excluded() {
    let pool = pool(3, Algorithm::RoundRobin);
    let ids: Vec<_> = (0..6).map(|_| pick(&pool, NOW).id().0).collect();
    assert_eq!(ids, [0, 1, 2, 0, 1, 2]);
    let pick = pool.pick(None, NOW, &[BackendId(0), BackendId(1)]).unwrap();
    assert_eq!(pick.id(), BackendId(2));
}

#[test]
fn least_requests_keeps_two_backends_level() {
    let pool = pool(2, Algorithm::LeastRequests);
    let picks: Vec<_> = (0..100).map(|_| pick(&pool, NOW)).collect();
    assert_eq!(pool.backends()[0].in_flight(), 50);
    assert_eq!(pool.backends()[1].in_flight(), 50);
    drop(picks);
    assert_eq!(pool.backends()[0].in_flight() + pool.backends()[1].in_flight(), 0);
}

#[test]
fn random_choices_are_spread_and_repeat_with_the_seed() {
    let draw = |seed| {
        let backends = (0..4).map(backend).collect();
        let pool = Pool::new("app", backends, Settings { seed, ..Algorithm::Random.into() });
        (0..4000).map(|_| pick(&pool, NOW).id().0).collect::<Vec<_>>()
    };
    let ids = draw(7);
    assert_eq!(ids, draw(7));
    assert_ne!(ids, draw(8));
    for id in 0..4 {
        let count = ids.iter().filter(|&&other| other == id).count();
        assert!((900..1100).contains(&count), "{id}: {count}");
    }
}

#[test]
fn what_is_missing_has_a_name() {
    let empty = pool(0, Algorithm::LeastRequests);
    assert_eq!(empty.pick(None, NOW, &[]).unwrap_err(), NoBackend::Empty);
    for algorithm in Algorithm::ALL {
        let backends = vec![backend(1).max_in_flight(2), backend(2).max_in_flight(1)];
        let pool = Pool::new("app", backends, algorithm);
        let picks: Vec<_> = (0..3).map(|_| pick(&pool, NOW)).collect();
        assert_eq!(pool.pick(None, NOW, &[]).unwrap_err(), NoBackend::AllFull);
        let both = [BackendId(0), BackendId(1)];
        assert_eq!(pool.pick(None, NOW, &both).unwrap_err(), NoBackend::AllTried);
        drop(picks);
        assert!(pool.pick(None, NOW, &[]).is_ok());
    }
}

#[test]
fn failures_in_a_row_eject_and_last_twice_as_long_each_time() {
    let pool = pool(3, Algorithm::LeastRequests);
    fail(&pool, 1, 2, NOW);
    assert_eq!(ejected(&pool, NOW), [None, None, None]);
    fail(&pool, 1, 1, NOW);
    assert_eq!(ejected(&pool, NOW), [None, Some(1000), None]);
    assert!((0..50).all(|_| pick(&pool, NOW).id() != BackendId(1)));

    let mut now = at(1000);
    for next in [2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000] {
        fail(&pool, 1, 1, now);
        assert_eq!(ejected(&pool, now), [None, Some(next), None]);
        now += Duration::from_millis(next);
    }
}

#[test]
fn an_answer_between_failures_forgives_them() {
    let pool = pool(2, Algorithm::LeastRequests);
    for _ in 0..5 {
        fail(&pool, 0, 2, NOW);
        pool.pick(None, NOW, &[BackendId(1)]).unwrap().finish(AttemptOutcome::Answered, NOW);
    }
    assert_eq!(ejected(&pool, NOW), [None, None]);
}

#[test]
fn one_request_at_a_time_tries_a_backend_whose_ejection_is_over() {
    let pool = pool(2, Algorithm::RoundRobin);
    fail(&pool, 0, 3, NOW);
    let now = at(1000);
    let first: Vec<_> = (0..10).map(|_| pick(&pool, now)).collect();
    assert_eq!(first.iter().filter(|pick| pick.id() == BackendId(0)).count(), 1);
    // The trial has no result: after the next back-off there is another.
    let second: Vec<_> = (0..10).map(|_| pick(&pool, at(3000))).collect();
    assert_eq!(second.iter().filter(|pick| pick.id() == BackendId(0)).count(), 1);
    for pick in second {
        pick.finish(AttemptOutcome::Answered, at(3001));
    }
    let third: Vec<_> = (0..10).map(|_| pick(&pool, at(3001))).collect();
    assert_eq!(third.iter().filter(|pick| pick.id() == BackendId(0)).count(), 5);
}

#[test]
fn failures_under_way_at_an_ejection_do_not_prolong_it() {
    let pool = pool(2, Algorithm::RoundRobin);
    let only = |now| pool.pick(None, now, &[BackendId(1)]).unwrap();
    let picks: Vec<_> = (0..50).map(|_| only(NOW)).collect();
    for pick in picks {
        pick.finish(AttemptOutcome::ConnectFailed, at(500));
    }
    assert_eq!(ejected(&pool, at(500)), [Some(1000), None]);
}

#[test]
fn the_last_backend_is_never_ejected_and_ejected_ones_are_a_last_resort() {
    let pool = pool(3, Algorithm::LeastRequests);
    for id in 0..3 {
        fail(&pool, id, 5, NOW);
    }
    assert_eq!(ejected(&pool, NOW), [Some(1000), Some(1000), None]);
    let first = pick(&pool, NOW);
    assert_eq!(first.id(), BackendId(2));
    // The one in service was tried. An ejected one may be back, and trying it costs less than an error.
    let second = pool.pick(None, NOW, &[first.id()]).unwrap();
    second.finish(AttemptOutcome::Answered, NOW);
    assert_eq!(ejected(&pool, NOW).iter().flatten().count(), 1);
    first.finish(AttemptOutcome::ConnectFailed, NOW);
    assert_eq!(ejected(&pool, NOW)[2], Some(1000));
}

#[test]
fn no_more_than_the_share_is_ejected() {
    let half = Ejection { max_percent: 50, ..Ejection::default() };
    let settings = Settings { ejection: half, ..Algorithm::Random.into() };
    let pool = Pool::new("app", (0..5).map(backend).collect(), settings);
    for id in 0..5 {
        fail(&pool, id, 3, NOW);
    }
    assert_eq!(ejected(&pool, NOW), [Some(1000), Some(1000), None, None, None]);
}

#[test]
fn a_reload_keeps_load_and_health_by_address() {
    let before = pool(2, Algorithm::LeastRequests);
    fail(&before, 1, 3, NOW);
    let held = pick(&before, NOW);
    assert_eq!(held.id(), BackendId(0));
    let after = before.succeeded_by(vec![backend(1), backend(0), backend(9)], Algorithm::Random);
    assert_eq!(ejected(&after, NOW), [Some(1000), None, None]);
    assert_eq!(after.backends()[1].in_flight(), 1);
    drop(held);
    assert_eq!(after.backends()[1].in_flight(), 0);
}

#[test]
fn cores_share_a_pool_without_exceeding_its_limits() {
    let backends = (0..3).map(|n| backend(n).max_in_flight(5)).collect();
    let pool = Pool::new("app", backends, Algorithm::LeastRequests);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let pool = &pool;
            scope.spawn(move || {
                let mut held = Vec::new();
                for round in 0..5000_u64 {
                    if let Ok(pick) = pool.pick(None, at(round), &[]) {
                        assert!(pick.backend().in_flight() <= 5);
                        held.push(pick);
                    }
                    if held.len() > 4
                        && let Some(pick) = held.pop()
                    {
                        let outcome = if (round + thread) % 3 == 0 {
                            AttemptOutcome::ConnectFailed
                        } else {
                            AttemptOutcome::Answered
                        };
                        pick.finish(outcome, at(round));
                    }
                }
            });
        }
    });
    assert!(pool.backends().iter().all(|backend| backend.in_flight() == 0));
}

proptest! {
    #[test]
    fn whatever_happens_one_stays_in_service_and_no_place_is_lost(
        count in 1_usize..6,
        algorithm in 0..Algorithm::ALL.len(),
        limit in 1_u32..4,
        steps in prop::collection::vec((0_u8..6, any::<u8>(), 0_u64..3000), 0..200),
    ) {
        let backends = (0..count).map(|n| backend(n).max_in_flight(limit)).collect();
        let pool = Pool::new("app", backends, Algorithm::ALL[algorithm]);
        let mut now = NOW;
        let mut held: Vec<Pick> = Vec::new();
        for (step, which, wait) in steps {
            match step {
                0 | 1 => match pool.pick(None, now, &[]) {
                    Ok(pick) => held.push(pick),
                    Err(why) => {
                        prop_assert_eq!(why, NoBackend::AllFull);
                        let full = |at: usize| pool.backends()[at].in_flight() == limit;
                        let report = pool.report(now);
                        prop_assert!((0..count).all(|at| full(at) || report[at].ejected_for.is_some()));
                    }
                },
                2 => now += Duration::from_millis(wait),
                _ if held.is_empty() => {}
                _ => {
                    let pick = held.swap_remove(which as usize % held.len());
                    let outcome = [AttemptOutcome::ConnectFailed, AttemptOutcome::Answered, AttemptOutcome::Aborted][step as usize - 3];
                    pick.finish(outcome, now);
                }
            }
            prop_assert!(pool.report(now).iter().any(|report| report.ejected_for.is_none()));
            let in_flight: u32 = pool.backends().iter().map(Backend::in_flight).sum();
            prop_assert_eq!(in_flight as usize, held.len());
        }
    }
}
