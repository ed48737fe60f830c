//! HTTP/1.1 (RFC 9112), both sides.
//!
//! Every message has one reading only: a message that two implementations could frame differently is a
//! [`Refusal`], and its connection cannot be used further. Heads are parsed in place: no byte is copied, and
//! nothing is allocated while the caller's span list has room.

pub mod chunked;
pub mod encode;
pub(crate) mod fields;
mod refusal;
pub mod repair;
pub mod request;
pub mod response;
pub(crate) mod scan;

pub use refusal::Refusal;

/// The most field lines in a head, whatever the value of [`Limits::fields`].
pub const MAX_FIELDS: usize = 1000;

/// The limits of a head. Each has its own refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole head, including its empty line; more is [`Refusal::HeadTooLarge`]. At most
    /// [`sandarac_message::MAX_HEAD`].
    pub head: usize,
    /// Field lines; more is [`Refusal::TooManyFields`]. At most [`MAX_FIELDS`].
    pub fields: usize,
    /// Bytes of a request target; more is [`Refusal::TargetTooLong`].
    pub target: usize,
}

impl Default for Limits {
    /// 32 KiB and 100 fields, which large cookies and tokens need and which is near the limits of other
    /// proxies (nginx 4 × 8 KiB, Varnish 32 KiB and 64 fields, HAProxy 16 KiB and 101); targets to 8 KiB (RFC
    /// 9112 §3 recommends at least 8000).
    fn default() -> Limits {
        Limits { head: 32 * 1024, fields: 100, target: 8 * 1024 }
    }
}

/// The result of parsing the bytes that have arrived so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<T> {
    /// No fault yet, and no end: parse again when more has arrived. [`may_be_complete`] is a cheap check
    /// whether that is worthwhile.
    Partial,
    /// The complete result.
    Complete(T),
}

/// How the end of a body is determined (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// There is no body.
    None,
    /// Exactly this many bytes; zero if the head has Content-Length: 0.
    Length(u64),
    /// In chunks: see [`chunked`].
    Chunked,
    /// All bytes until the connection closes. Responses only.
    UntilClose,
}

impl BodyFraming {
    /// Whether no body bytes follow the head.
    pub const fn is_empty(self) -> bool {
        matches!(self, BodyFraming::None | BodyFraming::Length(0))
    }
}

/// Whether `buf`, whose first `seen` bytes were [`Parsed::Partial`], may hold a complete head now. So a head
/// in many small pieces costs a check of each byte, not a new parse for each piece.
///
/// Also returns `true` when `limits.head` is reached, so that parsing finds an endless head too large.
pub fn may_be_complete(buf: &[u8], seen: usize, limits: &Limits) -> bool {
    // The empty line ends in CR LF, or in a bare LF that parsing refuses, so it is enough to look for LF.
    let from = seen.min(buf.len());
    buf.len() >= limits.head || memchr::memchr(b'\n', &buf[from..]).is_some()
}
