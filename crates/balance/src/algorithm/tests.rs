//! Tests of the algorithms, through the pool.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use crate::{Algorithm, AttemptOutcome, Backend, BackendId, NoBackend, Pick, Pool, Settings};

const NOW: Duration = Duration::from_secs(1000);

fn at(ms: u64) -> Duration {
    NOW + Duration::from_millis(ms)
}

fn backend(n: usize) -> Backend {
    Backend::new(format!("http://10.0.{}.{}:80", n / 200, n % 200).parse().unwrap())
}

fn pool(weights: &[u32], algorithm: Algorithm) -> Pool {
    let backends = weights.iter().enumerate().map(|(n, &weight)| backend(n).weighing(weight)).collect();
    Pool::new("app", backends, algorithm)
}

fn class(n: usize) -> Vec<u8> {
    format!("site-{n}.example").into_bytes()
}

fn pick(pool: &Pool, class: &[u8]) -> Pick {
    pool.pick(Some(class), NOW, &[]).unwrap()
}

/// How many of `count` requests, each of its own class and ended at once, go to each backend.
fn shares(pool: &Pool, count: usize) -> Vec<usize> {
    let mut shares = vec![0; pool.backends().len()];
    for n in 0..count {
        let id = pick(pool, &class(n)).id();
        shares[pool.ids().iter().position(|&other| other == id).unwrap()] += 1;
    }
    shares
}

/// Regression: if two backends wanted one place of Maglev's table in the same turn, the first in the list got
/// it.
#[test]
fn balancers_that_name_backends_in_another_order_find_the_same_homes() {
    for weights in [&[1; 5][..], &[1, 2, 3, 4, 5, 6, 7]] {
        for algorithm in [Algorithm::ConsistentHash, Algorithm::Maglev] {
            let backends = |turned: bool| {
                let mut named: Vec<Backend> =
                    weights.iter().enumerate().map(|(n, &weight)| backend(n).weighing(weight)).collect();
                if turned {
                    named.reverse();
                }
                Pool::new("app", named, algorithm)
            };
            let (one, other) = (backends(false), backends(true));
            for n in 0..5000 {
                let home = |pool: &Pool| pick(pool, &class(n)).backend().address().to_string();
                assert_eq!(home(&one), home(&other), "{algorithm}: class {n}");
            }
        }
    }
}

#[test]
fn names_are_read_and_written_alike() {
    for algorithm in Algorithm::ALL {
        assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
    }
    assert!("best".parse::<Algorithm>().is_err());
}

#[test]
fn a_backend_of_twice_the_weight_gets_twice_the_requests() {
    for algorithm in [Algorithm::RoundRobin, Algorithm::Random, Algorithm::Maglev] {
        let shares = shares(&pool(&[1, 2, 1], algorithm), 8000);
        assert!((3800..4200).contains(&shares[1]), "{algorithm}: {shares:?}");
    }
    // Points on a ring are less even.
    let ring = shares(&pool(&[1, 2, 1], Algorithm::ConsistentHash), 8000);
    assert!((3200..4800).contains(&ring[1]), "{ring:?}");
    for algorithm in [Algorithm::LeastRequests, Algorithm::PeakEwma] {
        let pool = pool(&[1, 2, 1], algorithm);
        let _held: Vec<_> = (0..4000).map(|n| pick(&pool, &class(n))).collect();
        let heavy = pool.backends()[1].in_flight();
        assert!((1900..2100).contains(&heavy), "{algorithm}: {heavy}");
    }
}

/// Regression: in an idle pool, the heaviest got all requests.
#[test]
fn weights_count_for_least_requests_where_little_is_going_on() {
    for clients in [1, 2, 4] {
        let pool = pool(&[2, 1, 1], Algorithm::LeastRequests);
        let mut held = std::collections::VecDeque::new();
        let mut shares = [0_u32; 3];
        for n in 0..8000 {
            if held.len() == clients {
                held.pop_front();
            }
            let picked = pick(&pool, &class(n));
            shares[picked.id().0 as usize] += 1;
            held.push_back(picked);
        }
        assert!((3600..5600).contains(&shares[0]), "{clients} clients: {shares:?}");
        assert!(shares[1].abs_diff(shares[2]) < 500, "{clients} clients: {shares:?}");
    }
}

/// Regression: all backends of a weight above 10 had the same number of points.
#[test]
fn great_weights_count_on_the_ring() {
    for (heavy, light) in [(10, 5), (20, 10), (1000, 500)] {
        let shares = shares(&pool(&[heavy, light], Algorithm::ConsistentHash), 9000);
        assert!((5200..6800).contains(&shares[0]), "{heavy} to {light}: {shares:?}");
    }
}

#[test]
fn turns_of_a_heavy_backend_are_spread_over_the_round() {
    let pool = pool(&[10, 30, 10], Algorithm::RoundRobin);
    let ids: Vec<_> = (0..10).map(|n| pick(&pool, &class(n)).id().0).collect();
    assert_eq!(ids[..5], ids[5..]);
    assert!(ids.windows(3).all(|three| three != [1, 1, 1]), "{ids:?}");
}

#[test]
fn what_a_backend_out_of_service_does_not_get_is_spread_over_all_others() {
    let pool = pool(&[1, 1, 2, 1], Algorithm::RoundRobin);
    pool.drain(pool.ids()[1], true);
    assert_eq!(shares(&pool, 800), [200, 0, 400, 200]);
}

#[test]
fn the_first_backend_gets_all_as_long_as_it_can() {
    let backends = vec![backend(0).max_in_flight(2), backend(1)];
    let pool = Pool::new("app", backends, Algorithm::Fallback);
    let held: Vec<_> = (0..4).map(|n| pick(&pool, &class(n))).collect();
    assert_eq!(held.iter().map(|pick| pick.id().0).collect::<Vec<_>>(), [0, 0, 1, 1]);
    drop(held);
    assert_eq!(pick(&pool, b"a").id().0, 0);
}

#[test]
fn a_slow_backend_is_avoided_at_once_and_asked_again_later() {
    let pool = pool(&[1, 1], Algorithm::PeakEwma);
    let answer = |id: u32, from: u64, millis: u64| {
        let pick = pool.pick(None, at(from), &[BackendId(1 - id)]).unwrap();
        pick.finish(AttemptOutcome::Answered, at(from + millis));
    };
    (0..10).for_each(|_| (0..2).for_each(|id| answer(id, 0, 5)));
    answer(0, 0, 1000);
    let mine = |now: u64| (0..100).filter(|_| pool.pick(None, at(now), &[]).unwrap().id().0 == 0).count();
    assert_eq!(mine(1000), 0);
    assert!(mine(200_000) > 10);
}

#[test]
fn a_class_keeps_its_backend_when_others_go() {
    for algorithm in [Algorithm::ConsistentHash, Algorithm::Maglev] {
        let before = Pool::new("app", (0..10).map(backend).collect(), algorithm);
        let after = before.succeeded_by((0..9).map(backend).collect(), algorithm);
        let moved = (0..2000)
            .filter(|&n| {
                let was = pick(&before, &class(n)).id();
                let is = pick(&after, &class(n)).id();
                was.0 != 9 && was != is
            })
            .count();
        assert!(moved < 150, "{algorithm}: {moved}");
    }
}

#[test]
fn no_backend_is_loaded_above_its_bound() {
    for factor in [1.0, 1.25, 2.0] {
        let settings = Settings { load_factor: factor, ..Algorithm::ConsistentHash.into() };
        let pool = Pool::new("app", (0..10).map(backend).collect(), settings);
        let mut held = Vec::new();
        for n in 0..500 {
            // Half of all requests are of one class.
            held.push(pick(&pool, &class(if n % 2 == 0 { 0 } else { n })));
            let bound = (factor * held.len() as f64 / 10.0).ceil() as u32;
            assert!(pool.backends().iter().all(|backend| backend.in_flight() <= bound), "{factor}");
        }
    }
}

#[test]
fn a_session_sticks_to_its_backend_while_that_serves() {
    let pool = pool(&[1, 1, 1], Algorithm::LeastRequests);
    let id = pool.with_key(pool.backends()[2].key()).unwrap();
    assert_eq!(pool.with_key(7), None);
    assert!((0..20).all(|_| pool.pick_sticky(id, None, NOW).unwrap().id() == id));
    pool.drain(id, true);
    assert!(pool.pick_sticky(id, None, NOW).is_some());
    assert!((0..50).all(|n| pick(&pool, &class(n)).id() != id));
    (0..3).for_each(|_| pool.pick_sticky(id, None, NOW).unwrap().finish(AttemptOutcome::ConnectFailed, NOW));
    assert!(pool.pick_sticky(id, None, NOW).is_none());
}

#[test]
fn a_draining_pool_says_so() {
    let pool = pool(&[1, 1], Algorithm::LeastRequests);
    pool.ids().iter().for_each(|&id| assert!(pool.drain(id, true)));
    assert_eq!(pool.pick(None, NOW, &[]).unwrap_err(), NoBackend::NoneServes);
    assert!(!pool.drain(BackendId(9), true));
    pool.drain(pool.ids()[0], false);
    assert_eq!(pick(&pool, b"").id(), pool.ids()[0]);
}

#[test]
fn a_backend_that_joins_starts_slowly_where_that_is_asked_for() {
    for algorithm in [Algorithm::Random, Algorithm::LeastRequests, Algorithm::PeakEwma, Algorithm::RoundRobin]
    {
        let settings = Settings { slow_start: Duration::from_secs(10), ..algorithm.into() };
        let before = Pool::new("app", (0..3).map(backend).collect(), settings.clone());
        let pool = before.succeeded_by((0..4).map(backend).collect(), settings);
        let share = |now: Duration| {
            let held: Vec<_> = (0..4000).map(|_| pool.pick(None, now, &[]).unwrap()).collect();
            held.iter().filter(|pick| pick.id().0 == 3).count()
        };
        let (first, half, whole) = (share(NOW), share(at(5000)), share(at(10_000)));
        assert!(
            first < 200 && (300..750).contains(&half) && whole > 900,
            "{algorithm}: {first} {half} {whole}"
        );
    }
}

proptest! {
    #[test]
    fn whatever_the_weights_every_backend_can_be_reached_and_the_excluded_is_not(
        weights in prop::collection::vec(1_u32..50, 1..6),
        algorithm in 0..Algorithm::ALL.len(),
        classes in prop::collection::vec(any::<Vec<u8>>(), 1..20),
    ) {
        let pool = pool(&weights, Algorithm::ALL[algorithm]);
        let mut by_backend: BTreeMap<BackendId, u32> = BTreeMap::new();
        for class in &classes {
            let first = pool.pick(Some(class), NOW, &[]).unwrap();
            *by_backend.entry(first.id()).or_default() += 1;
            let second = pool.pick(Some(class), NOW, &[first.id()]);
            prop_assert_eq!(second.is_ok(), weights.len() > 1);
            prop_assert!(second.is_ok_and(|second| second.id() != first.id()) || weights.len() == 1);
        }
        prop_assert!(by_backend.keys().all(|id| pool.ids().contains(id)));
    }
}
