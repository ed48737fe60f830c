//! Frames (RFC 9113 §4 and §6, RFC 9218 §7.1).

mod decode;
pub mod encode;
mod kind;

pub use decode::{Dependency, Frame, Parameters, decode};
pub use kind::{HEADER_LEN, PREFACE};
