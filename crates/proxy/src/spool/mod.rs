//! The spool: bodies that wait for slow clients, so that these do not hold workers.
//!
//! The beginning of a body is kept in memory, the rest in a file without a name. A body that waits has memory and a file of its
//! own, which are freed with it: nothing of one body can get into another.

mod block;
mod queue;
mod space;
mod temporary;
#[cfg(test)]
mod tests;

pub(crate) use block::MAX_APPENDED;
pub(crate) use queue::Spool;
pub(crate) use space::{SpoolMemory, SpoolSpace};
