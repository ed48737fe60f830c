//! Memory that is lent to others: what connections hold, and bodies that pass their readers by. It counts
//! toward the limit beyond a constant.

use crate::budget::held;
use crate::store::Store;

/// The [window](Store::window) where there is little room.
const CROWDED_WINDOW: usize = 8 << 10;

/// See [`Store::is_crowded`].
const PASSING_SHARE: usize = 64;

impl Store {
    /// Lends `bytes`, and evicts objects to make room for them. False if more than may be lent is.
    pub fn lend(&self, bytes: usize) -> bool {
        self.budget.lend(bytes);
        let is_lent = self.lent() <= self.most_lent();
        if is_lent {
            self.fit();
        } else {
            self.budget.take_back(bytes);
        }
        is_lent
    }

    /// Lends `bytes` that are held already. The limit is kept again at the next [`Store::fit`].
    pub fn lend_anyway(&self, bytes: usize) {
        self.budget.lend(bytes);
    }

    /// Takes `bytes` back.
    pub fn take_back(&self, bytes: usize) {
        self.budget.take_back(bytes);
    }

    /// Bytes that are lent.
    pub fn lent(&self) -> usize {
        self.budget.lent()
    }

    /// Of these, those of bodies that are not stored, and of which some reader has yet to read or send them.
    pub fn passing(&self) -> usize {
        self.budget.passing()
    }

    /// The most that may be [lent](crate::most_lent) under this limit.
    pub fn most_lent(&self) -> usize {
        self.budget.most_lent()
    }

    /// Whether more than half of what may be lent is, or bodies that are not stored take more than a little of
    /// the store: far less than what has slow readers cut off.
    fn is_crowded(&self) -> bool {
        self.lent() > self.most_lent() / 2 || self.passing() > self.budget.limit() / PASSING_SHARE
    }

    /// How far, in bytes, the slowest reader of a body that is not stored may lag behind the fetch: little
    /// where there is little room, and not at all where there is none.
    pub(crate) fn window(&self) -> usize {
        let usual = self.settings().window;
        match self.is_crowded() {
            true if self.lent() >= self.most_lent() => 1,
            true => usual.min(CROWDED_WINDOW),
            false => usual,
        }
    }

    /// Bytes of such a body that should be read at a time.
    pub(crate) fn read_limit(&self) -> usize {
        if self.is_crowded() { CROWDED_WINDOW } else { usize::MAX }
    }

    /// Bytes that an allocation of `size` bytes takes from the system.
    pub fn allocation(size: usize) -> usize {
        held(size)
    }
}
