//! The choice of a worker for a request.

use std::collections::BTreeMap;

use super::*;

#[test]
fn the_best_worker_at_a_class_gets_it() {
    let pool = plain(4);
    tell(&pool, 1, &[("a", 50.0), ("b", 200.0)]);
    tell(&pool, 2, &[("a", 200.0), ("b", 50.0)]);
    for _ in 0..20 {
        assert_eq!(pick(&pool, b"a").id().0, 2);
        assert_eq!(pick(&pool, b"b").id().0, 1);
    }
}

/// Regression: each class of a scan of URLs that fail stayed in the table.
#[test]
fn a_class_whose_first_request_fails_is_not_kept() {
    let pool = plain(2);
    let count = || pool.classes(0).skills.iter().sum::<usize>();
    for class in [&b"a"[..], b"b"] {
        pick(&pool, class).finish(AttemptOutcome::ServerError, at(5));
        assert_eq!(pool.class(class), None);
        assert_eq!(count(), 0);
    }
    pick(&pool, b"a").finish(AttemptOutcome::Answered, at(5));
    pick(&pool, b"a").finish(AttemptOutcome::ServerError, at(10));
    tell(&pool, 1, &[("c", 50.0)]);
    pick(&pool, b"c").finish(AttemptOutcome::ServerError, at(10));
    assert_eq!(pool.class(b"c").map(|class| class.skilled.len()), Some(1), "what a worker told of stays");
}

#[test]
fn a_heavy_worker_is_given_as_many_more_classes_as_it_weighs() {
    for weights in [[3, 1, 1, 1], [30, 10, 10, 10]] {
        let backends = weights.iter().enumerate().map(|(n, &weight)| backend(n).weighing(weight)).collect();
        let pool = Pool::new("app", backends, Settings::from(Algorithm::Resume));
        let mut given = [0; 4];
        for step in 0..3000 {
            let class = format!("{}", step % 300);
            let picked = pool.pick(Some(class.as_bytes()), at(step * 10), &[]).unwrap();
            given[picked.id().0 as usize] += 1;
            picked.finish(AttemptOutcome::Answered, at(step * 10 + 5));
        }
        assert!((1400..1600).contains(&given[0]), "{weights:?}: {given:?}");
        assert!(given[1..].iter().all(|light| (430..570).contains(light)), "{weights:?}: {given:?}");
    }
}

#[test]
fn a_heavy_worker_with_its_share_in_hand_is_not_too_busy() {
    let backends = (0..40).map(|n| backend(n).weighing(if n == 0 { 20 } else { 1 })).collect();
    let pool = Pool::new("app", backends, Settings::from(Algorithm::Resume));
    for worker in 0..40 {
        tell(&pool, worker, &[(&format!("of-{worker}"), 1000.0)]);
    }
    // As many in hand as the weight of each.
    let mut held: Vec<_> = (1..40).map(|worker| pick(&pool, format!("of-{worker}").as_bytes())).collect();
    for _ in 0..20 {
        held.push(pick(&pool, b"of-0"));
        assert_eq!(held.last().unwrap().id().0, 0);
    }
}

#[test]
fn of_equals_the_one_with_less_work_gets_it() {
    let pool = plain(4);
    tell(&pool, 1, &[("a", 200.0), ("slow", 20.0)]);
    tell(&pool, 2, &[("a", 200.0)]);
    let _slow = pick(&pool, b"slow");
    // One slow request is longer to wait for than three quick ones.
    let held: Vec<_> = (0..3).map(|_| pick(&pool, b"a")).collect();
    let ids: Vec<_> = held.iter().map(|pick| pick.id().0).collect();
    assert_eq!(ids, [2, 2, 2]);
}

#[test]
fn classes_that_nobody_knows_go_to_those_used_least_recently_and_stay() {
    let pool = plain(4);
    let first: Vec<_> = ["a", "b", "c", "d"].map(|class| pick(&pool, class.as_bytes()).id().0).to_vec();
    let mut all = first.clone();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3]);
    let again: Vec<_> = ["a", "b", "c", "d"].map(|class| pick(&pool, class.as_bytes()).id().0).to_vec();
    assert_eq!(first, again);
    let counts = pool.resumes().unwrap().counts();
    assert_eq!(counts.classes, 4);
    assert_eq!(counts.skills, 4);
}

#[test]
fn one_class_cannot_take_the_pool() {
    let pool = plain(16);
    (0..16).for_each(|worker| drop(tell(&pool, worker, &[(&format!("site-{worker}"), 100.0)])));
    let flood: Vec<_> = (0..400).map(|_| pick(&pool, b"flood").id()).collect();
    let held: Vec<_> = (0..400).map(|_| pick(&pool, b"flood")).collect();
    let mut taken: Vec<_> = held.iter().map(Pick::id).chain(flood).collect();
    taken.sort_unstable();
    taken.dedup();
    assert!(taken.len() <= 6, "{} of 16 workers with variance 4", taken.len());
}

#[test]
fn a_class_may_have_three_homes_in_a_small_pool() {
    for workers in [4, 8] {
        let pool = plain(workers);
        tell(&pool, 0, &[("flood", 10.0)]);
        let held: Vec<_> = (0..400).map(|_| pick(&pool, b"flood")).collect();
        let mut taken: Vec<_> = held.iter().map(Pick::id).collect();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), 3, "of {workers}");
    }
}

/// Chooses this worker for a request.
fn pick_at(pool: &Pool, worker: u32, class: &[u8]) -> Pick {
    let others: Vec<_> = pool.ids().iter().copied().filter(|id| id.0 != worker).collect();
    pool.pick(Some(class), NOW, &others).unwrap()
}

/// Regression: while queues were long, an idle worker stayed idle, because loading was as expensive there as
/// at a worker with a queue.
#[test]
fn an_idle_worker_relieves_one_with_a_long_queue() {
    for idle in [false, true] {
        let pool = plain(4);
        (0..4).for_each(|worker| drop(tell(&pool, worker, &[(&format!("of-{worker}"), 10.0)])));
        let busy = if idle { 3 } else { 4 };
        // Four seconds of work for each.
        let held: Vec<_> =
            (0..40 * busy).map(|n| pick_at(&pool, n % busy, format!("of-{}", n % busy).as_bytes())).collect();
        assert_eq!(pick(&pool, b"of-0").id().0, if idle { 3 } else { 0 });
        drop(held);
    }
}

/// Regression: requests that were given to a worker before its first response counted as loading everything.
/// In a queue there are many of them, so loading seemed to take hardly any time.
#[test]
fn the_first_request_of_a_class_shows_how_long_loading_takes() {
    let pool = plain(2);
    let held: Vec<_> = (0..10).map(|_| pick_at(&pool, 0, b"a")).collect();
    for (picked, ms) in held.into_iter().zip((100..).step_by(5)) {
        picked.finish(AttemptOutcome::Answered, at(ms));
    }
    let cold = pool.inner().resume().unwrap().loading.cold();
    assert!((cold - 0.1).abs() < 0.001, "{cold} s instead of 0.1 s");
}

#[test]
fn a_worker_that_others_load_is_spared() {
    let pool = plain(2);
    tell(&pool, 0, &[("a", 100.0)]);
    tell(&pool, 1, &[("a", 99.0)]);
    let answered = pick(&pool, b"a");
    assert_eq!(answered.id().0, 0);
    let state = WorkerState { instance: "i0", revision: 1, in_flight: Some(7), ..WorkerState::default() };
    assert_eq!(pool.resumes().unwrap().heard(answered.id(), &state, NOW), Heard::Current);
    answered.finish(AttemptOutcome::Answered, at(10));
    assert_eq!(pool.pick(Some(b"a"), at(20), &[]).unwrap().id().0, 1);
    // Old reports no longer count.
    assert_eq!(pool.pick(Some(b"a"), at(5000), &[]).unwrap().id().0, 0);
}

#[test]
fn a_worker_whose_requests_fail_is_avoided_and_forgiven() {
    let pool = plain(2);
    tell(&pool, 0, &[("a", 100.0)]);
    tell(&pool, 1, &[("a", 90.0)]);
    for _ in 0..20 {
        let pick = pool.pick(Some(b"a"), NOW, &[BackendId(1)]).unwrap();
        pick.finish(AttemptOutcome::ServerError, NOW);
    }
    assert_eq!(pick(&pool, b"a").id().0, 1);
    for step in 0..200 {
        let pick = pool.pick(Some(b"a"), at(step * 10), &[BackendId(1)]).unwrap();
        pick.finish(AttemptOutcome::Answered, at(step * 10 + 5));
    }
    assert_eq!(pool.pick(Some(b"a"), at(3000), &[]).unwrap().id().0, 0);
}

/// Regression: after a failure the worker counted as busier than another with several quick requests.
#[test]
fn a_worker_that_failed_once_is_given_new_classes_again() {
    let pool = plain(2);
    let mut given = [0; 2];
    for n in 0..400 {
        let picked = pool.pick(Some(format!("{n}").as_bytes()), at(n * 10), &[]).unwrap();
        let failed = n == 100;
        let outcome = if failed { AttemptOutcome::Broken } else { AttemptOutcome::Answered };
        given[picked.id().0 as usize] += usize::from(n > 100);
        picked.finish(outcome, at(n * 10) + Duration::from_micros(200));
    }
    assert!(given.iter().all(|&times| times > 100), "{given:?}");
}

/// Regression: failures faded only with responses, and a worker that is avoided for its failures has none.
#[test]
fn a_worker_that_failed_is_tried_again_after_a_minute() {
    for recovers in [true, false] {
        let pool = plain(2);
        for _ in 0..40 {
            pool.pick(Some(b"a"), NOW, &[BackendId(1)]).unwrap().finish(AttemptOutcome::ServerError, NOW);
        }
        // Three minutes of requests in half minutes, each of its own class.
        let mut given = [0; 6];
        for n in 0..1800 {
            let picked = pool.pick(Some(format!("{n}").as_bytes()), at(n * 100), &[]).unwrap();
            let failing = picked.id().0 == 0;
            given[n as usize / 300] += usize::from(failing);
            let outcome =
                if failing && !recovers { AttemptOutcome::ServerError } else { AttemptOutcome::Answered };
            picked.finish(outcome, at(n * 100 + 50));
        }
        if recovers {
            assert!(given[..2] == [0, 0] && given[3] > 100, "{given:?}");
        } else {
            assert!(given.iter().sum::<usize>() <= 3, "{given:?}");
        }
    }
}

/// Regression: a worker that was back was not tried again while others knew every class and were not busy.
#[test]
fn a_worker_is_tried_as_soon_as_its_ejection_is_over_though_others_know_the_class() {
    let pool = plain(3);
    tell(&pool, 0, &[("a", 100.0)]);
    let others = [BackendId(0), BackendId(2)];
    for _ in 0..3 {
        pool.pick(Some(b"b"), NOW, &others).unwrap().finish(AttemptOutcome::ConnectFailed, NOW);
    }
    let asked = |ms: u64| {
        let picked = pool.pick(Some(b"a"), at(ms), &[]).unwrap();
        let worker = picked.id().0;
        picked.finish(AttemptOutcome::Answered, at(ms));
        worker
    };
    let while_ejected: Vec<u32> = (0..9).map(|request| asked(900 + request)).collect();
    assert_eq!(while_ejected, [0; 9]);
    // It is ejected for a second.
    let over: Vec<u32> = (0..3).map(|request| asked(1100 + request)).collect();
    assert!(over.contains(&1), "{over:?}");
}

/// Regression: after one response that was slow because of the machine, the only worker that answered seemed
/// more expensive than one that failed at once. The latter got all requests from then on, and the former had
/// no response to correct that.
#[test]
fn a_worker_that_fails_is_no_refuge_from_one_that_was_slow_once() {
    for stall in [150, 700, 10_000] {
        let inferred = settings(|resume| (resume.skills, resume.exploration) = (SkillSource::Inferred, 0.0));
        let pool = pool(2, inferred);
        let mut now = 0;
        let mut ask = |time: u64| {
            let picked = pool.pick(Some(b"a"), at(now), &[]).unwrap();
            let fails = picked.id().0 == 0;
            now += if fails { 1 } else { time };
            picked
                .finish(if fails { AttemptOutcome::ServerError } else { AttemptOutcome::Answered }, at(now));
            fails
        };
        // Until its failures are noticed.
        while ask(100) {}
        let failures = (0..60).filter(|request| ask(if request % 20 == 5 { stall } else { 100 })).count();
        assert_eq!(failures, 0, "an answer took {stall} ms");
    }
}

/// Plays these clients for these milliseconds, each with a request for one of 150 classes at a time, and
/// returns how many each worker has answered. A worker serves all its requests at the same time, each in
/// `takes(worker, now)` milliseconds. Before each choice, it `tells`.
fn answered(
    pool: &Pool,
    clients: usize,
    millis: u64,
    takes: impl Fn(usize, u64) -> u64,
    mut tells: impl FnMut(u64),
) -> [usize; 8] {
    let mut random = 1_u64;
    let mut in_flight = BTreeMap::new();
    let mut answered = [0; 8];
    let mut sent = 0;
    let mut send = |now: u64, in_flight: &mut BTreeMap<(u64, u64), Pick>| {
        tells(sent);
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let class = format!("{}", (random >> 33) % 150);
        let picked = pool.pick(Some(class.as_bytes()), at(now), &[]).unwrap();
        sent += 1;
        in_flight.insert((now + takes(picked.id().0 as usize, now), sent), picked);
    };
    (0..clients).for_each(|_| send(0, &mut in_flight));
    while let Some(((now, _), picked)) = in_flight.pop_first() {
        if now > millis {
            break;
        }
        answered[picked.id().0 as usize] += 1;
        picked.finish(AttemptOutcome::Answered, at(now));
        send(now, &mut in_flight);
    }
    answered
}

/// Regression: what a worker had in hand counted by the scores of before, each class noticed alone that it
/// had become slow, and nearly all clients waited for it.
#[test]
fn a_worker_that_becomes_slow_does_not_hold_the_clients() {
    let becomes = |slow: u64| move |worker: usize, now: u64| if worker == 0 && now > 2000 { slow } else { 3 };
    let usual: usize = answered(&plain(8), 20, 7000, becomes(3), |_| ()).iter().sum();
    let slow: usize = answered(&plain(8), 20, 7000, becomes(1000), |_| ()).iter().sum();
    assert!(slow * 10 > usual * 8, "{slow} requests instead of {usual}");
}

/// Regression: its scores had been corrected while it was slow. Nobody asked it for a class that others
/// served quickly, so nothing corrected them again.
#[test]
fn a_worker_that_was_slow_is_asked_again_at_once() {
    let slow_for_a_while = |worker, now| if worker == 0 && (2000..7000).contains(&now) { 1000 } else { 3 };
    let until = |millis| answered(&plain(4), 2, millis, slow_for_a_while, |_| ());
    let (before, after) = (until(7000), until(15_000));
    let requests: Vec<usize> = (0..4).map(|worker| after[worker] - before[worker]).collect();
    assert!(requests[0] * 20 > requests.iter().sum(), "{requests:?}");
}

/// Regression: a new worker was tried at class after class although all its responses were errors, and it was
/// always idle.
#[test]
fn a_new_worker_whose_requests_fail_is_not_tried_on() {
    let pool = plain(3);
    let classes: Vec<String> = (0..20).map(|class| format!("{class}")).collect();
    let serve = |pool: &Pool, now: u64| {
        let class = &classes[now as usize * 7 % 20];
        let picked = pool.pick(Some(class.as_bytes()), at(now * 10), &[]).unwrap();
        let fails = picked.id() == BackendId(3);
        let outcome = if fails { AttemptOutcome::ServerError } else { AttemptOutcome::Answered };
        picked.finish(outcome, at(now * 10 + 5));
        fails
    };
    (0..2000).for_each(|now| assert!(!serve(&pool, now)));
    let mut backends = pool.backends().to_vec();
    backends.push(Backend::new("http://10.0.0.9:80".parse().unwrap()));
    let grown = pool.succeeded_by(backends, Algorithm::Resume);
    let failed = (2000..10_000).filter(|&now| serve(&grown, now)).count();
    assert!((1..200).contains(&failed), "{failed}");
}

/// Regression: scores that could not be were corrected only class by class, and again after each report.
#[test]
fn a_worker_that_boasts_in_every_class_is_found_out() {
    let classes: Vec<String> = (0..150).map(|class| format!("{class}")).collect();
    let pool = plain(8);
    let boasts = |sent: u64| {
        if sent.is_multiple_of(50) {
            let skills = classes.iter().map(|class| (class.as_bytes(), 1e9));
            pool.resumes().unwrap().whole(BackendId(0), 0, "i0", sent, skills).unwrap();
        }
    };
    let answered = answered(&pool, 20, 10_000, |worker, _| if worker == 0 { 300 } else { 3 }, boasts);
    let others: usize = answered[1..].iter().sum();
    assert!(answered[0] * 20 < others, "{answered:?}");
}

/// Regression: the time that a client took to upload a body counted as its worker's.
#[test]
fn a_client_that_uploads_slowly_does_not_make_its_worker_slow() {
    let pool = plain(2);
    tell(&pool, 0, &[("a", 100.0)]);
    for n in 0..20 {
        let mut picked = pick_at(&pool, 0, b"a");
        picked.client_came(at(n * 10_000 + 9990));
        picked.finish(AttemptOutcome::Answered, at(n * 10_000 + 10_000));
    }
    let score = pool.class(b"a").unwrap().skilled[0].score.unwrap();
    assert!((score - 100.0).abs() < 1.0, "{score} requests per second");
}
