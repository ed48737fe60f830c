//! HPACK (RFC 7541): header blocks, decoded with a dynamic table and encoded without one.

mod decode;
mod dynamic_table;
pub mod encode;
pub mod huffman;
mod huffman_code;
mod integer;
mod static_table;

pub use decode::{Decoder, FieldAt};
