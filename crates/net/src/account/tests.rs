use super::*;

/// A cache that gives so many bytes.
pub(crate) struct Cache {
    most: usize,
    given: AtomicUsize,
}

impl Cache {
    pub(crate) fn of(most: usize) -> Cache {
        Cache { most, given: AtomicUsize::new(0) }
    }
}

impl Reserve for Cache {
    fn take(&self, bytes: usize) -> bool {
        let more = |given: usize| Some(given + bytes).filter(|given| *given <= self.most);
        self.given.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    fn give(&self, bytes: usize) {
        self.given.fetch_add(bytes, Relaxed);
    }

    fn release(&self, bytes: usize) {
        self.given.fetch_sub(bytes, Relaxed);
    }

    fn given(&self) -> usize {
        self.given.load(Relaxed)
    }

    fn passing(&self) -> usize {
        0
    }

    fn most(&self) -> usize {
        self.most
    }
}

const MIB: usize = 1 << 20;

#[test]
fn what_is_leased_is_counted_until_it_is_dropped() {
    let account = Account::new(Cache::of(48 * MIB));
    let process = account.process();
    let mut lease = process.lease(Held::Coders, 10 * MIB).expect("room");
    assert!(lease.grow(10 * MIB));
    assert_eq!([account.bytes(), account.of(Held::Coders), process.bytes()], [20 * MIB; 3]);
    // Three quarters are for one who holds more than a little.
    assert!(!lease.grow(17 * MIB) && lease.grow(16 * MIB) && process.lease(Held::Resumes, 1).is_none());
    let parted = lease.split(30 * MIB);
    lease.set(MIB);
    assert_eq!([account.bytes(), account.of(Held::Coders), process.bytes()], [31 * MIB; 3]);
    lease.join(parted);
    // Memory that is held already is counted in any case.
    lease.set(50 * MIB);
    assert_eq!(account.bytes(), 50 * MIB);
    drop(lease);
    assert_eq!([account.bytes(), account.of(Held::Coders), process.bytes()], [0; 3]);
}

#[test]
fn those_who_hold_less_than_others_are_left_alone() {
    let account = Account::new(Cache::of(48 * MIB));
    let [much, some, little] = [9 * MIB, 2 * MIB, 60 << 10]
        .map(|bytes| account.connection().lease(Held::Responses, bytes).expect("room"));
    let presses = |lease: &Lease| lease.holder().presses();
    assert!(!presses(&much), "so much is allowed");
    account.press_above(8 * MIB);
    assert_eq!([&much, &some, &little].map(presses), [true, false, false]);
    drop(much);
    let more = account.connection().lease(Held::Uploads, 7 * MIB).expect("room");
    assert_eq!([&more, &some, &little].map(presses), [true, false, false]);
    drop(some);
    assert!(!presses(&more) && !presses(&little), "what is left is allowed");
}

/// Regression: long polls with long cookies were reset, and so were readers on a site with many requests in
/// flight, which frees nothing of what these take.
#[test]
fn requests_that_wait_for_backends_give_way_to_nobody_and_have_nobody_cut_off() {
    let account = Account::new(Cache::of(48 * MIB));
    account.press_above(8 * MIB);
    let wait = || account.connection().lease(Held::Heads, 3 * EXCHANGE);
    let waiting: Vec<Lease> = std::iter::from_fn(wait).take(700).collect();
    let reader = account.connection().lease(Held::Responses, 100 << 10).expect("room");
    assert!(account.is_crowded() && !reader.holder().presses() && !waiting[0].holder().presses());
}

/// Regression: bodies in spools, of which a part waits in memory, had their slow readers cut off.
#[test]
fn what_has_a_bound_of_its_own_gives_way_to_nobody() {
    let account = Account::new(Cache::of(48 * MIB));
    account.press_above(8 * MIB);
    let lease = |class| account.connection().lease(class, 300 << 10).expect("room");
    let spooled: Vec<Lease> = (0..60).map(|_| lease(Held::Spooled)).collect();
    assert!(!spooled[0].holder().presses() && !lease(Held::Responses).holder().presses());
}

/// Regression: 1100 slow readers of 50 KiB each kept everybody else out, because each of them held
/// little.
#[test]
fn where_all_hold_much_little_is_much() {
    let account = Account::new(Cache::of(48 * MIB));
    account.press_above(8 * MIB);
    let reader = || account.connection().lease(Held::Responses, 50 << 10).expect("room");
    let readers: Vec<Lease> = std::iter::repeat_with(reader).take(200).collect();
    assert!(!readers[0].holder().presses());
    let all: Vec<Lease> = std::iter::repeat_with(reader).take(400).collect();
    assert!(all[0].holder().presses());
}

#[test]
fn those_who_hold_little_find_room_beside_those_who_hold_much() {
    let account = Account::new(Cache::of(48 * MIB));
    let greedy: Vec<Lease> =
        std::iter::from_fn(|| account.connection().lease(Held::Heads, MIB)).take(100).collect();
    assert_eq!(greedy.len(), 36);
    assert!(account.connection().lease(Held::Heads, 65 << 10).is_none());
    assert!(account.connection().lease(Held::Heads, 64 << 10).is_some());
}

#[test]
fn a_connection_has_so_many_bytes_of_heads_and_one_head_of_any_length() {
    let account = Account::new(Cache::of(48 * MIB));
    let connection = account.connection();
    assert!(connection.has_room_for_head(2 * MIB));
    let first = connection.lease(Held::Heads, HEADS_OF_CONNECTION - 10).expect("room");
    assert!(connection.has_room_for_head(10) && !connection.has_room_for_head(11));
    drop(first);
    assert!(connection.has_room_for_head(2 * MIB));
}

/// Regression: visitors of a stored page over TLS were turned away where others held all that there is.
#[test]
fn handshakes_find_room_where_there_is_none() {
    let account = Account::new(Cache::of(1 << 20));
    let full = account.connection().holds(Held::Heads, 1 << 20);
    let client = account.connection();
    assert!(client.lease(Held::Heads, 12 << 10).is_none());
    let handshakes: Vec<Lease> =
        std::iter::from_fn(|| account.connection().lease_handshake(12 << 10)).collect();
    assert_eq!(handshakes.len(), HANDSHAKES_IN_ANY_CASE / (12 << 10));
    drop((full, handshakes));
    assert_eq!(account.bytes(), 0);
}
