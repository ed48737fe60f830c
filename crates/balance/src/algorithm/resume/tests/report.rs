//! Reports of workers, and the parts of them that are accepted.

use super::*;

#[test]
fn what_a_worker_says_tells_whether_its_resume_is_known() {
    let pool = plain(2);
    let resumes = pool.resumes().unwrap();
    let state = |instance, revision| WorkerState { instance, revision, ..WorkerState::default() };
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
    assert_eq!(resumes.known(worker), None);
    assert_eq!(resumes.counts().skills, 0);
    assert!(Pool::new("app", vec![backend(0)], Algorithm::Random).resumes().is_none());
}

/// Regression: a résumé that was being fetched when the classifier changed counted as known to the succeeding
/// pool, which had none of its skills and never fetched them.
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
