//! Tests of a pool's reports.

use super::*;
use crate::{Algorithm, AttemptOutcome, Settings, SkillSource, WorkerState};

const NOW: Duration = Duration::from_secs(1000);

fn at(ms: u64) -> Duration {
    NOW + Duration::from_millis(ms)
}

fn backend(n: usize) -> Backend {
    Backend::new(format!("http://10.0.0.{n}:80").parse().unwrap())
}

fn pool(count: usize, settings: impl Into<Settings>) -> Pool {
    Pool::new("app", (0..count).map(backend).collect(), settings)
}

/// Makes `worker` skilled by a report of its own.
fn skilled(pool: &Pool, worker: usize, skills: &[(&str, f64)]) {
    let skills = skills.iter().map(|&(class, score)| (class.as_bytes(), score));
    let resumes = pool.resumes().unwrap();
    resumes.whole(pool.ids()[worker], 0, &format!("worker-{worker}"), 1, skills).unwrap();
}

fn last(pool: &Pool) -> (ChoiceReason, BackendId) {
    let choice = pool.choices().remove(0);
    (choice.reason, choice.backend)
}

#[test]
fn each_algorithm_says_why_it_chose() {
    for (algorithm, classified, plain) in [
        (Algorithm::LeastRequests, ChoiceReason::FewerInFlight, ChoiceReason::FewerInFlight),
        (Algorithm::PeakEwma, ChoiceReason::SoonerDone, ChoiceReason::SoonerDone),
        (Algorithm::RoundRobin, ChoiceReason::InTurn, ChoiceReason::InTurn),
        (Algorithm::Random, ChoiceReason::Drawn, ChoiceReason::Drawn),
        (Algorithm::ConsistentHash, ChoiceReason::NextOnRing, ChoiceReason::Unclassified),
        (Algorithm::Maglev, ChoiceReason::InTable, ChoiceReason::Unclassified),
        (Algorithm::Fallback, ChoiceReason::FirstInOrder, ChoiceReason::FirstInOrder),
        (Algorithm::Resume, ChoiceReason::NewClass, ChoiceReason::Unclassified),
    ] {
        let pool = pool(3, algorithm);
        let id = pool.pick(Some(b"a"), NOW, &[]).unwrap().id();
        assert_eq!(last(&pool), (classified, id), "{algorithm}");
        let id = pool.pick(None, at(5), &[id]).unwrap().id();
        let choice = pool.choices().remove(0);
        assert_eq!(choice.reason, plain, "{algorithm}");
        assert_eq!(choice.backend, id, "{algorithm}");
        assert_eq!(choice.at, at(5), "{algorithm}");
        assert_eq!(choice.class, None, "{algorithm}");
        assert_eq!(choice.tried, 1, "{algorithm}");
    }
}

#[test]
fn a_choice_without_an_alternative_is_told_as_such() {
    let alone = pool(1, Algorithm::Resume);
    drop(alone.pick(Some(b"a"), NOW, &[]).unwrap());
    assert_eq!(last(&alone).0, ChoiceReason::OnlyOne);

    let pool = pool(2, Algorithm::LeastRequests);
    let (one, two) = (pool.ids()[0], pool.ids()[1]);
    drop(pool.pick_sticky(two, None, NOW).unwrap());
    assert_eq!(last(&pool), (ChoiceReason::Sticky, two));
    (0..3).for_each(|_| pool.pick(None, NOW, &[one]).unwrap().finish(AttemptOutcome::ConnectFailed, NOW));
    drop(pool.pick(None, NOW, &[one]).unwrap());
    assert_eq!(last(&pool), (ChoiceReason::ForWantOfOthers, two));
}

#[test]
fn a_choice_by_resume_says_how_the_skilled_fared() {
    let new = || pool(10, Algorithm::Resume);
    let pool = new();
    skilled(&pool, 1, &[("a", 100.0)]);
    let first = pool.pick(Some(b"a"), NOW, &[]).unwrap();
    assert_eq!(last(&pool), (ChoiceReason::BestScore, pool.ids()[1]));
    // It failed the request.
    drop(pool.pick(Some(b"a"), NOW, &[pool.ids()[1]]).unwrap());
    assert_eq!(last(&pool).0, ChoiceReason::LeastRecentlyUsed);
    let other = new();
    skilled(&other, 1, &[("a", 100.0)]);
    // So many wait for the skilled one that another costs less, although it has to load the data.
    let mut held = vec![other.pick(Some(b"a"), NOW, &[]).unwrap()];
    while last(&other).0 == ChoiceReason::BestScore {
        held.push(other.pick(Some(b"a"), NOW, &[]).unwrap());
        assert!(held.len() < 200);
    }
    assert_eq!(last(&other).0, ChoiceReason::Unskilled);
    drop(first);
}

#[test]
fn the_oldest_request_is_told_for_the_pool_and_for_its_backend() {
    let pool = pool(2, Algorithm::RoundRobin);
    assert_eq!(pool.oldest(NOW), None);
    let first = pool.pick(None, NOW, &[]).unwrap();
    let second = pool.pick(None, at(400), &[]).unwrap();
    let ages = |now: Duration| {
        // To the tenth of a second: the table rounds to a millisecond.
        let millis = |age: Duration| (age.as_millis() as u64) / 100 * 100;
        let report = pool.report(now);
        (pool.oldest(now).map(millis), [0, 1].map(|n: usize| report[n].oldest.map(millis)))
    };
    assert_eq!(ages(at(1000)), (Some(1000), [Some(1000), Some(600)]));
    let successor = pool.succeeded_by(vec![backend(1), backend(2)], Algorithm::RoundRobin);
    assert_eq!(
        successor.oldest(at(1000)).map(|age| age.as_millis() / 100),
        Some(10),
        "a reload loses sight of none"
    );
    first.finish(AttemptOutcome::Answered, at(1000));
    assert_eq!(ages(at(1000)), (Some(600), [None, Some(600)]));
    drop(second);
    assert_eq!(ages(at(1000)), (None, [None, None]));
}

#[test]
fn classes_come_by_how_often_they_are_asked_for_with_their_workers() {
    let pool = pool(3, Algorithm::Resume);
    skilled(&pool, 0, &[("a", 10.0), ("b", 20.0)]);
    skilled(&pool, 1, &[("a", 30.0)]);
    for (class, times) in [("a", 3), ("b", 30), ("new", 10)] {
        (0..times).for_each(|_| drop(pool.pick(Some(class.as_bytes()), NOW, &[]).unwrap()));
    }
    let classes = pool.classes(2);
    let names: Vec<_> = classes.top.iter().map(|class| class.name.clone()).collect();
    assert_eq!(names, [Box::from(&b"b"[..]), Box::from(&b"new"[..])]);
    let shares = [classes.top[0].share, classes.top[1].share];
    assert!((shares[0] - 30.0 / 43.0).abs() < 0.03 && (shares[1] - 10.0 / 43.0).abs() < 0.03, "{shares:?}");
    assert!(classes.top[1].skilled.iter().any(|skill| skill.word == SkillWord::Assumed));
    assert!(classes.skills[0] >= 2 && classes.skills[1] >= 1, "{:?}", classes.skills);
    let [reported, inferred, assumed] = classes.words;
    assert_eq!(reported, 3);
    assert_eq!(inferred, 0);
    assert_eq!(reported + assumed, classes.skills.iter().sum::<usize>());

    let class = pool.class(b"a").unwrap();
    let workers: Vec<_> = class.skilled.iter().map(|skill| (skill.worker, skill.score, skill.word)).collect();
    assert_eq!(workers[0], (pool.ids()[1], Some(30.0), SkillWord::Reported));
    assert_eq!(workers[1], (pool.ids()[0], Some(10.0), SkillWord::Reported));
    assert_eq!(pool.class(b"unheard"), None);
    assert_eq!(pool.classes(0).top, []);
}

/// Regression: a class counted as requested when a worker reported its score.
#[test]
fn classes_that_workers_told_of_and_nobody_asked_for_have_no_share() {
    let pool = pool(2, Algorithm::Resume);
    skilled(&pool, 0, &[("a", 10.0), ("b", 20.0), ("c", 30.0)]);
    drop(pool.pick(Some(b"a"), NOW, &[]).unwrap());
    skilled(&pool, 1, &[("d", 10.0), ("a", 20.0)]);
    let shares: Vec<_> = ["a", "b", "c", "d"].map(|name| pool.class(name.as_bytes()).unwrap().share).to_vec();
    assert_eq!(shares, [1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn scores_that_the_balancer_found_out_are_told_as_its_own() {
    let mut settings = Settings::from(Algorithm::Resume);
    settings.resume.skills = SkillSource::Inferred;
    let pool = pool(1, settings);
    pool.pick(Some(b"a"), NOW, &[]).unwrap().finish(AttemptOutcome::Answered, at(50));
    assert_eq!(pool.class(b"a").unwrap().skilled[0].word, SkillWord::Inferred);
    assert_eq!(pool.classes(0).words, [0, 1, 0]);
}

#[test]
fn a_pool_without_classes_tells_of_none() {
    let pool = pool(2, Algorithm::LeastRequests);
    drop(pool.pick(Some(b"a"), NOW, &[]).unwrap());
    assert_eq!(pool.classes(10), Classes::default());
    assert_eq!(pool.class(b"a"), None);
}

#[test]
fn what_a_worker_said_of_itself_is_in_its_report() {
    let pool = pool(2, Algorithm::Resume);
    skilled(&pool, 0, &[("a", 10.0)]);
    let said =
        WorkerState { instance: "worker-0", revision: 1, version: Some("2026-11"), ..WorkerState::default() };
    pool.resumes().unwrap().heard(pool.ids()[0], &said, NOW);
    let report = pool.report(NOW);
    assert_eq!(report[0].version.as_deref(), Some("2026-11"));
    assert_eq!(report[0].resume, Some(Known { instance: "worker-0".into(), revision: 1 }));
    assert_eq!(report[1].version, None);
    assert_eq!(report[1].resume, None);
}

#[test]
fn a_backend_that_is_out_for_several_reasons_is_told_by_the_one_that_lasts() {
    let pool = pool(2, Algorithm::RoundRobin);
    let state = |now| pool.report(now)[0].state();
    let (first, second) = (pool.ids()[0], pool.ids()[1]);
    assert_eq!(state(NOW), BackendState::Untried);
    let mut pick = pool.pick(None, NOW, &[second]).unwrap();
    pick.responded(NOW);
    pick.finish(AttemptOutcome::Answered, NOW);
    assert_eq!(state(NOW), BackendState::Healthy);
    (0..3).for_each(|_| pool.pick(None, NOW, &[second]).unwrap().finish(AttemptOutcome::ConnectFailed, NOW));
    assert_eq!(state(NOW), BackendState::Ejected);
    assert_eq!(state(at(60_000)), BackendState::Failing);
    for _ in 0..3 {
        pool.checked(first, false);
    }
    assert_eq!(state(NOW), BackendState::Down);
    pool.drain(first, true);
    assert_eq!(state(NOW), BackendState::Draining);
}

#[test]
fn a_backend_that_has_never_answered_is_not_called_healthy() {
    let pool = pool(2, Algorithm::RoundRobin);
    let states = || pool.report(NOW).iter().map(BackendReport::state).collect::<Vec<_>>();
    let (first, second) = (pool.ids()[0], pool.ids()[1]);
    pool.pick(None, NOW, &[second]).unwrap().finish(AttemptOutcome::ConnectFailed, NOW);
    assert_eq!(states(), [BackendState::Failing, BackendState::Untried]);
    pool.checked(second, false);
    assert_eq!(states()[1], BackendState::Untried);
    pool.checked(second, true);
    assert_eq!(states()[1], BackendState::Healthy);
    let mut pick = pool.pick(None, NOW, &[second]).unwrap();
    pick.responded(NOW);
    pick.finish(AttemptOutcome::Answered, NOW);
    assert_eq!(states()[0], BackendState::Healthy, "backend {first:?}");
}

#[test]
fn the_mean_backlog_is_over_all_backends_and_nothing_in_flight_is_none() {
    for algorithm in [Algorithm::Resume, Algorithm::LeastRequests] {
        let pool = pool(2, algorithm);
        let held: Vec<_> = (0..20).map(|_| pool.pick(Some(b"a"), NOW, &[]).unwrap()).collect();
        let summary = pool.summary(NOW);
        assert_eq!(summary.in_flight, 20, "{algorithm}");
        assert!(summary.mean_backlog > 3.0 && summary.mean_backlog <= 10.0, "{algorithm}: {summary:?}");
        assert_eq!(summary.reasons.iter().map(|&(_, count)| count).sum::<u64>(), 20);
        let each: f32 = pool.report(NOW).iter().map(|backend| backend.mean_backlog).sum();
        assert_eq!(each / 2.0, summary.mean_backlog);
        drop(held);
        assert_eq!(pool.summary(NOW).mean_backlog, 0.0, "{algorithm}");
    }
}

/// Regression: a worker kept the backlog of its last request.
#[test]
fn the_mean_backlog_of_a_worker_without_requests_goes_to_none() {
    let pool = pool(2, Algorithm::Resume);
    let others = |id: u32| [BackendId(1 - id)];
    drop((0..20).map(|_| pool.pick(Some(b"a"), NOW, &others(0)).unwrap()).collect::<Vec<_>>());
    let _held = pool.pick(Some(b"b"), NOW, &others(1)).unwrap();
    assert!(pool.report(NOW)[0].mean_backlog > 3.0);
    (0..200).for_each(|_| drop(pool.pick(Some(b"b"), NOW, &others(1)).unwrap()));
    let report = pool.report(NOW);
    assert!(report[0].mean_backlog < 0.01 && report[1].mean_backlog > 0.9, "{report:?}");
}
