//! Tests of backends that respond to nothing.

use std::time::Duration;

use crate::*;

const NOW: Duration = Duration::from_secs(1000);

/// The time limit for a backend to begin a response, in milliseconds.
const WITHIN: u64 = 3000;

fn at(ms: u64) -> Duration {
    NOW + Duration::from_millis(ms)
}

fn pool(count: usize, algorithm: Algorithm) -> Pool {
    let backend = |n: usize| Backend::new(format!("http://10.0.0.{n}:80").parse().unwrap());
    let answer_within = Duration::from_millis(WITHIN);
    Pool::new(
        "app",
        (0..count).map(backend).collect(),
        Settings { algorithm, answer_within, ..Settings::default() },
    )
}

/// A request to the backend `id`, sent at `now`.
fn send(pool: &Pool, id: u32, now: Duration) -> Pick {
    let others: Vec<_> = pool.ids().iter().copied().filter(|other| other.0 != id).collect();
    let mut pick = pool.pick(Some(b"a"), now, &others).unwrap();
    pick.awaits_answer();
    pick
}

fn answer(mut pick: Pick, now: Duration) {
    pick.responded(now);
    pick.finish(AttemptOutcome::Answered, now);
}

fn out(pool: &Pool, now: Duration) -> Vec<u32> {
    let report = pool.report(now).into_iter();
    report.filter(|report| report.ejected_for.is_some()).map(|report| report.id.0).collect()
}

#[test]
fn three_requests_in_a_row_without_an_answer_in_time_eject() {
    let pool = pool(2, Algorithm::LeastRequests);
    for n in 0..3 {
        assert_eq!(out(&pool, at(n * WITHIN)), []);
        send(&pool, 1, at(n * WITHIN)).finish(AttemptOutcome::Late, at((n + 1) * WITHIN));
    }
    assert_eq!(out(&pool, at(3 * WITHIN)), [1]);
}

#[test]
fn an_answer_between_them_starts_the_count_again() {
    let pool = pool(2, Algorithm::LeastRequests);
    for n in 0..10 {
        send(&pool, 1, at(n * 2 * WITHIN)).finish(AttemptOutcome::Late, at((n * 2 + 1) * WITHIN));
        if n % 2 == 1 {
            answer(send(&pool, 1, at((n * 2 + 1) * WITHIN)), at((n * 2 + 1) * WITHIN + 5));
        }
    }
    assert_eq!(out(&pool, at(20 * WITHIN)), []);
}

/// They are sent together and end together: there is no response between their ends, but there is one while
/// they wait.
#[test]
fn one_slow_page_among_quick_ones_ejects_nobody() {
    let pool = pool(2, Algorithm::LeastRequests);
    let slow: Vec<_> = (0..20).map(|_| send(&pool, 1, NOW)).collect();
    answer(send(&pool, 1, at(100)), at(110));
    slow.into_iter().for_each(|pick| pick.finish(AttemptOutcome::Late, at(WITHIN)));
    assert_eq!(out(&pool, at(WITHIN)), []);
    assert_eq!(pool.outlook(), Outlook::Answers);
}

/// Regression: a request without a response counted for nothing if it was sent within a millisecond of an
/// earlier response.
#[test]
fn an_answer_just_before_a_request_is_no_sign_of_life_after_it() {
    let pool = pool(1, Algorithm::LeastRequests);
    answer(send(&pool, 0, NOW), NOW);
    send(&pool, 0, NOW).finish(AttemptOutcome::Late, at(WITHIN));
    assert_eq!(pool.outlook(), Outlook::Silent);
}

#[test]
fn what_clients_gave_up_counts_once_its_time_is_over_unless_something_was_answered() {
    for answers in [false, true] {
        let pool = pool(2, Algorithm::LeastRequests);
        (0..3).for_each(|n| drop(send(&pool, 1, at(n))));
        pool.look_for_silence(at(WITHIN - 1));
        assert_eq!(out(&pool, at(WITHIN - 1)), []);
        if answers {
            answer(send(&pool, 1, at(1000)), at(1010));
        }
        pool.look_for_silence(at(WITHIN + 3));
        assert_eq!(out(&pool, at(WITHIN + 3)), if answers { vec![] } else { vec![1] });
    }
}

/// The client sends its request body slowly, or breaks it off: the backend cannot respond.
#[test]
fn what_was_not_sent_whole_is_not_waited_for() {
    let pool = pool(2, Algorithm::LeastRequests);
    (0..5).for_each(|_| drop(pool.pick(None, NOW, &[BackendId(0)]).unwrap()));
    pool.look_for_silence(at(10 * WITHIN));
    assert_eq!(out(&pool, at(10 * WITHIN)), []);
    assert!((0..50).any(|_| pool.pick(None, at(2000), &[]).unwrap().id().0 == 1));
}

/// Regression: a few clients that uploaded slowly took idle backends out of service.
#[test]
fn a_client_that_sends_its_request_slowly_does_not_make_the_backend_silent() {
    let pool = pool(2, Algorithm::RoundRobin);
    let mut upload = pool.pick(None, NOW, &[BackendId(0)]).unwrap();
    upload.awaits_client();
    let is_silent = |now| pool.report(now)[1].silent;
    assert!(!is_silent(at(5000)));
    upload.client_came(at(6000));
    upload.awaits_answer();
    assert!(!is_silent(at(6900)));
    assert!(is_silent(at(7100)), "a second after the end of the body");
    answer(upload, at(7200));
    assert!(!is_silent(at(20_000)), "nothing is left to wait for");
}

/// A response may come before the end of the body, and a client may leave before it.
#[test]
fn however_an_upload_ends_it_is_no_longer_waited_for() {
    let pool = pool(2, Algorithm::RoundRobin);
    let upload = |now| {
        let mut upload = pool.pick(None, now, &[BackendId(0)]).unwrap();
        upload.awaits_client();
        upload
    };
    drop(upload(NOW));
    answer(upload(NOW), at(100));
    answer(send(&pool, 1, at(200)), at(210));
    let waits = send(&pool, 1, at(3000));
    let is_silent = |now| pool.report(now)[1].silent;
    assert!(!is_silent(at(3900)));
    assert!(is_silent(at(4100)), "this one is waited for");
    answer(waits, at(4200));
    assert!(!is_silent(at(20_000)));
}

#[test]
fn a_backend_that_has_answered_nothing_for_long_is_avoided_by_every_algorithm_while_another_is_there() {
    for algorithm in Algorithm::ALL {
        for given_up in [false, true] {
            let pool = pool(3, algorithm);
            let silent = send(&pool, 0, at(0));
            let silent = (!given_up).then_some(silent);
            for n in 0..100 {
                let pick = pool.pick(Some(b"a"), at(1000 + n * 10), &[]).unwrap();
                assert_ne!(pick.id().0, 0, "{algorithm}");
                answer(pick, at(1010 + n * 10));
            }
            let others = [BackendId(1), BackendId(2)];
            let for_want_of_others = pool.pick(None, at(2500), &others).unwrap();
            assert_eq!(for_want_of_others.id().0, 0, "{algorithm}");
            drop(for_want_of_others);
            match silent {
                Some(pick) => answer(pick, at(2500)),
                None => pool.look_for_silence(at(WITHIN)),
            }
            let picked = |n: u64| pool.pick(Some(n.to_string().as_bytes()), at(WITHIN), &[]).unwrap();
            let is_back = (0..200).any(|n| picked(n).id().0 == 0);
            // These prefer the quickest backends.
            let goes_by_time = matches!(algorithm, Algorithm::Resume | Algorithm::PeakEwma);
            assert!(is_back || goes_by_time, "{algorithm}");
        }
    }
}

/// A tunnel, a stream of events, a long download.
#[test]
fn a_backend_that_has_begun_all_its_answers_is_not_waited_for() {
    let pool = pool(2, Algorithm::Fallback);
    let mut tunnel = send(&pool, 0, NOW);
    tunnel.responded(at(10));
    assert_eq!(pool.pick(None, at(60_000), &[]).unwrap().id().0, 0);
}

/// Ten times as long as its responses take.
#[test]
fn a_backend_whose_answers_take_long_has_longer() {
    let pool = pool(2, Algorithm::Fallback);
    (0..50).for_each(|n| answer(send(&pool, 0, at(n * 500)), at((n + 1) * 500)));
    let _slow = send(&pool, 0, at(25_000));
    let first = |now| pool.pick(None, now, &[]).unwrap().id().0;
    assert_eq!([first(at(29_000)), first(at(30_100))], [0, 1]);
}

#[test]
fn the_outlook_is_as_good_as_the_best_backend() {
    let pool = pool(2, Algorithm::LeastRequests);
    let late = |id: u32| send(&pool, id, NOW).finish(AttemptOutcome::Late, at(WITHIN));
    late(0);
    assert_eq!(pool.outlook(), Outlook::Answers);
    late(1);
    assert_eq!(pool.outlook(), Outlook::Silent);
    (0..2).for_each(late);
    (0..2).for_each(late);
    // One was ejected; the other is spared because it is the last.
    assert_eq!(pool.outlook(), Outlook::Failing);
    answer(send(&pool, 1, at(WITHIN)), at(WITHIN));
    assert_eq!(pool.outlook(), Outlook::Answers);
}
