//! The account of what clients make the process hold.
//!
//! Memory that lives as long as a connection or a stream is [leased](Lease) from one account: the lease is
//! taken where the memory is, and returned when it is dropped. Each is of a class, which reports name, and
//! has a [`Holder`], which is the connection: where there is not enough for all, the one who holds most and
//! takes least gives way.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Bytes that a connection may hold, beyond which nothing is read or asked for ahead of its turn.
const AHEAD: usize = 1 << 20;

/// A connection that holds no more is not in the way of others; and where all hold much, one that holds no more
/// of what [gives way](Held::gives_way).
const LITTLE: usize = 64 << 10;
const IN_A_CROWD: usize = 16 << 10;

/// Bytes that are read at a time for a connection where nothing may be held ahead, and bytes that wait for it
/// then.
const CROWDED_READ: usize = 8 << 10;
const CROWDED_WINDOW: usize = 4 << 10;

/// Bytes that an exchange takes beside the head of its request: its state, and the connection to its backend.
pub(crate) const EXCHANGE: usize = 16 << 10;

/// The most bytes for requests in progress that one connection may have, its first excepted: as many as it
/// has streams, with heads of 5 KiB on average (RFC 9113 §10.5.1 leaves the bound to the receiver).
const HEADS_OF_CONNECTION: usize = 100 * EXCHANGE + (1 << 20);

/// A class of memory that lives as long as a connection or a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// The heads of requests that are not answered, and what serving them takes.
    Heads,
    /// Responses that wait for their client.
    Responses,
    /// Data of requests that waits for its backend, or may have to be sent again.
    Uploads,
    /// Data in tunnels.
    Tunnels,
    /// Text of pages that waits for a fragment before it.
    Text,
    /// Fragments that wait for their turn in a page.
    Fragments,
    /// Bodies that wait in a spool, on their way to a file or instead of it.
    Spooled,
    /// Encoders, decoders, and what they make.
    Coders,
    /// Résumés that are being read.
    Resumes,
    /// TLS handshakes.
    Handshakes,
    /// Bodies that are not stored, on their way from a fetch to its readers. The cache itself counts them.
    Passing,
}

impl Held {
    /// All classes.
    pub const ALL: [Held; 11] = [
        Held::Heads,
        Held::Responses,
        Held::Uploads,
        Held::Tunnels,
        Held::Text,
        Held::Fragments,
        Held::Spooled,
        Held::Coders,
        Held::Resumes,
        Held::Handshakes,
        Held::Passing,
    ];

    /// Whether those who hold much of it have to give way if they move little. Not of what has a bound of its
    /// own, above which it goes to files or is not made; and no client can hasten the end of a request that
    /// waits for its backend.
    fn gives_way(self) -> bool {
        matches!(self, Held::Responses | Held::Uploads | Held::Tunnels | Held::Text | Held::Fragments)
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Held::Heads => "heads",
            Held::Responses => "responses",
            Held::Uploads => "uploads",
            Held::Tunnels => "tunnels",
            Held::Text => "text",
            Held::Fragments => "fragments",
            Held::Spooled => "spooled",
            Held::Coders => "coders",
            Held::Resumes => "resumes",
            Held::Handshakes => "handshakes",
            Held::Passing => "passing",
        }
    }
}

/// The memory that an account draws on: the cache, which evicts for it.
pub trait Reserve: Send + Sync {
    /// Gives so many bytes if it can.
    fn take(&self, bytes: usize) -> bool;

    /// Gives so many bytes, which are held already.
    fn give(&self, bytes: usize);

    /// Takes so many bytes back.
    fn release(&self, bytes: usize);

    /// Bytes that are given.
    fn given(&self) -> usize;

    /// Of these, those that it gave itself, for [`Held::Passing`].
    fn passing(&self) -> usize;

    /// The most bytes that may be given.
    fn most(&self) -> usize;
}

/// Bytes of many holders, and the number of those who have any.
#[derive(Default)]
struct Sum {
    bytes: AtomicUsize,
    holders: AtomicUsize,
}

impl Sum {
    /// A holder has `after` bytes, and no longer `before`.
    fn change(&self, before: usize, after: usize) {
        // Wraps if it is less.
        self.bytes.fetch_add(after.wrapping_sub(before), Relaxed);
        let holders = usize::from(after > 0).wrapping_sub(usize::from(before > 0));
        if holders != 0 {
            self.holders.fetch_add(holders, Relaxed);
        }
    }

    fn mean(&self) -> usize {
        self.bytes.load(Relaxed) / self.holders.load(Relaxed).max(1)
    }
}

/// Bytes of handshakes for which there is room whatever else is held.
const HANDSHAKES_IN_ANY_CASE: usize = 4 << 20;

/// The account of a process.
pub struct Account {
    classes: [AtomicUsize; Held::ALL.len()],
    /// The bytes that connections hold of what gives way, and the number of these.
    yielding: Sum,
    /// So many of these bytes they may hold before some have to give way.
    allowed: AtomicUsize,
    reserve: Box<dyn Reserve>,
}

impl Account {
    /// An empty account that draws on `reserve`.
    pub fn new(reserve: impl Reserve + 'static) -> Arc<Account> {
        Arc::new(Account {
            classes: Default::default(),
            yielding: Sum::default(),
            allowed: AtomicUsize::new(usize::MAX),
            reserve: Box::new(reserve),
        })
    }

    /// All bytes held.
    pub fn bytes(&self) -> usize {
        self.reserve.given()
    }

    /// Bytes held of a class.
    pub fn of(&self, class: Held) -> usize {
        match class {
            Held::Passing => self.reserve.passing(),
            class => self.classes[class as usize].load(Relaxed),
        }
    }

    /// The most bytes that may be held.
    pub fn limit(&self) -> usize {
        self.reserve.most()
    }

    /// Whether all hold more than half of what they may.
    fn is_crowded(&self) -> bool {
        self.bytes() > self.limit() / 2
    }

    /// Whether so much is held that only those who hold little find room.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.bytes() > self.limit() / 4 * 3
    }

    /// Sets from how many bytes of all connections some of them have to give way.
    pub fn press_above(&self, bytes: usize) {
        self.allowed.store(bytes, Relaxed);
    }

    /// A holder of this account that is a connection.
    pub fn connection(self: &Arc<Account>) -> Holder {
        self.holder(true)
    }

    /// The holder of what serves no connection alone.
    pub fn process(self: &Arc<Account>) -> Holder {
        self.holder(false)
    }

    fn holder(self: &Arc<Account>, is_connection: bool) -> Holder {
        Holder(Arc::new(Inner {
            account: self.clone(),
            is_connection,
            moved: AtomicU64::new(0),
            is_cut: AtomicBool::new(false),
            bytes: AtomicUsize::new(0),
            heads: AtomicUsize::new(0),
            yielding: AtomicUsize::new(0),
            disk: AtomicU64::new(0),
        }))
    }
}

/// One who holds memory: a connection, or the process itself.
#[derive(Clone)]
pub struct Holder(Arc<Inner>);

struct Inner {
    account: Arc<Account>,
    is_connection: bool,
    /// Bytes that the client has taken and sent. Its own core alone counts them.
    moved: AtomicU64,
    /// Whether it has to give way.
    is_cut: AtomicBool,
    bytes: AtomicUsize,
    /// Of these bytes, those of heads.
    heads: AtomicUsize,
    /// And those of what gives way.
    yielding: AtomicUsize,
    /// Bytes of files.
    disk: AtomicU64,
}

impl Holder {
    /// The account.
    pub fn account(&self) -> &Arc<Account> {
        &self.0.account
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Relaxed)
    }

    /// Leases memory; `None` if there is too little for all, or if this holder has too much of it.
    pub fn lease(&self, class: Held, bytes: usize) -> Option<Lease> {
        let mut lease = self.nothing(class);
        lease.grow(bytes).then_some(lease)
    }

    /// The same for a handshake, of which some find room in any case: a visitor of a stored page needs nothing more.
    pub(crate) fn lease_handshake(&self, bytes: usize) -> Option<Lease> {
        self.lease(Held::Handshakes, bytes).or_else(|| {
            let others = self.account().of(Held::Handshakes);
            (others + bytes <= HANDSHAKES_IN_ANY_CASE).then(|| self.holds(Held::Handshakes, bytes))
        })
    }

    /// A lease of nothing yet.
    pub fn nothing(&self, class: Held) -> Lease {
        Lease { holder: self.clone(), class, bytes: 0 }
    }

    /// A lease of memory that is held already.
    pub(crate) fn holds(&self, class: Held, bytes: usize) -> Lease {
        let mut lease = self.nothing(class);
        lease.set(bytes);
        lease
    }

    /// Whether it holds so much that it may have to give way.
    pub(crate) fn holds_much(&self) -> bool {
        self.0.is_connection && self.0.yielding.load(Relaxed) > IN_A_CROWD
    }

    /// Whether it has to give way, if it moves little. Connections hold much together of what gives way, and
    /// this one no less of it than others do on average: so clients that take most of the memory do not have
    /// those cut off that take little.
    pub fn presses(&self) -> bool {
        let (account, yielding) = (self.account(), self.0.yielding.load(Relaxed));
        let least = if account.is_crowded() { IN_A_CROWD } else { LITTLE };
        self.0.is_connection
            && yielding > least
            && account.yielding.bytes.load(Relaxed) > account.allowed.load(Relaxed)
            && yielding >= account.yielding.mean()
    }

    /// Whether it has to give way as soon as it moves nothing, because all hold more than they may.
    pub(crate) fn is_beyond_limit(&self) -> bool {
        self.account().bytes() > self.account().limit() && self.presses()
    }

    /// Whether more may be held for it than what is sent to it next: it holds less than [`AHEAD`] of what gives
    /// way, and all hold less than half of what they may.
    pub fn may_look_ahead(&self) -> bool {
        self.0.yielding.load(Relaxed) < AHEAD && !self.account().is_crowded()
    }

    /// Bytes that may be read for it at a time.
    pub fn read_limit(&self) -> usize {
        if self.may_look_ahead() { usize::MAX } else { CROWDED_READ }
    }

    /// Bytes that may wait for it, of the usual number.
    pub fn window(&self, usual: usize) -> usize {
        if self.may_look_ahead() { usual } else { usual.min(CROWDED_WINDOW) }
    }

    /// Counts bytes that the client has taken or sent.
    #[inline]
    pub(crate) fn moves(&self, bytes: usize) {
        self.0.moved.store(self.moved() + bytes as u64, Relaxed);
    }

    /// Bytes that the client has taken and sent.
    #[inline]
    pub(crate) fn moved(&self) -> u64 {
        self.0.moved.load(Relaxed)
    }

    /// Has its connection fail: it has to give way.
    pub(crate) fn cut(&self) {
        self.0.is_cut.store(true, Relaxed);
    }

    /// Whether its connection has to fail. What is queued for backends is dropped then.
    #[inline]
    pub fn is_cut(&self) -> bool {
        self.0.is_cut.load(Relaxed)
    }

    /// Whether so many bytes may be leased now.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.0.account.bytes() + bytes <= self.most(self.bytes() + bytes)
    }

    /// The most that all may hold when this one leases more, and has `bytes` then. The last quarter is for
    /// those who hold little: whoever fills the rest does not keep them out.
    fn most(&self, bytes: usize) -> usize {
        let limit = self.0.account.limit();
        if bytes > LITTLE { limit / 4 * 3 } else { limit }
    }

    /// A lease of this class has `after` bytes, and no longer `before`.
    fn change(&self, class: Held, before: usize, after: usize) {
        let account = self.account();
        // Wraps if it is less.
        let more = after.wrapping_sub(before);
        account.classes[class as usize].fetch_add(more, Relaxed);
        self.0.bytes.fetch_add(more, Relaxed);
        if class == Held::Heads {
            self.0.heads.fetch_add(more, Relaxed);
        } else if self.0.is_connection && class.gives_way() {
            let had = self.0.yielding.fetch_add(more, Relaxed);
            account.yielding.change(had, had.wrapping_add(more));
        }
    }

    /// Takes `bytes` of a disk, if this holder has `most` at most then.
    pub fn take_disk(&self, bytes: u64, most: u64) -> bool {
        let more = |used: u64| Some(used + bytes).filter(|used| *used <= most);
        self.0.disk.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    /// Returns so many.
    pub fn return_disk(&self, bytes: u64) {
        self.0.disk.fetch_sub(bytes, Relaxed);
    }

    /// Whether a head of `bytes` is within what one connection may have in progress.
    pub(crate) fn has_room_for_head(&self, bytes: usize) -> bool {
        let heads = self.0.heads.load(Relaxed);
        heads == 0 || heads + bytes <= HEADS_OF_CONNECTION
    }
}

/// Bytes that are counted as held while this lives.
pub struct Lease {
    holder: Holder,
    class: Held,
    bytes: usize,
}

impl Lease {
    /// Bytes leased.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The holder.
    pub fn holder(&self) -> &Holder {
        &self.holder
    }

    /// Leases so many bytes more. False, and nothing changes, if there are too few.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let holder = &self.holder;
        let grows = holder.has_room(bytes) && holder.account().reserve.take(bytes);
        if grows {
            holder.change(self.class, self.bytes, self.bytes + bytes);
            self.bytes += bytes;
        }
        grows
    }

    /// Makes it one of so many bytes, which are held already.
    #[inline]
    pub fn set(&mut self, bytes: usize) {
        if bytes != self.bytes {
            self.change_to(bytes);
        }
    }

    fn change_to(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        if bytes > before {
            self.holder.account().reserve.give(bytes - before);
            self.holder.change(self.class, before, bytes);
        } else {
            self.holder.change(self.class, before, bytes);
            self.holder.account().reserve.release(before - bytes);
        }
    }

    /// Parts `bytes` from it.
    ///
    /// # Panics
    /// If it has fewer.
    pub fn split(&mut self, bytes: usize) -> Lease {
        self.bytes = self.bytes.checked_sub(bytes).expect("a lease is split within its bytes");
        Lease { holder: self.holder.clone(), class: self.class, bytes }
    }

    /// Adds another of the same holder and class to it.
    pub fn join(&mut self, mut other: Lease) {
        debug_assert!(Arc::ptr_eq(&self.holder.0, &other.holder.0) && self.class == other.class);
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl fmt::Debug for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Holder of {} bytes", self.bytes())
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease of {} bytes for {}", self.bytes, self.class.name())
    }
}

#[cfg(test)]
pub(crate) mod tests {
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
}
