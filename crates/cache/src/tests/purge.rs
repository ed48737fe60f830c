//! Purges, and fetches overtaken by a purge.

use super::*;
use crate::Purge::{Hard, Soft};

#[test]
fn a_hard_purge_removes_every_variant_and_a_soft_one_makes_them_stale() {
    for purge in [Hard, Soft] {
        let store = store(1 << 20);
        for tongue in ["de", "en"] {
            response("/").vary("X-Lang", &[("X-Lang", tongue)]).put(&store, tongue.as_bytes());
        }
        response("/other").put(&store, b"other");
        assert_eq!(store.purge(key("/"), purge, at(3)), 2);
        let german = get("/").with(&[("X-Lang", "de")]);
        match purge {
            Hard => assert_eq!(look(&store, &german, at(3)), "miss"),
            Soft => {
                assert_eq!(look(&store, &german, at(3)), "stale de, validate");
                assert_eq!(look(&store, &german, at(7)), "stale de, validate");
                // Grace and keep count from the purge.
                assert_eq!(look(&store, &german, at(8)), "miss, candidate de");
                assert_eq!(look(&store, &german, at(63)), "miss");
            }
        }
        assert_eq!(look(&store, &get("/other"), at(3)), "hit other");
        assert_eq!(store.purge(key("/none"), purge, at(3)), 0);
    }
}

#[test]
fn what_a_validation_freshens_after_a_soft_purge_is_fresh() {
    let store = store(1 << 20);
    response("/").put(&store, b"one");
    store.purge(key("/"), Soft, at(1));
    let validation = flight(get("/").lookup(&store, at(2)));
    validation.refresh(response("/").lifetimes(at(2), 10, 0, 0).new_object());
    assert_eq!(look(&store, &get("/"), at(3)), "hit one");
}

#[test]
fn tags_and_groups_find_their_objects_and_no_others() {
    for purge in [Hard, Soft] {
        let store = store(1 << 20);
        response("/1").tags(&["a", "b", "a"]).put(&store, b"1");
        response("/2").tags(&["b"]).put(&store, b"2");
        response("/3").put(&store, b"3");
        let mut grouped = response("/4");
        grouped.tags = vec![Tag::group(b"http://a.example", b"b")];
        grouped.put(&store, b"4");
        let tag = |tag: &str| Tag::new(tag.as_bytes());
        assert_eq!(store.purge_tags(&[tag("none"), tag("a")], purge, at(1)), 1);
        assert_ne!(look(&store, &get("/1"), at(1)), "hit 1");
        for path in ["/2", "/3", "/4"] {
            assert_eq!(look(&store, &get(path), at(1)), format!("hit {}", &path[1..]));
        }
        let left = if purge == Hard { 1 } else { 2 };
        assert_eq!(store.purge_tags(&[tag("b")], purge, at(1)), left);
        assert_eq!(store.purge_tags(&[Tag::group(b"http://b.example", b"b")], purge, at(1)), 0);
        assert_eq!(store.purge_tags(&[Tag::group(b"http://a.example", b"b")], purge, at(1)), 1);
        assert_eq!(look(&store, &get("/3"), at(1)), "hit 3");
    }
}

#[test]
fn a_replaced_or_evicted_object_is_no_longer_under_its_tags() {
    let store = store(1 << 20);
    response("/").tags(&["old"]).put(&store, b"one");
    response("/").tags(&["new"]).put(&store, b"two");
    assert_eq!(store.purge_tags(&[Tag::new(b"old")], Hard, START), 0);
    assert_eq!(look(&store, &get("/"), START), "hit two");
    for n in 0..5000 {
        response(&format!("/{n}")).tags(&["many", "few"]).put(&store, &[b'x'; 1000]);
    }
    let objects = store.stats().objects as usize;
    assert!(objects < 1000);
    let tagged = store.purge_tags(&[Tag::new(b"many")], Hard, START);
    assert!(tagged == objects || tagged + 1 == objects, "{tagged} of {objects}");
    assert_eq!(store.purge_tags(&[Tag::new(b"few")], Hard, START), 0);
}

#[test]
fn a_purge_of_everything_leaves_nothing_fresh() {
    let store = store(8 << 20);
    let fill = || (0..2000).for_each(|n| _ = response(&format!("/{n}")).put(&store, b"x"));
    fill();
    flight(get("/marked").lookup(&store, START)).mark(crate::Mark::HitForPass, at(50), START);
    assert_eq!(store.purge_all(Soft, START), 2000);
    assert_eq!(look(&store, &get("/7"), at(1)), "stale x, validate");
    assert_eq!(look(&store, &get("/marked"), at(1)), "miss");
    fill();
    assert_eq!(store.purge_all(Hard, START), 2000);
    assert_eq!(look(&store, &get("/7"), at(1)), "miss");
    assert_eq!(store.stats().objects, 0);
}

/// A kind of purge that matches `/`, whose tag is `t`.
type Way = (&'static str, fn(&Store));

fn purges() -> [Way; 7] {
    [
        ("key", |store| _ = store.purge(key("/"), Hard, START)),
        ("key, soft", |store| _ = store.purge(key("/"), Soft, START)),
        ("tag", |store| _ = store.purge_tags(&[Tag::new(b"t")], Hard, START)),
        ("tag, soft", |store| _ = store.purge_tags(&[Tag::new(b"t")], Soft, START)),
        ("all", |store| _ = store.purge_all(Hard, START)),
        ("ban", |store| store.ban("path == \"/\"".parse().unwrap(), START)),
        ("many", |store| {
            let tags: Vec<Tag> = (0..10_000).map(|n: u32| Tag::new(&n.to_le_bytes())).collect();
            store.purge_tags(&[Tag::new(b"t")], Hard, START);
            store.purge_tags(&tags, Hard, START);
        }),
    ]
}

fn hard_purges() -> impl Iterator<Item = Way> {
    purges().into_iter().filter(|(name, _)| !name.ends_with("soft"))
}

#[test]
fn a_fill_begun_before_a_purge_reaches_those_waiting_and_nobody_later() {
    for (name, purge) in purges() {
        let store = store(1 << 20);
        let leader = flight(get("/").lookup(&store, START));
        let (task, mut before) = (Task::new(), waiter(get("/").lookup(&store, START)));
        assert!(task.wait(&mut before, &get("/"), START).is_pending());
        purge(&store);
        // A request after the purge does not wait for an earlier fetch.
        let newer = flight(get("/").lookup(&store, START));
        let object = leader.store_complete(response("/").tags(&["t"]).new_object(), &[b"old"], None);
        assert_eq!(text(&object), "old", "{name}");
        assert_eq!(told(&task.wait(&mut before, &get("/"), START)), "object old", "{name}");
        assert_eq!(look(&store, &get("/"), START), "wait", "{name}");
        newer.store_complete(response("/").tags(&["t"]).new_object(), &[b"new"], None);
        assert_eq!(look(&store, &get("/"), START), "hit new", "{name}");
    }
}

#[test]
fn a_body_that_is_arriving_when_purged_goes_on_for_its_readers_only() {
    for (name, purge) in purges() {
        let store = store(1 << 20);
        let mut writer =
            flight(get("/").lookup(&store, START)).store(response("/").tags(&["t"]).new_object());
        writer.append(b"be");
        let mut reader = hit(get("/").lookup(&store, START)).reader().unwrap();
        purge(&store);
        assert!(!look(&store, &get("/"), at(6)).starts_with("hit"), "{name}");
        writer.append(b"gin");
        writer.finish(None);
        assert_eq!(Task::new().read(&mut reader), "begin<end>", "{name}");
        let after = look(&store, &get("/"), at(6));
        assert!(!after.starts_with("hit"), "{name}: {after}");
    }
}

#[test]
fn a_purge_of_something_else_leaves_a_fill_alone() {
    let store = store(1 << 20);
    let leader = flight(get("/").lookup(&store, START));
    store.purge(key("/other"), Hard, START);
    store.purge_tags(&[Tag::new(b"other")], Hard, START);
    store.ban("path == \"/other\"".parse().unwrap(), START);
    leader.store_complete(response("/").tags(&["t"]).new_object(), &[b"one"], None);
    assert_eq!(look(&store, &get("/"), START), "hit one");
}

#[test]
fn a_validation_that_a_purge_overtakes_does_not_bring_the_object_back() {
    for (name, purge) in purges() {
        let store = store(1 << 20);
        response("/").tags(&["t"]).put(&store, b"old");
        let validation = flight(get("/").lookup(&store, at(20)));
        purge(&store);
        let fresh = response("/").lifetimes(at(20), 10, 0, 0).tags(&["t"]);
        let object = validation.refresh(fresh.new_object()).unwrap();
        assert_eq!(text(&object), "old", "{name}");
        let after = look(&store, &get("/"), at(21));
        assert!(!after.starts_with("hit"), "{name}: {after}");
    }
}

/// Regression: the 304 had other tags, so a soft purge by the old ones was forgotten.
#[test]
fn a_validation_that_changes_the_tags_is_overtaken_by_a_purge_of_the_old_ones() {
    for purge in [Hard, Soft] {
        let store = store(1 << 20);
        response("/").tags(&["old"]).put(&store, b"old");
        let validation = flight(get("/").lookup(&store, at(20)));
        store.purge_tags(&[Tag::new(b"old")], purge, at(20));
        let fresh = response("/").lifetimes(at(20), 10, 0, 0).tags(&["new"]);
        _ = validation.refresh(fresh.new_object());
        let after = look(&store, &get("/"), at(21));
        assert!(!after.starts_with("hit"), "{purge:?}: {after}");
    }
}

/// A flight with a stale candidate that is purged while a waiter waits.
fn purged_beside_a_waiter(purge: &dyn Fn(&Store)) -> (Arc<Store>, Flight, Waiter) {
    let store = store(1 << 20);
    response("/").tags(&["t"]).put(&store, b"old");
    let leader = flight(get("/").lookup(&store, at(20)));
    let mut waiter = waiter(get("/").lookup(&store, at(20)));
    assert!(Task::new().wait(&mut waiter, &get("/"), at(20)).is_pending());
    purge(&store);
    (store, leader, waiter)
}

fn lead(waiter: &mut Waiter) -> Flight {
    match Task::new().wait(waiter, &get("/"), at(20)) {
        Poll::Ready(Waited::Lead(flight)) => flight,
        other => panic!("no lead: {}", told(&other)),
    }
}

#[test]
fn a_flight_handed_over_after_a_purge_is_clean() {
    for (name, purge) in hard_purges() {
        let (store, leader, mut waiter) = purged_beside_a_waiter(&purge);
        drop(leader);
        let flight = lead(&mut waiter);
        assert!(flight.candidate().is_none(), "{name}: the purged object is no candidate");
        flight.store_complete(response("/").lifetimes(at(20), 10, 0, 0).new_object(), &[b"new"], None);
        assert_eq!(look(&store, &get("/"), at(20)), "hit new", "{name}");
    }
}

/// Regression: requests that had joined after the purge got the purged object as their candidate when the fetches failed.
#[test]
fn a_flight_that_is_released_after_a_purge_hands_on_no_purged_candidate() {
    for (name, purge) in hard_purges() {
        let (store, leader, mut first) = purged_beside_a_waiter(&purge);
        drop(leader);
        let second_lead = lead(&mut first);
        let mut later = [(); 2].map(|()| waiter(get("/").lookup(&store, at(20))));
        for waiter in &mut later {
            assert!(Task::new().wait(waiter, &get("/"), at(20)).is_pending());
        }
        second_lead.release(2);
        let [one, other] = &mut later;
        let third_lead = lead(one);
        assert!(third_lead.candidate().is_none(), "{name}: when it takes over");
        third_lead.release(2);
        assert!(lead(other).candidate().is_none(), "{name}: when it tries by itself");
    }
}

/// Regression: what the shared tier was asked first, the fetch that began only then kept a candidate that was purged meanwhile.
#[test]
fn a_fetch_that_begins_after_a_purge_has_no_purged_candidate() {
    for (name, purge) in hard_purges() {
        let (store, leader, _waiter) = purged_beside_a_waiter(&purge);
        let begun = store.begun();
        assert!(leader.begun(begun).candidate().is_none(), "{name}");
    }
}

/// Regression: a fetch that failed in between served its candidate as fresh.
#[test]
fn what_was_purged_softly_stays_stale_when_a_tag_condemns_it() {
    let store = store(1 << 20);
    response("/").tags(&["t"]).put(&store, b"one");
    store.purge(key("/"), Soft, at(1));
    let candidate = flight(get("/").lookup(&store, at(2))).candidate().cloned().unwrap();
    store.purge_tags(&[Tag::new(b"t")], Hard, at(2));
    assert!(!candidate.lifetimes().is_fresh(at(2)));
}

#[test]
fn what_a_tag_condemned_is_freed_by_the_sweep_and_by_eviction() {
    let store = store(4 << 20);
    let fill =
        || (0..2000).for_each(|n| _ = response(&format!("/{n}")).tags(&["t"]).put(&store, &[b'x'; 500]));
    fill();
    let full = store.stats().bytes;
    assert_eq!(store.purge_tags(&[Tag::new(b"t")], Hard, START), 2000);
    assert_eq!(store.purge_tags(&[Tag::new(b"t")], Hard, START), 0);
    assert_eq!(look(&store, &get("/7"), START), "miss");
    assert_eq!(store.stats().objects, 0);
    // Objects stored meanwhile are left alone, even under the same tag.
    response("/7").tags(&["t"]).put(&store, b"new");
    let swept = store.sweep(10_000, START);
    assert_eq!(swept.removed, 1999);
    assert_eq!(look(&store, &get("/7"), START), "hit new");
    assert!(store.stats().bytes < full / 10);
    assert_eq!(store.stats().removed(crate::Removal::Purged), 2000);
    fill();
    store.purge_tags(&[Tag::new(b"t")], Hard, START);
    for n in 0..6000 {
        response(&format!("/more/{n}")).put(&store, &[b'x'; 200]);
    }
    let stats = store.stats();
    assert_eq!(stats.objects, 6000, "the condemned go first: {stats:?}");
}
