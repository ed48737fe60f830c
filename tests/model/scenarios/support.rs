//! Schedules, and a store for the scenarios of each file.

use std::sync::Arc;
use std::time::Duration;

use sandarac_message::caching::{Lifetimes, MaxStale, RequestDirectives};
use sandarac_message::vary::VaryKey;
use sandarac_message::{Fields, FieldsBuf, StoredHead, Timestamp};
use sandarac_model::{Intent, Key, Lookup, NewObject, Query, Settings, Store};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, MaxSteps, Runner};

/// The start of every scenario; time does not pass.
pub(crate) const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

const HOUR: Duration = Duration::from_secs(3600);

/// Orders of threads that each scheduler tries.
const ORDERS: usize = 1500;

/// Plays `scenario` in many orders: drawn at random, and with few switches at places drawn at random. The seeds are fixed, so
/// that each run is the same.
pub(crate) fn in_many_orders(scenario: impl Fn() + Copy + Send + Sync + 'static) {
    in_orders(ORDERS, scenario);
}

/// The same in so many orders of each scheduler.
pub(crate) fn in_orders(orders: usize, scenario: impl Fn() + Copy + Send + Sync + 'static) {
    let mut config = Config::new();
    // The loops end by themselves.
    config.max_steps = MaxSteps::FailAfter(1_000_000);
    // It models relaxed atomics as sequentially consistent ones, and warns of that.
    config.silence_warnings = true;
    Runner::new(RandomScheduler::new_from_seed(1, orders), config.clone()).run(scenario);
    Runner::new(PctScheduler::new_from_seed(2, 3, orders), config).run(scenario);
}

pub(crate) fn settings(limit: usize) -> Settings {
    Settings { shards: Some(1), window: 1024, ..Settings::new(limit) }
}

pub(crate) fn key() -> Key {
    Key::of(b"http", b"a.example", b"/")
}

/// A request without fields.
pub(crate) fn query() -> Query<'static> {
    static DIRECTIVES: RequestDirectives = RequestDirectives {
        no_cache: false,
        no_store: false,
        only_if_cached: false,
        max_age: None,
        min_fresh: None,
        max_stale: MaxStale::No,
    };
    Query { fields: Fields::default(), directives: &DIRECTIVES, part: None, intent: Intent::Fill }
}

pub(crate) fn lookup(store: &Arc<Store>) -> Lookup {
    store.lookup(key(), &query(), NOW)
}

/// A time at which what was fetched at the start is stale, and has to be validated.
pub(crate) const LATER: Timestamp = Timestamp::from_secs(1_700_000_000 + 2 * 3600);

/// A response that is fresh for an hour, with a body of `len` bytes if that is announced.
pub(crate) fn new_object(len: Option<u64>) -> NewObject<'static> {
    NewObject {
        head: StoredHead::new(200, b"OK", &FieldsBuf::new()).expect("it is short"),
        lifetimes: Lifetimes::fixed(NOW, HOUR, Duration::ZERO, 24 * HOUR),
        vary: VaryKey::default(),
        host: b"a.example",
        path: b"/",
        tags: &[],
        range: None,
        len,
        limit: None,
        resumable: true,
        copy: None,
        transaction: 1,
    }
}

/// The same at a later time, with a field.
pub(crate) fn newer_object() -> NewObject<'static> {
    let fields: FieldsBuf = [("X-Version", "new")].into_iter().collect();
    NewObject {
        head: StoredHead::new(200, b"OK", &fields).expect("it is short"),
        lifetimes: Lifetimes::fixed(LATER, HOUR, Duration::ZERO, 24 * HOUR),
        ..new_object(None)
    }
}

/// All charges but those for the index are gone with what they were for.
pub(crate) fn check_charges(store: &Store) {
    store.configure(settings(1));
    let stats = store.stats();
    assert_eq!((stats.objects, stats.flights), (0, 0));
    assert_eq!(stats.bytes, stats.index_bytes, "bytes are charged for nothing");
}
