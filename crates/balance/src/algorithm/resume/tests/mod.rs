//! Tests of résumés, through the pool.

mod choice;
mod class_eviction;
mod report;
mod version;

use std::time::Duration;

use proptest::prelude::*;

use crate::*;

const NOW: Duration = Duration::from_secs(1000);

fn at(ms: u64) -> Duration {
    NOW + Duration::from_millis(ms)
}

fn backend(n: usize) -> Backend {
    Backend::new(format!("unix:/workers/{n}").parse().unwrap())
}

fn settings(change: impl FnOnce(&mut ResumeSettings)) -> Settings {
    let mut settings = Settings::from(Algorithm::Resume);
    change(&mut settings.resume);
    settings
}

fn pool(workers: usize, settings: Settings) -> Pool {
    Pool::new("app", (0..workers).map(backend).collect(), settings)
}

fn plain(workers: usize) -> Pool {
    pool(workers, Algorithm::Resume.into())
}

fn pick(pool: &Pool, class: &[u8]) -> Pick {
    pool.pick(Some(class), NOW, &[]).unwrap()
}

/// Gives a worker a whole résumé.
fn tell(pool: &Pool, worker: u32, skills: &[(&str, f64)]) -> Believed {
    let skills = skills.iter().map(|&(class, score)| (class.as_bytes(), score));
    pool.resumes().unwrap().whole(BackendId(worker), 0, &format!("i{worker}"), 1, skills).unwrap()
}

#[test]
fn skills_go_on_over_changes_of_the_pool_unless_the_classifier_changed() {
    let before = plain(3);
    tell(&before, 2, &[("a", 100.0)]);
    tell(&before, 1, &[("b", 100.0)]);
    let backends = || vec![backend(2), backend(0), backend(9)];
    let after = before.succeeded_by(backends(), Algorithm::Resume);
    assert_eq!(pick(&after, b"a").id().0, 2);
    assert_eq!(after.resumes().unwrap().counts().skills, 1, "the one that left is forgotten");

    let other = after.succeeded_by(backends(), settings(|resume| resume.classifier = 1));
    let resumes = other.resumes().unwrap();
    assert_eq!(resumes.counts().skills, 0);
    assert_eq!(resumes.known(BackendId(2)), None);
}

#[test]
fn the_time_of_a_request_does_not_depend_on_those_beside_it() {
    let inferred = |concurrency| {
        pool(
            1,
            settings(|resume| {
                resume.skills = SkillSource::Inferred;
                resume.concurrency = concurrency;
            }),
        )
    };
    // Regression: the requests of other balancers that a worker reported made it look quick.
    let state = |concurrency| WorkerState {
        instance: "i",
        revision: 1,
        in_flight: Some(1000),
        concurrency,
        ..WorkerState::default()
    };
    for (set, reported, right) in [(1, None, false), (4, None, true), (1, Some(4), true)] {
        let pool = inferred(set);
        for round in 0..10 {
            // Each takes 100 ms, and the last four begin when the first four are done.
            let begun = at(round * 1000);
            pool.resumes().unwrap().heard(BackendId(0), &state(reported), begun);
            let mut picks: Vec<_> = (0..8).map(|_| pool.pick(Some(b"a"), begun, &[]).unwrap()).collect();
            for (number, pick) in picks.drain(..).enumerate() {
                let millis = if number < 4 { 100 } else { 200 };
                pick.finish(AttemptOutcome::Answered, begun + Duration::from_millis(millis));
            }
        }
        let score = pool.save_skills().workers[0].skills[0].1;
        assert_eq!((8.0..11.0).contains(&score), right, "{score} instead of 10");
    }
}

#[test]
fn skills_are_inferred_from_latencies_and_survive_a_restart() {
    let inferred = || pool(2, settings(|resume| resume.skills = SkillSource::Inferred));
    let first = inferred();
    let mut now = 0;
    let mut serve = |worker: u32, class: &[u8], millis: u64| {
        let pick = first.pick(Some(class), at(now), &[BackendId(1 - worker)]).unwrap();
        now += millis;
        pick.finish(AttemptOutcome::Answered, at(now));
    };
    (0..20).for_each(|_| {
        [(0, b"a", 5), (1, b"a", 50), (0, b"b", 50), (1, b"b", 5)]
            .into_iter()
            .for_each(|(w, c, ms)| serve(w, c, ms))
    });
    let saved = first.save_skills();
    assert_eq!(saved.workers.len(), 2);
    assert!((saved.workers[0].skills[0].1 - 200.0).abs() < 10.0, "{saved:?}");

    let second = inferred();
    assert_eq!(second.restore_skills(&saved), 4);
    assert_eq!(pick(&second, b"a").id().0, 0);
    assert_eq!(pick(&second, b"b").id().0, 1);
    let stale = SavedSkills { classifier: 5, ..saved };
    assert_eq!(inferred().restore_skills(&stale), 0);
    assert_eq!(plain(2).save_skills(), SavedSkills::default());
}

#[test]
fn cores_share_skills_without_losing_work() {
    let pool = plain(8);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let pool = &pool;
            scope.spawn(move || {
                for round in 0..3000_u64 {
                    let class = format!("{}", (round * 7 + thread) % 50);
                    let pick = pool.pick(Some(class.as_bytes()), at(round), &[]).unwrap();
                    if round % 100 == 0 {
                        let skills = [(class.as_bytes(), round as f64 + 1.0)];
                        let worker = pick.id();
                        let instance = format!("i{}", worker.0);
                        let _ = pool.resumes().unwrap().whole(worker, 0, &instance, round, skills);
                    }
                    pick.finish(AttemptOutcome::Answered, at(round + 1));
                }
            });
        }
    });
    assert!(pool.backends().iter().all(|backend| backend.in_flight() == 0));
    let counts = pool.resumes().unwrap().counts();
    let mut seen = 0;
    let saved = pool.resumes().unwrap();
    saved.resume.skills.each(|_, class| seen += class.skilled.len());
    assert_eq!(counts.skills, seen);
}

proptest! {
    #[test]
    fn whatever_is_said_counts_hold_and_requests_are_served(
        steps in prop::collection::vec((0_u8..6, 0_u32..4, 0_u8..12, prop::num::f64::ANY), 0..200),
    ) {
        let pool = pool(3, settings(|resume| resume.max_classes = 8));
        let resumes = pool.resumes().unwrap();
        for (step, (what, worker, class, score)) in steps.into_iter().enumerate() {
            let class = [class];
            let worker = BackendId(worker);
            match what {
                0 => drop(resumes.whole(worker, 0, "a", step as u64, [(&class[..], score), (b"x", 1.0)])),
                1 => drop(resumes.changed(worker, 0, "a", step as u64, [(&class[..], score)])),
                2 => resumes.forget(worker),
                3 => {
                    let in_flight = Some(class[0].into());
                    let concurrency = Some(class[0].into());
                    let state = WorkerState { instance: "b", revision: 1, in_flight, concurrency, version: None };
                    resumes.heard(worker, &state, NOW);
                }
                _ => {
                    let outcome = if what == 4 { AttemptOutcome::Answered } else { AttemptOutcome::ServerError };
                    pool.pick(Some(&class), at(step as u64), &[]).unwrap().finish(outcome, at(step as u64 + 3));
                }
            }
            let (mut classes, mut skills) = (0, 0);
            resumes.resume.skills.each(|_, class| {
                classes += 1;
                skills += class.skilled.len();
                assert!(class.skilled.is_sorted_by(|one, two| one.score >= two.score));
                assert!(class.skilled.iter().all(|skill| skill.score.is_finite() && skill.score > 0.0));
            });
            let counts = resumes.counts();
            prop_assert_eq!(counts.classes, classes);
            prop_assert_eq!(counts.skills, skills);
            prop_assert!(classes <= 8);
        }
    }
}
