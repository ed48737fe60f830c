//! Lookups, flights and waiters, variants, parts and marks.

use super::*;
use crate::Mark;
use sandarac_message::range::{ByteRange, ContentRange, RangeSpec};

#[test]
fn a_response_is_a_hit_while_fresh_then_stale_then_a_candidate_then_gone() {
    let store = store(1 << 20);
    response("/").put(&store, b"one");
    assert_eq!(look(&store, &get("/"), at(9)), "hit one");
    assert_eq!(look(&store, &get("/"), at(10)), "stale one, validate");
    assert_eq!(look(&store, &get("/"), at(20)), "miss, candidate one");
    assert_eq!(look(&store, &get("/"), at(80)), "miss");
    assert_eq!(look(&store, &get("/other"), at(0)), "miss");
}

#[test]
fn a_request_can_ask_for_more_than_freshness() {
    let store = store(1 << 20);
    response("/").put(&store, b"one");
    let asks = |field| look(&store, &get("/").with(&[("Cache-Control", field)]), at(5));
    assert_eq!(asks("max-age=5"), "hit one");
    assert_eq!(asks("max-age=4"), "miss, candidate one");
    assert_eq!(asks("no-cache"), "miss, candidate one");
    assert_eq!(look(&store, &get("/").with(&[("Cache-Control", "max-stale")]), at(20)), "hit one");
}

#[test]
fn one_fetches_and_the_others_get_the_object_as_it_arrives() {
    let store = store(1 << 20);
    let flight = flight(get("/").lookup(&store, START));
    let tasks = [Task::new(), Task::new()];
    let mut waiters = [waiter(get("/").lookup(&store, START)), waiter(get("/").lookup(&store, START))];
    for (task, waiter) in tasks.iter().zip(&mut waiters) {
        assert!(task.wait(waiter, &get("/"), START).is_pending());
    }
    assert_eq!(store.stats().flights, 1);
    assert_eq!(store.stats().waiters, 2);
    let mut writer = flight.store(response("/").new_object());
    writer.append(b"be");
    for (task, waiter) in tasks.iter().zip(&mut waiters) {
        assert_eq!(task.woken(), 1);
        let Poll::Ready(Waited::Object(object)) = task.wait(waiter, &get("/"), START) else {
            panic!("no object")
        };
        let mut reader = object.reader().unwrap();
        assert_eq!(task.read(&mut reader), "be");
    }
    // Later requests read along as well.
    let object = hit(get("/").lookup(&store, START));
    let mut reader = object.reader().unwrap();
    let task = Task::new();
    assert_eq!(task.read(&mut reader), "be");
    writer.append(b"gin");
    assert_eq!(task.woken(), 1);
    assert_eq!(task.read(&mut reader), "gin");
    let object = writer.finish(None);
    assert_eq!(task.woken(), 1);
    assert_eq!(task.read(&mut reader), "<end>");
    assert_eq!(text(&object), "begin");
    assert_eq!(object.hits(), 3);
    assert_eq!(object.transaction(), 7);
    assert_eq!(store.stats().flights, 0);
    assert_eq!(store.stats().waiters, 0);
}

#[test]
fn a_dropped_flight_passes_to_one_waiter_after_another() {
    let store = store(1 << 20);
    let leader = flight(get("/").lookup(&store, START));
    let tasks: Vec<_> = (0..3).map(|_| Task::new()).collect();
    let mut waiters: Vec<_> = (0..3).map(|_| waiter(get("/").lookup(&store, START))).collect();
    for (task, waiter) in tasks.iter().zip(&mut waiters) {
        assert!(task.wait(waiter, &get("/"), START).is_pending());
    }
    drop(leader);
    assert_eq!(tasks.iter().map(|task| task.woken()).collect::<Vec<_>>(), [1, 0, 0]);
    assert_eq!(told(&tasks[1].wait(&mut waiters[1], &get("/"), START)), "pending");
    // The first waiter has given up; the second is offered the flight next.
    drop(waiters.remove(0));
    assert_eq!(tasks[1].woken(), 1);
    let Poll::Ready(Waited::Lead(flight)) = tasks[1].wait(&mut waiters[0], &get("/"), START) else {
        panic!("no lead");
    };
    assert_eq!(look(&store, &get("/"), START), "wait");
    flight.store_complete(response("/").new_object(), &[b"one"], None);
    assert_eq!(tasks[2].woken(), 1);
    assert_eq!(told(&tasks[2].wait(&mut waiters[1], &get("/"), START)), "object one");
}

#[test]
fn a_flight_that_nobody_waits_for_leaves_nothing_behind() {
    let store = store(1 << 20);
    drop(flight(get("/").lookup(&store, START)));
    let mut late = {
        let _flight = flight(get("/").lookup(&store, START));
        waiter(get("/").lookup(&store, START))
    };
    assert_eq!(told(&Task::new().wait(&mut late, &get("/"), START)), "again");
    assert_eq!(store.stats().flights, 0);
    assert_eq!(look(&store, &get("/"), START), "miss");
}

#[test]
fn a_released_flight_lets_some_try_for_themselves_and_the_others_look_up_again() {
    let store = store(1 << 20);
    let leader = flight(get("/").lookup(&store, START));
    let tasks: Vec<_> = (0..5).map(|_| Task::new()).collect();
    let mut waiters: Vec<_> = (0..5).map(|_| waiter(get("/").lookup(&store, START))).collect();
    for (task, waiter) in tasks.iter().zip(&mut waiters) {
        assert!(task.wait(waiter, &get("/"), START).is_pending());
    }
    leader.release(2);
    assert_eq!(tasks.iter().map(|task| task.woken()).collect::<Vec<_>>(), [1, 0, 0, 0, 0]);
    let Poll::Ready(Waited::Lead(leader)) = tasks[0].wait(&mut waiters[0], &get("/"), START) else {
        panic!("no lead");
    };
    leader.release(2);
    assert!(tasks[1..].iter().all(|task| task.woken() == 1));
    let mut tried =
        tasks.iter().zip(&mut waiters).skip(1).map(|(task, waiter)| task.wait(waiter, &get("/"), START));
    let (first, second) = (tried.next().unwrap(), tried.next().unwrap());
    assert_eq!(told(&first), "lead");
    assert_eq!(told(&second), "lead");
    assert!(tried.all(|waited| told(&waited) == "again"));
    // They hold up no other request, and the response to one of them is stored.
    assert_eq!(look(&store, &get("/"), START), "miss");
    let Poll::Ready(Waited::Lead(flight)) = first else { panic!("no lead") };
    flight.store_complete(response("/").new_object(), &[b"one"], None);
    assert_eq!(look(&store, &get("/"), START), "hit one");
}

#[test]
fn a_failed_flight_tells_all_who_wait() {
    let store = store(1 << 20);
    let flight = flight(get("/").lookup(&store, START));
    let (task, mut waiter) = (Task::new(), waiter(get("/").lookup(&store, START)));
    assert!(task.wait(&mut waiter, &get("/"), START).is_pending());
    flight.fail();
    assert_eq!(task.woken(), 1);
    assert_eq!(told(&task.wait(&mut waiter, &get("/"), START)), "failed");
    assert_eq!(look(&store, &get("/"), START), "miss");
}

/// Regression: each range that was served of a stale part had a validation of its own.
#[test]
fn a_stale_part_is_validated_once_whatever_range_of_it_is_served() {
    let store = store(1 << 20);
    let held = ContentRange::of(ByteRange { first: 2, last: 9 }, 16);
    Response { range: Some(held), ..response("/") }.put(&store, b"cdefghij");
    let first = get("/").part(RangeSpec::From(4, Some(5))).lookup(&store, at(12));
    assert_eq!(said(&first), "stale cdefghij, validate");
    for range in [RangeSpec::From(4, Some(5)), RangeSpec::From(2, Some(9)), RangeSpec::From(3, Some(3))] {
        assert_eq!(look(&store, &get("/").part(range), at(12)), "stale cdefghij");
    }
    drop(first);
}

#[test]
fn the_first_to_find_a_stale_object_validates_it_and_the_others_are_served() {
    let store = store(1 << 20);
    response("/").tags(&["old"]).put(&store, b"one");
    let first = get("/").lookup(&store, at(12));
    assert_eq!(said(&first), "stale one, validate");
    assert_eq!(look(&store, &get("/"), at(12)), "stale one");
    // Past grace, requests wait for the same validation.
    let (task, mut waiter) = (Task::new(), waiter(get("/").lookup(&store, at(16))));
    assert!(task.wait(&mut waiter, &get("/"), at(16)).is_pending());
    let fresh = response("/").lifetimes(at(16), 10, 0, 0).head(200, &[("X", "2")]).tags(&["new"]);
    let object = flight(first).refresh(fresh.new_object()).unwrap();
    assert_eq!(told(&task.wait(&mut waiter, &get("/"), at(16))), "object one");
    assert_eq!(object.fields().all_named(b"x").next(), Some(&b"2"[..]));
    assert_eq!(look(&store, &get("/"), at(25)), "hit one");
    assert_eq!(object.path(), &b"/"[..]);
    assert_eq!(object.host(), &b"a.example"[..]);
    assert_eq!(store.purge_tags(&[Tag::new(b"old")], crate::Purge::Hard, at(20)), 0);
    assert_eq!(store.purge_tags(&[Tag::new(b"new")], crate::Purge::Hard, at(20)), 1);
}

#[test]
fn nobody_waits_for_what_must_be_validated_each_time() {
    let store = store(1 << 20);
    response("/").lifetimes(START, 0, 0, 60).put(&store, b"one");
    let _first = flight(get("/").lookup(&store, at(1)));
    let second = flight(get("/").lookup(&store, at(1)));
    assert_eq!(text(second.candidate().unwrap()), "one");
    // Requests that waited before that was known do not queue up one after another.
    let store = super::store(1 << 20);
    let leader = flight(get("/").lookup(&store, START));
    let (task, mut waiter) = (Task::new(), waiter(get("/").lookup(&store, START)));
    assert!(task.wait(&mut waiter, &get("/"), START).is_pending());
    let _writer = leader.store(response("/").lifetimes(START, 0, 0, 60).new_object());
    assert_eq!(told(&task.wait(&mut waiter, &get("/"), START)), "again");
    let _third = flight(get("/").lookup(&store, START));
    assert_eq!(look(&store, &get("/"), START), "miss");
}

#[test]
fn a_reload_is_content_with_a_response_that_came_after_it() {
    let store = store(1 << 20);
    let reload = get("/").with(&[("Cache-Control", "no-cache")]);
    let leader = flight(reload.lookup(&store, START));
    let (task, mut waiter) = (Task::new(), waiter(reload.lookup(&store, START)));
    assert!(task.wait(&mut waiter, &reload, START).is_pending());
    leader.store_complete(response("/").new_object(), &[b"one"], None);
    assert_eq!(told(&task.wait(&mut waiter, &reload, START)), "object one");
}

#[test]
fn variants_are_told_apart_and_filled_side_by_side() {
    let store = store(1 << 20);
    let lang = |lang| get("/").with(&[("X-Lang", lang)]);
    let leader = flight(lang("de").lookup(&store, START));
    // The variants are not known yet, so all wait for the first response.
    let (task, mut english) = (Task::new(), waiter(lang("en").lookup(&store, START)));
    assert!(task.wait(&mut english, &lang("en"), START).is_pending());
    leader.store_complete(response("/").vary("X-Lang", &[("X-Lang", "de")]).new_object(), &[b"eins"], None);
    assert_eq!(told(&task.wait(&mut english, &lang("en"), START)), "again");
    assert_eq!(look(&store, &lang("de"), START), "hit eins");
    // Now they are known.
    let english = flight(lang("en").lookup(&store, START));
    let french = flight(lang("fr").lookup(&store, START));
    assert_eq!(look(&store, &lang("en"), START), "wait");
    english.store_complete(response("/").vary("X-Lang", &[("X-Lang", "en")]).new_object(), &[b"one"], None);
    french.store_complete(response("/").vary("X-Lang", &[("X-Lang", "fr")]).new_object(), &[b"un"], None);
    for (tongue, body) in [("de", "eins"), ("en", "one"), ("fr", "un")] {
        assert_eq!(look(&store, &lang(tongue), START), format!("hit {body}"));
    }
    assert_eq!(store.variants(key("/")).len(), 3);
    // A newer response replaces the one for the same requests, and no other.
    response("/").vary("X-Lang", &[("X-Lang", "en")]).put(&store, b"two");
    assert_eq!(look(&store, &lang("en"), START), "hit two");
    assert_eq!(look(&store, &lang("fr"), START), "hit un");
    assert_eq!(store.stats().objects, 3);
}

#[test]
fn a_key_has_no_more_variants_than_it_may() {
    let settings = Settings { max_variants: 3, ..Settings::new(1 << 20) };
    let store = Arc::new(Store::new(settings));
    for n in 0..10 {
        response("/").vary("X", &[("X", &n.to_string())]).put(&store, n.to_string().as_bytes());
    }
    let kept: Vec<_> = store.variants(key("/")).iter().map(|object| text(object)).collect();
    assert_eq!(kept, ["9", "8", "7"]);
    assert_eq!(look(&store, &get("/").with(&[("X", "0")]), START), "miss");
}

#[test]
fn a_part_answers_those_who_want_no_more() {
    let range = RangeSpec::From;
    let store = store(1 << 20);
    let mut part = response("/");
    part.range = Some(ContentRange::of(ByteRange { first: 2, last: 5 }, 10));
    part.put(&store, b"cdef");
    assert_eq!(look(&store, &get("/").part(range(2, Some(5))), START), "hit cdef");
    assert_eq!(look(&store, &get("/").part(range(3, Some(3))), START), "hit cdef");
    assert_eq!(look(&store, &get("/").part(range(3, None)), START), "miss, candidate cdef");
    assert_eq!(look(&store, &get("/").part(range(0, Some(3))), START), "miss, candidate cdef");
    assert_eq!(look(&store, &get("/").part(RangeSpec::Suffix(3)), START), "miss, candidate cdef");
    assert_eq!(look(&store, &get("/"), START), "miss, candidate cdef");
    part.range = Some(ContentRange::of(ByteRange { first: 4, last: 9 }, 10));
    part.put(&store, b"efghij");
    assert_eq!(look(&store, &get("/").part(range(4, Some(99))), START), "hit efghij");
    assert_eq!(look(&store, &get("/").part(range(7, None)), START), "hit efghij");
    assert_eq!(look(&store, &get("/").part(RangeSpec::Suffix(6)), START), "hit efghij");
    assert_eq!(look(&store, &get("/").part(RangeSpec::Suffix(7)), START), "miss, candidate efghij");
}

#[test]
fn a_mark_lets_nobody_wait_until_it_ends_or_something_is_stored() {
    let store = store(1 << 20);
    response("/").put(&store, b"one");
    let leader = flight(get("/").lookup(&store, at(20)));
    let (task, mut waiter) = (Task::new(), waiter(get("/").lookup(&store, at(20))));
    assert!(task.wait(&mut waiter, &get("/"), at(20)).is_pending());
    leader.mark(Mark::HitForMiss, at(30), at(20));
    assert_eq!(task.woken(), 1);
    assert_eq!(told(&task.wait(&mut waiter, &get("/"), at(20))), "again");
    // The older response is not used any more.
    assert_eq!(look(&store, &get("/"), at(20)), "HitForMiss");
    assert_eq!(store.stats().objects, 0);
    assert_eq!(look(&store, &get("/").peek(), at(20)), "absent");
    assert_eq!(look(&store, &get("/"), at(30)), "miss");
    flight(get("/").lookup(&store, at(30))).mark(Mark::HitForPass, at(40), at(30));
    assert_eq!(look(&store, &get("/"), at(39)), "HitForPass");
    response("/").lifetimes(at(31), 10, 0, 0).put(&store, b"two");
    assert_eq!(look(&store, &get("/"), at(39)), "hit two");
    assert_eq!(look(&store, &get("/"), at(41)), "miss");
}

#[test]
fn a_mark_for_one_variant_leaves_the_others() {
    let store = store(1 << 20);
    let user = |user| get("/").with(&[("X-User", user)]);
    response("/").vary("X-User", &[("X-User", "")]).put(&store, b"anonymous");
    flight(user("ann").lookup(&store, START)).mark(Mark::HitForPass, at(9), START);
    assert_eq!(look(&store, &user("ann"), START), "HitForPass");
    assert_eq!(look(&store, &user("bob"), START), "miss");
    assert_eq!(look(&store, &user(""), START), "hit anonymous");
}

#[test]
fn a_flood_of_marks_is_bounded() {
    let store = store(1 << 20);
    for n in 0..100_000 {
        flight(get(&format!("/{n}")).lookup(&store, START)).mark(Mark::HitForMiss, at(100), START);
    }
    assert!(store.stats().bytes < (1 << 20) / 32, "{:?}", store.stats());
    assert_eq!(look(&store, &get("/99999"), START), "HitForMiss");
}

#[test]
fn a_peek_takes_no_flight_and_joins_none() {
    let store = store(1 << 20);
    assert_eq!(look(&store, &get("/").peek(), START), "absent");
    response("/").put(&store, b"one");
    assert_eq!(look(&store, &get("/").peek(), at(12)), "stale one");
    let flight = flight(get("/").lookup(&store, at(20)));
    assert_eq!(look(&store, &get("/").peek(), at(20)), "absent, candidate one");
    drop(flight);
}

#[test]
fn a_newer_whole_response_takes_the_place_of_the_stored_one() {
    let store = store(1 << 20);
    response("/").put(&store, b"one");
    let before = hit(get("/").lookup(&store, START));
    response("/").put(&store, b"two");
    assert_eq!(look(&store, &get("/"), START), "hit two");
    assert_eq!(text(&before), "one");
    assert_eq!(store.stats().objects, 1);
}
