//! The résumé protocol (`docs/protocols/resume.md`, version 1): what a balancer says of a request, and what a
//! worker says of itself. Three structured fields (RFC 9651) and one JSON document.
//!
//! Of a field or document in which anything is wrong nothing is believed: it is read whole, or refused with a
//! name ([`Malformed`]). Members and parameters that the protocol does not name are passed over. The writers
//! write the canonical form, and refuse what the readers would.

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

/// The most bytes of a class. A request of a longer one goes out as one without a class.
pub const MAX_CLASS: usize = 256;

/// The most bytes of `Request-Class` and of `Worker-State` that a reader looks at, lines joined.
pub const MAX_FIELD: usize = 1024;

/// The most bytes of a version.
pub const MAX_VERSION: usize = 128;

/// The best score there is, in requests per second.
pub const MAX_SCORE: f64 = 1e9;

/// The greatest integer of a structured field (RFC 9651 §3.3.1), and of the protocol.
pub const MAX_INTEGER: u64 = 999_999_999_999_999;
