//! Bodies in other codings than they came in.
//!
//! | response | gets its coding |
//! |---|---|
//! | stored, whole | once, in steps beside other work of the core ([`whole`]); from then on it is a hit like any other |
//! | arriving, too large, or not stored | as it is sent ([`Transform`]), flushed whenever its source pauses |
//!
//! The rule of the route decides ([`sandarac_policy::CompressRule`]). What cannot be recoded is sent as it came, with a named reason.
//! A body whose coding the client does not accept, and which is not in that coding, is a fault of the origin.

mod choice;
mod in_progress;
mod memory;
mod relay_form;
mod transform;
mod whole;

pub(crate) use choice::{Chosen, KnownForm, choose, known};
pub(crate) use in_progress::InProgress;
pub(crate) use memory::CodingMemory;
pub(crate) use relay_form::{RelayForm, relay_form};
pub(crate) use transform::Transform;
