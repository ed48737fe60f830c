//! Tests of the choice by résumé, through the pool.

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
        pick(&pool, class).finish(Outcome::ServerError, at(5));
        assert_eq!((pool.class(class), count()), (None, 0));
    }
    pick(&pool, b"a").finish(Outcome::Answered, at(5));
    pick(&pool, b"a").finish(Outcome::ServerError, at(10));
    tell(&pool, 1, &[("c", 50.0)]);
    pick(&pool, b"c").finish(Outcome::ServerError, at(10));
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
            picked.finish(Outcome::Answered, at(step * 10 + 5));
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
    // As many in hand as each weighs.
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
    // One slow request is more to wait for than three quick ones.
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
    assert_eq!((counts.classes, counts.skills), (4, 4));
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

#[test]
fn a_worker_that_others_load_is_spared() {
    let pool = plain(2);
    tell(&pool, 0, &[("a", 100.0)]);
    tell(&pool, 1, &[("a", 99.0)]);
    let answered = pick(&pool, b"a");
    assert_eq!(answered.id().0, 0);
    let state = WorkerState { instance: "i0", revision: 1, in_flight: Some(7), version: None };
    assert_eq!(pool.resumes().unwrap().heard(answered.id(), &state, NOW), Heard::Current);
    answered.finish(Outcome::Answered, at(10));
    assert_eq!(pool.pick(Some(b"a"), at(20), &[]).unwrap().id().0, 1);
    // What was said long ago no longer counts.
    assert_eq!(pool.pick(Some(b"a"), at(5000), &[]).unwrap().id().0, 0);
}

#[test]
fn a_worker_whose_requests_fail_is_avoided_and_forgiven() {
    let pool = plain(2);
    tell(&pool, 0, &[("a", 100.0)]);
    tell(&pool, 1, &[("a", 90.0)]);
    for _ in 0..20 {
        let pick = pool.pick(Some(b"a"), NOW, &[BackendId(1)]).unwrap();
        pick.finish(Outcome::ServerError, NOW);
    }
    assert_eq!(pick(&pool, b"a").id().0, 1);
    for step in 0..200 {
        let pick = pool.pick(Some(b"a"), at(step * 10), &[BackendId(1)]).unwrap();
        pick.finish(Outcome::Answered, at(step * 10 + 5));
    }
    assert_eq!(pool.pick(Some(b"a"), at(3000), &[]).unwrap().id().0, 0);
}

/// Regression: once it had failed it counted as busier than any of several quick requests made the other.
#[test]
fn a_worker_that_failed_once_is_given_new_classes_again() {
    let pool = plain(2);
    let mut given = [0; 2];
    for n in 0..400 {
        let picked = pool.pick(Some(format!("{n}").as_bytes()), at(n * 10), &[]).unwrap();
        let failed = n == 100;
        let outcome = if failed { Outcome::Broken } else { Outcome::Answered };
        given[picked.id().0 as usize] += usize::from(n > 100);
        picked.finish(outcome, at(n * 10) + Duration::from_micros(200));
    }
    assert!(given.iter().all(|&times| times > 100), "{given:?}");
}

/// Regression: failures faded with answers alone, and one that is avoided for them has none.
#[test]
fn a_worker_that_failed_is_tried_again_after_a_minute() {
    for recovers in [true, false] {
        let pool = plain(2);
        for _ in 0..40 {
            pool.pick(Some(b"a"), NOW, &[BackendId(1)]).unwrap().finish(Outcome::ServerError, NOW);
        }
        // Three minutes of requests, each of another class, by half minutes.
        let mut given = [0; 6];
        for n in 0..1800 {
            let picked = pool.pick(Some(format!("{n}").as_bytes()), at(n * 100), &[]).unwrap();
            let failing = picked.id().0 == 0;
            given[n as usize / 300] += usize::from(failing);
            let outcome = if failing && !recovers { Outcome::ServerError } else { Outcome::Answered };
            picked.finish(outcome, at(n * 100 + 50));
        }
        if recovers {
            assert!(given[..2] == [0, 0] && given[3] > 100, "{given:?}");
        } else {
            assert!(given.iter().sum::<usize>() <= 3, "{given:?}");
        }
    }
}

/// Regression: a worker that had come back was not asked again for as long as others knew every class and were not busy.
#[test]
fn a_worker_is_tried_as_soon_as_its_ejection_is_over_though_others_know_the_class() {
    let pool = plain(3);
    tell(&pool, 0, &[("a", 100.0)]);
    let others = [BackendId(0), BackendId(2)];
    for _ in 0..3 {
        pool.pick(Some(b"b"), NOW, &others).unwrap().finish(Outcome::ConnectFailed, NOW);
    }
    let asked = |ms: u64| {
        let picked = pool.pick(Some(b"a"), at(ms), &[]).unwrap();
        let worker = picked.id().0;
        picked.finish(Outcome::Answered, at(ms));
        worker
    };
    let while_ejected: Vec<u32> = (0..9).map(|request| asked(900 + request)).collect();
    assert_eq!(while_ejected, [0; 9]);
    // It is ejected for a second.
    let over: Vec<u32> = (0..3).map(|request| asked(1100 + request)).collect();
    assert!(over.contains(&1), "{over:?}");
}

/// Regression: after one answer that took long for a reason of the machine's, the worker that gave all answers seemed to cost more
/// than one that failed at once, which was asked from then on and had no answer by which it could have been told otherwise.
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
            picked.finish(if fails { Outcome::ServerError } else { Outcome::Answered }, at(now));
            fails
        };
        // Until its failures are noticed.
        while ask(100) {}
        let failures = (0..60).filter(|request| ask(if request % 20 == 5 { stall } else { 100 })).count();
        assert_eq!(failures, 0, "an answer took {stall} ms");
    }
}

#[test]
fn what_a_worker_says_tells_whether_its_resume_is_known() {
    let pool = plain(2);
    let resumes = pool.resumes().unwrap();
    let state = |instance, revision| WorkerState { instance, revision, in_flight: None, version: None };
    let worker = BackendId(0);
    assert_eq!(resumes.heard(worker, &state("x", 3), NOW), Heard::Unknown);
    resumes.whole(worker, 0, "x", 3, [(&b"a"[..], 10.0)]).unwrap();
    assert_eq!(resumes.known(worker), Some(Known { instance: "x".into(), revision: 3 }));
    assert_eq!(resumes.heard(worker, &state("x", 3), NOW), Heard::Current);
    assert_eq!(resumes.heard(worker, &state("x", 4), NOW), Heard::Behind);
    assert_eq!(resumes.changed(worker, 0, "x", 4, [(&b"b"[..], 5.0), (b"a", 0.0)]).unwrap().taken, 2);
    assert_eq!(resumes.counts().skills, 1);
    assert_eq!(resumes.changed(worker, 0, "x", 4, []), Err(Disbelief::Outdated));
    assert_eq!(resumes.changed(worker, 0, "y", 9, []), Err(Disbelief::OtherInstance));
    assert_eq!(resumes.heard(worker, &state("y", 1), NOW), Heard::Unknown);
    assert_eq!(resumes.heard(BackendId(7), &state("y", 1), NOW), Heard::NotAsked);
    // The same process cannot be at two addresses.
    assert_eq!(resumes.whole(BackendId(1), 0, "x", 4, []), Err(Disbelief::Elsewhere));
    assert_eq!(resumes.whole(worker, 1, "x", 9, []), Err(Disbelief::OtherClassifier));
    assert_eq!(resumes.whole(BackendId(7), 0, "z", 1, []), Err(Disbelief::Stranger));
    resumes.forget(worker);
    assert_eq!((resumes.known(worker), resumes.counts().skills), (None, 0));
    assert!(Pool::new("app", vec![backend(0)], Algorithm::Random).resumes().is_none());
}

/// Regression: a résumé that was being fetched as the classifier changed counted as known to the pool that followed, which had no
/// skills of it and never asked for them.
#[test]
fn what_a_pool_hears_late_is_not_known_to_the_one_that_followed_with_other_skills() {
    let settings = |classifier| {
        let resume = ResumeSettings { classifier, ..ResumeSettings::default() };
        Settings { resume, ..Algorithm::Resume.into() }
    };
    let worker = BackendId(0);
    let first = Pool::new("app", vec![backend(0)], settings(1));
    let second = first.succeeded_by(vec![backend(0)], settings(2));
    let third = second.succeeded_by(vec![backend(0)], settings(1));
    for late in [&first, &second] {
        let resumes = late.resumes().unwrap();
        let classifier = late.settings().resume.classifier;
        resumes.whole(worker, classifier, "x", 1, [(&b"a"[..], 10.0)]).unwrap();
        assert!(resumes.known(worker).is_some());
        assert_eq!(third.resumes().unwrap().known(worker), None);
    }
    third.resumes().unwrap().whole(worker, 1, "x", 1, [(&b"a"[..], 10.0)]).unwrap();
    assert!(third.resumes().unwrap().known(worker).is_some());
    assert_eq!(third.resumes().unwrap().counts().skills, 1);
}

#[test]
fn a_whole_resume_takes_the_place_of_the_one_before() {
    let pool = plain(1);
    tell(&pool, 0, &[("a", 1.0), ("b", 2.0)]);
    // Begun, not reported yet.
    drop(pick(&pool, b"new"));
    let resumes = pool.resumes().unwrap();
    resumes.whole(BackendId(0), 0, "i0", 2, [(&b"b"[..], 3.0)]).unwrap();
    assert_eq!(resumes.counts().skills, 2);
    resumes.whole(BackendId(0), 0, "another start", 1, [(&b"b"[..], 3.0)]).unwrap();
    assert_eq!(resumes.counts().skills, 1);
}

#[test]
fn what_cannot_be_a_score_is_ignored_for_a_named_reason() {
    let pool = plain(1);
    let long = "x".repeat(MAX_CLASS_BYTES + 1);
    let believed = tell(
        &pool,
        0,
        &[("a", f64::NAN), ("b", f64::INFINITY), ("c", -1.0), ("d", 1e10), (&long, 1.0), ("e", 5.0)],
    );
    assert_eq!(believed.taken, 1);
    let ignored: Vec<_> = believed.ignored.into_iter().collect();
    assert_eq!(
        ignored,
        [
            (Disbelief::NotANumber, 2),
            (Disbelief::Negative, 1),
            (Disbelief::Absurd, 1),
            (Disbelief::LongClass, 1)
        ]
    );
}

#[test]
fn a_class_for_each_request_takes_no_more_memory_than_it_may() {
    let pool = pool(2, settings(|resume| resume.max_classes = 100));
    tell(&pool, 0, &[("steady", 100.0)]);
    for n in 0..5000 {
        drop(pick(&pool, format!("class-{n}").as_bytes()));
    }
    let counts = pool.resumes().unwrap().counts();
    assert!(counts.classes <= 100 && counts.forgotten + counts.refused > 4000, "{counts:?}");
    assert_eq!(pick(&pool, b"steady").id().0, 0);
}

/// A pool with room for 400 classes, all of which worker 0 has told of.
fn filled(workers: usize) -> Pool {
    let pool = pool(workers, settings(|resume| resume.max_classes = 400));
    let names: Vec<String> = (0..1000).map(|n| format!("own-{n}")).collect();
    let skills: Vec<(&str, f64)> = names.iter().map(|name| (name.as_str(), 100.0)).collect();
    let believed = tell(&pool, 0, &skills);
    assert_eq!((believed.taken, believed.ignored[&Disbelief::TooManyClasses]), (400, 600));
    pool
}

/// Regression: one worker that told of as many classes as are remembered kept all others out for ever.
#[test]
fn classes_that_are_asked_for_find_room_however_many_a_worker_tells_of() {
    let pool = filled(3);
    let others = [BackendId(0), BackendId(1)];
    for n in 0..80 {
        let pick = pool.pick(Some(format!("asked-{n}").as_bytes()), NOW, &others).unwrap();
        pick.finish(Outcome::Answered, at(1));
    }
    for n in 0..80 {
        assert!(pool.class(format!("asked-{n}").as_bytes()).is_some(), "asked-{n}");
    }
    let counts = pool.resumes().unwrap().counts();
    assert_eq!((counts.classes, counts.forgotten, counts.forgotten_told), (400, 80, 80));
    assert_eq!(counts.forgotten_for_requests, 80);
    assert_eq!(counts.refused, 600);
}

#[test]
fn of_classes_that_nobody_asks_for_each_worker_may_have_as_many_as_the_others() {
    let pool = filled(2);
    let names: Vec<String> = (0..1000).map(|n| format!("other-{n}")).collect();
    let skills: Vec<(&str, f64)> = names.iter().map(|name| (name.as_str(), 100.0)).collect();
    let taken = tell(&pool, 1, &skills).taken;
    assert!((190..=200).contains(&taken), "{taken} of 400");
    let counts = pool.resumes().unwrap().counts();
    assert_eq!((counts.classes, counts.skills, counts.forgotten as usize), (400, 400, taken));
    assert_eq!(pool.resumes().unwrap().most_told().unwrap().0, BackendId(0));
    // The first does not get it back by telling it again.
    pool.resumes()
        .unwrap()
        .whole(BackendId(1), 0, "i1", 2, skills[..50].iter().map(|s| (s.0.as_bytes(), s.1)))
        .unwrap();
    assert!(pool.resumes().unwrap().counts().classes < 400, "what it no longer has is free");
}

#[test]
fn a_class_that_is_asked_for_is_not_driven_out_by_what_workers_tell() {
    let pool = filled(2);
    let asked: Vec<String> = (0..1000).map(|n| format!("own-{n}")).collect();
    let asked: Vec<&String> = asked.iter().filter(|name| pool.class(name.as_bytes()).is_some()).collect();
    asked.iter().for_each(|name| drop(pool.pick(Some(name.as_bytes()), NOW, &[BackendId(1)]).unwrap()));
    let names: Vec<String> = (0..100).map(|n| format!("other-{n}")).collect();
    let skills: Vec<(&str, f64)> = names.iter().map(|name| (name.as_str(), 100.0)).collect();
    assert_eq!(tell(&pool, 1, &skills).taken, 0);
    assert!(asked.iter().all(|name| pool.class(name.as_bytes()).is_some()));
}

#[test]
fn a_flood_of_new_classes_drives_out_a_quarter_of_what_workers_told_at_most() {
    let pool = filled(2);
    for n in 0..5000 {
        drop(pick(&pool, format!("flood-{n}").as_bytes()));
    }
    let left = (0..1000).filter(|n| pool.class(format!("own-{n}").as_bytes()).is_some()).count();
    assert!((299..=300).contains(&left), "{left} of 400");
    assert_eq!(pool.resumes().unwrap().counts().classes, 400);
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
    assert_eq!((resumes.counts().skills, resumes.known(BackendId(2))), (0, None));
}

#[test]
fn skills_are_inferred_from_latencies_and_survive_a_restart() {
    let inferred = || pool(2, settings(|resume| resume.skills = SkillSource::Inferred));
    let first = inferred();
    let mut now = 0;
    let mut serve = |worker: u32, class: &[u8], millis: u64| {
        let pick = first.pick(Some(class), at(now), &[BackendId(1 - worker)]).unwrap();
        now += millis;
        pick.finish(Outcome::Answered, at(now));
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
    assert_eq!((pick(&second, b"a").id().0, pick(&second, b"b").id().0), (0, 1));
    let stale = SavedSkills { classifier: 5, ..saved };
    assert_eq!(inferred().restore_skills(&stale), 0);
    assert_eq!(plain(2).save_skills(), SavedSkills::default());
}

#[test]
fn the_version_that_most_run_serves_and_a_tie_keeps_the_one_in_service() {
    let single = Settings { single_version: true, ..Algorithm::Resume.into() };
    let pool = Pool::new("app", (0..4).map(backend).collect(), single);
    let announce = |worker: u32, version: &str| {
        let state = WorkerState { instance: "i", revision: 0, in_flight: None, version: Some(version) };
        pool.resumes().unwrap().heard(BackendId(worker), &state, NOW);
    };
    let serving = || {
        let report = pool.report(NOW);
        report.iter().filter(|report| !report.sidelined).map(|report| report.id.0).collect::<Vec<_>>()
    };
    (0..4).for_each(|worker| announce(worker, "1"));
    assert_eq!(serving(), [0, 1, 2, 3]);
    announce(0, "2");
    assert_eq!(serving(), [1, 2, 3]);
    announce(1, "2");
    assert_eq!(serving(), [2, 3], "a tie");
    assert!((0..20).all(|n| pick(&pool, format!("{n}").as_bytes()).id().0 >= 2));
    announce(2, "2");
    assert_eq!(serving(), [0, 1, 2]);
    // One that drains is not of the majority.
    pool.drain(BackendId(0), true);
    announce(1, "3");
    announce(2, "1");
    assert_eq!(serving(), [2, 3]);
}

#[test]
fn what_an_earlier_start_of_a_worker_says_late_does_not_change_its_version() {
    let single = Settings { single_version: true, ..Algorithm::Resume.into() };
    let pool = Pool::new("app", (0..2).map(backend).collect(), single);
    let resumes = pool.resumes().unwrap();
    let state =
        |instance, version| WorkerState { instance, revision: 1, in_flight: None, version: Some(version) };
    let version = || pool.report(NOW)[0].version.clone().unwrap_or_default();
    let worker = BackendId(0);
    // Where it was never met, any word is as good as another.
    resumes.heard(worker, &state("x", "1"), NOW);
    resumes.heard(worker, &state("y", "2"), NOW);
    assert_eq!(&*version(), "2");
    assert!(resumes.is_at(worker, "x"));
    resumes.met(worker, &state("z", "3"), NOW, NOW);
    resumes.heard(worker, &state("y", "2"), NOW);
    assert_eq!(&*version(), "3");
    // Asked on a connection of before, it answers only now.
    resumes.met(worker, &state("y", "2"), NOW - Duration::from_millis(1), NOW);
    assert_eq!(&*version(), "3");
    assert!(resumes.is_at(worker, "z") && !resumes.is_at(worker, "y"));
    resumes.heard(worker, &state("z", "4"), NOW);
    assert_eq!(&*version(), "4", "it may say what it likes of itself");
    // One that cannot be met any more is believed its responses again.
    resumes.doubt(worker);
    resumes.heard(worker, &state("a", "5"), NOW);
    assert_eq!(&*version(), "5");
}

#[test]
fn a_request_that_has_tried_all_of_the_version_that_serves_goes_to_another() {
    let single = Settings { single_version: true, ..Algorithm::Resume.into() };
    let full = (0..4).map(|n| backend(n).max_in_flight(1)).collect();
    let pool = Pool::new("app", full, single);
    for (worker, version) in [(0, "1"), (1, "1"), (2, "2"), (3, "2")] {
        let state = WorkerState { instance: "i", revision: 0, in_flight: None, version: Some(version) };
        pool.resumes().unwrap().heard(BackendId(worker), &state, NOW);
    }
    let first = pick(&pool, b"a").id().0;
    let (serving, others) = if first < 2 { ([0, 1], 2..4) } else { ([2, 3], 0..2) };
    let tried = serving.map(BackendId);
    let other = pool.pick(Some(b"a"), NOW, &tried).unwrap();
    assert!(others.contains(&other.id().0));
    // But not where one of them is only full.
    drop(other);
    let _full = pool.pick(Some(b"a"), NOW, &tried[..1]).unwrap();
    assert_eq!(pool.pick(Some(b"a"), NOW, &tried[..1]).unwrap_err(), NoBackend::AllFull);
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
                    pick.finish(Outcome::Answered, at(round + 1));
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
                    let state = WorkerState { instance: "b", revision: 1, in_flight, version: None };
                    resumes.heard(worker, &state, NOW);
                }
                _ => {
                    let outcome = if what == 4 { Outcome::Answered } else { Outcome::ServerError };
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
            prop_assert_eq!((counts.classes, counts.skills), (classes, skills));
            prop_assert!(classes <= 8);
        }
    }
}
