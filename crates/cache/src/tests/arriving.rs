//! Bodies: arriving, read, and too large.

use sandarac_message::range::ByteRange;

use super::*;

/// A body in which every position differs from its neighbours.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| b'a' + (at % 251 % 26) as u8).collect()
}

#[test]
fn a_body_is_the_same_however_it_arrives() {
    for len in [0, 1, 2047, 2048, 2049, 65_536, 65_537, 200_000, 1_500_000] {
        let body = bytes(len);
        for known in [false, true] {
            for piece in [1, 1000, 16_384, 100_000] {
                if piece == 1 && len > 70_000 {
                    continue;
                }
                let store = store(8 << 20);
                let mut wanted = response("/");
                wanted.len = known.then_some(len as u64);
                let mut writer = fill(&store, &wanted);
                body.chunks(piece).for_each(|piece| writer.append(piece));
                let object = writer.finish(Some(&fields(&[("X-Sum", "1")])));
                assert!(text(&object).as_bytes() == body, "{len} {known} {piece}");
                assert_eq!(object.body().len(), Some(len as u64));
                assert_eq!(object.path(), b"/");
                assert_eq!(object.trailers().unwrap().view().len(), 1);
                assert!(object.body().segments().all(|segment| !segment.is_empty()));
            }
            let store = store(8 << 20);
            let object = response("/").put(&store, &body);
            assert!(text(&object).as_bytes() == body);
        }
    }
}

#[test]
fn ranges_are_slices() {
    let store = store(8 << 20);
    let body = bytes(700_000);
    for object in [response("/1").put(&store, &body[..1000]), response("/2").put(&store, &body)] {
        let body = text(&object).into_bytes();
        for range in [0..10, 5..5, 990..2000, 262_143..262_145, 100..600_000, 699_999..900_000] {
            let slice = content(object.body().slice(range.clone()));
            let end = (range.end as usize).min(body.len());
            let start = (range.start as usize).min(end);
            assert!(slice == body[start..end], "{range:?} of {}", body.len());
        }
    }
}

#[test]
fn a_body_can_be_read_straight_into_its_segment() {
    let store = store(1 << 20);
    let body = bytes(100_000);
    let mut writer = fill(&store, &response("/").len(body.len() as u64));
    let mut reader = writer.object().reader().unwrap();
    let task = Task::new();
    let (mut at, mut read) = (0, String::new());
    while let Some(copied) = writer.read_with(|room| {
        let len = room.len().min(30_000).min(body.len() - at);
        room[..len].copy_from_slice(&body[at..at + len]);
        (len, len)
    }) {
        at += copied;
        read += &task.read(&mut reader);
    }
    assert_eq!(at, body.len());
    assert_eq!(writer.len(), body.len() as u64);
    let object = writer.finish(None);
    read += &task.read(&mut reader);
    assert_eq!(read.strip_suffix("<end>").unwrap().as_bytes(), body);
    assert_eq!(object.body().segments().count(), 2);
}

#[test]
fn reading_into_a_body_of_unknown_length_works_too() {
    let store = store(1 << 20);
    let body = bytes(50_000);
    let mut writer = fill(&store, &response("/"));
    let mut rest = &body[..];
    while !rest.is_empty() {
        let len = writer.read_with(|room| {
            let len = room.len().min(rest.len());
            room[..len].copy_from_slice(&rest[..len]);
            (len, len)
        });
        rest = &rest[len.unwrap()..];
    }
    assert!(text(&writer.finish(None)).as_bytes() == body);
}

#[test]
fn a_small_body_pins_no_large_buffer() {
    let store = store(1 << 20);
    let before = store.stats().bytes;
    for n in 0..200 {
        let path = format!("/{n}");
        let mut writer = fill(&store, &response(&path));
        writer.append(&[b'x'; 1000]);
        writer.finish(None);
    }
    assert!(store.stats().bytes - before < 200 * 1600, "{}", store.stats().bytes - before);
}

#[test]
fn a_fill_that_breaks_off_leaves_its_readers_with_an_error_and_the_store_without_the_object() {
    let store = store(1 << 20);
    let mut writer = fill(&store, &response("/"));
    let mut reader = hit(get("/").lookup(&store, START)).reader().unwrap();
    writer.append(b"some");
    let task = Task::new();
    assert_eq!(task.read(&mut reader), "some");
    writer.append(b"thing");
    drop(writer);
    assert_eq!(task.woken(), 1);
    assert_eq!(task.read(&mut reader), "thing<Aborted>");
    assert_eq!(look(&store, &get("/"), START), "miss");
    assert_eq!(store.stats().removed(crate::Removal::Broken), 1);
}

#[test]
fn what_has_come_of_a_body_that_breaks_off_is_kept_as_a_part() {
    for (len, known) in [(16_384, true), (16_384, false), (70_000, true), (300_000, false)] {
        let store = store(1 << 20);
        let body = bytes(len);
        let complete = known.then_some(len as u64 + 1);
        let response = Response { len: complete, ..response("/").tags(&["t"]).resumable() };
        let mut writer = fill(&store, &response);
        let mut reader = writer.reader().unwrap();
        writer.append(&body);
        writer.break_off(START);
        let told = Task::new().read(&mut reader);
        assert!(told.strip_suffix("<Aborted>").map(str::as_bytes) == Some(&body[..]), "{len}");
        drop(reader);
        // The part is served to any request for it.
        let wanted = RangeSpec::From(1, Some(len as u64 - 1));
        let held = hit(get("/").part(wanted).lookup(&store, START));
        let range = ByteRange { first: 0, last: len as u64 - 1 };
        assert_eq!(held.range(), Some(ContentRange { range, complete }));
        assert_eq!(held.head().status(), 206);
        assert_eq!(held.head().reason(), &b"Partial Content"[..]);
        assert!(text(&held).as_bytes() == body);
        assert!(look(&store, &get("/"), START).starts_with("miss, candidate"));
        assert_eq!(store.stats().kept, 1);
        assert_eq!(store.stats().removed(crate::Removal::Broken), 0);
        // It is purged by its tags.
        assert_eq!(store.purge_tags(&[Tag::new(b"t")], crate::Purge::Hard, START), 1);
        drop(held);
        store.sweep(usize::MAX, START);
        assert_eq!(store.stats().bytes, store.stats().index_bytes);
    }
}

#[test]
fn what_has_come_is_not_kept_where_it_cannot_be_completed_or_is_not_worth_it() {
    let cases = [
        ("no validator", response("/"), 20_000, false),
        ("little", response("/").resumable(), 16_383, false),
        ("too much", response("/").resumable().len(16_384), 16_384, false),
        (
            "too large to be stored",
            Response { limit: Some(19_999), ..response("/").resumable() },
            20_000,
            false,
        ),
        ("purged meanwhile", response("/").resumable(), 20_000, true),
    ];
    for (case, response, len, purged) in cases {
        let store = store(1 << 20);
        let mut writer = fill(&store, &response);
        writer.append(&bytes(len));
        if purged {
            store.purge(key("/"), crate::Purge::Hard, START);
        }
        writer.break_off(START);
        assert_eq!(look(&store, &get("/"), START).as_str(), "miss", "{case}");
        assert_eq!(store.stats().kept, 0, "{case}");
    }
}

/// Regression: what had come of a new page took the place of the whole old one, which could not stand in any more.
#[test]
fn a_whole_object_stays_until_the_one_that_replaces_it_is_whole() {
    for (spoiled, len) in [(false, 3), (false, 20_000), (true, 20_000)] {
        let store = store(1 << 20);
        response("/").tags(&["t"]).put(&store, b"old");
        let again = || response("/").tags(&["t"]).lifetimes(at(12), 10, 5, 60).resumable();
        let mut writer = flight(get("/").lookup(&store, at(12))).store(again().new_object());
        writer.append(&bytes(len));
        assert!(look(&store, &get("/"), at(12)).starts_with("hit"), "newcomers read the new one");
        assert_eq!(store.stats().objects, 2);
        if spoiled {
            drop(writer);
        } else {
            writer.break_off(at(13));
        }
        assert_eq!(look(&store, &get("/").peek(), at(13)), "stale old");
        assert_eq!((store.stats().objects, store.stats().kept), (1, 0));
        // It is still purged by its tags, also while the next one arrives.
        let writer = flight(get("/").lookup(&store, at(13))).store(again().new_object());
        assert_eq!(store.purge_tags(&[Tag::new(b"t")], crate::Purge::Hard, at(13)), 2);
        writer.break_off(at(13));
        assert_eq!(look(&store, &get("/"), at(13)), "miss");
    }
}

#[test]
fn a_whole_object_leaves_with_its_replacement_and_where_it_may_not_stand_in_any_more() {
    let store = store(1 << 20);
    response("/").put(&store, b"old");
    let mut writer = flight(get("/").lookup(&store, at(12))).store(response("/").new_object());
    writer.append(b"new");
    writer.finish(None);
    assert_eq!((look(&store, &get("/"), at(9)).as_str(), store.stats().objects), ("hit new", 1));
    assert_eq!(store.stats().removed(crate::Removal::Replaced), 1);
    // Of a large one whose origin breaks off a minute later, what has come is worth more.
    let again = response("/").lifetimes(at(12), 10, 5, 60).resumable();
    let mut writer = flight(get("/").lookup(&store, at(12))).store(again.new_object());
    writer.append(&bytes(20_000));
    writer.break_off(at(80));
    assert_eq!((store.stats().objects, store.stats().kept), (1, 1));
    assert!(look(&store, &get("/"), at(12)).starts_with("miss, candidate"));
}

#[test]
fn a_body_shorter_than_announced_is_not_kept() {
    let store = store(1 << 20);
    let mut writer = fill(&store, &response("/").len(10));
    let mut reader = writer.object().reader().unwrap();
    writer.append(b"short");
    writer.finish(None);
    assert_eq!(Task::new().read(&mut reader), "short<Aborted>");
    assert_eq!(look(&store, &get("/"), START), "miss");
}

#[test]
fn an_object_that_outgrows_its_limit_streams_to_those_present_and_to_no_newcomer() {
    let store = store(1 << 20);
    let mut limited = response("/");
    limited.limit = Some(5);
    let mut writer = fill(&store, &limited);
    let mut present = writer.object().reader().unwrap();
    writer.append(b"12345");
    assert!(writer.is_stored());
    let late = hit(get("/").lookup(&store, START));
    let task = Task::new();
    assert_eq!(task.read(&mut present), "12345");
    writer.append(b"6");
    assert!(!writer.is_stored() && writer.is_wanted());
    // It had not begun to read, and the start is gone: it looks up again, and fetches itself.
    assert!(late.reader().is_none());
    assert_eq!(look(&store, &get("/"), START), "miss");
    assert_eq!(store.stats().removed(crate::Removal::Oversize), 1);
    writer.append(b"789");
    assert_eq!(task.read(&mut present), "6789");
    writer.append(b"!");
    writer.finish(None);
    assert_eq!(task.read(&mut present), "!<end>");
}

#[test]
fn an_object_larger_than_the_store_streams_from_the_start() {
    let store = store(64 << 10);
    let mut writer = fill(&store, &response("/").len(1 << 30));
    assert!(!writer.is_stored());
    let mut reader = writer.object().reader().unwrap();
    assert!(writer.is_wanted());
    let task = Task::new();
    for _ in 0..1000 {
        writer.append(&[b'x'; 1000]);
        assert_eq!(task.read(&mut reader).len(), 1000);
    }
    assert_eq!(store.stats().objects, 0);
    assert_eq!(store.stats().unstored, 1);
    drop(reader);
    assert!(!writer.is_wanted());
    assert!(writer.object().reader().is_none(), "a request that comes now looks up again");
}

#[test]
fn a_laggard_first_slows_a_streaming_fill_and_then_is_cut_off() {
    let settings = Settings { window: 100, patience: Duration::from_secs(5), ..Settings::new(1 << 20) };
    let store = Arc::new(Store::new(settings));
    let mut writer = fill(&store, &response("/").len(1 << 30));
    let (mut quick, mut slow) = (writer.object().reader().unwrap(), writer.object().reader().unwrap());
    let (quick_task, slow_task, writer_task) = (Task::new(), Task::new(), Task::new());
    let room = |writer: &mut BodyWriter, now| writer_task.run(|cx| writer.poll_room(cx, now)).is_ready();
    assert!(room(&mut writer, at(0)));
    writer.append(&[b'x'; 60]);
    assert_eq!(quick_task.read(&mut quick).len(), 60);
    assert_eq!(slow_task.read(&mut slow).len(), 60);
    assert!(room(&mut writer, at(1)));
    writer.append(&[b'x'; 100]);
    assert_eq!(quick_task.read(&mut quick).len(), 100);
    // The slow one is a window behind.
    assert!(!room(&mut writer, at(1)));
    assert_eq!(writer.deadline(), Some(at(6)));
    assert_eq!(slow_task.read(&mut slow).len(), 100);
    assert_eq!(writer_task.woken(), 1);
    assert!(room(&mut writer, at(7)));
    // Again, and this time it does not catch up.
    writer.append(&[b'x'; 100]);
    assert_eq!(quick_task.read(&mut quick).len(), 100);
    assert!(!room(&mut writer, at(8)) && !room(&mut writer, at(12)));
    assert!(room(&mut writer, at(13)));
    assert_eq!(slow_task.read(&mut slow), "<TooSlow>");
    writer.append(b"rest");
    assert_eq!(quick_task.read(&mut quick), "rest");
}

#[test]
fn a_slow_reader_that_holds_up_nobody_is_not_cut_off() {
    let settings = Settings { window: 100, patience: Duration::from_secs(5), ..Settings::new(1 << 20) };
    let store = Arc::new(Store::new(settings));
    let mut writer = fill(&store, &response("/").len(1 << 30));
    let mut slow = writer.object().reader().unwrap();
    writer.append(&[b'x'; 100]);
    let writer_task = Task::new();
    assert!(writer_task.run(|cx| writer.poll_room(cx, at(0))).is_pending());
    assert!(writer_task.run(|cx| writer.poll_room(cx, at(60))).is_pending());
    assert_eq!(Task::new().read(&mut slow).len(), 100);
    assert_eq!(writer_task.woken(), 1);
    assert!(writer_task.run(|cx| writer.poll_room(cx, at(60))).is_ready());
}

#[test]
fn slow_readers_of_a_stored_object_slow_nothing() {
    let settings = Settings { window: 10, ..Settings::new(1 << 20) };
    let store = Arc::new(Store::new(settings));
    let mut writer = fill(&store, &response("/"));
    let mut slow = writer.object().reader().unwrap();
    for _ in 0..100 {
        assert!(Task::new().run(|cx| writer.poll_room(cx, at(0))).is_ready());
        writer.append(&[b'x'; 100]);
    }
    writer.finish(None);
    assert_eq!(Task::new().read(&mut slow).len(), 10_000 + "<end>".len());
}

#[test]
fn bytes_are_charged_as_they_arrive_and_until_the_last_reader_goes() {
    let store = store(1 << 20);
    let empty = store.stats().bytes;
    let mut writer = fill(&store, &response("/"));
    for arrived in 1..=5 {
        writer.append(&[b'x'; 70_000]);
        // A large body grows by up to 256 KiB at a time.
        let charged = store.stats().bytes - empty;
        assert!((arrived * 70_000..arrived * 70_000 + (280 << 10)).contains(&charged), "{charged}");
    }
    let object = writer.finish(None);
    assert!(store.stats().bytes >= 350_000);
    store.purge_all(crate::Purge::Hard, START);
    assert!(store.stats().bytes >= 350_000, "it is still held");
    drop(object);
    assert!(store.stats().bytes < empty + 20_000, "only the index is left");
}

#[test]
fn a_response_that_is_whole_but_too_large_is_served_once() {
    let store = store(256 << 10);
    let leader = flight(get("/").lookup(&store, START));
    let (task, mut waiter) = (Task::new(), waiter(get("/").lookup(&store, START)));
    assert!(task.wait(&mut waiter, &get("/"), START).is_pending());
    let body = bytes(600_000);
    let object = leader.store_complete(response("/").new_object(), &[&body], None);
    assert!(text(&object).as_bytes() == body);
    assert_eq!(told(&task.wait(&mut waiter, &get("/"), START)).len(), "object ".len() + body.len());
    assert_eq!(look(&store, &get("/"), START), "miss");
    assert_eq!(store.stats().objects, 0);
    assert!(store.stats().bytes < 64 << 10);
}

#[test]
fn a_lower_limit_holds_at_once() {
    let store = store(8 << 20);
    for n in 0..5000 {
        response(&format!("/{n}")).put(&store, &[b'x'; 1000]);
    }
    assert!(store.stats().bytes > 5 << 20);
    store.configure(Settings { limit: 1 << 20, ..store.settings() });
    assert!(store.stats().bytes <= 1 << 20);
    assert!(store.stats().objects > 300, "{:?}", store.stats());
    store.configure(Settings { limit: 50 << 10, ..store.settings() });
    assert!(store.stats().bytes <= 50 << 10, "the index shrinks too: {:?}", store.stats());
    assert!(store.stats().objects > 0);
}
