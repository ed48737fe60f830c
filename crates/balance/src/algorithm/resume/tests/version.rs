//! The version that serves.

use super::*;

/// Takes a response of a worker that runs this version.
fn announce(pool: &Pool, worker: u32, version: &str) {
    let state = WorkerState { instance: "i", version: Some(version), ..WorkerState::default() };
    pool.resumes().unwrap().heard(BackendId(worker), &state, NOW);
}

#[test]
fn the_version_that_most_run_serves_and_a_tie_keeps_the_one_in_service() {
    let single = Settings { single_version: true, ..Algorithm::Resume.into() };
    let pool = Pool::new("app", (0..4).map(backend).collect(), single);
    let announce = |worker, version| announce(&pool, worker, version);
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
    // A draining one does not count for the majority.
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
    let state = |instance, version| WorkerState {
        instance,
        revision: 1,
        version: Some(version),
        ..WorkerState::default()
    };
    let version = || pool.report(NOW)[0].version.clone().unwrap_or_default();
    let worker = BackendId(0);
    // If it was never identified, every report counts.
    resumes.heard(worker, &state("x", "1"), NOW);
    resumes.heard(worker, &state("y", "2"), NOW);
    assert_eq!(&*version(), "2");
    assert!(resumes.is_at(worker, "x"));
    resumes.met(worker, &state("z", "3"), NOW, NOW);
    resumes.heard(worker, &state("y", "2"), NOW);
    assert_eq!(&*version(), "3");
    // Asked on an earlier connection, it answers only now.
    resumes.met(worker, &state("y", "2"), NOW - Duration::from_millis(1), NOW);
    assert_eq!(&*version(), "3");
    assert!(resumes.is_at(worker, "z") && !resumes.is_at(worker, "y"));
    resumes.heard(worker, &state("z", "4"), NOW);
    assert_eq!(&*version(), "4", "it may say what it likes of itself");
    // After a failed identification, its responses count again.
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
        announce(&pool, worker, version);
    }
    let first = pick(&pool, b"a").id().0;
    let (serving, others) = if first < 2 { ([0, 1], 2..4) } else { ([2, 3], 0..2) };
    let tried = serving.map(BackendId);
    let other = pool.pick(Some(b"a"), NOW, &tried).unwrap();
    assert!(others.contains(&other.id().0));
    // But not if one of them is only full.
    drop(other);
    let _full = pool.pick(Some(b"a"), NOW, &tried[..1]).unwrap();
    assert_eq!(pool.pick(Some(b"a"), NOW, &tried[..1]).unwrap_err(), NoBackend::AllFull);
}
