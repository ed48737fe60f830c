//! HTTP messages, and the rules of RFC 9110 and RFC 9111 as pure functions.
//!
//! Nothing here does I/O, reads a clock or draws a random number: the time and the request are arguments.

pub mod accel;
pub mod caching;
pub mod civil;
pub mod codings;
pub mod conditional;
pub mod cookies;
pub mod date;
pub mod decimal;
pub mod dns_name;
mod fields;
mod fields_buf;
pub mod forwarding;
pub mod glob;
mod head;
pub mod hop;
mod list;
pub mod media_type;
mod name;
mod open_file;
mod piece;
pub mod printable;
pub mod range;
pub mod recoding;
pub mod request_field;
pub mod status_fields;
mod stored;
mod structured;
pub mod tags;
pub mod target;
mod time;
mod tokens;
pub mod vary;
mod weighted;
#[cfg(test)]
mod written;

pub use fields::{Field, Fields, Lines, MAX_HEAD, MAX_NAME, Run, Span};
pub use fields_buf::{FieldsBuf, TooLarge};
pub use head::{Method, RequestHead, RequestHeadBuf, ResponseHead, ResponseHeadBuf, Version};
pub use list::members;
pub use name::Name;
pub use open_file::OpenFile;
pub use piece::{FileRange, MappedRange, Mapping, Piece};
pub use stored::StoredHead;
pub use time::Timestamp;
pub use tokens::{is_tchar, is_token};
