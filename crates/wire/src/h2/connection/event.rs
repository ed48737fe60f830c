//! Events of a connection.

use super::super::code::ErrorCode;
use super::super::fault::Fault;
use super::super::head::Refusal;
use super::super::head::request::Request;
use super::super::head::response::Response;
use super::super::priority::Priority;
use sandarac_message::Fields;

/// The outcome of [`super::Connection::receive`].
#[derive(Debug)]
pub struct Received<'a> {
    /// Bytes of the input that were used; 0 if no frame is complete.
    pub consumed: usize,
    /// What happened, if the caller has to know.
    pub event: Option<Event<'a>>,
}

/// Something that a session reacts to. A stream is closed, and forgotten here, when both sides have ended it
/// or it was reset.
#[derive(Debug)]
#[allow(missing_docs, reason = "`stream` and `end_stream` are those of RFC 9113")]
pub enum Event<'a> {
    /// A request. Its stream is open until it is answered or reset.
    Request { stream: u32, request: Request<'a>, priority: Priority, end_stream: bool },
    /// A request above a limit, or one that no response but an error suits. The caller MUST answer it with
    /// [`Refusal::status`] and then reset the stream, or reset it at once.
    Refused { stream: u32, refusal: Refusal },
    /// A malformed message, or trailers above a limit. The stream was reset with PROTOCOL_ERROR. If it was open before, this is
    /// its end, as [`Event::Reset`] is.
    Malformed { stream: u32, refusal: Refusal },
    /// A response, interim or final.
    Response { stream: u32, response: Response<'a>, end_stream: bool },
    /// Data. The caller MUST pass as many bytes to [`super::Connection::release`] when it has used them, even
    /// after the stream was closed.
    Data { stream: u32, data: &'a [u8], end_stream: bool },
    /// Trailers, which end the stream.
    Trailers { stream: u32, fields: Fields<'a> },
    /// The stream was reset: by the peer, or because of a fault.
    Reset { stream: u32, code: ErrorCode, fault: Option<Fault> },
    /// More may be sent on the stream; on all if it is 0.
    WindowOpened { stream: u32 },
    /// The peer changed its settings; windows may have opened.
    SettingsChanged,
    /// The peer acknowledged our settings.
    SettingsAcknowledged,
    /// The priority of an open stream changed.
    PriorityChanged { stream: u32, priority: Priority },
    /// The reply to our PING.
    Pong([u8; 8]),
    /// The peer accepts no more streams. Streams above `last_stream` were not processed: they are closed here,
    /// and may be sent again.
    GoAway { last_stream: u32, code: ErrorCode },
}
