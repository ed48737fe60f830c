//! Operations, their deadlines and their answers.

use super::slot::Answer;
use super::unavailable::{Ability, Unavailable};
use bytes::Bytes;
use sandarac_wire::memcached::{Code, Delete, Get, ItemFlags, Set};
use std::time::Duration;

/// The deadline of an operation. It is met to within some 8 ms, because it is measured with the coarse clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// The time until the whole answer is there.
    Total(Duration),
    /// The same, and the time that the bytes which move on the connection meanwhile, in either direction, take
    /// at [`MIN_RATE`]. For values, whose size is not known before they arrive, and which wait for each other.
    Transfer(Duration),
}

/// The lowest rate of a transfer that is not late, in bytes per millisecond: 4 MB/s. A network of 1 Gbit/s
/// brings it to thirty connections at once; a body of 8 MiB may take two seconds more than a small value.
pub(super) const MIN_RATE: u64 = 4000;

/// An item that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The value; empty if the request did not ask for it. It has memory of its own.
    pub value: Bytes,
    /// The state, as far as the request asked for it.
    pub flags: ItemFlags,
}

/// The outcome of storing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOutcome {
    /// Stored, with the new CAS value if the request asked for it.
    Stored(Option<u64>),
    /// Not stored: the condition of the mode does not hold.
    NotStored,
    /// Not stored: the item has another CAS value.
    Exists,
    /// Not stored: there is no item whose CAS value could be compared.
    NotFound,
}

/// The outcome of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// Deleted, or marked stale.
    Deleted,
    /// Nothing done: the item has another CAS value.
    Exists,
    /// There is no item.
    NotFound,
}

/// What a server is able to do, found by asking it when the connection was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// The version that the server reports, for people only.
    pub version: Box<str>,
    /// The largest item in bytes: key, value and about 60 bytes of the server's own.
    pub item_size_max: u64,
    /// Whether clients may choose CAS values (`E`).
    pub explicit_cas: bool,
    /// Whether a value can be removed while its item stays (`md … x`).
    pub value_removal: bool,
}

/// A request.
#[derive(Debug)]
pub(super) enum Request {
    /// The largest value that is accepted.
    Get(Get, usize),
    /// The parts of the value.
    Set(Set, Vec<Bytes>),
    Delete(Delete),
}

/// The answers that a request may have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected {
    /// A value of at most this many bytes.
    Value(usize),
    /// The state of an item without its value.
    State,
    Set,
    Delete,
}

impl Request {
    /// Bytes of memory that it holds while it waits, roughly.
    pub(super) fn cost(&self) -> usize {
        /// The parts besides key and value.
        const FIXED: usize = 256;
        FIXED
            + match self {
                Request::Get(get, _) => get.key.as_bytes().len(),
                Request::Set(set, value) => {
                    set.key.as_bytes().len() + value.iter().map(Bytes::len).sum::<usize>()
                }
                Request::Delete(delete) => delete.key.as_bytes().len(),
            }
    }

    pub(super) fn expected(&self) -> Expected {
        match self {
            Request::Get(get, max_value) if get.value => Expected::Value(*max_value),
            Request::Get(..) => Expected::State,
            Request::Set(..) => Expected::Set,
            Request::Delete(_) => Expected::Delete,
        }
    }

    /// Whether a server with these abilities can execute it. Sending what it does not know would cost the
    /// connection.
    pub(super) fn check(&self, abilities: &Abilities) -> Result<(), Unavailable> {
        let (explicit, value_only) = match self {
            Request::Get(get, _) => (get.explicit_cas.is_some(), false),
            Request::Set(set, value) => {
                let size = value.iter().map(Bytes::len).sum::<usize>() + set.key.as_bytes().len();
                if size as u64 > abilities.item_size_max {
                    return Err(Unavailable::ItemTooLarge);
                }
                (set.explicit_cas.is_some(), false)
            }
            Request::Delete(delete) => (delete.explicit_cas.is_some(), delete.value_only),
        };
        if explicit && !abilities.explicit_cas {
            return Err(Unavailable::Unsupported(Ability::ExplicitCas));
        }
        if value_only && !abilities.value_removal {
            return Err(Unavailable::Unsupported(Ability::ValueRemoval));
        }
        Ok(())
    }
}

impl Expected {
    /// Whether the answer may have this outcome.
    pub(super) fn allows(self, code: Code) -> bool {
        match self {
            Expected::Value(_) => matches!(code, Code::Value(_) | Code::Miss),
            Expected::State => matches!(code, Code::Done | Code::Miss),
            Expected::Set => matches!(code, Code::Done | Code::NotStored | Code::Exists | Code::NotFound),
            Expected::Delete => matches!(code, Code::Done | Code::Exists | Code::NotFound),
        }
    }
}

impl Answer {
    pub(super) fn item(self) -> Option<Item> {
        match self.code {
            Code::Done | Code::Value(_) => Some(Item { value: self.value, flags: self.flags }),
            _ => None,
        }
    }

    pub(super) fn touched(self) -> bool {
        self.code == Code::Done
    }

    pub(super) fn stored(self) -> SetOutcome {
        match self.code {
            Code::Done => SetOutcome::Stored(self.flags.cas),
            Code::Exists => SetOutcome::Exists,
            Code::NotFound => SetOutcome::NotFound,
            _ => SetOutcome::NotStored,
        }
    }

    pub(super) fn deleted(self) -> DeleteOutcome {
        match self.code {
            Code::Done => DeleteOutcome::Deleted,
            Code::Exists => DeleteOutcome::Exists,
            _ => DeleteOutcome::NotFound,
        }
    }
}
