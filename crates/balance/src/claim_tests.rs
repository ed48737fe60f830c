//! Tests of requests that wait for a place at their best backend.

use std::sync::Arc;
use std::task::{Poll, Wake};
use std::time::Duration;

use proptest::prelude::*;

use super::tests::{NOW, Request};
use super::*;
use crate::{Algorithm, AttemptOutcome, Backend, Checked, NoBackend, Pick, Pool, Settings};

fn at(ms: u64) -> Duration {
    NOW + Duration::from_millis(ms)
}

fn backends(count: usize, limit: u32) -> Vec<Backend> {
    let address = |n: usize| format!("unix:/workers/{n}").parse().unwrap();
    (0..count).map(|n| Backend::new(address(n)).max_in_flight(limit)).collect()
}

/// A pool in which each class has a home, and for each backend `count` classes that have it as their home.
fn hashed(count: usize, limit: u32) -> (Pool, Vec<Vec<u8>>) {
    let pool = Pool::new("app", backends(count, limit), Algorithm::Maglev);
    let mut classes = vec![Vec::new(); count];
    for n in 0..1000 {
        let class = format!("class-{n}").into_bytes();
        let home = pool.pick(Some(&class), NOW, &[]).unwrap().id();
        classes[home.0 as usize] = class;
    }
    assert!(classes.iter().all(|class| !class.is_empty()));
    (pool, classes)
}

fn in_hand(pool: &Pool) -> Vec<u32> {
    pool.backends().iter().map(Backend::in_hand).collect()
}

#[test]
fn a_place_goes_to_the_first_whose_class_is_at_home_there() {
    let (pool, classes) = hashed(2, 1);
    let held: Vec<_> = classes.iter().map(|class| Request::new(&pool, class).served()).collect();
    let mut ones = [(); 2].map(|()| Request::waiting(&pool, &classes[1]));
    let mut zeros = [(); 2].map(|()| Request::waiting(&pool, &classes[0]));
    assert_eq!(in_hand(&pool), [3, 3]);
    let mut held = held.into_iter();
    drop(held.next());
    let zero = zeros[0].served();
    assert_eq!(zero.id(), BackendId(0));
    assert!(ones.iter().chain(&zeros[1..]).all(|request| !request.is_woken()));
    drop(held.next());
    assert_eq!(ones[0].served().id(), BackendId(1));
    assert_eq!(ones[1].served().id(), BackendId(1));
    drop(zero);
    assert_eq!(zeros[1].served().id(), BackendId(0));
    assert_eq!(in_hand(&pool), [0, 0]);
}

#[test]
fn a_full_backend_is_waited_for_while_another_has_places() {
    let (pool, classes) = hashed(2, 1);
    let held = pool.pick_patiently(Some(&classes[0]), NOW, &[]).unwrap();
    assert_eq!(pool.pick_patiently(Some(&classes[0]), NOW, &[]).unwrap_err(), NoBackend::AllFull);
    let mut waiting = Request::waiting(&pool, &classes[0]);
    // Others are not held up, and a request that does not wait takes any place.
    drop(Request::new(&pool, &classes[1]).served());
    assert_eq!(pool.pick(Some(&classes[0]), NOW, &[]).unwrap().id(), BackendId(1));
    assert!(pool.pick_sticky(BackendId(1), Some(&classes[0]), NOW).is_some());
    assert!(pool.pick_sticky(BackendId(0), Some(&classes[0]), NOW).is_none());
    assert_eq!(pool.queue_report().waiting, 1);
    drop(held);
    // No other request overtakes it.
    assert!(pool.pick_sticky(BackendId(0), Some(&classes[0]), NOW).is_none());
    assert_eq!(waiting.served().id(), BackendId(0));
}

#[test]
fn one_that_gives_up_waiting_leaves_nothing_behind() {
    let (pool, classes) = hashed(2, 1);
    let held = Request::new(&pool, &classes[0]).served();
    let first = Request::waiting(&pool, &classes[0]);
    let mut second = Request::waiting(&pool, &classes[0]);
    assert_eq!(in_hand(&pool), [3, 0]);
    drop(first);
    assert_eq!(in_hand(&pool), [2, 0]);
    drop(held);
    drop(second.served());
    assert_eq!(in_hand(&pool), vec![0, 0]);
    assert_eq!(pool.queue_report().waiting, 0);
}

#[test]
fn a_request_without_a_class_takes_any_place_in_its_turn() {
    let (pool, classes) = hashed(2, 1);
    let mut held: Vec<_> = classes.iter().map(|class| Request::new(&pool, class).served()).collect();
    let mut zero = Request::waiting(&pool, &classes[0]);
    let mut any = Request::waiting(&pool, b"");
    let mut late = Request::waiting(&pool, &classes[1]);
    drop(held.remove(0));
    assert!(zero.is_woken() && !any.is_woken());
    held.push(zero.served());
    drop(held.remove(0));
    assert_eq!(any.served().id(), BackendId(1));
    assert_eq!(late.served().id(), BackendId(1));
}

#[test]
fn after_its_patience_a_request_takes_any_place() {
    let (pool, classes) = hashed(2, 1);
    let patience = pool.settings().patience;
    let _held = Request::new(&pool, &classes[0]).served();
    let mut waiting = Request::waiting(&pool, &classes[0]);
    assert!(waiting.poll(NOW + patience - Duration::from_millis(1)).is_pending());
    assert!(matches!(waiting.poll(NOW + patience), Poll::Ready(Ok(pick)) if pick.id() == BackendId(1)));
    assert_eq!(in_hand(&pool), [1, 0]);
}

#[test]
fn a_request_is_not_passed_over_for_ever() {
    let (pool, classes) = hashed(4, 1);
    let _held = Request::new(&pool, &classes[0]).served();
    let mut waiting = Request::waiting(&pool, &classes[0]);
    let mut passed = 0;
    while !waiting.is_woken() {
        drop(Request::new(&pool, &classes[1]).served());
        passed += 1;
    }
    // One waits, and the one being served is in the queue for a moment.
    let most = 4 * PASSED_OVER_PER_BACKEND + 2 * PASSED_OVER_PER_WAITING;
    assert!((4 * PASSED_OVER_PER_BACKEND..=most).contains(&passed), "{passed}");
    assert_ne!(waiting.served().id(), BackendId(0));
}

#[test]
fn a_backend_that_goes_out_of_service_is_not_waited_for() {
    let (pool, classes) = hashed(2, 2);
    let mut held: Vec<_> = (0..2).map(|_| Request::new(&pool, &classes[0]).served()).collect();
    let mut waiting = [(); 3].map(|()| Request::waiting(&pool, &classes[0]));
    // A place that is given back earlier goes to the first.
    held.remove(0).finish(AttemptOutcome::Broken, NOW);
    held.push(waiting[0].served());
    assert_eq!(held[1].id(), BackendId(0));
    pool.drain(BackendId(0), true);
    held.remove(0).finish(AttemptOutcome::Answered, NOW);
    assert_eq!(waiting[1..].iter_mut().map(|request| request.served().id().0).collect::<Vec<_>>(), [1, 1]);
    // And from the beginning.
    assert_eq!(Request::new(&pool, &classes[0]).served().id(), BackendId(1));
}

#[test]
fn those_that_wait_for_a_backend_choose_anew_when_it_drains_or_fails_its_checks() {
    let out: [fn(&Pool, BackendId); 2] = [
        |pool, id| assert!(pool.drain(id, true)),
        |pool, id| assert_eq!([(); 3].map(|()| pool.checked(id, false))[2], Checked::Down),
    ];
    for out in out {
        let (pool, classes) = hashed(3, 1);
        let _held = Request::new(&pool, &classes[0]).served();
        let mut waiting = [(); 2].map(|()| Request::waiting(&pool, &classes[0]));
        out(&pool, BackendId(0));
        let first = waiting[0].served();
        assert_ne!(first.id(), BackendId(0));
        // The class has another home now.
        assert!(!waiting[1].is_woken());
        let home = first.id();
        drop(first);
        assert_eq!(waiting[1].served().id(), home);
    }
}

/// A pool without classes, and its first backend, which is full and has a waiter whose session sticks to it.
fn stuck() -> (Pool, Pick, Request) {
    let pool = Pool::new("app", backends(2, 1), Algorithm::LeastRequests);
    let held = pool.pick_sticky(BackendId(0), None, NOW).unwrap();
    let mut waiting = Request::sticking(&pool, BackendId(0));
    assert!(waiting.poll(NOW).is_pending());
    (pool, held, waiting)
}

#[test]
fn a_session_waits_for_its_backend_while_another_has_places() {
    let (pool, held, mut waiting) = stuck();
    drop(pool.pick(None, NOW, &[]).unwrap());
    assert!(!waiting.is_woken());
    drop(held);
    assert!(pool.pick_sticky(BackendId(0), None, NOW).is_none(), "nobody overtakes it");
    assert_eq!(waiting.served().id(), BackendId(0));
    assert_eq!(in_hand(&pool), [0, 0]);
}

#[test]
fn a_session_waits_for_a_backend_that_drains_and_not_for_one_that_fails_its_checks() {
    let (pool, held, mut waiting) = stuck();
    assert!(pool.drain(BackendId(0), true));
    assert!(!waiting.is_woken());
    drop(held);
    assert_eq!(waiting.served().id(), BackendId(0));

    let (pool, _held, mut waiting) = stuck();
    let checked = [(); 3].map(|()| pool.checked(BackendId(0), false));
    assert_eq!(checked[2], Checked::Down);
    assert_eq!(waiting.served().id(), BackendId(1));
}

#[test]
fn after_its_patience_a_session_takes_any_place() {
    let (pool, _held, mut waiting) = stuck();
    let patience = pool.settings().patience;
    assert!(waiting.poll(NOW + patience - Duration::from_millis(1)).is_pending());
    assert!(matches!(waiting.poll(NOW + patience), Poll::Ready(Ok(pick)) if pick.id() == BackendId(1)));
}

#[test]
fn the_last_backend_is_waited_for_though_it_fails_its_checks() {
    let (pool, classes) = hashed(1, 1);
    let held = Request::new(&pool, &classes[0]).served();
    let mut waiting = Request::waiting(&pool, &classes[0]);
    let checked = [(); 3].map(|()| pool.checked(BackendId(0), false));
    assert_eq!(checked[2], Checked::Spared);
    drop(held);
    drop(waiting.served());
}

#[test]
fn a_backend_that_is_tried_meanwhile_is_not_waited_for() {
    let (pool, classes) = hashed(2, 1);
    let held: Vec<_> = classes.iter().map(|class| Request::new(&pool, class).served()).collect();
    let mut waiting = Request::waiting(&pool, &classes[0]);
    assert!(waiting.poll_but(NOW, &[BackendId(0)]).is_pending());
    assert_eq!(in_hand(&pool), [1, 2]);
    drop(held);
    assert!(
        matches!(waiting.poll_but(NOW, &[BackendId(0)]), Poll::Ready(Ok(pick)) if pick.id() == BackendId(1))
    );
}

#[test]
fn after_a_reload_those_that_wait_choose_anew() {
    let (before, classes) = hashed(2, 1);
    let held: Vec<_> = classes.iter().map(|class| Request::new(&before, class).served()).collect();
    let mut waiting = [(); 2].map(|()| Request::waiting(&before, &classes[0]));
    let wider = backends(3, 1).into_iter().skip(1).collect();
    let after = before.succeeded_by(wider, Algorithm::LeastRequests);
    assert!(waiting.iter().all(Request::is_woken), "all ask again");
    let first = waiting[0].served();
    assert_eq!(first.backend().address(), after.backends()[1].address());
    assert!(waiting[1].poll(NOW).is_pending());
    drop(held);
    assert_eq!(waiting[1].served().backend().address(), after.backends()[0].address());
    assert_eq!(before.backends()[0].in_hand(), 0);
}

#[test]
fn where_none_may_wait_any_place_is_taken() {
    let (hashed, classes) = hashed(2, 1);
    let settings = Settings { queue_limit: 0, ..Algorithm::Maglev.into() };
    let pool = Pool::new("app", hashed.backends().to_vec(), settings);
    let _held: Vec<_> = (0..2).map(|_| pool.pick_patiently(Some(&classes[0]), NOW, &[]).unwrap()).collect();
    assert_eq!(pool.pick_patiently(Some(&classes[0]), NOW, &[]).unwrap_err(), NoBackend::AllFull);
    assert!(matches!(Request::new(&pool, &classes[0]).poll(NOW), Poll::Ready(Err(NoBackend::AllFull))));
}

#[test]
fn where_no_more_may_wait_any_place_is_taken() {
    let (hashed, classes) = hashed(2, 1);
    let settings = Settings { queue_limit: 1, ..Algorithm::Maglev.into() };
    let pool = Pool::new("app", hashed.backends().to_vec(), settings);
    let _held = Request::new(&pool, &classes[0]).served();
    let _waiting = Request::waiting(&pool, &classes[0]);
    let other = Request::new(&pool, &classes[0]).served();
    assert_eq!(other.id(), BackendId(1));
    assert!(matches!(Request::new(&pool, &classes[0]).poll(NOW), Poll::Ready(Err(NoBackend::QueueFull))));
    assert_eq!(pool.queue_report().refused, 1);
}

/// A pool of eight workers that choose by résumé; the first `workers` know class `a`.
fn skilled(workers: u32) -> Pool {
    let pool = Pool::new("app", backends(8, 1), Algorithm::Resume);
    for worker in 0..workers {
        let skills = [(&b"a"[..], 100.0)];
        pool.resumes().unwrap().whole(BackendId(worker), 0, &format!("i{worker}"), 1, skills).unwrap();
    }
    pool
}

#[test]
fn a_skilled_worker_is_waited_for_until_too_much_waits_for_it() {
    let pool = skilled(1);
    let mut held = vec![Request::new(&pool, b"a").served()];
    assert_eq!(held[0].id(), BackendId(0));
    let mut waiting = Vec::new();
    // Each makes the wait longer for the next, until a worker that has to load the data is better.
    while held.len() < 2 {
        let mut request = Request::new(&pool, b"a");
        match request.poll(NOW) {
            Poll::Ready(pick) => held.push(pick.unwrap()),
            Poll::Pending => waiting.push(request),
        }
        assert!(waiting.len() < 100);
    }
    assert_ne!(held[1].id(), BackendId(0));
    assert!(!waiting.is_empty());
    drop(held);
    for mut request in waiting {
        assert_eq!(request.served().id(), BackendId(0));
    }
}

#[test]
fn of_two_that_are_as_good_the_one_with_a_place_is_taken() {
    let pool = skilled(2);
    let mut first = [(); 2].map(|()| Request::new(&pool, b"a").served());
    first.sort_by_key(Pick::id);
    assert_eq!([first[0].id(), first[1].id()], [BackendId(0), BackendId(1)]);
}

#[test]
fn what_waits_for_a_worker_is_in_its_backlog() {
    let pool = skilled(1);
    let held = Request::new(&pool, b"a").served();
    let waiting: Vec<_> = (0..9).map(|_| Request::waiting(&pool, b"a")).collect();
    let report = &pool.report(NOW)[0];
    assert_eq!(report.in_flight, 1);
    assert!(report.mean_backlog > 2.0, "{report:?}");
    assert_eq!(pool.inner().load().in_hand(), 10);
    drop((waiting, held));
    assert_eq!(pool.inner().load().in_hand(), 0);
}

#[test]
fn cores_wait_for_their_own_and_nothing_is_lost() {
    use std::thread;
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Unpark>) {
            self.0.unpark();
        }
    }
    for algorithm in [Algorithm::Resume, Algorithm::ConsistentHash, Algorithm::Maglev] {
        let first = Pool::new("app", backends(3, 1), algorithm);
        let current = Mutex::new(first.clone());
        thread::scope(|scope| {
            for core in 0..6_u64 {
                let current = &current;
                scope.spawn(move || {
                    let waker = Waker::from(Arc::new(Unpark(thread::current())));
                    let mut cx = Context::from_waker(&waker);
                    for round in 0..1000_u64 {
                        let pool = current.lock().unwrap().clone();
                        let mut ticket = pool.queue();
                        let class = [b"abcdefgh"[((round * 5 + core) % 8) as usize]];
                        let mut poll = || ticket.poll_pick(&mut cx, Some(&class), at(round), &[]);
                        if (round + core) % 7 == 0 {
                            drop(poll());
                            continue;
                        }
                        let pick = loop {
                            match poll() {
                                Poll::Ready(done) => break done.unwrap(),
                                Poll::Pending => {
                                    let began = std::time::Instant::now();
                                    thread::park_timeout(Duration::from_secs(30));
                                    assert!(
                                        began.elapsed() < Duration::from_secs(30),
                                        "nobody woke this one"
                                    );
                                }
                            }
                        };
                        assert!(pick.backend().in_flight() <= 1);
                        let ends = [
                            AttemptOutcome::Answered,
                            AttemptOutcome::Broken,
                            AttemptOutcome::ServerError,
                            AttemptOutcome::Aborted,
                        ];
                        pick.finish(ends[((round ^ core) % 4) as usize], at(round + 1));
                        if core == 0 && round % 100 == 0 {
                            let mut current = current.lock().unwrap();
                            *current = current.succeeded_by(current.backends().to_vec(), algorithm);
                        }
                    }
                });
            }
        });
        assert_eq!(first.queue_report().waiting, 0);
        assert_eq!(in_hand(&first), [0, 0, 0]);
        assert_eq!(current.into_inner().unwrap().inner().load().in_hand(), 0);
    }
}

proptest! {
    /// In any sequence of requests, no place is free while a waiter could take it, and no waiter is passed
    /// over more often than allowed.
    #[test]
    fn nobody_is_passed_over_for_long_and_no_place_is_free_that_is_waited_for(
        workers in 1_usize..4,
        limit in 1_u32..3,
        algorithm in prop::sample::select(vec![Algorithm::Resume, Algorithm::ConsistentHash, Algorithm::Maglev]),
        steps in prop::collection::vec((0_u8..8, any::<u8>()), 0..600),
    ) {
        let pool = Pool::new("app", backends(workers, limit), algorithm);
        let mut held: Vec<Pick> = Vec::new();
        // Each with the number of later ones served before it, and the largest number of waiters meanwhile.
        let mut line: Vec<(Request, u64, u64)> = Vec::new();
        let mut now = 0;
        for (step, which) in steps {
            let which = usize::from(which);
            now += 3;
            match step {
                0..=3 => {
                    let mut request = Request::new(&pool, &[b'a' + (which % 7) as u8]);
                    match request.poll(at(now)) {
                        Poll::Ready(done) => {
                            held.push(done.unwrap());
                            line.iter_mut().for_each(|(_, passed, _)| *passed += 1);
                        }
                        Poll::Pending => line.push((request, 0, 0)),
                    }
                }
                4 if !line.is_empty() => drop(line.remove(which % line.len())),
                5 if !line.is_empty() => {
                    let at_line = which % line.len();
                    prop_assert!(line[at_line].0.poll(at(now)).is_pending());
                }
                _ if !held.is_empty() => {
                    let pick = held.swap_remove(which % held.len());
                    pick.finish(if which % 5 == 0 { AttemptOutcome::Aborted } else { AttemptOutcome::Answered }, at(now));
                }
                _ => {}
            }
            let most = line.len() as u64 + 1;
            line.iter_mut().for_each(|(.., waited)| *waited = most.max(*waited));
            while let Some(served) = line.iter().position(|(request, ..)| request.is_woken()) {
                let (mut request, passed, waited) = line.remove(served);
                let most = workers as u64 * PASSED_OVER_PER_BACKEND + waited * PASSED_OVER_PER_WAITING;
                prop_assert!(passed <= most + 1, "{passed} of {most}");
                line[..served].iter_mut().for_each(|(_, passed, _)| *passed += 1);
                held.push(request.served());
            }
            prop_assert_eq!(pool.queue_report().waiting, line.len());
            let free: Vec<_> = pool.backends().iter().filter(|backend| backend.has_room()).collect();
            let claimed = free.iter().map(|backend| backend.in_hand() - backend.in_flight()).sum::<u32>();
            prop_assert_eq!(claimed, 0, "a place is free for which someone waits");
        }
        drop((held, line));
        prop_assert_eq!(in_hand(&pool), vec![0; workers]);
        if algorithm != Algorithm::Maglev {
            prop_assert_eq!(pool.inner().load().in_hand(), 0);
        }
    }
}
