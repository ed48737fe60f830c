//! Bodies in other codings than they came in.
//!
//! | response | gets its coding |
//! |---|---|
//! | stored, whole | once, in steps beside other work of the core ([`whole`]); from then on it is a hit like any other |
//! | arriving, too large, or not stored | as it is sent ([`Transform`]), flushed whenever its source pauses |
//!
//! The rule of the route decides ([`sandarac_policy::CompressRule`]). What cannot be recoded is sent as it came, with a named reason.

mod choice;
mod memory;
mod relayed;
mod transform;
mod whole;

pub(crate) use choice::{Chosen, KnownForm, choose, known};
pub(crate) use memory::CodingMemory;
pub(crate) use relayed::{Relayed, relayed};
pub(crate) use transform::Transform;
pub(crate) use whole::InProgress;
