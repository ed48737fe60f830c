//! HTTP/2 (RFC 9113), both sides: frames, HPACK (RFC 7541), heads, and the state of a connection.
//!
//! Every fault has a name ([`Fault`] for frames and connections, [`Refusal`] for messages). A frame or a head
//! is read without allocation, except in the buffers that the caller lends.

mod code;
pub mod connection;
mod fault;
pub mod frame;
pub mod head;
pub mod hpack;
mod priority;
pub mod settings;

pub use code::ErrorCode;
pub use fault::{Fault, FrameError};
pub use head::{HeadBuf, Refusal};
pub use priority::Priority;
