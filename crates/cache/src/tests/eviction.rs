//! Eviction: the objects that stay when not all fit.

use std::collections::{BTreeMap, HashMap};

use sandarac_balance::Random;

use super::*;

/// Draws from `0..count`; the probability of the n-th is proportional to `1 / n^skew`.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(count: usize, skew: f64) -> Zipf {
        let mut sum = 0.0;
        Zipf(
            (1..=count)
                .map(|n| {
                    sum += (n as f64).powf(-skew);
                    sum
                })
                .collect(),
        )
    }

    fn draw(&self, random: &mut Random) -> usize {
        let place = random.fraction() * self.0[self.0.len() - 1];
        self.0.partition_point(|&sum| sum <= place)
    }
}

/// The reference: least recently used, with a fixed number of objects.
struct Lru {
    room: usize,
    clock: u64,
    used: HashMap<usize, u64>,
    order: BTreeMap<u64, usize>,
}

impl Lru {
    fn new(room: usize) -> Lru {
        Lru { room, clock: 0, used: HashMap::new(), order: BTreeMap::new() }
    }

    /// Requests an object and stores it if absent. Returns whether it was present.
    fn ask(&mut self, object: usize) -> bool {
        self.clock += 1;
        let before = self.used.insert(object, self.clock);
        if let Some(before) = before {
            self.order.remove(&before);
        }
        self.order.insert(self.clock, object);
        if self.used.len() > self.room
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.used.remove(&oldest);
        }
        before.is_some()
    }
}

/// Requests an object of `len` bytes, and stores it if absent. Returns whether it was present.
pub(super) fn ask(store: &Arc<Store>, path: &str, len: usize) -> bool {
    match get(path).lookup(store, START) {
        Lookup::Hit(_) => true,
        Lookup::Miss(flight) => {
            flight.store_complete(response(path).new_object(), &[&vec![b'x'; len]], None);
            false
        }
        other => panic!("{}", said(&other)),
    }
}

/// How many objects of `len` bytes fit a store of this limit.
fn room(limit: usize, len: usize) -> usize {
    let store = Arc::new(Store::new(Settings::new(limit)));
    (0..limit / len).for_each(|n| _ = ask(&store, &format!("/{n}"), len));
    store.stats().objects as usize
}

#[test]
fn of_what_the_web_asks_for_more_are_hits_than_with_lru() {
    let (limit, len) = (4 << 20, 1000);
    let room = room(limit, len);
    for (seed, skew) in [(1, 0.7), (2, 0.9), (3, 1.1)] {
        let store = Arc::new(Store::new(Settings::new(limit)));
        let mut lru = Lru::new(room);
        let zipf = Zipf::new(20 * room, skew);
        let mut random = Random::new(seed);
        let (mut hits, mut lru_hits, asked) = (0, 0, 40 * room);
        for _ in 0..asked {
            let n = zipf.draw(&mut random);
            hits += usize::from(ask(&store, &format!("/{n}"), len));
            lru_hits += usize::from(lru.ask(n));
        }
        println!("skew {skew}: {:.3}, LRU {:.3}", hits as f64 / asked as f64, lru_hits as f64 / asked as f64);
        assert!(hits > lru_hits, "skew {skew}: {hits} of {asked}, LRU {lru_hits}");
    }
}

#[test]
fn a_scan_does_not_flush_what_is_asked_for_often() {
    let (limit, len) = (4 << 20, 1000);
    let room = room(limit, len);
    let store = Arc::new(Store::new(Settings::new(limit)));
    let popular = room / 2;
    for _ in 0..3 {
        (0..popular).for_each(|n| _ = ask(&store, &format!("/{n}"), len));
    }
    // A crawler requests each of many objects once, many times what fits, while the popular ones are
    // requested now and then.
    let mut random = Random::new(1);
    let (mut hits, mut asked) = (0, 0);
    for n in 0..20 * room {
        ask(&store, &format!("/crawled/{n}"), len);
        if n % 4 == 0 {
            asked += 1;
            hits += usize::from(ask(&store, &format!("/{}", random.below(popular)), len));
        }
    }
    assert!(hits * 100 >= asked * 97, "{hits} of {asked}");
}

#[test]
fn large_objects_do_not_flush_small_ones_that_are_asked_for_often() {
    let (limit, len) = (8 << 20, 1000);
    let store = Arc::new(Store::new(Settings::new(limit)));
    let popular = room(limit, len) / 2;
    for _ in 0..3 {
        (0..popular).for_each(|n| _ = ask(&store, &format!("/{n}"), len));
    }
    let mut random = Random::new(1);
    let (mut hits, mut asked) = (0, 0);
    for n in 0..200 {
        // Up to a quarter of the store, each requested twice.
        let size = 100_000 << (n % 5);
        ask(&store, &format!("/large/{n}"), size);
        ask(&store, &format!("/large/{n}"), size);
        for _ in 0..popular / 10 {
            asked += 1;
            hits += usize::from(ask(&store, &format!("/{}", random.below(popular)), len));
        }
    }
    assert!(hits * 100 >= asked * 97, "{hits} of {asked}");
}

#[test]
fn a_large_object_that_is_asked_for_often_is_kept() {
    let limit = 8 << 20;
    let store = Arc::new(Store::new(Settings::new(limit)));
    ask(&store, "/large", 400_000);
    let (mut hits, mut asked) = (0, 0);
    for n in 0..20_000 {
        ask(&store, &format!("/{n}"), 2000);
        if n % 20 == 0 {
            asked += 1;
            hits += usize::from(ask(&store, "/large", 400_000));
        }
    }
    assert!(hits * 100 >= asked * 98, "{hits} of {asked}");
}

#[test]
fn large_objects_that_become_popular_late_are_kept() {
    let (limit, room) = (4 << 20, room(4 << 20, 1000));
    let store = Arc::new(Store::new(Settings::new(limit)));
    let zipf = Zipf::new(3 * room, 0.9);
    let mut random = Random::new(1);
    let mut page = || ask(&store, &format!("/{}", zipf.draw(&mut random)), 1000);
    // Pages with hits have taken the whole store.
    (0..20 * room).for_each(|_| _ = page());
    // They leave the small queue before they come back.
    let mut hits = 0;
    for n in 0..2000 {
        hits += usize::from(ask(&store, &format!("/large/{}", n % 10), 150_000));
        (0..3).for_each(|_| _ = page());
    }
    assert!(hits >= 1900, "{hits} of 2000");
}

#[test]
fn what_comes_back_soon_after_it_was_evicted_is_kept_the_second_time() {
    let (limit, len) = (4 << 20, 1000);
    let room = room(limit, len);
    let store = Arc::new(Store::new(Settings::new(limit)));
    (0..2 * room).for_each(|n| _ = ask(&store, &format!("/{n}"), len));
    // Checked without a hit, which would count.
    let gone = |path: &String| store.variants(key(path)).is_empty();
    let back = (0..2 * room).rev().map(|n| format!("/{n}")).find(gone).unwrap();
    ask(&store, &back, len);
    assert!(store.stats().main_bytes > 0);
    (0..2 * room).for_each(|n| _ = ask(&store, &format!("/more/{n}"), len));
    assert!(ask(&store, &back, len), "twice what fits has passed since");
}

#[test]
fn room_is_made_in_all_shards_alike() {
    let store = Arc::new(Store::new(Settings { shards: Some(16), ..Settings::new(4 << 20) }));
    (0..20_000).for_each(|n| _ = ask(&store, &format!("/{n}"), 1000));
    let objects: Vec<usize> = (0..16).map(|shard| store.shard(shard).len()).collect();
    let (least, most) = (objects.iter().min().unwrap(), objects.iter().max().unwrap());
    assert!(most * 2 < least * 3, "{objects:?}");
}

#[test]
fn an_arriving_object_that_would_flush_the_store_streams_instead() {
    let limit = 4 << 20;
    let store = Arc::new(Store::new(Settings::new(limit)));
    let popular = room(limit, 1000) * 8 / 10;
    for _ in 0..3 {
        (0..popular).for_each(|n| _ = ask(&store, &format!("/{n}"), 1000));
    }
    let mut writer = flight(get("/large").lookup(&store, START)).store(response("/large").new_object());
    let mut reader = writer.object().reader().unwrap();
    let mut read = 0;
    for _ in 0..3000 {
        writer.append(&[b'x'; 1000]);
        read += Task::new().read(&mut reader).len();
    }
    assert!(!writer.is_stored());
    writer.finish(None);
    assert_eq!(read, 3_000_000);
    assert_eq!(Task::new().read(&mut reader), "<end>");
    let hits = (0..popular).filter(|n| ask(&store, &format!("/{n}"), 1000)).count();
    assert!(hits * 10 >= popular * 9, "{hits} of {popular}");
}

/// Regression: the search for a victim moved it to the main queue, and ended.
#[test]
fn a_lower_limit_is_met_by_an_object_that_had_hits() {
    let store = store(1 << 20);
    response("/1").put(&store, &[b'x'; 100_000]);
    (0..3).for_each(|_| assert!(ask(&store, "/1", 0)));
    store.configure(Settings { limit: 90_000, ..store.settings() });
    let after = store.stats();
    assert_eq!((after.objects, after.bytes <= after.limit), (0, true));
}

#[test]
fn a_large_object_that_came_back_unannounced_is_no_popular_one() {
    let store = Arc::new(Store::new(Settings { shards: Some(1), ..Settings::new(8 << 20) }));
    let large = response("/large");
    // Push it out of the small queue once, so that its key is remembered.
    drop(fill(&store, &large).finish(None));
    (0..10_000).for_each(|n| _ = ask(&store, &format!("/once/{n}"), 1000));
    let mut writer = fill(&store, &large);
    for _ in 0..40 {
        writer.append(&[b'x'; 1 << 16]);
    }
    assert!(writer.is_stored() && store.stats().small_bytes >= 40 << 16, "{:?}", store.stats());
}

#[test]
fn the_index_of_tags_that_are_gone_takes_no_room_from_others() {
    let store = Arc::new(Store::new(Settings::new(8 << 20)));
    for number in 0..200 {
        let mut tagged = response(&format!("/tagged/{number}"));
        tagged.tags = (0..2000).map(|tag| Tag::new(format!("{number}/{tag}").as_bytes())).collect();
        tagged.put(&store, b"1");
    }
    let round = || {
        let missed = |number: &u32| {
            let path = format!("/{number}");
            let missed = store.variants(key(&path)).is_empty();
            if missed {
                response(&path).put(&store, &[0; 4096]);
            }
            missed
        };
        (0..500).filter(missed).count()
    };
    let missed = [round(), round(), round()];
    assert_eq!(missed, [500, missed[1], 0], "{:?}", store.stats());
}

/// Stores `/wanted` and requests it until it is in the main queue.
fn make_wanted(store: &Arc<Store>, room: usize) {
    ask(store, "/wanted", 1000);
    for n in 0..2 * room {
        ask(store, &format!("/once/{n}"), 1000);
        if n % 16 == 0 {
            ask(store, "/wanted", 1000);
        }
    }
}

/// Whether `/wanted` is still there after twice what fits.
fn outlasts_a_flood(store: &Arc<Store>, room: usize) -> bool {
    (0..2 * room).for_each(|n| _ = ask(store, &format!("/more/{n}"), 1000));
    !store.variants(key("/wanted")).is_empty()
}

#[test]
fn what_is_fetched_again_after_it_expired_keeps_its_place() {
    for is_swept in [false, true] {
        let store = Arc::new(Store::new(Settings::new(4 << 20)));
        let room = room(4 << 20, 1000);
        make_wanted(&store, room);
        if is_swept {
            store.sweep(usize::MAX, at(100));
            assert!(store.variants(key("/wanted")).is_empty());
        }
        let again = response("/wanted").lifetimes(at(100), 10, 5, 60);
        flight(get("/wanted").lookup(&store, at(100))).store_complete(
            again.new_object(),
            &[&[b'x'; 1000]],
            None,
        );
        assert!(outlasts_a_flood(&store, room), "swept: {is_swept}");
    }
}

#[test]
fn a_response_that_is_always_validated_counts_as_requested() {
    let store = Arc::new(Store::new(Settings::new(4 << 20)));
    let room = room(4 << 20, 1000);
    response("/wanted").lifetimes(START, 0, 0, 60).put(&store, &[b'x'; 1000]);
    for _ in 0..3 {
        let stale = flight(get("/wanted").lookup(&store, at(1)));
        assert!(stale.refresh(response("/wanted").lifetimes(START, 0, 0, 60).new_object()).is_some());
    }
    assert!(outlasts_a_flood(&store, room));
}

#[test]
fn of_objects_with_as_many_hits_the_small_ones_stay() {
    let store = Arc::new(Store::new(Settings::new(8 << 20)));
    let room = room(8 << 20, 1000);
    for n in 0..100 {
        for (kind, len) in [("small", 1000), ("large", 20_000)] {
            // The requests that follow the first at once count as one hit.
            (0..5).for_each(|_| _ = ask(&store, &format!("/{kind}/{n}"), len));
        }
    }
    (0..room).for_each(|n| _ = ask(&store, &format!("/once/{n}"), 1000));
    let left =
        |kind: &str| (0..100).filter(|n| !store.variants(key(&format!("/{kind}/{n}"))).is_empty()).count();
    assert!(left("small") > 90, "{} small ones are left", left("small"));
    assert!(left("large") < 10, "{} large ones are left", left("large"));
}

#[test]
fn pages_outlast_a_flood_of_small_objects_that_are_requested_twice_at_once() {
    let store = Arc::new(Store::new(Settings::new(4 << 20)));
    let mut random = Random::new(1);
    let (mut hits, mut flood, steps) = (0, 0, 2000);
    for step in 0..steps {
        for _ in 0..30 {
            flood += 1;
            ask(&store, &format!("/flood/{flood}"), 500);
            assert!(ask(&store, &format!("/flood/{flood}"), 500));
        }
        // Together, the pages take less than half of the store.
        let page = random.below(200);
        let is_hit = ask(&store, &format!("/pages/{page}"), 4000 + 40 * page);
        hits += usize::from(is_hit && step >= steps / 2);
    }
    assert!(hits * 100 >= steps / 2 * 80, "{hits} of {}", steps / 2);
}

/// Plays `pages` new pages. With each come two requests for any of the `recent` newest pages, and one for any
/// of a few popular ones. Returns the hits of both kinds in per cent.
fn play_news(store: &Arc<Store>, room: usize, recent: usize, pages: usize) -> (usize, usize) {
    let mut random = Random::new(1);
    let (mut news, mut popular) = (0, 0);
    for n in 0..pages {
        ask(store, &format!("/news/{n}"), 1000);
        for _ in 0..2 {
            let page = n - random.below(recent.min(n + 1));
            news += usize::from(ask(store, &format!("/news/{page}"), 1000));
        }
        popular += usize::from(ask(store, &format!("/{}", random.below(room / 4)), 1000));
    }
    (news * 100 / (2 * pages), popular * 100 / pages)
}

#[test]
fn the_small_queue_grows_when_pages_come_back_soon_after_they_left_it() {
    let store = Arc::new(Store::new(Settings::new(4 << 20)));
    let room = room(4 << 20, 1000);
    play_news(&store, room, room / 4, 5 * room);
    let (news, popular) = play_news(&store, room, room / 4, 10 * room);
    assert!(news >= 90, "{news} % of the recent pages");
    assert!(popular >= 95, "{popular} % of the popular pages");
}

#[test]
fn the_small_queue_shrinks_when_pages_come_back_soon_after_they_left_the_main_one() {
    let store = Arc::new(Store::new(Settings::new(4 << 20)));
    let room = room(4 << 20, 1000);
    play_news(&store, room, room / 4, 10 * room);
    let before = store.stats().small_bytes;
    // Pages that all fit, if little is kept for those requested once.
    let pages = room * 95 / 100;
    let play = || (0..pages).filter(|n| ask(&store, &format!("/loop/{n}"), 1000)).count();
    (0..60).for_each(|_| _ = play());
    let hits = play();
    let after = store.stats().small_bytes;
    assert_eq!(hits, pages);
    assert!(after < before * 3 / 4, "{before} bytes before, {after} after");
}

#[test]
fn large_objects_that_come_back_take_no_room_from_small_ones() {
    let store = Arc::new(Store::new(Settings::new(4 << 20)));
    let popular = room(4 << 20, 1000) * 3 / 4;
    for _ in 0..5 {
        (0..popular).for_each(|n| _ = ask(&store, &format!("/{n}"), 1000));
    }
    // Downloads that are requested twice, when four others have followed, which a larger small queue would
    // keep.
    let mut hits = 0;
    for n in 0..2000 {
        ask(&store, &format!("/large/{n}"), 300_000);
        ask(&store, &format!("/large/{}", n - 4.min(n)), 300_000);
        hits += usize::from(ask(&store, &format!("/{}", n % popular), 1000));
    }
    assert!(hits >= 1950, "{hits} of 2000");
}
