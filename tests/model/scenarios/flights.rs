//! Flights under every order of threads that a scheduler comes upon: requests for one key, purges, and fetches that fail.

use std::future::poll_fn;
use std::sync::Arc;

use crate::support::{NOW, check_charges, in_many_orders, key, lookup, new_object, query, settings};
use sandarac_model::{Flight, Lookup, Object, Purge, Store, Waited};
use shuttle::future::block_on;
use shuttle::thread;

/// What becomes of a fetch.
#[derive(Clone, Copy)]
enum Fetched {
    Stored,
    Dropped,
    Failed,
    Released,
    Scattered,
}

/// Asks for the key as an exchange does: fetches, or waits for the fetch of another and looks up again.
fn request(store: &Arc<Store>, fetched: Fetched) -> Option<Arc<Object>> {
    loop {
        let flight = match lookup(store) {
            Lookup::Hit(object) => return Some(object),
            Lookup::Miss(flight) => flight,
            Lookup::Wait(mut waiter) => match block_on(poll_fn(|cx| waiter.poll(cx, &query(), NOW))) {
                Waited::Object(object) => return Some(object),
                Waited::Lead(flight) => flight,
                Waited::Again => continue,
                Waited::Failed => return None,
            },
            _ => unreachable!("nothing is stale or marked"),
        };
        return end(flight, fetched);
    }
}

fn end(flight: Flight, fetched: Fetched) -> Option<Arc<Object>> {
    match fetched {
        Fetched::Stored => Some(flight.store_complete(new_object(None), &[b"body"], None)),
        Fetched::Dropped => None,
        Fetched::Failed => {
            flight.fail();
            None
        }
        Fetched::Released => {
            flight.release(1);
            None
        }
        Fetched::Scattered => {
            flight.scatter();
            None
        }
    }
}

/// Three requests at once, the fetch of one of which ends like this. No request waits for ever: the scheduler reports that as a
/// deadlock. The key is free afterwards.
fn three_requests(fetched: Fetched) {
    let store = Arc::new(Store::new(settings(1 << 20)));
    let requests = [fetched, Fetched::Stored, Fetched::Stored].map(|fetched| {
        let store = store.clone();
        thread::spawn(move || request(&store, fetched).is_some())
    });
    let answered = requests.map(|request| request.join().expect("the request ends"));
    match fetched {
        Fetched::Stored => assert_eq!(answered, [true; 3]),
        // Waiters of a fetch that failed fail with it.
        Fetched::Failed => {}
        _ => assert_eq!(answered[1..], [true; 2]),
    }
    assert_eq!(store.stats().flights, 0);
    check_charges(&store);
}

#[test]
fn requests_at_once_share_one_fetch() {
    in_many_orders(|| three_requests(Fetched::Stored));
}

#[test]
fn a_fetch_that_is_dropped_passes_to_a_waiter() {
    in_many_orders(|| three_requests(Fetched::Dropped));
}

#[test]
fn a_fetch_that_fails_ends_its_waiters() {
    in_many_orders(|| three_requests(Fetched::Failed));
}

#[test]
fn a_fetch_that_is_released_passes_to_a_waiter() {
    in_many_orders(|| three_requests(Fetched::Released));
}

#[test]
fn a_fetch_that_is_scattered_frees_its_waiters() {
    in_many_orders(|| three_requests(Fetched::Scattered));
}

/// A purge removes what a fetch that had begun before it brings, whenever that arrives.
#[test]
fn a_purge_removes_the_response_of_a_fetch_that_began_before_it() {
    in_many_orders(|| {
        let store = Arc::new(Store::new(settings(1 << 20)));
        let Lookup::Miss(flight) = lookup(&store) else { panic!("the store is empty") };
        let filling = thread::spawn(move || {
            let mut writer = flight.store(new_object(Some(4)));
            writer.append(b"ol");
            writer.append(b"d.");
            writer.finish(None);
        });
        let purging = {
            let store = store.clone();
            thread::spawn(move || {
                store.purge(key(), Purge::Hard, NOW);
                assert!(!matches!(lookup(&store), Lookup::Hit(_)), "the old response outlives the purge");
            })
        };
        filling.join().expect("the fill ends");
        purging.join().expect("the purge ends");
        assert!(!matches!(lookup(&store), Lookup::Hit(_)), "the old response outlives the purge");
        check_charges(&store);
    });
}
