//! Operations on one server, and their replies.

use bytes::Bytes;
use sandarac_wire::entry::EntryKey;

/// An operation. The operations of a packet are executed and answered in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Reads an item (`mg` with `f`, `c`, `s` and `t`). It takes no right to recache.
    Get {
        /// The item.
        key: EntryKey,
        /// Whether the value is wanted (`v`).
        value: bool,
    },
    /// Stores an item (`ms`), and returns its CAS value.
    Set {
        /// The item.
        key: EntryKey,
        /// The condition.
        condition: Condition,
        /// Seconds until the server drops it; `None` for never.
        ttl: Option<u32>,
        /// The client flags: the low half of the token.
        flags: u32,
        /// The value, in pieces.
        value: Vec<Bytes>,
    },
    /// Appends to the item with this CAS value (`ms` in append mode with `C`). TTL and flags stay.
    Append {
        /// The item.
        key: EntryKey,
        /// The CAS value that the item must have.
        cas: u64,
        /// The bytes.
        value: Bytes,
    },
    /// Deletes the item with this CAS value (`md` with `C`).
    Delete {
        /// The item.
        key: EntryKey,
        /// The CAS value that the item must have.
        cas: u64,
    },
}

/// The condition under which an item is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// None.
    Always,
    /// There is no item (mode add).
    Absent,
    /// The item has this CAS value (`C`).
    Cas(u64),
}

/// The reply to one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The item that was read.
    Item(StoredItem),
    /// There is no item. The answer to a get, and to a conditional operation on an item that has gone.
    Absent,
    /// Stored, with this CAS value.
    Stored(u64),
    /// Deleted.
    Deleted,
    /// Nothing was done because the condition does not hold.
    Refused,
    /// No answer, for the reason with this name. The operation may have been executed.
    Unavailable(&'static str),
}

/// An item as a server keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredItem {
    /// The value; empty if it was not asked for.
    pub value: Bytes,
    /// Bytes of the value.
    pub size: u64,
    /// The client flags.
    pub flags: u32,
    /// The CAS value. It restarts with the server.
    pub cas: u64,
    /// Whole seconds left; `None` if it does not expire.
    pub left: Option<u32>,
}
