//! Request and response heads, and trailers (RFC 9113 §8), from header blocks and back.

mod buffer;
pub mod encode;
mod pseudo;
mod refusal;
pub mod request;
pub mod response;
mod section;
pub mod trailers;

pub use buffer::HeadBuf;
pub use refusal::Refusal;
