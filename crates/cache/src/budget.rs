//! The one byte budget of the store.

use std::sync::Arc;

use crate::atomic::{AtomicUsize, Ordering::Relaxed};

/// The bytes a store holds, and its limit. Every allocation that lives as long as an object is charged before
/// it is made and released when it is freed, on whichever thread that is.
pub(crate) struct Budget {
    used: AtomicUsize,
    /// Bytes that are [lent](crate::Store::lend).
    lent: AtomicUsize,
    /// Of these, those of bodies that pass their readers by.
    passing: AtomicUsize,
    limit: AtomicUsize,
}

/// Bytes that are lent without a charge: so much any process holds for its connections.
const UNCHARGED: usize = 16 << 20;

/// The most bytes that a store of this limit may lend: half of the limit, beside what is not charged.
pub fn most_lent(limit: usize) -> usize {
    UNCHARGED + limit / 2
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Arc<Budget> {
        Arc::new(Budget {
            used: AtomicUsize::new(0),
            lent: AtomicUsize::new(0),
            passing: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
        })
    }

    /// Charges `bytes` if they fit.
    pub(crate) fn try_add(&self, bytes: usize) -> bool {
        let limit = self.limit().saturating_sub(self.lent_charged());
        self.used
            .try_update(Relaxed, Relaxed, |used| used.checked_add(bytes).filter(|&sum| sum <= limit))
            .is_ok()
    }

    /// Charges `bytes` that are held already. The caller MUST evict until the limit is kept.
    pub(crate) fn add(&self, bytes: usize) {
        self.used.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn sub(&self, bytes: usize) {
        let before = self.used.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "more is released than was charged");
    }

    /// Bytes charged, for objects and for what is lent.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Relaxed) + self.lent_charged()
    }

    pub(crate) fn lend(&self, bytes: usize) {
        self.lent.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn take_back(&self, bytes: usize) {
        let before = self.lent.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "more is taken back than was lent");
    }

    pub(crate) fn lent(&self) -> usize {
        self.lent.load(Relaxed)
    }

    pub(crate) fn most_lent(&self) -> usize {
        most_lent(self.limit())
    }

    pub(crate) fn passing(&self) -> usize {
        self.passing.load(Relaxed)
    }

    /// Bytes that are lent beyond [`UNCHARGED`].
    pub(crate) fn lent_charged(&self) -> usize {
        self.lent().saturating_sub(UNCHARGED)
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }

    pub(crate) fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Relaxed);
    }

    pub(crate) fn fits(&self) -> bool {
        self.used() <= self.limit()
    }
}

/// Bytes charged while this lives.
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Charge {
    /// A charge for `bytes` that were added to the budget before.
    pub(crate) fn of(budget: &Arc<Budget>, bytes: usize) -> Charge {
        Charge { budget: budget.clone(), bytes }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Takes over `bytes` that were charged elsewhere.
    pub(crate) fn adopt(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Gives up `bytes` of it without releasing them; the caller MUST release them to the returned budget.
    pub(crate) fn hand_over(&mut self, bytes: usize) -> Arc<Budget> {
        self.bytes -= bytes;
        self.budget.clone()
    }

    /// All of it, as a separate charge.
    pub(crate) fn take(&mut self) -> Charge {
        Charge { budget: self.budget.clone(), bytes: std::mem::take(&mut self.bytes) }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.sub(self.bytes);
    }
}

/// Bytes that are held already, for readers of a body that is not stored, and lent while this lives.
pub(crate) struct Passing {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Passing {
    pub(crate) fn of(budget: &Arc<Budget>, bytes: usize) -> Passing {
        budget.lend(bytes);
        budget.passing.fetch_add(bytes, Relaxed);
        Passing { budget: budget.clone(), bytes }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.budget.passing.fetch_sub(self.bytes, Relaxed);
        self.budget.take_back(self.bytes);
    }
}

/// Bytes that an allocation of `size` bytes takes from the system: the next size class. Classes are four to a
/// doubling as in jemalloc, and no finer than glibc's sixteen bytes with an eight-byte header.
pub(crate) const fn held(size: usize) -> usize {
    match size {
        0 => 0,
        1..=24 => 32,
        // glibc's header and rounding, which are coarser than jemalloc's classes here.
        25..=128 => (size + 8).next_multiple_of(16),
        _ => {
            let step = (size - 1).ilog2() - 2;
            let class = size.next_multiple_of(1 << step);
            if class >= size + 8 { class } else { (size + 8).next_multiple_of(16) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_covers_both_allocators() {
        assert_eq!(held(0), 0);
        let mut last = 0;
        for size in 1..200_000 {
            let held = held(size);
            assert!(held >= size + 8 && held >= last && (held - size) * 4 <= size + 128, "{size}: {held}");
            last = held;
        }
        assert_eq!(held(65_536), 65_552);
    }

    #[test]
    fn a_budget_takes_what_fits_and_no_more() {
        let budget = Budget::new(100);
        assert!(budget.try_add(60));
        assert!(!budget.try_add(41));
        let mut charge = Charge::of(&budget, 0);
        assert!(budget.try_add(40));
        charge.adopt(40);
        charge.hand_over(10).sub(10);
        let moved = charge.take();
        drop(charge);
        assert_eq!(budget.used(), 90);
        drop(moved);
        assert_eq!(budget.used(), 60);
    }
}
