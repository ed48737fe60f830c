//! Purges and bans under every order of threads that a scheduler comes upon.

use std::future::poll_fn;
use std::sync::{Arc, LazyLock};

use crate::support::{
    LATER, NOW, check_charges, in_many_orders, in_orders, key, lookup, new_object, newer_object, query,
    settings,
};
use sandarac_model::{Broken, Key, Lookup, NewObject, Object, Purge, Store, Tag, Waited};
use shuttle::future::block_on;
use shuttle::thread;

/// A response that carries a tag.
fn tagged() -> NewObject<'static> {
    NewObject { tags: &*TAGS, ..new_object(None) }
}

/// Enough to find a fault that takes four switches.
const MORE_ORDERS: usize = 40_000;

static TAGS: LazyLock<[Tag; 1]> = LazyLock::new(|| [Tag::new(b"t")]);

fn store() -> Arc<Store> {
    Arc::new(Store::new(settings(1 << 20)))
}

/// The object that a request gets from the store at the later time, waiting for the fetch of another; none if
/// it has to fetch.
fn request(store: &Arc<Store>) -> Option<Arc<Object>> {
    match store.lookup(key(), &query(), LATER) {
        Lookup::Hit(object) | Lookup::Stale(object, _) => Some(object),
        Lookup::Wait(mut waiter) => match block_on(poll_fn(|cx| waiter.poll(cx, &query(), LATER))) {
            Waited::Object(object) => Some(object),
            _ => None,
        },
        _ => None,
    }
}

/// Validates a stale object, which the origin confirms, while something removes it.
fn validated_beside(remove: fn(&Store)) {
    let store = store();
    store.open(key()).store_complete(tagged(), &[b"old"], None);
    let validating = {
        let store = store.clone();
        thread::spawn(move || {
            if let Lookup::Miss(flight) = store.lookup(key(), &query(), LATER) {
                let new = NewObject { tags: &*TAGS, ..newer_object() };
                match flight.candidate() {
                    Some(_) => _ = flight.refresh(new),
                    None => _ = flight.store_complete(NewObject { tags: &[], ..new }, &[b"new"], None),
                }
            }
        })
    };
    let removing = {
        let store = store.clone();
        thread::spawn(move || {
            remove(&store);
            if let Some(object) = request(&store) {
                assert_eq!(object.body().len(), Some(3));
                let body: Vec<u8> = object
                    .body()
                    .segments()
                    .flat_map(|piece| piece.bytes().expect("in memory").to_vec())
                    .collect();
                assert_eq!(body, b"new", "a request after the removal gets what it removed");
            }
        })
    };
    validating.join().expect("the validation ends");
    removing.join().expect("the removal ends");
    check_charges(&store);
}

#[test]
fn a_purge_by_tag_beside_a_validation_removes_the_object_for_all_later_requests() {
    in_many_orders(|| validated_beside(|store| _ = store.purge_tags(&*TAGS, Purge::Hard, NOW)));
}

#[test]
fn a_purge_by_key_beside_a_validation_removes_the_object_for_all_later_requests() {
    in_many_orders(|| validated_beside(|store| _ = store.purge(key(), Purge::Hard, NOW)));
}

#[test]
fn a_ban_beside_a_validation_removes_the_object_for_all_later_requests() {
    in_many_orders(|| {
        validated_beside(|store| {
            store.ban("field.X-Version != \"new\" || path == \"/\"".parse().expect("it is valid"), NOW)
        });
    });
}

/// A stale object stays until the one that replaces it is whole. Something removes it at any point of that,
/// and the body may break off.
fn replaced_beside(remove: fn(&Store), breaks_off: bool) {
    let store = store();
    store.open(key()).store_complete(tagged(), &[b"old"], None);
    let replacing = {
        let store = store.clone();
        thread::spawn(move || {
            let Lookup::Miss(flight) = store.lookup(key(), &query(), LATER) else { return };
            let mut writer = flight.store(NewObject { tags: &*TAGS, ..newer_object() });
            writer.append(b"new");
            match breaks_off {
                true => writer.break_off(LATER),
                false => _ = writer.finish(None),
            }
        })
    };
    let removing = {
        let store = store.clone();
        thread::spawn(move || {
            remove(&store);
            if let Some(object) = request(&store) {
                assert!(!object.fields().is_empty(), "a request after the removal gets what it removed");
            }
        })
    };
    replacing.join().expect("the fetch ends");
    removing.join().expect("the removal ends");
    check_charges(&store);
}

#[test]
fn a_removal_finds_what_is_about_to_be_replaced() {
    let removals: [fn(&Store); 3] = [
        |store| _ = store.purge_tags(&*TAGS, Purge::Hard, NOW),
        |store| _ = store.purge(key(), Purge::Hard, NOW),
        |store| store.ban("path == \"/\"".parse().expect("it is valid"), NOW),
    ];
    for remove in removals {
        for breaks_off in [false, true] {
            in_many_orders(move || replaced_beside(remove, breaks_off));
        }
    }
}

/// A ban that matches the head which a validation brings, made at any point of the validation and of the sweep.
#[test]
fn a_ban_made_while_an_object_is_freshened_is_tested_against_its_new_head() {
    // Four switches at the right places are rare.
    in_orders(MORE_ORDERS, || {
        let store = store();
        store.open(key()).store_complete(new_object(None), &[b"old"], None);
        let Lookup::Miss(flight) = store.lookup(key(), &query(), LATER) else { panic!("it is stale") };
        store.ban("status == 500".parse().expect("it is valid"), NOW);
        let freshening = thread::spawn(move || _ = flight.refresh(newer_object()));
        let sweeping = {
            let store = store.clone();
            thread::spawn(move || _ = store.sweep(10, NOW))
        };
        let banning = {
            let store = store.clone();
            thread::spawn(move || store.ban("field.X-Version == \"new\"".parse().expect("it is valid"), NOW))
        };
        for thread in [freshening, sweeping, banning] {
            thread.join().expect("it ends");
        }
        // The ban came after the fetch had begun, so whichever head is there now is not the new one.
        assert!(!matches!(store.lookup(key(), &query(), LATER), Lookup::Hit(_)), "a banned head is a hit");
    });
}

/// Rebuilding the index gives objects new places.
#[test]
fn a_purge_by_tag_finds_its_objects_while_the_index_is_rebuilt() {
    in_many_orders(|| {
        let store = store();
        let key_of = |n: u8| Key::of(b"http", b"a.example", &[b'/', n]);
        for n in b'a'..=b'k' {
            let tags = if n == b'k' { &TAGS[..] } else { &[] };
            store.open(key_of(n)).store_complete(NewObject { tags, ..new_object(None) }, &[b"x"], None);
        }
        // All but the last: so few are left that the index is worth rebuilding.
        (b'a'..b'k').for_each(|n| _ = store.purge(key_of(n), Purge::Hard, NOW));
        let rebuilding = {
            let store = store.clone();
            thread::spawn(move || store.rebuild_index())
        };
        store.purge_tags(&*TAGS, Purge::Hard, NOW);
        assert!(
            !matches!(store.lookup(key_of(b'k'), &query(), NOW), Lookup::Hit(_)),
            "it outlives the purge"
        );
        rebuilding.join().expect("it ends");
    });
}

/// A fill that nobody wants is given up. Whoever looked the object up before begins to read it, or looks up again.
#[test]
fn a_reader_is_not_cut_off_because_its_fill_is_not_wanted() {
    in_many_orders(|| {
        let store = store();
        let Lookup::Miss(flight) = lookup(&store) else { panic!("the store is empty") };
        let mut writer = flight.store(new_object(Some(4)));
        let Lookup::Hit(found) = lookup(&store) else { panic!("it arrives") };
        let filling = thread::spawn(move || {
            for half in [b"ab", b"cd"] {
                if !writer.is_wanted() {
                    return;
                }
                writer.append(half);
            }
            writer.finish(None);
        });
        let removing = {
            let store = store.clone();
            thread::spawn(move || _ = store.purge(key(), Purge::Hard, NOW))
        };
        let reader = found.reader();
        drop(found);
        if let Some(mut reader) = reader {
            while let Some(chunk) = block_on(poll_fn(|cx| reader.poll_chunk(cx))) {
                assert!(!matches!(chunk, Err(Broken::Aborted)), "the reader is cut off");
            }
            assert_eq!(reader.position(), 4);
        }
        filling.join().expect("the fill ends");
        removing.join().expect("the purge ends");
        check_charges(&store);
    });
}
