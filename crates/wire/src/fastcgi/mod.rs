//! FastCGI 1.0 on the web server's side, for the Responder role, and the response heads of CGI/1.1 (RFC 3875 §6).
//!
//! [`Request`] encodes the records of a request, [`stdin_header`] those of its body. [`Decoder`] reads the records of the
//! response, and [`head::parse`] the head at the start of its output. docs/protocols/fastcgi.md describes what is sent
//! and accepted.
//!
//! A connection carries one request at a time, each under another [`RequestId`].

mod decoder;
pub mod head;
mod record;
mod refusal;
mod request;

pub use decoder::{Decoded, Decoder, EndStatus, Event, MAX_EMPTY_RECORDS};
pub use record::{HEADER_LEN, MAX_CONTENT, RequestId, stdin_end, stdin_header};
pub use refusal::Refusal;
pub use request::{ParamTooLong, Request};
