//! Combining parts with stored ones.

use sandarac_message::range::ByteRange;

use super::*;
use crate::{BodyWriter, Combination, Purge, Removal};

fn range(first: u64, last: u64) -> ByteRange {
    ByteRange { first, last }
}

/// The complete representation that all parts belong to.
fn bytes(range: ByteRange) -> Vec<u8> {
    (range.first..=range.last).map(|at| b'a' + (at % 251 % 26) as u8).collect()
}

fn part(range: ByteRange, complete: u64) -> Response {
    Response { range: Some(ContentRange::of(range, complete)), ..response("/") }
}

/// Stores a part as if it came from an origin.
fn store_part(store: &Arc<Store>, held: ByteRange, complete: u64) -> Arc<Object> {
    let mut writer = store.open(key("/")).store(part(held, complete).len(held.len()).new_object());
    writer.append(&bytes(held));
    writer.finish(None)
}

/// Begins to combine `new` with what is stored.
fn join(store: &Arc<Store>, new: ByteRange, complete: u64) -> Option<BodyWriter> {
    let flight = flight(get("/").lookup(store, START));
    let held = flight.candidate().unwrap().range().unwrap();
    let combination = combination(&flight, new)?;
    let joined = held.union(&ContentRange::of(new, complete));
    let range = joined.filter(|joined| !joined.is_whole());
    Some(flight.combine(Response { range, ..response("/").resumable() }.new_object(), combination))
}

fn combination(flight: &Flight, new: ByteRange) -> Option<Combination> {
    Combination::of(flight.candidate().unwrap().clone(), new)
}

#[test]
fn parts_that_touch_become_one() {
    const COMPLETE: u64 = 1_000_000;
    let sizes = [1, 1000, 65_535, 65_536, 65_537, 200_000];
    for held_len in sizes {
        for new_len in sizes {
            for overlap in [0, 1, 900, 70_000].into_iter().filter(|&by| by < held_len.min(new_len)) {
                let after = (
                    range(300_000, 300_000 + held_len - 1),
                    range(300_000 + held_len - overlap, 300_000 + held_len - overlap + new_len - 1),
                );
                let before = (
                    range(300_000, 300_000 + held_len - 1),
                    range(300_000 + overlap - new_len, 300_000 + overlap - 1),
                );
                for (held, new) in [after, before] {
                    for piece in [1000, 100_000] {
                        joined(held, new, COMPLETE, piece);
                    }
                }
            }
        }
    }
    joined(range(300_000, 500_000), range(310_000, 310_999), COMPLETE, 300);
}

/// Combines two parts and checks the result, for concurrent readers and in the store.
fn joined(held: ByteRange, new: ByteRange, complete: u64, piece: usize) {
    let case = format!("{held:?} {new:?} in pieces of {piece}");
    let store = store(8 << 20);
    store_part(&store, held, complete);
    let mut writer = join(&store, new, complete).unwrap_or_else(|| panic!("{case}"));
    let task = Task::new();
    let mut reader = writer.reader().unwrap();
    let mut read = task.read(&mut reader);
    let mut body = &bytes(new)[..];
    while !body.is_empty() {
        let direct = writer.read_with(|room| {
            let len = room.len().min(piece).min(body.len());
            room[..len].copy_from_slice(&body[..len]);
            (len, len)
        });
        let taken = direct.unwrap_or_else(|| {
            writer.append(&body[..piece.min(body.len())]);
            piece.min(body.len())
        });
        body = &body[taken..];
        read += &task.read(&mut reader);
    }
    let object = writer.finish(None);
    read += &task.read(&mut reader);
    let union = range(held.first.min(new.first), held.last.max(new.last));
    assert!(read.strip_suffix("<end>") == str::from_utf8(&bytes(union)).ok(), "read along: {case}");
    assert!(text(&object).as_bytes() == bytes(union), "{case}");
    assert_eq!(object.range().unwrap().range, union, "{case}");
    let wanted = RangeSpec::From(union.first, Some(union.last));
    assert!(Arc::ptr_eq(&object, &hit(get("/").part(wanted).lookup(&store, START))), "{case}");
    assert_eq!(store.stats().objects, 1);
    drop((object, reader));
    store.purge_all(Purge::Hard, START);
    let index: usize = (0..store.shards()).map(|at| store.shard(at).index_bytes()).sum();
    assert_eq!(store.stats().bytes as usize, index, "{case}");
}

#[test]
fn long_segments_are_shared_and_charged_once() {
    let store = store(3 << 20);
    store_part(&store, range(0, 1_999_999), 2_100_000);
    let before = store.stats().bytes;
    let mut writer = join(&store, range(2_000_000, 2_099_999), 2_100_000).unwrap();
    writer.append(&bytes(range(2_000_000, 2_099_999)));
    let object = writer.finish(None);
    let grown = store.stats().bytes - before;
    assert!((100_000..300_000).contains(&grown), "{grown}");
    assert_eq!(object.range(), None);
    assert_eq!(object.body().len(), Some(2_100_000));
    assert!(text(&object).as_bytes() == bytes(range(0, 2_099_999)));
    assert_eq!(store.stats().removed[crate::Removal::Evicted as usize], 0);
}

#[test]
fn what_does_not_fit_is_not_joined() {
    let store = store(1 << 20);
    store_part(&store, range(10, 19), 100);
    // A gap on either side, and a part that contains the stored one.
    for new in [range(21, 30), range(0, 8), range(5, 30)] {
        assert!(join(&store, new, 100).is_none(), "{new:?}");
    }
    let mut short = part(range(10, 19), 100);
    short.len = None;
    let mut writer = store.open(key("/")).store(short.new_object());
    writer.append(b"short");
    writer.finish(None);
    assert!(join(&store, range(20, 29), 100).is_none(), "it is not as long as it says");
}

#[test]
fn a_part_outlives_a_rest_that_breaks_off() {
    for new in [range(20, 29), range(0, 9)] {
        let store = store(1 << 20);
        store_part(&store, range(10, 19), 30);
        let mut writer = join(&store, new, 30).unwrap();
        let mut reader = writer.reader().unwrap();
        // Both the stored part and the combined object are in the store meanwhile.
        assert_eq!(store.stats().objects, 2);
        writer.break_off(START);
        assert!(Task::new().read(&mut reader).ends_with("<Aborted>"));
        assert_eq!(look(&store, &get("/"), START), "miss, candidate klmnopqrst", "{new:?}");
        assert_eq!(store.stats().objects, 1);
        // An origin that never sends the rest is asked for the whole.
        join(&store, new, 30).unwrap().break_off(START);
        assert_eq!(look(&store, &get("/"), START), "miss", "{new:?}");
        assert_eq!(store.stats().objects, 0);
        assert_eq!(store.stats().removed(Removal::Broken), 3);
    }
}

#[test]
fn what_has_come_of_a_rest_that_breaks_off_is_kept_too() {
    let store = store(1 << 20);
    for (new, come, left) in [
        // After the part, however short.
        (range(20, 29), range(20, 20), range(10, 20)),
        (range(15, 29), range(15, 23), range(10, 23)),
        // Before it, with a gap: the longer of both.
        (range(0, 9), range(0, 8), range(10, 19)),
    ] {
        store_part(&store, range(10, 19), 30);
        let mut writer = join(&store, new, 30).unwrap();
        writer.append(&bytes(come));
        writer.break_off(START);
        let held = flight(get("/").lookup(&store, START)).candidate().cloned().unwrap();
        assert_eq!(held.range(), Some(ContentRange::of(left, 30)), "{come:?}");
        assert_eq!(text(&held).as_bytes(), bytes(left));
        assert_eq!(store.stats().objects, 1);
    }
    let held = range(90, 99);
    store_part(&store, held, 100);
    let mut writer = join(&store, range(0, 89), 100).unwrap();
    writer.append(&bytes(range(0, 20)));
    writer.break_off(START);
    let held = flight(get("/").lookup(&store, START)).candidate().cloned().unwrap();
    assert_eq!(held.range(), Some(ContentRange::of(range(0, 20), 100)));
    assert_eq!(text(&held).len(), 21);
    assert_eq!(store.stats().kept, 3);
}

#[test]
fn a_part_is_replaced_by_what_it_is_joined_to() {
    let store = store(1 << 20);
    store_part(&store, range(0, 4), 10);
    let mut writer = join(&store, range(5, 9), 10).unwrap();
    writer.append(&bytes(range(5, 9)));
    assert_eq!(store.stats().objects, 2);
    writer.finish(None);
    assert_eq!(store.stats().objects, 1);
    assert_eq!(store.stats().removed(Removal::Replaced), 1);
    assert_eq!(look(&store, &get("/"), START), "hit abcdefghij");
}

#[test]
fn a_part_outlives_what_is_evicted_while_its_rest_arrives() {
    let store = store(1 << 20);
    store_part(&store, range(0, 4), 500_000);
    for _ in 0..3 {
        hit(get("/").part(RangeSpec::From(0, Some(4))).lookup(&store, START));
    }
    let mut writer = join(&store, range(5, 499_999), 500_000).unwrap();
    writer.append(&bytes(range(5, 400_000)));
    let large = writer.object().clone();
    // It has no readers.
    store.configure(Settings { limit: 100_000, ..store.settings() });
    assert!(!writer.is_stored() && !writer.is_wanted());
    drop((writer, large));
    assert_eq!(look(&store, &get("/"), START), "miss, candidate abcde");
}

#[test]
fn a_purge_meets_the_part_and_what_it_is_joined_to() {
    let store = store(1 << 20);
    store_part(&store, range(0, 4), 10);
    let writer = join(&store, range(5, 9), 10).unwrap();
    assert_eq!(store.purge(key("/"), Purge::Hard, START), 2);
    writer.break_off(START);
    assert_eq!(look(&store, &get("/"), START), "miss");
}

#[test]
fn a_body_that_is_not_as_long_as_it_says_spoils_the_joined_object_and_the_part() {
    for (new, body) in [
        (range(15, 29), &bytes(range(15, 28))),
        (range(15, 29), &bytes(range(15, 30))),
        (range(0, 12), &bytes(range(0, 11))),
        (range(0, 12), &bytes(range(0, 13))),
    ] {
        let store = store(1 << 20);
        store_part(&store, range(10, 19), 100);
        let mut writer = join(&store, new, 100).unwrap();
        writer.append(body);
        writer.finish(None);
        assert_eq!(look(&store, &get("/"), START), "miss", "{new:?}");
    }
}

#[test]
fn a_joined_object_without_room_streams_to_its_reader() {
    for new in [range(700_000, 799_999), range(0, 399_999)] {
        let store = store(1 << 20);
        let held = range(400_000, 699_999);
        store_part(&store, held, 800_000);
        let flight = flight(get("/").lookup(&store, START));
        let mut new_object = part(range(held.first.min(new.first), held.last.max(new.last)), 800_000);
        new_object.limit = Some(1000);
        let combination = combination(&flight, new).unwrap();
        let mut writer = flight.combine(new_object.new_object(), combination);
        let task = Task::new();
        let mut reader = writer.reader().unwrap();
        let mut read = task.read(&mut reader);
        for piece in bytes(new).chunks(10_000) {
            writer.append(piece);
            read += &task.read(&mut reader);
        }
        writer.finish(None);
        read += &task.read(&mut reader);
        let union = range(held.first.min(new.first), held.last.max(new.last));
        assert!(read.strip_suffix("<end>") == str::from_utf8(&bytes(union)).ok(), "{new:?}");
        assert_eq!(look(&store, &get("/"), START).len(), "miss, candidate ".len() + 300_000);
    }
}

#[test]
fn those_who_wait_get_the_whole_as_it_arrives() {
    let store = store(1 << 20);
    store_part(&store, range(0, 4), 10);
    let leader = flight(get("/").lookup(&store, START));
    let mut waiter = waiter(get("/").lookup(&store, START));
    let task = Task::new();
    assert_eq!(told(&task.wait(&mut waiter, &get("/"), START)), "pending");
    let combination = combination(&leader, range(5, 9)).unwrap();
    let mut writer = leader.combine(response("/").new_object(), combination);
    assert_eq!(task.woken(), 1);
    let Poll::Ready(Waited::Object(object)) = task.wait(&mut waiter, &get("/"), START) else {
        panic!("no object")
    };
    let mut reader = object.reader().unwrap();
    writer.append(b"fghij");
    assert_eq!(task.read(&mut reader), "abcdefghij");
    writer.finish(None);
    assert_eq!(task.read(&mut reader), "<end>");
    assert_eq!(look(&store, &get("/"), START), "hit abcdefghij");
}

#[test]
fn a_purge_meanwhile_keeps_the_joined_object_from_being_stored() {
    let store = store(1 << 20);
    store_part(&store, range(0, 4), 10);
    let leader = flight(get("/").lookup(&store, START));
    store.purge(key("/"), Purge::Hard, START);
    let combination = combination(&leader, range(5, 9)).unwrap();
    let mut writer = leader.combine(response("/").new_object(), combination);
    writer.append(b"fghij");
    assert_eq!(text(&writer.finish(None)), "abcdefghij");
    assert_eq!(look(&store, &get("/"), START), "miss");
}

/// Regression: the rest came without the tags of the part, so a purge by these left the bytes of the part in
/// the new object.
#[test]
fn a_purge_by_the_tags_of_the_part_alone_meets_what_it_is_joined_to() {
    for purge in [Purge::Hard, Purge::Soft] {
        for before_the_rest in [true, false] {
            let store = store(4 << 20);
            let mut tagged =
                store.open(key("/")).store(part(range(0, 999), 2000).tags(&["old"]).len(1000).new_object());
            tagged.append(&bytes(range(0, 999)));
            tagged.finish(None);
            let flight = flight(get("/").lookup(&store, START));
            let combination = combination(&flight, range(1000, 1999)).unwrap();
            let purged = |store: &Store| store.purge_tags(&[Tag::new(b"old")], purge, START);
            if before_the_rest {
                purged(&store);
            }
            let mut writer = flight.combine(response("/").resumable().new_object(), combination);
            if !before_the_rest {
                purged(&store);
            }
            writer.append(&bytes(range(1000, 1999)));
            writer.finish(None);
            let after = look(&store, &get("/"), at(1));
            assert!(!after.starts_with("hit"), "{purge:?}, before the rest: {before_the_rest}");
        }
    }
}

/// Regression: the rest came with other fields than the part, so a ban of the part's fields left its bytes in
/// the new object.
#[test]
fn a_ban_by_any_field_meets_what_was_joined_from_parts() {
    let old = r#"field.X-Tag == "old""#;
    let not_new = r#"field.X-Tag != "new""#;
    for ban in [old, not_new, r#"path == "/" && !(field.X-Tag == "new" || status == 404)"#] {
        for when in ["before the rest", "while it arrives", "later"] {
            let store = store(1 << 20);
            let tagged = part(range(0, 4), 10).head(206, &[("X-Tag", "old")]).len(5);
            let mut writer = store.open(key("/")).store(tagged.new_object());
            writer.append(b"abcde");
            writer.finish(None);
            let flight = flight(get("/").lookup(&store, START));
            let combination = combination(&flight, range(5, 9)).unwrap();
            let banned = |now| {
                if when == now {
                    store.ban(ban.parse().unwrap(), START)
                }
            };
            banned("before the rest");
            let rest = response("/").head(200, &[("X-Tag", "new")]);
            let mut writer = flight.combine(rest.new_object(), combination);
            banned("while it arrives");
            writer.append(b"fghij");
            assert_eq!(text(&writer.finish(None)), "abcdefghij");
            banned("later");
            assert_eq!(look(&store, &get("/"), START), "miss", "{ban}, {when}");
        }
    }
}

#[test]
fn a_ban_of_something_else_spares_what_was_joined_from_parts() {
    let store = store(1 << 20);
    store_part(&store, range(0, 4), 10);
    let mut writer = join(&store, range(5, 9), 10).unwrap();
    writer.append(b"fghij");
    writer.finish(None);
    for ban in [r#"path == "/b" && field.X-Tag == "old""#, "status == 404", r#"host != "a.example""#] {
        store.ban(ban.parse().unwrap(), START);
        assert_eq!(look(&store, &get("/"), START), "hit abcdefghij", "{ban}");
    }
}
