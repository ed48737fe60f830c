//! The RAM store: stored responses, shared by all cores, within one limit in bytes.
//!
//! A request is looked up by [`Key`]. The result is a [`Hit`](Lookup::Hit) with an object to serve, or, on a
//! miss, a [`Flight`]: the right to fill the key. One request gets it; the others [wait](Waiter). The
//! response it stores is an [`Object`], which is served to all waiters while it arrives.
//!
//! # Memory
//! Bytes charged are bytes held: heads, bodies, keys, tags, index and the allocator's rounding. They include
//! objects that are still arriving, and objects that have left the store while a reader holds them. Objects
//! are evicted before anything is added that would not fit. Beside head, body and key (its digest, the text
//! of host and path, and what it varies on), an object takes at most 256 bytes. Each of its tags takes 24
//! more, and each 64 KiB of a long body 112. A body of 256 KiB or more is in memory files: whole pages, and of
//! each 256 KiB 512 bytes for its page table and some 250 to describe it. A body of more than 14 KiB from the
//! shared tier keeps the memory it came in, which holds at most a sixteenth more, and takes 320 bytes besides.
//! The form of a head for HTTP/2 is made and charged when a client of HTTP/2 first hits it.
//!
//! # Locks
//! Each shard has one lock, held for a handful of memory accesses and never over I/O, regular expressions or
//! the freeing of objects. A whole body is read without a lock. Lock order: the lock of an arriving body or
//! of a flight is never held while a shard's lock is taken; a flight's lock may be taken under a shard's.

mod admit;
mod arriving;
mod ban;
mod body;
mod body_writer;
mod budget;
mod buffer;
mod combination;
mod compaction;
mod evict;
mod flight;
mod flight_state;
mod forgotten;
mod ghost;
mod growth;
mod judge;
mod key;
mod lent;
mod loan;
mod lookup;
mod marks;
mod memory_file;
mod moving;
mod new_object;
mod object;
mod page_markup;
mod place;
mod purge;
mod purge_log;
mod query;
mod queue;
mod reader;
mod recodings;
mod settings;
mod shard;
mod shards;
mod slab;
mod standing;
mod stats;
mod store;
mod sweep;
mod sweep_position;
mod tags;
mod tail;
mod wait_list;
mod whole_body;

#[cfg(all(test, not(model)))]
mod tests;

/// The atomics of all modules. In `tests/model` they are shuttle's, which switches threads between any two operations; so are
/// the locks, by that package's manifest.
#[cfg(model)]
use shuttle::sync::atomic;
#[cfg(not(model))]
use std::sync::atomic;

pub use arriving::Broken;
pub use ban::{Attributes, Expression, ExpressionError};
pub use body::Body;
pub use body_writer::{BodyWriter, Unstored};
pub use budget::most_lent;
pub use combination::Combination;
pub use flight::{Flight, Waited, Waiter};
pub use flight_state::Begun;
pub use forgotten::{Forgotten, Others, Purge, Standing};
pub use key::{Key, KeyBuilder, Tag};
pub use lookup::Lookup;
pub use marks::Mark;
pub use moving::{Arrived, Moved, RECORD_START, Records, TakenOut};
pub use new_object::NewObject;
pub use object::{Object, Recoding};
pub use page_markup::PageMarkup;
pub use query::{Intent, Query};
pub use reader::Reader;

pub use settings::Settings;
pub use stats::{Removal, Stats};
pub use store::Store;
pub use sweep::Swept;
pub use whole_body::Slices;
