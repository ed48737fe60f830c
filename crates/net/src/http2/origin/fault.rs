//! The reasons for which a stream of a backend has no response, or only a part of one.

use sandarac_wire::h2::{ErrorCode, Fault, Refusal};

/// Why a stream has no response, or only a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFault {
    /// The backend accepts no more requests on this connection, and did not process this one (RFC 9113 §6.8).
    GoingAway,
    /// The backend refused the request unprocessed (REFUSED_STREAM, RFC 9113 §8.7).
    Refused,
    /// The backend reset the stream with another code.
    Reset(ErrorCode),
    /// The response is malformed.
    Malformed(Refusal),
    /// The backend broke the rules of the protocol on this stream, or on the connection.
    Violation(Fault),
    /// Interim responses that nobody takes became too many.
    TooManyInterim,
    /// The connection ended, or failed.
    Lost,
    /// The backend replied to nothing any more, not even to PING.
    Unresponsive,
}

impl StreamFault {
    /// Whether the backend did not process the request, so that it may be sent again.
    pub fn is_unprocessed(self) -> bool {
        matches!(self, StreamFault::GoingAway | StreamFault::Refused)
    }
}
