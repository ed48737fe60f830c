//! Objects that move to the store of another process, and what is purged meanwhile.

use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use parking_lot::Mutex;

use super::*;
use crate::moving::{RECORD_START, Records, TakenOut};
use crate::{Begun, Expression, Forgotten, Mark, Others, Purge, Removal, Standing};

/// The records of all objects of a store, written at `now`, in the order in which they leave.
fn take_all(store: &Arc<Store>, now: Timestamp) -> Vec<Bytes> {
    let (records, mut so_far, mut taken) = (Records::default(), TakenOut::default(), Vec::new());
    while let Some(batch) = store.take_out(&mut so_far) {
        for moved in batch {
            let pieces = records.record(&moved, store.largest_record(), now);
            taken.extend(pieces.map(|pieces| Bytes::from(pieces.concat())));
        }
    }
    taken
}

/// Puts them into a store `lain` after they were written. Returns how many have entered.
fn put_all(store: &Arc<Store>, taken: &[Bytes], begun: Begun, lain: u64, now: Timestamp) -> usize {
    let records = Records::default();
    let put = |record: &&Bytes| {
        let rest = Records::rest(*record.first_chunk().unwrap()).unwrap();
        assert_eq!(rest as usize, record.len() - RECORD_START);
        let arrived = records.read(record.slice(RECORD_START..)).unwrap();
        store.put_in(arrived, Duration::from_secs(lain), begun, now)
    };
    taken.iter().filter(put).count()
}

#[test]
fn objects_move_with_age_tags_variants_and_every_byte() {
    let (old, new) = (store(8 << 20), store(8 << 20));
    response("/plain").tags(&["t"]).put(&old, b"plain");
    for tongue in ["de", "en"] {
        response("/").vary("X-Lang", &[("X-Lang", tongue)]).put(&old, tongue.as_bytes());
    }
    for len in [20 << 10, 300 << 10] {
        response(&format!("/{len}")).put(&old, &vec![b'x'; len]);
    }
    assert_eq!(look(&old, &get("/plain"), at(1)), "hit plain");
    let begun = new.begun();
    let taken = take_all(&old, at(2));
    assert_eq!((taken.len(), old.stats().objects, old.stats().removed(Removal::Moved)), (5, 0, 5));
    assert_eq!(put_all(&new, &taken, begun, 4, at(6)), 5);
    assert_eq!(look(&new, &get("/plain"), at(6)), "hit plain");
    for tongue in ["de", "en"] {
        let request = get("/").with(&[("X-Lang", tongue)]);
        assert_eq!(look(&new, &request, at(6)), format!("hit {tongue}"));
    }
    for len in [20 << 10, 300 << 10] {
        let Lookup::Hit(object) = get(&format!("/{len}")).lookup(&new, at(6)) else { panic!("a hit") };
        assert_eq!(object.body().segments().map(|piece| piece.to_bytes().unwrap().len()).sum::<usize>(), len);
    }
    // Received at 0, fresh for 10 s.
    assert_eq!(look(&new, &get("/plain"), at(9)), "hit plain");
    assert_eq!(look(&new, &get("/plain"), at(10)), "stale plain, validate");
    assert_eq!(new.purge_tags(&[Tag::new(b"t")], Purge::Hard, at(10)), 1);
}

#[test]
fn what_was_purged_here_since_the_beginning_does_not_enter() {
    let old = store(1 << 20);
    for path in ["/key", "/tag", "/banned", "/fine"] {
        response(path).tags(if path == "/tag" { &["t"] } else { &[] }).put(&old, path.as_bytes());
    }
    let taken = take_all(&old, at(1));
    let new = store(1 << 20);
    let begun = new.begun();
    new.purge(key("/key"), Purge::Hard, at(2));
    new.purge_tags(&[Tag::new(b"t")], Purge::Soft, at(2));
    new.ban(Expression::parse(r#"path == "/banned""#).unwrap(), at(2));
    assert_eq!(put_all(&new, &taken, begun, 1, at(2)), 1);
    assert_eq!(look(&new, &get("/fine"), at(2)), "hit /fine");
    new.purge_all(Purge::Hard, at(3));
    assert_eq!(put_all(&new, &taken, begun, 1, at(3)), 0);
}

#[test]
fn what_was_purged_there_does_not_leave() {
    let old = store(1 << 20);
    for path in ["/tag", "/banned", "/fine"] {
        response(path).tags(if path == "/tag" { &["t"] } else { &[] }).put(&old, path.as_bytes());
    }
    old.purge_tags(&[Tag::new(b"t")], Purge::Hard, at(1));
    old.ban(Expression::parse(r#"path == "/banned""#).unwrap(), at(1));
    assert_eq!(take_all(&old, at(1)).len(), 1);
}

#[test]
fn what_is_known_here_is_newer() {
    let old = store(1 << 20);
    response("/").put(&old, b"old");
    response("/marked").put(&old, b"old");
    let taken = take_all(&old, at(1));
    let new = store(1 << 20);
    let begun = new.begun();
    response("/").lifetimes(at(2), 10, 0, 0).put(&new, b"new");
    flight(get("/marked").lookup(&new, at(2))).mark(Mark::HitForMiss, at(60), at(2));
    assert_eq!(put_all(&new, &taken, begun, 1, at(2)), 0);
    assert_eq!(look(&new, &get("/"), at(2)), "hit new");
}

#[test]
fn a_soft_purge_moves_along_and_the_dead_stay_behind() {
    let (old, new) = (store(1 << 20), store(1 << 20));
    response("/soft").put(&old, b"soft");
    response("/dead").lifetimes(at(0), 1, 0, 0).put(&old, b"dead");
    old.purge(key("/soft"), Purge::Soft, at(1));
    let taken = take_all(&old, at(2));
    assert_eq!(put_all(&new, &taken, new.begun(), 0, at(2)), 1);
    assert_eq!(look(&new, &get("/soft"), at(3)), "stale soft, validate");
    assert_eq!(look(&new, &get("/soft"), at(6)), "miss, candidate soft");
}

#[test]
fn those_that_have_proven_their_worth_go_first_and_keep_it() {
    let old = store(64 << 10);
    response("/wanted").put(&old, &[b'w'; 1000]);
    for _ in 0..4 {
        assert!(look(&old, &get("/wanted"), at(1)).starts_with("hit"));
    }
    for n in 0..200 {
        response(&format!("/{n}")).put(&old, &[b'x'; 1000]);
    }
    let taken = take_all(&old, at(1));
    let new = store(64 << 10);
    put_all(&new, &taken[..1], new.begun(), 0, at(1));
    for n in 0..200 {
        response(&format!("/{n}")).put(&new, &[b'x'; 1000]);
    }
    assert!(look(&new, &get("/wanted"), at(1)).starts_with("hit"), "it was first, and is still proven");
}

#[test]
fn parts_and_what_is_too_large_stay_behind_and_what_arrives_stays() {
    let old = store(1 << 20);
    let mut part = response("/part");
    part.range = ContentRange::parse(b"bytes 0-3/10");
    part.put(&old, b"part");
    response("/large").put(&old, &vec![b'x'; (64 << 10) + 1]);
    let mut writer = flight(get("/arriving").lookup(&old, at(0))).store(response("/arriving").new_object());
    assert_eq!(take_all(&old, at(1)).len(), 0);
    assert_eq!(old.stats().objects, 1);
    writer.append(b"whole");
    _ = writer.finish(None);
    assert_eq!(take_all(&old, at(1)).len(), 1);
}

#[test]
fn a_damaged_record_is_refused_wherever_the_damage_is() {
    let old = store(1 << 20);
    response("/").tags(&["t"]).put(&old, b"body");
    let record = take_all(&old, at(1)).remove(0).slice(RECORD_START..);
    let records = Records::default();
    assert!(records.read(record.clone()).is_ok());
    for at in 0..record.len() {
        let mut damaged = record.to_vec();
        damaged[at] ^= 1;
        assert!(records.read(damaged.into()).is_err(), "byte {at}");
        assert!(records.read(record.slice(..at)).is_err(), "{at} bytes");
    }
}

/// Another store that notes what it is told.
#[derive(Default)]
struct Other {
    told: Mutex<Vec<(Forgotten, Purge)>>,
    has_forgotten: AtomicBool,
    lost: Mutex<Option<u64>>,
}

impl Others for Other {
    fn have_forgotten(&self) -> Standing {
        match self.has_forgotten.load(Relaxed) {
            true => Standing::Behind,
            false => self.lost.lock().map_or(Standing::Current, Standing::Lost),
        }
    }

    fn caught_up(&self, lost: u64) {
        assert_eq!(self.lost.lock().take(), Some(lost));
    }

    fn forget(&self, what: &Forgotten, purge: Purge) {
        self.told.lock().push((what.clone(), purge));
    }
}

#[test]
fn others_are_told_of_every_purge_and_can_repeat_it() {
    let (store, other) = (store(1 << 20), Arc::new(Other::default()));
    store.join(other.clone());
    let (tags, target) = (vec![Tag::new(b"a"), Tag::new(b"b")], Tag::target(b"a.example", b"/t"));
    store.purge(key("/"), Purge::Soft, at(1));
    store.purge_tags(&tags, Purge::Hard, at(1));
    store.purge_target(target, Purge::Soft, at(1));
    store.purge_all(Purge::Hard, at(1));
    store.ban(Expression::parse(r#"path == "/banned""#).unwrap(), at(1));
    let told = other.told.lock().clone();
    let expected = [
        (Forgotten::Key(key("/")), Purge::Soft),
        (Forgotten::Tags(tags), Purge::Hard),
        (Forgotten::Target(target), Purge::Soft),
        (Forgotten::All, Purge::Hard),
        (Forgotten::Ban(r#"path == "/banned""#.to_owned()), Purge::Hard),
    ];
    assert_eq!(told, expected);
    let repeated = Arc::new(Other::default());
    let second = super::store(1 << 20);
    second.join(repeated.clone());
    told.iter().for_each(|(what, purge)| second.forget(what, *purge, at(1)));
    assert_eq!(*repeated.told.lock(), expected);
}

#[test]
fn a_store_that_is_behind_serves_nothing_and_lets_nobody_wait() {
    let (store, other) = (store(1 << 20), Arc::new(Other::default()));
    store.join(other.clone());
    response("/").put(&store, b"body");
    assert_eq!(look(&store, &get("/"), at(1)), "hit body");
    let fetching = get("/fetched").lookup(&store, at(1));
    other.has_forgotten.store(true, Relaxed);
    assert_eq!(look(&store, &get("/"), at(1)), "miss");
    assert_eq!(look(&store, &get("/fetched"), at(1)), "miss");
    assert_eq!(look(&store, &get("/fetched"), at(1)), "miss", "nobody waits");
    drop(fetching);
    let peek = Request { intent: Intent::Peek, ..get("/") };
    assert!(matches!(peek.lookup(&store, at(1)), Lookup::Absent(None)));
}

#[test]
fn what_a_store_was_not_told_of_has_it_forget_everything_once() {
    let (store, other) = (store(1 << 20), Arc::new(Other::default()));
    store.join(other.clone());
    response("/a").put(&store, b"a");
    assert_eq!(look(&store, &get("/a"), at(1)), "hit a");
    *other.lost.lock() = Some(7);
    assert!(look(&store, &get("/a"), at(2)).starts_with("miss"));
    response("/b").put(&store, b"b");
    assert_eq!(look(&store, &get("/b"), at(3)), "hit b");
}
