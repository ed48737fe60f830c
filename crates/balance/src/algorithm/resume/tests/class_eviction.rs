//! The room for classes, and the choice of classes to forget.

use super::*;

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

/// A pool with room for 400 classes, all of which worker 0 has reported.
fn filled(workers: usize) -> Pool {
    let pool = pool(workers, settings(|resume| resume.max_classes = 400));
    let names: Vec<String> = (0..1000).map(|n| format!("own-{n}")).collect();
    let skills: Vec<(&str, f64)> = names.iter().map(|name| (name.as_str(), 100.0)).collect();
    let believed = tell(&pool, 0, &skills);
    assert_eq!(believed.taken, 400);
    assert_eq!(believed.ignored[&Disbelief::TooManyClasses], 600);
    pool
}

/// Regression: a worker that reported as many classes as are remembered kept all others out for ever.
#[test]
fn classes_that_are_asked_for_find_room_however_many_a_worker_tells_of() {
    let pool = filled(3);
    let others = [BackendId(0), BackendId(1)];
    for n in 0..80 {
        let pick = pool.pick(Some(format!("asked-{n}").as_bytes()), NOW, &others).unwrap();
        pick.finish(AttemptOutcome::Answered, at(1));
    }
    for n in 0..80 {
        assert!(pool.class(format!("asked-{n}").as_bytes()).is_some(), "asked-{n}");
    }
    let counts = pool.resumes().unwrap().counts();
    assert_eq!(counts.classes, 400);
    assert_eq!(counts.forgotten, 80);
    assert_eq!(counts.forgotten_reported, 80);
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
    assert_eq!(counts.classes, 400);
    assert_eq!(counts.skills, 400);
    assert_eq!(counts.forgotten as usize, taken);
    assert_eq!(pool.resumes().unwrap().most_reported().unwrap().0, BackendId(0));
    // The first does not get it back by reporting it again.
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
