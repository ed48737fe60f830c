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

/// A connection that holds no more is not in the way of others; and where all hold much, one that holds no
/// more of what [gives way](Held::gives_way).
const LITTLE: usize = 64 << 10;
const IN_A_CROWD: usize = 16 << 10;

/// A connection that holds no more is left alone also where all hold more than they may.
const BEYOND_LIMIT: usize = 4 << 10;

/// Bytes of data in TLS records that wait for a socket then: with the head of a response, less than
/// [`BEYOND_LIMIT`].
const SEALED_BEYOND_LIMIT: usize = 3 << 10;

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
    /// Windows of requests to backends over HTTP/2 that are not answered: so much may come at once.
    Windows,
}

impl Held {
    /// All classes.
    pub const ALL: [Held; 12] = [
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
        Held::Windows,
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
            Held::Windows => "windows",
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

    /// Whether handshakes hold much of that: those that do not go on give way. Clients on slow lines need
    /// three seconds for one, whatever others hold.
    pub(crate) fn is_crowded_by_handshakes(&self) -> bool {
        self.is_crowded() && self.of(Held::Handshakes) > self.limit() / 8
    }

    /// Whether all hold more than they may.
    fn is_beyond_limit(&self) -> bool {
        self.bytes() > self.limit()
    }

    /// Whether so much is held that only those who hold little find room.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.bytes() > self.limit() / 4 * 3
    }

    /// Sets from how many bytes of all connections some of them have to give way.
    pub fn press_above(&self, bytes: usize) {
        self.allowed.store(bytes, Relaxed);
    }

    /// Leases the window of a request to a backend, which comes to nothing for most: all such may have an
    /// eighth of what may be held, and none where much is held.
    pub fn lease_window(self: &Arc<Account>, bytes: usize) -> Option<Lease> {
        let may = !self.is_crowded() && self.of(Held::Windows) + bytes <= self.limit() / 8;
        may.then(|| self.process().lease(Held::Windows, bytes)).flatten()
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

    /// The same for a handshake, of which some find room in any case: a visitor of a stored page needs
    /// nothing more.
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

    /// Whether it holds more than is left alone in any case.
    pub(crate) fn holds_some(&self) -> bool {
        self.0.yielding.load(Relaxed) > BEYOND_LIMIT
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
        self.account().is_beyond_limit() && self.presses()
    }

    /// Whether it has to give way as soon as its socket takes no more, because all hold more than they may,
    /// and more than a little waits for it: so many `bytes`.
    pub(crate) fn gives_way_at_once(&self, bytes: usize) -> bool {
        bytes > BEYOND_LIMIT && self.account().is_beyond_limit()
    }

    /// Bytes of data that may be sealed ahead of the socket.
    pub(crate) fn sealed_limit(&self) -> usize {
        if self.account().is_beyond_limit() { SEALED_BEYOND_LIMIT } else { usize::MAX }
    }

    /// Whether more may be held for it than what is sent to it next: it holds less than [`AHEAD`] of what
    /// gives way, and all hold less than half of what they may.
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
pub(crate) mod tests;
