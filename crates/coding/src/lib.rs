//! Content codings (RFC 9110 §8.4.1): zstd, brotli and gzip, without I/O.
//!
//! An [`Encoder`] and a [`Decoder`] take a body piece by piece and append their output to a buffer of the caller. An encoder
//! can be flushed at any place, so that a reader gets everything that was passed in so far. A decoder bounds what a piece
//! may grow to, and names what is wrong with a body ([`DecodeError`]).

mod at_rest;
mod decoder;
mod encoder;
mod error;
mod level;

pub use at_rest::inflate_zstd;
pub use decoder::{BURST, Decoder, RATIO};
pub use encoder::Encoder;
pub use error::DecodeError;
pub use level::Level;

#[cfg(test)]
mod tests;
