//! A request ready to be sent to a backend.

use sandarac_message::{FieldsBuf, Method};
use sandarac_policy::ResponseEdits;
use sandarac_wire::h1::BodyFraming;

/// A request ready to be sent, in whatever protocol the backend speaks.
pub(crate) struct OriginRequest<'a> {
    pub(crate) method: Method,
    pub(crate) method_text: &'a [u8],
    /// The target in origin form, or the authority of CONNECT.
    pub(crate) target: &'a [u8],
    /// The fields that are not the connection's own.
    pub(crate) fields: FieldsBuf,
    /// Whether another protocol is to follow on the connection.
    pub(crate) tunnel: bool,
    /// The protocols that the client offers to switch to, where it does (RFC 9110 §7.8).
    pub(crate) protocols: Option<&'a [u8]>,
    /// Whether the client reads trailers, and the response is for no one else.
    pub(crate) takes_trailers: bool,
    /// Whether the response is for one client alone, so that nobody wants it once that has reset its connection.
    pub(crate) one_client: bool,
    /// The body that follows.
    pub(crate) framing: BodyFraming,
    /// The edits of the response. What they remove or replace is not sent in interim ones either.
    pub(crate) edits: &'a ResponseEdits,
}
