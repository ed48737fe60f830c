//! The résumé protocol (`docs/protocols/resume.md`, version 1), by which a balancer describes requests and a
//! worker describes itself. It has three structured fields (RFC 9651) and one JSON document.
//!
//! A field or document is either read completely or refused with a named reason ([`Malformed`]); no part of a
//! faulty one is used. Members and parameters that the protocol does not define are ignored. The writers
//! produce the canonical form, and refuse everything that the readers would refuse.

mod document;
mod malformed;
mod request_class;
mod skills;
mod text;
mod worker_state;

pub use document::{Document, MAX_DOCUMENT, WELL_KNOWN, target};
pub use malformed::Malformed;
pub use request_class::{Known, RequestClass};
pub use skills::{MAX_CLASSES, MAX_SKILLS_FIELD, Skills};
pub use text::{class_key, class_of_key};
pub use worker_state::WorkerState;

/// The most bytes of a class. A request with a longer one is sent without a class.
pub const MAX_CLASS: usize = 256;

/// The most bytes of `Request-Class` and of `Worker-State` that a reader accepts, lines joined.
pub const MAX_FIELD: usize = 1024;

/// The most bytes of a version.
pub const MAX_VERSION: usize = 128;

/// The highest possible score, in requests per second.
pub const MAX_SCORE: f64 = 1e9;

/// The greatest integer in a structured field (RFC 9651 §3.3.1), and in the protocol.
pub const MAX_INTEGER: u64 = 999_999_999_999_999;
