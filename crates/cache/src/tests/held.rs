//! Memory that readers hold or that is lent, and the rest of it.

use super::eviction::ask;
use super::*;

/// Stores a thousand small objects that are asked for often. Returns their paths.
fn popular(store: &Arc<Store>) -> Vec<String> {
    let popular: Vec<String> = (0..1000).map(|n| format!("/popular/{n}")).collect();
    for _ in 0..5 {
        popular.iter().for_each(|path| _ = ask(store, path, 1000));
    }
    popular
}

/// Forty readers that take nothing of as many bodies of 3 MiB, each as long as it is stored.
fn slow_readers(store: &Arc<Store>) -> Vec<Reader> {
    let slow = |n| {
        let mut writer = fill(store, &response(&format!("/large/{n}")));
        let reader = writer.object().reader().unwrap();
        while writer.is_stored() && writer.len() < 3 << 20 {
            writer.append(&[b'x'; 1 << 16]);
        }
        reader
    };
    (0..40).map(slow).collect()
}

#[test]
fn an_object_that_is_being_read_is_not_evicted_while_others_can_be() {
    let store = Arc::new(Store::new(Settings::new(4 << 20)));
    let read = response("/read").put(&store, &vec![b'x'; 1 << 20]);
    (0..20_000).for_each(|n| _ = ask(&store, &format!("/{n}"), 1000));
    assert!(Arc::ptr_eq(&read, &hit(get("/read").lookup(&store, START))));
    drop(read);
    (0..20_000).for_each(|n| _ = ask(&store, &format!("/more/{n}"), 1000));
    assert_eq!(look(&store, &get("/read"), START), "miss");
    // If nothing else is evictable, it must go; but its bytes stay charged.
    let all: Vec<_> =
        (0..3).map(|n| response(&format!("/all/{n}")).put(&store, &vec![b'x'; 1 << 20])).collect();
    ask(&store, "/last", 2 << 20);
    assert!(store.stats().bytes >= 3 << 20 && store.stats().bytes <= 4 << 20);
    drop(all);
}

/// Regression: eviction could not free what slow readers hold, and emptied the main queue instead.
#[test]
fn what_slow_readers_hold_pushes_out_nothing_that_is_popular() {
    for (announced, full) in [(true, false), (true, true), (false, false), (false, true)] {
        let limit = 32 << 20;
        let store = Arc::new(Store::new(Settings::new(limit)));
        let popular = popular(&store);
        if full {
            (0..40_000).for_each(|n| _ = ask(&store, &format!("/once/{n}"), 1000));
        }
        let mut held = Vec::new();
        for n in 0..40 {
            let large = response(&format!("/large/{n}"));
            let mut writer = fill(&store, &if announced { large.len(3 << 20) } else { large });
            held.push(writer.object().reader().unwrap());
            while writer.is_stored() && writer.len() < 3 << 20 {
                writer.append(&[b'x'; 1 << 16]);
            }
            if writer.is_stored() {
                writer.finish(None);
            }
            assert!(store.stats().bytes <= limit as u64);
        }
        let kept = popular.iter().filter(|path| ask(&store, path, 1000)).count();
        assert!(kept >= 990, "announced {announced}, full {full}: {kept} of 1000 popular objects are left");
        // New small objects find a place, too.
        assert!(!ask(&store, "/new", 1000) && ask(&store, "/new", 1000));
    }
}

/// Regression: leases came on top of what objects without proven worth may take, so that both together filled
/// the store. And where readers hold most of a store, the small queue never reaches its share of the whole:
/// each new head took the place of a popular object.
#[test]
fn what_slow_readers_hold_and_what_waits_for_them_pushes_out_nothing_that_is_popular() {
    let limit = 32 << 20;
    for leases in [0, 64] {
        let store = store(limit);
        let popular = popular(&store);
        let _held = slow_readers(&store);
        // The first 16 MiB are not charged.
        assert!(store.lend((16 << 20) - store.lent()));
        (0..leases).for_each(|_| _ = store.lend(1 << 16));
        (0..4000).for_each(|n| _ = ask(&store, &format!("/once/{n}"), 2000));
        assert!(store.stats().bytes <= limit as u64);
        let kept = popular.iter().filter(|path| ask(&store, path, 1000)).count();
        assert!(kept >= 990, "{leases} leases: {kept} of 1000 popular objects are left");
    }
}

/// Regression: readers who took nothing of objects that had left the store kept out all requests that needed
/// memory.
#[test]
fn what_slow_readers_hold_leaves_room_for_what_is_lent() {
    let limit = 32 << 20;
    let store = store(limit);
    let popular = popular(&store);
    let mut held = slow_readers(&store);
    let read = store.held_bytes() - store.passing();
    // Half, and at most one object more.
    assert!((limit / 4..limit * 7 / 10).contains(&read), "{read} bytes are held by readers");
    for n in 0..2000 {
        let small = response(&format!("/small/{n}")).put(&store, &[b'x'; 50_000]);
        held.push(small.reader().unwrap());
    }
    assert!(store.lend(store.most_lent() - store.lent()));
    // All else that they hold has left the store, too, so that those among them who take nothing are cut off.
    let (bytes, read) = (store.stats().bytes as usize, store.held_bytes() - store.passing());
    assert!(
        bytes <= limit * 3 / 2 + limit / 10 && bytes - read <= limit * 6 / 10,
        "{bytes} bytes, {read} held"
    );
    drop(held);
    assert!(store.stats().bytes <= limit as u64);
    let kept = popular.iter().filter(|path| ask(&store, path, 1000)).count();
    assert!(kept >= 990, "{kept} of 1000 popular objects are left");
}

/// The same for objects in the main queue, because they came back or are requested often.
#[test]
fn what_slow_readers_hold_of_what_is_popular_itself_pushes_out_little() {
    for hits in [0, 4] {
        let limit = 8 << 20;
        let store = Arc::new(Store::new(Settings::new(limit)));
        let popular: Vec<String> = (0..3000).map(|n| format!("/popular/{n}")).collect();
        for _ in 0..4 {
            popular.iter().for_each(|path| _ = ask(&store, path, 1000));
        }
        let len = limit / 80;
        (0..200).for_each(|n| _ = ask(&store, &format!("/large/{n}"), len));
        (0..3000).for_each(|n| _ = ask(&store, &format!("/once/{n}"), 1000));
        let (mut readers, mut held) = (Vec::new(), Vec::new());
        for path in (0..200).rev().map(|n| format!("/large/{n}")) {
            if let Lookup::Miss(flight) = get(&path).lookup(&store, START) {
                let mut writer = flight.store(response(&path).new_object());
                readers.push(writer.object().reader().unwrap());
                while writer.is_stored() && writer.len() < len as u64 {
                    writer.append(&[b'x'; 1 << 15]);
                }
                drop(writer.finish(None));
            }
            for _ in 0..hits {
                if let Lookup::Hit(object) = get(&path).lookup(&store, START) {
                    held.extend(object.body().segments());
                }
            }
            assert!(store.stats().bytes <= limit as u64);
        }
        let kept = popular.iter().filter(|path| !store.variants(key(path)).is_empty()).count();
        assert!(kept * 10 >= popular.len() * 7, "{hits} hits: {kept} of {}", popular.len());
        // Readers are under memory pressure by then.
        assert!(store.held_bytes() > limit / 20, "{hits} hits: {} held", store.held_bytes());
    }
}

#[test]
fn what_is_read_is_held_once_it_has_left_the_store() {
    let store = Arc::new(Store::new(Settings::new(8 << 20)));
    let mut writer = fill(&store, &response("/"));
    let reader = writer.object().reader().unwrap();
    writer.append(&[b'x'; 1 << 20]);
    drop(writer.finish(None));
    let stored = store.held_bytes();
    store.purge(key("/"), crate::Purge::Hard, START);
    assert!(stored < 1 << 10 && store.held_bytes() > 1 << 20, "{stored}, {}", store.held_bytes());
    drop(reader);
    assert_eq!(store.held_bytes(), 0);
}

#[test]
fn what_is_lent_beyond_a_constant_makes_room_by_eviction_and_is_no_memory_that_readers_hold() {
    let store = store(8 << 20);
    for n in 0..100 {
        let mut writer = fill(&store, &response(&format!("/{n}")));
        writer.append(&[b'x'; 100_000]);
        drop(writer.finish(None));
    }
    let before = store.stats();
    assert!(store.lend(16 << 20));
    assert_eq!(store.stats(), before);
    assert!(store.lend(3 << 20), "objects make room for it");
    let beside = store.stats();
    assert!(beside.bytes <= beside.limit && beside.objects < before.objects);
    assert_eq!(store.most_lent(), 20 << 20);
    assert!(!store.lend(2 << 20));
    assert_eq!(
        (store.lent(), store.stats().objects),
        (19 << 20, beside.objects),
        "objects are evicted in vain"
    );
    store.lend_anyway(3 << 20);
    store.fit();
    let after = store.stats();
    assert!(after.bytes <= after.limit && after.lent_bytes == 6 << 20);
    store.take_back(22 << 20);
    let after = store.stats();
    assert_eq!((after.lent_bytes, after.held_bytes), (0, 0));
    assert!(after.bytes < 3 << 20);
}
