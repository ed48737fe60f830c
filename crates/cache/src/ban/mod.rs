//! Bans: descriptions of objects that must not be served any more.
//!
//! A ban applies to every object that was being fetched or stored when it was made. An object is tested
//! against the bans it has not met when it is looked up, and by the sweep. Once every older object has been
//! tested, the ban is dropped.

mod condition;
mod expression;
mod parse;

use std::sync::Arc;

use parking_lot::RwLock;

pub use condition::Attributes;
pub use expression::Expression;
pub use parse::ExpressionError;

use crate::Object;
use crate::atomic::{AtomicU32, Ordering};

/// A ban in force.
pub(crate) struct Ban {
    /// Its number; later ones are greater.
    number: u32,
    expression: Expression,
}

/// The bans in force.
pub(crate) struct Bans {
    /// The number of the last ban.
    latest: AtomicU32,
    /// The number of the last ban that was dropped.
    dropped: AtomicU32,
    list: RwLock<Vec<Arc<Ban>>>,
}

impl Bans {
    pub(crate) fn new() -> Bans {
        Bans { latest: AtomicU32::new(0), dropped: AtomicU32::new(0), list: RwLock::new(Vec::new()) }
    }

    pub(crate) fn latest(&self) -> u32 {
        self.latest.load(Ordering::Acquire)
    }

    pub(crate) fn len(&self) -> usize {
        self.list.read().len()
    }

    /// Adds a ban. An older ban with the same text is dropped, because this one covers all its objects.
    pub(crate) fn add(&self, expression: Expression) {
        let mut list = self.list.write();
        list.retain(|ban| ban.expression.text() != expression.text());
        let number = self.latest() + 1;
        list.push(Arc::new(Ban { number, expression }));
        self.latest.store(number, Ordering::Release);
    }

    /// Drops all bans up to this one, because every object in the store has been tested against them.
    pub(crate) fn drop_until(&self, number: u32) {
        let mut list = self.list.write();
        self.dropped.fetch_max(number, Ordering::AcqRel);
        list.retain(|ban| ban.number > number);
    }

    /// Whether an object has been tested against every ban.
    pub(crate) fn are_tested(&self, object: &Object) -> bool {
        object.bans.load(Ordering::Relaxed) == self.latest()
    }

    /// Tests an object against the bans it has not met. Regular expressions run here, so no shard's lock may
    /// be held. An object whose fetch outlived bans that apply to it counts as matched.
    pub(crate) fn meet(&self, object: &Object) -> bool {
        let list = self.list.read();
        let tested = object.bans.load(Ordering::Relaxed);
        if tested < self.dropped.load(Ordering::Acquire) {
            return true;
        }
        let latest = self.latest();
        if list.iter().rev().take_while(|ban| ban.number > tested).any(|ban| ban.expression.matches(object)) {
            return true;
        }
        object.bans.fetch_max(latest, Ordering::Relaxed);
        false
    }

    /// The texts of the bans in force, the oldest first.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.list.read().iter().map(|ban| ban.expression.text().to_owned()).collect()
    }
}
