//! Purges and bans in a form that can be passed on, and the stores of other processes that get them.

use crate::{Key, Tag};

/// The effect of a purge on objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purge {
    /// Removes them.
    Hard,
    /// Makes them stale: they are validated before the next use, or meanwhile served within their grace.
    Soft,
}

/// The objects that are forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// The objects of a key.
    Key(Key),
    /// Those that carry one of these tags or groups.
    Tags(Vec<Tag>),
    /// Those that carry this [`Tag::target`].
    Target(Tag),
    /// Everything.
    All,
    /// Those that match the expression of a ban.
    Ban(String),
}

/// The knowledge of one of several stores of what the others have forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// All of it.
    Current,
    /// Not all: it answers nothing any more.
    Behind,
    /// It was not told of something: it has to forget everything, and to say so with this number.
    Lost(u64),
}

/// Stores of other processes that hold responses to the same requests, while one process takes over from
/// another.
pub trait Others: Send + Sync {
    /// Whether one of them may have forgotten something that this store still has. Asked at each lookup.
    fn have_forgotten(&self) -> Standing;

    /// This store has forgotten everything after [`Standing::Lost`].
    fn caught_up(&self, lost: u64);

    /// Has them forget something. Returns when none of them serves it any more.
    fn forget(&self, what: &Forgotten, purge: Purge);
}
