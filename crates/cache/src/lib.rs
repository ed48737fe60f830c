//! The RAM store: stored responses, shared by all cores, within one limit in bytes.
//!
//! A request is looked up by [`Key`]; what it may use is a [`Hit`](Lookup::Hit), and where nothing may be used, one
//! request gets the right to fill the key, a [`Flight`], while the others [wait](Waiter). What the flight brings is an
//! [`Object`], served to all who wait while it arrives.
//!
//! # Memory
//! Bytes charged are bytes held: heads, bodies, keys, tags, index and the allocator's rounding, those of objects still
//! arriving included, and those of objects that have left the store for as long as somebody reads them. Before anything
//! is added, objects are evicted until it fits. Beside head, body and key (its digest, the text of host and path, and
//! what it varies on), an object takes at most 256 bytes; each of its tags takes 24 more, and each 64 KiB of a long body 112.
//!
//! # Locks
//! Each shard has one lock, held for a handful of memory accesses and never over I/O, regular expressions or the freeing
//! of objects. A body that is whole is read without any lock. Order: an arriving body's lock and a flight's are never
//! held while a shard's is taken; a flight's may be taken under a shard's.

mod arriving;
mod ban;
mod body;
mod budget;
mod compact;
mod evict;
mod fill;
mod filling;
mod flight;
mod ghost;
mod joint;
mod key;
mod locked;
mod marks;
mod object;
mod purge;
mod reader;
mod shard;
mod slab;
mod stats;
mod store;
mod sweep;
mod tags;
mod wakers;

#[cfg(test)]
mod tests;

pub use ban::{Expression, ExpressionError};
pub use body::{Body, Slices};
pub use filling::{Filling, Unstored};
pub use flight::{Arrival, Begun, Flight, Waited, Waiter};
pub use joint::Joint;
pub use key::{Key, KeyBuilder, Tag};
pub use marks::Mark;
pub use object::Object;
pub use purge::Purge;
pub use reader::{Broken, Reader};
pub use stats::{Removal, Stats};
pub use store::{Intent, Lookup, Query, Settings, Store};
pub use sweep::Swept;
