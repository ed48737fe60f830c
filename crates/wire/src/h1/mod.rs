//! HTTP/1.1 (RFC 9112), both sides.
//!
//! One reading only: a message that two implementations could frame differently is a [`Refusal`], and the
//! connection it came on is finished. Heads are parsed in place: no byte is copied, and nothing is allocated
//! while the caller's span list has room.

pub mod chunked;
pub mod encode;
mod fields;
mod refusal;
pub mod repair;
pub mod request;
pub mod response;
mod scan;

pub use refusal::Refusal;

/// The most field lines a head may have, whatever [`Limits::fields`] says.
pub const MAX_FIELDS: usize = 1000;

/// How large a head may be. Each limit has a refusal of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole head, its empty line included; more is [`Refusal::HeadTooLarge`]. At most
    /// [`sandarac_message::MAX_HEAD`] counts.
    pub head: usize,
    /// Field lines; more is [`Refusal::TooManyFields`]. At most [`MAX_FIELDS`] counts.
    pub fields: usize,
    /// Bytes of a request target; more is [`Refusal::TargetTooLong`].
    pub target: usize,
}

impl Default for Limits {
    /// 32 KiB and 100 fields, which is what large cookies and tokens need and near what the peers take (nginx
    /// 4 × 8 KiB, Varnish 32 KiB and 64 fields, HAProxy 16 KiB and 101); targets to 8 KiB (RFC 9112 §3
    /// recommends at least 8000).
    fn default() -> Limits {
        Limits { head: 32 * 1024, fields: 100, target: 8 * 1024 }
    }
}

/// What parsing what has arrived so far gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<T> {
    /// No fault yet, and no end: parse again when more has arrived. [`may_be_complete`] says cheaply when
    /// that is worth while.
    Partial,
    /// The whole of it.
    Complete(T),
}

/// How the end of a body is known (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// There is no body.
    None,
    /// Exactly so many bytes; zero where the head says so in words.
    Length(u64),
    /// In chunks: see [`chunked`].
    Chunked,
    /// All bytes until the connection closes. Only of a response.
    UntilClose,
}

impl BodyFraming {
    /// Whether no body byte will follow the head.
    pub const fn is_empty(self) -> bool {
        matches!(self, BodyFraming::None | BodyFraming::Length(0))
    }
}

/// Whether `buf`, whose first `seen` bytes were [`Parsed::Partial`], may hold a whole head now. A peer that
/// sends its head in many small pieces thus costs a look at each byte, not a parse from the beginning for
/// each piece.
///
/// A head without an end is still found to be too large: `true` is also the answer when `limits.head` is
/// reached.
pub fn may_be_complete(buf: &[u8], seen: usize, limits: &Limits) -> bool {
    // The empty line ends in CR LF, or in a bare LF that parsing refuses; so LF is what to look for.
    let from = seen.min(buf.len());
    buf.len() >= limits.head || memchr::memchr(b'\n', &buf[from..]).is_some()
}
