//! Many threads at once, with schedules drawn from a seed.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;

use sandarac_balance::Random;

use super::*;
use crate::Purge::{Hard, Soft};

/// A task that runs on its own thread.
struct Parked(thread::Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let waker = Waker::from(Arc::new(Parked(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let patience = std::time::Duration::from_secs(60);
    loop {
        match poll(&mut cx) {
            Poll::Ready(value) => return value,
            Poll::Pending => {
                let since = std::time::Instant::now();
                thread::park_timeout(patience);
                assert!(since.elapsed() < patience, "nobody woke the task");
            }
        }
    }
}

/// The body of a path: the path, repeated.
fn body(path: &str, len: usize) -> Vec<u8> {
    path.bytes().cycle().take(len).collect()
}

/// Reads an object to its end and checks that it is consistent. False if it broke off.
fn read(object: &Arc<Object>, path: &str) -> bool {
    let Some(mut reader) = object.reader() else { return false };
    let mut got = Vec::new();
    loop {
        match block(|cx| reader.poll_chunk(cx)) {
            Some(Ok(chunk)) => got.extend_from_slice(chunk.bytes().expect("in memory")),
            Some(Err(_)) => return false,
            None => break,
        }
    }
    assert!(got == body(path, got.len()), "a body of another path");
    true
}

/// Fetches: completes a flight in one of many ways.
fn fetch(flight: Flight, path: &str, random: &mut Random, fetched: &AtomicU64) {
    fetched.fetch_add(1, Relaxed);
    let len = random.below(60_000);
    let whole = body(path, len);
    let tags = [Tag::new(path.as_bytes()), Tag::new(b"all")];
    let mut response = response(path);
    response.tags = tags.to_vec();
    match random.below(10) {
        0 => drop(flight),
        1 => flight.fail(),
        2 => flight.mark(crate::Mark::HitForMiss, START, START),
        3..=5 => _ = flight.store_complete(response.new_object(), &[&whole], None),
        kind => {
            response.len = (kind == 6).then_some(len as u64);
            let mut writer = flight.store(response.new_object());
            let broken = random.below(8) == 0;
            for piece in whole.chunks(1 + random.below(9000)) {
                writer.append(piece);
                if random.below(3) == 0 {
                    thread::yield_now();
                }
            }
            if !broken {
                writer.finish(None);
            }
        }
    }
}

/// One request, from lookup to the last byte.
fn request(store: &Arc<Store>, path: &str, random: &mut Random, fetched: &AtomicU64) {
    let request = get(path);
    for _ in 0..100 {
        match request.lookup(store, START) {
            Lookup::Hit(object) | Lookup::Stale(object, None) => {
                if read(&object, path) {
                    return;
                }
            }
            Lookup::Stale(object, Some(flight)) => {
                fetch(flight, path, random, fetched);
                read(&object, path);
                return;
            }
            Lookup::Miss(flight) => return fetch(flight, path, random, fetched),
            Lookup::Wait(mut waiter) => {
                if random.below(10) == 0 {
                    // The client has gone.
                    let _ = Task::new().wait(&mut waiter, &request, START);
                    return;
                }
                match block(|cx| waiter.poll(cx, &request.query(), START)) {
                    Waited::Object(object) => {
                        if read(&object, path) {
                            return;
                        }
                    }
                    Waited::Lead(flight) => return fetch(flight, path, random, fetched),
                    Waited::Again => {}
                    Waited::Failed => return,
                }
            }
            Lookup::Marked(..) | Lookup::Absent(_) => return,
        }
    }
}

#[test]
fn threads_do_not_lose_one_another() {
    for seed in 0..3 {
        // Room for some of the objects, so that eviction joins in.
        let limit = 1 << 20;
        let store = Arc::new(Store::new(Settings { shards: Some(2), ..Settings::new(limit) }));
        let (fetched, requested) = (AtomicU64::new(0), AtomicU64::new(0));
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let requesters: Vec<_> = (0..4)
                .map(|n| {
                    let (store, fetched, requested) = (&store, &fetched, &requested);
                    scope.spawn(move || {
                        let mut random = Random::new(seed * 100 + n);
                        for _ in 0..700 {
                            let path = format!("/{}/", random.below(60));
                            request(store, &path, &mut random, fetched);
                            requested.fetch_add(1, Relaxed);
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                let mut random = Random::new(seed * 100 + 50);
                let mut purged = 0;
                while !over.load(Relaxed) {
                    thread::sleep(std::time::Duration::from_micros(300));
                    // However slow the other threads are, some objects are left to hit.
                    if 2 * purged >= requested.load(Relaxed) {
                        continue;
                    }
                    purged += 1;
                    let path = format!("/{}/", random.below(60));
                    let purge = if random.below(2) == 0 { Hard } else { Soft };
                    match random.below(20) {
                        0 => _ = store.purge_tags(&[Tag::new(b"all")], purge, START),
                        1 => _ = store.purge_all(purge, START),
                        2 => store.ban(format!("path == \"{path}\"").parse().unwrap(), START),
                        3..=8 => _ = store.purge_tags(&[Tag::new(path.as_bytes())], purge, START),
                        9..=12 => _ = store.purge(key(&path), purge, START),
                        _ => _ = store.sweep(100, START),
                    }
                }
            });
            for requester in requesters {
                requester.join().unwrap();
            }
            over.store(true, Relaxed);
        });
        let stats = store.stats();
        assert!(stats.bytes <= limit as u64, "{stats:?}");
        assert_eq!(stats.flights, 0, "{stats:?}");
        assert_eq!(stats.waiters, 0, "{stats:?}");
        assert!(fetched.load(Relaxed) > 100 && stats.hits > 100, "{stats:?}");
        store.purge_all(Hard, START);
        let index: usize = (0..store.shards()).map(|at| store.shard(at).index_bytes()).sum();
        assert_eq!(store.stats().bytes as usize, index, "nothing is charged for nothing");
    }
}

#[test]
fn of_many_who_come_at_once_one_fetches() {
    for seed in 0..50 {
        let store = store(1 << 20);
        let fetched = AtomicU64::new(0);
        let barrier = std::sync::Barrier::new(4);
        thread::scope(|scope| {
            for n in 0..4 {
                let (store, fetched, barrier) = (&store, &fetched, &barrier);
                scope.spawn(move || {
                    let mut random = Random::new(seed * 10 + n);
                    barrier.wait();
                    loop {
                        let flight = match get("/").lookup(store, START) {
                            Lookup::Hit(object) => {
                                assert!(read(&object, "/"));
                                return;
                            }
                            Lookup::Miss(flight) => flight,
                            Lookup::Wait(mut waiter) => {
                                let request = get("/");
                                match block(|cx| waiter.poll(cx, &request.query(), START)) {
                                    Waited::Object(object) => {
                                        assert!(read(&object, "/"));
                                        return;
                                    }
                                    Waited::Lead(flight) => flight,
                                    Waited::Again => continue,
                                    Waited::Failed => panic!("nobody failed"),
                                }
                            }
                            other => panic!("{}", said(&other)),
                        };
                        if random.below(2) == 0 {
                            // Gives up, and tries again behind the other waiters.
                            continue;
                        }
                        fetched.fetch_add(1, Relaxed);
                        let mut writer = flight.store(response("/").new_object());
                        for _ in 0..20 {
                            writer.append(&body("/", 1000));
                        }
                        writer.finish(None);
                        return;
                    }
                });
            }
        });
        assert_eq!(fetched.load(Relaxed), 1);
    }
}
