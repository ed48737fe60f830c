//! A request ready to send to a backend.

use crate::fastcgi::CgiRequest;
use sandarac_message::{FieldsBuf, Method, Name};
use sandarac_policy::ResponseEdits;
use sandarac_wire::h1::BodyFraming;

/// A request ready to send, over any protocol.
pub(crate) struct OriginRequest<'a> {
    pub(crate) method: Method,
    pub(crate) method_text: &'a [u8],
    /// The target in origin form, or the authority of CONNECT.
    pub(crate) target: &'a [u8],
    /// The end-to-end fields.
    pub(crate) fields: FieldsBuf,
    /// Whether another protocol is to follow on the connection.
    pub(crate) tunnel: bool,
    /// The protocols that the client offers to switch to, if any (RFC 9110 §7.8).
    pub(crate) protocols: Option<&'a [u8]>,
    /// Whether the client reads trailers, and the response is for no other client.
    pub(crate) takes_trailers: bool,
    /// Whether it is a call of gRPC, if the backend speaks HTTP/2.
    pub(crate) is_grpc: bool,
    /// Whether the response is for one client alone, and therefore unwanted once that client has reset its
    /// connection.
    pub(crate) one_client: bool,
    /// The body that follows.
    pub(crate) framing: BodyFraming,
    /// The script to run, if the pool speaks FastCGI.
    pub(crate) cgi: Option<CgiRequest<'a>>,
    /// The edits of the response. Fields that they remove or replace are not sent in interim responses
    /// either.
    pub(crate) edits: &'a ResponseEdits,
}

impl OriginRequest<'_> {
    /// Whether the client waits for 100 (Continue) before it sends the body (RFC 9110 §10.1.1).
    pub(super) fn expects_continue(&self) -> bool {
        self.fields.view().has(Name::Expect)
    }
}
