//! Memory that is lent to others: what connections hold. It counts toward the limit beyond a constant.

use crate::budget::{UNCHARGED, held};
use crate::store::Store;

impl Store {
    /// Lends `bytes`, and evicts objects to make room for them, though none of proven worth if others take
    /// much memory: these may be held by readers, so that everything would be evicted in vain. False if there
    /// is no room.
    pub fn lend(&self, bytes: usize) -> bool {
        self.budget.lend(bytes);
        let is_lent = self.budget.lent_charged() == 0 || self.make_room_for_lent();
        if !is_lent {
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

    /// The most that may be lent: half of the limit, beside what is not charged.
    pub fn most_lent(&self) -> usize {
        UNCHARGED + self.budget.limit() / 2
    }

    /// Bytes that an allocation of `size` bytes takes from the system.
    pub fn allocation(size: usize) -> usize {
        held(size)
    }
}
