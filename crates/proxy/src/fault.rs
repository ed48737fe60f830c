//! Faults of an exchange: the side to blame, whether a retry may help, and the response to the client.

use crate::tls_fault::TlsFault;
use rustls::AlertDescription;
use sandarac_balance::NoBackend;
use sandarac_message::status_fields::ProxyError;
use sandarac_message::target::{PathError, TargetError};
use sandarac_net::BodyError;
use sandarac_wire::h1::Refusal;
use std::io;

/// Why an exchange has no response from the origin or the store. Each becomes a response in
/// [`crate::respond`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request's target, or its Host, cannot be used.
    BadTarget(TargetError),
    /// The path of the request's target cannot be used.
    BadPath(PathError),
    /// A redirect to the host of the request, but the request has no host.
    NoHost,
    /// The target's scheme is https, but the connection is not secured, and its peer is not trusted to report
    /// that another one is (RFC 9110 §7.4).
    Misdirected,
    /// No route matches.
    NoRoute,
    /// The rules do not allow the method here.
    MethodNotAllowed,
    /// CONNECT or an upgrade that no rule allows.
    TunnelNotAllowed,
    /// An extended CONNECT (RFC 8441 §4) for a protocol that no rule allows.
    ProtocolNotAllowed,
    /// CONNECT with a body, which has no meaning (RFC 9110 §9.3.6) and might be read as the tunnel's first
    /// bytes.
    TunnelWithBody,
    /// The request body is larger than the limit.
    BodyTooLarge,
    /// The request body broke off, or its framing was wrong.
    BodyBroken(Option<Refusal>),
    /// The request body did not arrive in time.
    BodyLate,
    /// `only-if-cached`, and nothing usable is stored (RFC 9111 §5.2.1.7).
    NotCached,
    /// A purge from an address that may not purge.
    PurgeDenied,
    /// The client is gone.
    ClientGone,
    /// No backend accepts the request.
    NoBackend(NoBackend),
    /// No backend had room for the request in time.
    QueuedTooLong,
    /// The backend's name has no address.
    Unresolved,
    /// The backend refused the connection, or it failed before a byte was sent.
    ConnectFailed(io::ErrorKind),
    /// This process, or the system, has no descriptor left for a connection. Not a fault of the backend.
    NoDescriptors,
    /// The connection was not made in time.
    ConnectLate,
    /// TLS with the backend failed before a byte was sent.
    TlsFailed(TlsFault),
    /// The connection ended before a response came.
    NoResponse,
    /// Bytes arrived before the request was sent.
    Unasked,
    /// The response did not begin in time.
    ResponseLate,
    /// The response breaks the protocol.
    BadResponse(Refusal),
    /// Too many interim responses without a final one.
    TooManyInterim,
    /// 101 although no other protocol was requested.
    UnaskedSwitch,
    /// Success in response to an extended CONNECT, but no tunnel.
    TunnelIgnored,
    /// The response broke off.
    ResponseBroken,
    /// The header edits make the head too large.
    HeadTooLarge,
    /// The request has passed this proxy more often than any deployment has tiers.
    Loop,
}

impl Fault {
    /// One fault of each name.
    pub const EACH: [Fault; 35] = [
        Fault::BadTarget(TargetError::Form),
        Fault::BadPath(PathError::Ambiguous),
        Fault::NoHost,
        Fault::Misdirected,
        Fault::NoRoute,
        Fault::MethodNotAllowed,
        Fault::TunnelNotAllowed,
        Fault::ProtocolNotAllowed,
        Fault::TunnelWithBody,
        Fault::BodyTooLarge,
        Fault::BodyBroken(None),
        Fault::BodyLate,
        Fault::NotCached,
        Fault::PurgeDenied,
        Fault::ClientGone,
        Fault::NoBackend(NoBackend::Empty),
        Fault::NoBackend(NoBackend::QueueFull),
        Fault::QueuedTooLong,
        Fault::Unresolved,
        Fault::ConnectFailed(io::ErrorKind::ConnectionRefused),
        Fault::NoDescriptors,
        Fault::ConnectLate,
        Fault::TlsFailed(TlsFault::UnknownIssuer),
        Fault::TlsFailed(TlsFault::Alert(AlertDescription::HandshakeFailure)),
        Fault::TlsFailed(TlsFault::Protocol),
        Fault::NoResponse,
        Fault::Unasked,
        Fault::ResponseLate,
        Fault::BadResponse(Refusal::ALL[0]),
        Fault::TooManyInterim,
        Fault::UnaskedSwitch,
        Fault::TunnelIgnored,
        Fault::ResponseBroken,
        Fault::HeadTooLarge,
        Fault::Loop,
    ];

    /// The name in logs and counters.
    pub const fn name(&self) -> &'static str {
        match self {
            Fault::BadTarget(_) => "bad-target",
            Fault::BadPath(_) => "bad-path",
            Fault::NoHost => "no-host",
            Fault::Misdirected => "misdirected",
            Fault::NoRoute => "no-route",
            Fault::MethodNotAllowed => "method-not-allowed",
            Fault::TunnelNotAllowed => "tunnel-not-allowed",
            Fault::ProtocolNotAllowed => "protocol-not-allowed",
            Fault::TunnelWithBody => "tunnel-with-body",
            Fault::BodyTooLarge => "body-too-large",
            Fault::BodyBroken(_) => "body-broken",
            Fault::BodyLate => "body-late",
            Fault::NotCached => "not-cached",
            Fault::PurgeDenied => "purge-denied",
            Fault::ClientGone => "client-gone",
            Fault::NoBackend(NoBackend::AllFull | NoBackend::QueueFull) => "queue-full",
            Fault::NoBackend(_) => "no-backend",
            Fault::QueuedTooLong => "queued-too-long",
            Fault::Unresolved => "unresolved",
            Fault::ConnectFailed(_) => "connect-failed",
            Fault::NoDescriptors => "no-descriptors",
            Fault::ConnectLate => "connect-late",
            Fault::TlsFailed(fault) => fault.name(),
            Fault::NoResponse => "no-response",
            Fault::Unasked => "unasked",
            Fault::ResponseLate => "response-late",
            Fault::BadResponse(_) => "bad-response",
            Fault::TooManyInterim => "too-many-interim",
            Fault::UnaskedSwitch => "unasked-switch",
            Fault::TunnelIgnored => "tunnel-ignored",
            Fault::ResponseBroken => "response-broken",
            Fault::HeadTooLarge => "head-too-large",
            Fault::Loop => "loop",
        }
    }

    /// The status of the response to the client.
    pub fn status(&self) -> u16 {
        match self {
            Fault::BadTarget(_) | Fault::BadPath(_) | Fault::NoHost | Fault::TunnelWithBody => 400,
            Fault::BodyBroken(refusal) => refusal.map_or(400, Refusal::status),
            Fault::Misdirected => 421,
            Fault::NoRoute => 404,
            Fault::MethodNotAllowed => 405,
            Fault::TunnelNotAllowed => 405,
            // RFC 9220 §3.
            Fault::ProtocolNotAllowed => 501,
            Fault::BodyTooLarge => 413,
            Fault::BodyLate | Fault::ClientGone => 408,
            Fault::PurgeDenied => 403,
            Fault::NoBackend(_) | Fault::QueuedTooLong | Fault::NoDescriptors => 503,
            Fault::NotCached | Fault::ConnectLate | Fault::ResponseLate => 504,
            Fault::Unresolved
            | Fault::ConnectFailed(_)
            | Fault::TlsFailed(_)
            | Fault::NoResponse
            | Fault::Unasked
            | Fault::BadResponse(_)
            | Fault::TooManyInterim
            | Fault::UnaskedSwitch
            | Fault::TunnelIgnored
            | Fault::ResponseBroken
            | Fault::Loop => 502,
            Fault::HeadTooLarge => 500,
        }
    }

    /// The error type for Proxy-Status (RFC 9209 §2.3).
    pub fn proxy_error(&self) -> ProxyError {
        match self {
            Fault::BadTarget(_)
            | Fault::BadPath(_)
            | Fault::NoHost
            | Fault::Misdirected
            | Fault::TunnelWithBody
            | Fault::BodyBroken(_)
            | Fault::BodyTooLarge
            | Fault::BodyLate
            | Fault::ClientGone => ProxyError::HttpRequestError,
            Fault::MethodNotAllowed
            | Fault::TunnelNotAllowed
            | Fault::ProtocolNotAllowed
            | Fault::PurgeDenied => ProxyError::HttpRequestDenied,
            Fault::NoRoute => ProxyError::DestinationNotFound,
            Fault::NoBackend(NoBackend::AllFull | NoBackend::QueueFull) | Fault::QueuedTooLong => {
                ProxyError::ConnectionLimitReached
            }
            Fault::NotCached | Fault::NoBackend(_) => ProxyError::DestinationUnavailable,
            Fault::Unresolved => ProxyError::DnsError,
            Fault::ConnectFailed(io::ErrorKind::ConnectionRefused) => ProxyError::ConnectionRefused,
            Fault::ConnectFailed(_) => ProxyError::DestinationUnavailable,
            Fault::ConnectLate => ProxyError::ConnectionTimeout,
            Fault::TlsFailed(fault) => fault.proxy_error(),
            Fault::NoResponse => ProxyError::ConnectionTerminated,
            Fault::ResponseLate => ProxyError::HttpResponseTimeout,
            Fault::BadResponse(refusal) => proxy_error(*refusal),
            Fault::Unasked | Fault::TooManyInterim | Fault::UnaskedSwitch | Fault::TunnelIgnored => {
                ProxyError::HttpProtocolError
            }
            Fault::ResponseBroken => ProxyError::HttpResponseIncomplete,
            Fault::Loop => ProxyError::ProxyLoopDetected,
            Fault::NoDescriptors | Fault::HeadTooLarge => ProxyError::ProxyInternalError,
        }
    }

    /// A description for people and logs.
    pub fn text(&self) -> String {
        match self {
            Fault::BadTarget(why) => why.to_string(),
            Fault::BadPath(why) => why.to_string(),
            Fault::NoHost => "the request has no host to be redirected to".into(),
            Fault::Misdirected => "the scheme of the target is not that of the connection".into(),
            Fault::NoRoute => "no route matches this request".into(),
            Fault::MethodNotAllowed => "the method is not allowed here".into(),
            Fault::TunnelNotAllowed => "no rule allows a tunnel here".into(),
            Fault::ProtocolNotAllowed => "no rule allows a tunnel for this protocol here".into(),
            Fault::TunnelWithBody => "a CONNECT request has no body".into(),
            Fault::BodyTooLarge => "the request body is too large".into(),
            Fault::BodyBroken(None) => "the request body broke off".into(),
            Fault::BodyBroken(Some(refusal)) => format!("the request body is malformed: {refusal}"),
            Fault::BodyLate => "the request body did not arrive in time".into(),
            Fault::NotCached => "nothing usable is stored, and the request is only-if-cached".into(),
            Fault::PurgeDenied => "purging is not allowed from this address".into(),
            Fault::ClientGone => "the client is gone".into(),
            Fault::NoBackend(why) => why.to_string(),
            Fault::QueuedTooLong => "no backend had room for the request in time".into(),
            Fault::Unresolved => "the backend's name has no address".into(),
            Fault::ConnectFailed(io::ErrorKind::NotFound) => "the backend's socket does not exist".into(),
            Fault::ConnectFailed(kind) => format!("no connection to the backend: {kind}"),
            Fault::NoDescriptors => {
                "no connection to the backend: too many files are open (limit on open files)".into()
            }
            Fault::ConnectLate => "no connection to the backend in time".into(),
            Fault::TlsFailed(fault) => format!("no TLS with the backend: {}", fault.text()),
            Fault::NoResponse => "the backend closed the connection without a response".into(),
            Fault::Unasked => "the backend sent a response before the request".into(),
            Fault::ResponseLate => "the backend did not respond in time".into(),
            Fault::BadResponse(refusal) => format!("the backend's response is malformed: {refusal}"),
            Fault::TooManyInterim => "the backend sent interim responses without end".into(),
            Fault::UnaskedSwitch => "the backend switched to another protocol unasked".into(),
            Fault::TunnelIgnored => "the backend responded as if no tunnel had been requested".into(),
            Fault::ResponseBroken => "the backend's response broke off".into(),
            Fault::HeadTooLarge => "the header edits make the head too large".into(),
            Fault::Loop => "the request loops: a backend is this proxy itself".into(),
        }
    }

    /// The description with what to do about it, for the log.
    pub(crate) fn log_text(&self) -> String {
        match self {
            Fault::TlsFailed(fault) => {
                let remedy = fault.remedy().map(|remedy| format!("; {remedy}")).unwrap_or_default();
                format!("{}{remedy}", self.text())
            }
            _ => self.text(),
        }
    }

    /// Whether the origin could not be reached or did not respond properly, so that a stale response may
    /// stand in (RFC 5861 §4, RFC 9111 §4.2.4).
    pub fn is_origins(&self) -> bool {
        matches!(
            self,
            Fault::NoBackend(_)
                | Fault::QueuedTooLong
                | Fault::Unresolved
                | Fault::ConnectFailed(_)
                | Fault::NoDescriptors
                | Fault::ConnectLate
                | Fault::TlsFailed(_)
                | Fault::NoResponse
                | Fault::Unasked
                | Fault::ResponseLate
                | Fault::BadResponse(_)
                | Fault::TooManyInterim
                | Fault::UnaskedSwitch
                | Fault::TunnelIgnored
                | Fault::ResponseBroken
        )
    }

    /// The fault of a request body that could not be received.
    pub fn of_request_body(error: BodyError) -> Fault {
        match error {
            BodyError::Truncated => Fault::BodyBroken(None),
            BodyError::Refused(refusal) => Fault::BodyBroken(Some(refusal)),
            BodyError::Late => Fault::BodyLate,
            BodyError::Io(_) => Fault::ClientGone,
        }
    }
}

/// The error type of a refused response.
fn proxy_error(refusal: Refusal) -> ProxyError {
    let named = ProxyError::ALL.iter().find(|error| error.text() == refusal.proxy_error());
    named.copied().unwrap_or(ProxyError::HttpProtocolError)
}
