//! Faults of an exchange: the side to blame, whether a retry may help, and the response to the client.

use crate::files::FileRefusal;
use crate::fragments::FragmentFailure;
use crate::tls_fault::TlsFault;
use rustls::AlertDescription;
use sandarac_balance::NoBackend;
use sandarac_message::recoding::Uncompressed;
use sandarac_message::status_fields::ProxyError;
use sandarac_message::target::{PathError, TargetError};
use sandarac_net::{BodyError, StreamFault};
use sandarac_wire::fastcgi;
use sandarac_wire::h1::Refusal;
use sandarac_wire::h2::{self, ErrorCode};
use std::io;

/// Why an exchange has no response from the origin or the store. Each becomes a response in
/// [`crate::respond`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request's target, or its Host, cannot be used.
    BadTarget(TargetError),
    /// The path of the request's target cannot be used.
    BadPath(PathError),
    /// The method in upper case, as some servers read it, leads to another route.
    BadMethod,
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
    /// The request body has no known length, and is larger than what is gathered of such bodies.
    BodyNotGathered,
    /// There is neither memory nor a file for more of a body of unknown length.
    GatheringFull,
    /// A gathered body could not be read back from its file.
    GatheringFailed,
    /// The request body broke off, or its framing was wrong.
    BodyBroken(Option<Refusal>),
    /// The request body did not arrive in time.
    BodyLate,
    /// The path leads to no script of the application.
    NoScript,
    /// `only-if-cached`, and nothing usable is stored (RFC 9111 §5.2.1.7).
    NotCached,
    /// A purge from an address that may not purge.
    PurgeDenied,
    /// The client is gone.
    ClientGone,
    /// The client was cut off, because it took or sent too little.
    ClientSlow,
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
    /// The response breaks the protocol of FastCGI.
    BadFastCgi(fastcgi::Refusal),
    /// The application has no room for another request.
    Overloaded,
    /// Too many interim responses without a final one.
    TooManyInterim,
    /// 101 although no other protocol was requested.
    UnaskedSwitch,
    /// 304 to a request without conditions (RFC 9110 §15.4.5).
    UnaskedNotModified,
    /// The backend does not speak HTTP/2, although its address says so, or it was negotiated.
    NoHttp2,
    /// A request over HTTP/2 has no response.
    Http2(StreamFault),
    /// The request asks for another protocol, and the backend does not offer that over HTTP/2 (RFC 8441 §3).
    NoExtendedConnect,
    /// Success in response to an extended CONNECT, but no tunnel.
    TunnelIgnored,
    /// The response broke off.
    ResponseBroken,
    /// The client does not accept the coding of the body, and that cannot be removed, for this reason.
    Undecodable(Uncompressed),
    /// The header edits make the head too large.
    HeadTooLarge,
    /// There is no file to answer with.
    File(FileRefusal),
    /// The response names a file that it may not.
    FileNotAllowed,
    /// The response names several files.
    FileAmbiguous,
    /// A fragment is missing that the page needs.
    Fragment(FragmentFailure),
    /// The request has passed this proxy more often than any deployment has tiers.
    Loop,
}

impl Fault {
    /// Whether there is nobody to be answered.
    pub(crate) fn is_without_client(&self) -> bool {
        matches!(self, Fault::ClientGone | Fault::ClientSlow)
    }

    /// The fault where the client's connection was cut off, or not.
    pub(crate) fn where_cut(self, is_cut: bool) -> Fault {
        if is_cut && self == Fault::ClientGone { Fault::ClientSlow } else { self }
    }

    /// One fault of each name.
    pub const EACH: [Fault; 79] = [
        Fault::BadTarget(TargetError::Form),
        Fault::BadPath(PathError::Ambiguous),
        Fault::BadMethod,
        Fault::NoHost,
        Fault::Misdirected,
        Fault::NoRoute,
        Fault::MethodNotAllowed,
        Fault::TunnelNotAllowed,
        Fault::ProtocolNotAllowed,
        Fault::TunnelWithBody,
        Fault::BodyTooLarge,
        Fault::BodyNotGathered,
        Fault::GatheringFull,
        Fault::GatheringFailed,
        Fault::BodyBroken(None),
        Fault::BodyLate,
        Fault::NoScript,
        Fault::NotCached,
        Fault::PurgeDenied,
        Fault::ClientGone,
        Fault::ClientSlow,
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
        Fault::BadFastCgi(fastcgi::Refusal::ALL[0]),
        Fault::Overloaded,
        Fault::TooManyInterim,
        Fault::UnaskedSwitch,
        Fault::UnaskedNotModified,
        Fault::NoHttp2,
        Fault::Http2(StreamFault::GoingAway),
        Fault::Http2(StreamFault::Refused),
        Fault::Http2(StreamFault::Reset(ErrorCode::INTERNAL_ERROR)),
        Fault::Http2(StreamFault::Violation(h2::Fault::ContentLengthMismatch)),
        Fault::Http2(StreamFault::Unresponsive),
        Fault::NoExtendedConnect,
        Fault::TunnelIgnored,
        Fault::ResponseBroken,
        Fault::Undecodable(Uncompressed::CodingTruncated),
        Fault::Undecodable(Uncompressed::CodingCorrupt),
        Fault::Undecodable(Uncompressed::CodingTrailingBytes),
        Fault::Undecodable(Uncompressed::CodingBomb),
        Fault::Undecodable(Uncompressed::CodingWindow),
        Fault::HeadTooLarge,
        Fault::Loop,
        Fault::FileNotAllowed,
        Fault::FileAmbiguous,
        Fault::File(FileRefusal::ALL[0]),
        Fault::File(FileRefusal::ALL[1]),
        Fault::File(FileRefusal::ALL[2]),
        Fault::File(FileRefusal::ALL[3]),
        Fault::File(FileRefusal::ALL[4]),
        Fault::File(FileRefusal::ALL[5]),
        Fault::File(FileRefusal::ALL[6]),
        Fault::File(FileRefusal::ALL[7]),
        Fault::File(FileRefusal::ALL[8]),
        Fault::File(FileRefusal::ALL[9]),
        Fault::File(FileRefusal::ALL[10]),
        Fault::File(FileRefusal::ALL[11]),
        Fault::File(FileRefusal::ALL[12]),
        Fault::Fragment(FragmentFailure::Url),
        Fault::Fragment(FragmentFailure::Elsewhere),
        Fault::Fragment(FragmentFailure::TooDeep),
        Fault::Fragment(FragmentFailure::TooMany),
        Fault::Fragment(FragmentFailure::Status),
        Fault::Fragment(FragmentFailure::Coded),
        Fault::Fragment(FragmentFailure::Endless),
        Fault::Fragment(FragmentFailure::BrokeOff),
    ];

    /// The name in logs and counters.
    pub const fn name(&self) -> &'static str {
        match self {
            Fault::BadTarget(_) => "bad-target",
            Fault::BadPath(_) => "bad-path",
            Fault::BadMethod => "bad-method",
            Fault::NoHost => "no-host",
            Fault::Misdirected => "misdirected",
            Fault::NoRoute => "no-route",
            Fault::MethodNotAllowed => "method-not-allowed",
            Fault::TunnelNotAllowed => "tunnel-not-allowed",
            Fault::ProtocolNotAllowed => "protocol-not-allowed",
            Fault::TunnelWithBody => "tunnel-with-body",
            Fault::BodyTooLarge => "body-too-large",
            Fault::BodyNotGathered => "body-not-gathered",
            Fault::GatheringFull => "gathering-full",
            Fault::GatheringFailed => "gathering-failed",
            Fault::BodyBroken(_) => "body-broken",
            Fault::BodyLate => "body-late",
            Fault::NoScript => "no-script",
            Fault::NotCached => "not-cached",
            Fault::PurgeDenied => "purge-denied",
            Fault::ClientGone => "client-gone",
            Fault::ClientSlow => "client-slow",
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
            Fault::BadFastCgi(_) => "bad-fastcgi",
            Fault::Overloaded => "overloaded",
            Fault::TooManyInterim => "too-many-interim",
            Fault::UnaskedSwitch => "unasked-switch",
            Fault::UnaskedNotModified => "unasked-not-modified",
            Fault::NoHttp2 => "no-http2",
            Fault::Http2(fault) => stream_fault_name(*fault),
            Fault::NoExtendedConnect => "no-extended-connect",
            Fault::TunnelIgnored => "tunnel-ignored",
            Fault::ResponseBroken => "response-broken",
            Fault::Undecodable(reason) => reason.text(),
            Fault::HeadTooLarge => "head-too-large",
            Fault::File(refusal) => refusal.name(),
            Fault::FileNotAllowed => "file-not-allowed",
            Fault::FileAmbiguous => "file-ambiguous",
            Fault::Fragment(failure) => failure.name(),
            Fault::Loop => "loop",
        }
    }

    /// The status of the response to the client.
    pub fn status(&self) -> u16 {
        match self {
            Fault::BadTarget(_)
            | Fault::BadPath(_)
            | Fault::BadMethod
            | Fault::NoHost
            | Fault::TunnelWithBody => 400,
            Fault::BodyBroken(refusal) => refusal.map_or(400, Refusal::status),
            Fault::File(refusal) => refusal.status(),
            Fault::Misdirected => 421,
            Fault::NoRoute | Fault::NoScript => 404,
            Fault::MethodNotAllowed => 405,
            Fault::TunnelNotAllowed => 405,
            // RFC 9220 §3.
            Fault::ProtocolNotAllowed => 501,
            Fault::BodyTooLarge | Fault::BodyNotGathered => 413,
            Fault::BodyLate | Fault::ClientGone | Fault::ClientSlow => 408,
            Fault::PurgeDenied => 403,
            Fault::NoBackend(_)
            | Fault::QueuedTooLong
            | Fault::NoDescriptors
            | Fault::Overloaded
            | Fault::GatheringFull
            | Fault::GatheringFailed => 503,
            Fault::NotCached | Fault::ConnectLate | Fault::ResponseLate => 504,
            Fault::Unresolved
            | Fault::ConnectFailed(_)
            | Fault::TlsFailed(_)
            | Fault::NoResponse
            | Fault::Unasked
            | Fault::BadResponse(_)
            | Fault::BadFastCgi(_)
            | Fault::TooManyInterim
            | Fault::UnaskedSwitch
            | Fault::UnaskedNotModified
            | Fault::NoHttp2
            | Fault::Http2(_)
            | Fault::NoExtendedConnect
            | Fault::TunnelIgnored
            | Fault::ResponseBroken
            | Fault::Undecodable(_)
            | Fault::FileAmbiguous
            | Fault::FileNotAllowed
            | Fault::Fragment(_)
            | Fault::Loop => 502,
            Fault::HeadTooLarge => 500,
        }
    }

    /// The error type for Proxy-Status (RFC 9209 §2.3).
    pub fn proxy_error(&self) -> ProxyError {
        match self {
            Fault::BadTarget(_)
            | Fault::BadPath(_)
            | Fault::BadMethod
            | Fault::NoHost
            | Fault::Misdirected
            | Fault::TunnelWithBody
            | Fault::BodyBroken(_)
            | Fault::BodyTooLarge
            | Fault::BodyNotGathered
            | Fault::BodyLate
            | Fault::ClientGone
            | Fault::ClientSlow => ProxyError::HttpRequestError,
            Fault::MethodNotAllowed
            | Fault::TunnelNotAllowed
            | Fault::ProtocolNotAllowed
            | Fault::PurgeDenied => ProxyError::HttpRequestDenied,
            Fault::File(refusal) => refusal.proxy_error(),
            Fault::NoRoute | Fault::NoScript => ProxyError::DestinationNotFound,
            Fault::NoBackend(NoBackend::AllFull | NoBackend::QueueFull)
            | Fault::QueuedTooLong
            | Fault::Overloaded => ProxyError::ConnectionLimitReached,
            Fault::NotCached | Fault::NoBackend(_) => ProxyError::DestinationUnavailable,
            Fault::Unresolved => ProxyError::DnsError,
            Fault::ConnectFailed(io::ErrorKind::ConnectionRefused) => ProxyError::ConnectionRefused,
            Fault::ConnectFailed(_) => ProxyError::DestinationUnavailable,
            Fault::ConnectLate => ProxyError::ConnectionTimeout,
            Fault::TlsFailed(fault) => fault.proxy_error(),
            Fault::NoResponse => ProxyError::ConnectionTerminated,
            Fault::ResponseLate => ProxyError::HttpResponseTimeout,
            Fault::BadResponse(refusal) => proxy_error(*refusal),
            Fault::Http2(StreamFault::GoingAway | StreamFault::Refused | StreamFault::Lost) => {
                ProxyError::ConnectionTerminated
            }
            Fault::Http2(StreamFault::Unresponsive) => ProxyError::HttpResponseTimeout,
            Fault::Unasked
            | Fault::BadFastCgi(_)
            | Fault::TooManyInterim
            | Fault::UnaskedSwitch
            | Fault::UnaskedNotModified
            | Fault::NoHttp2
            | Fault::Http2(_)
            | Fault::FileNotAllowed
            | Fault::FileAmbiguous
            | Fault::TunnelIgnored => ProxyError::HttpProtocolError,
            Fault::Undecodable(_) => ProxyError::HttpResponseContentCoding,
            Fault::NoExtendedConnect => ProxyError::HttpUpgradeFailed,
            Fault::ResponseBroken | Fault::Fragment(_) => ProxyError::HttpResponseIncomplete,
            Fault::Loop => ProxyError::ProxyLoopDetected,
            Fault::NoDescriptors | Fault::HeadTooLarge | Fault::GatheringFull | Fault::GatheringFailed => {
                ProxyError::ProxyInternalError
            }
        }
    }

    /// A description for people and logs.
    pub fn text(&self) -> String {
        match self {
            Fault::BadTarget(why) => why.to_string(),
            Fault::BadPath(why) => why.to_string(),
            Fault::BadMethod => "servers that read the method in upper case would take it for another".into(),
            Fault::NoHost => "the request has no host to be redirected to".into(),
            Fault::Misdirected => "the scheme of the target is not that of the connection".into(),
            Fault::NoRoute => "no route matches this request".into(),
            Fault::MethodNotAllowed => "the method is not allowed here".into(),
            Fault::TunnelNotAllowed => "no rule allows a tunnel here".into(),
            Fault::ProtocolNotAllowed => "no rule allows a tunnel for this protocol here".into(),
            Fault::TunnelWithBody => "a CONNECT request has no body".into(),
            Fault::BodyTooLarge => "the request body is too large".into(),
            Fault::BodyNotGathered => {
                "the request body has no Content-Length, and is larger than `gather_limit`".into()
            }
            Fault::GatheringFull => "there is no room for request bodies of unknown length".into(),
            Fault::GatheringFailed => "the request body could not be read back from its file".into(),
            Fault::BodyBroken(None) => "the request body broke off".into(),
            Fault::BodyBroken(Some(refusal)) => format!("the request body is malformed: {refusal}"),
            Fault::BodyLate => "the request body did not arrive in time".into(),
            Fault::NoScript => "the path leads to no script of the application".into(),
            Fault::NotCached => "nothing usable is stored, and the request is only-if-cached".into(),
            Fault::PurgeDenied => "purging is not allowed from this address".into(),
            Fault::ClientGone => "the client is gone".into(),
            Fault::ClientSlow => "the client took or sent too little, and was cut off".into(),
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
            Fault::BadFastCgi(refusal) => format!("the backend's response is not valid FastCGI: {refusal}"),
            Fault::Overloaded => "the application has no room for another request".into(),
            Fault::TooManyInterim => "the backend sent interim responses without end".into(),
            Fault::UnaskedSwitch => "the backend switched to another protocol unasked".into(),
            Fault::UnaskedNotModified => "the backend answered a request without conditions with 304".into(),
            Fault::NoHttp2 => "the backend does not speak HTTP/2".into(),
            Fault::Http2(fault) => stream_fault_text(*fault),
            Fault::NoExtendedConnect => "the backend offers no other protocol over HTTP/2".into(),
            Fault::TunnelIgnored => "the backend responded as if no tunnel had been requested".into(),
            Fault::ResponseBroken => "the backend's response broke off".into(),
            Fault::Undecodable(reason) => {
                format!("the body cannot be inflated for this client: {}", undecodable_text(*reason))
            }
            Fault::HeadTooLarge => "the header edits make the head too large".into(),
            Fault::File(refusal) => refusal.text().into(),
            Fault::FileNotAllowed => {
                "the response names a file outside of the directories that its pool may send".into()
            }
            Fault::FileAmbiguous => "the response names several files".into(),
            Fault::Fragment(failure) => failure.text().into(),
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
            // Its first frame begins with a length, and may come before the request.
            Fault::Unasked | Fault::BadResponse(Refusal::Nul) => {
                format!("{}; if it speaks HTTP/2 in clear, its address begins with h2://", self.text())
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
                | Fault::BadFastCgi(_)
                | Fault::Overloaded
                | Fault::TooManyInterim
                | Fault::UnaskedSwitch
                | Fault::UnaskedNotModified
                | Fault::NoHttp2
                | Fault::Http2(_)
                | Fault::TunnelIgnored
                | Fault::ResponseBroken
                | Fault::Undecodable(_)
                | Fault::FileNotAllowed
                | Fault::FileAmbiguous
        )
    }

    /// The fault of a response over FastCGI that is refused.
    pub(crate) fn of_fastcgi(refusal: fastcgi::Refusal) -> Fault {
        match refusal {
            fastcgi::Refusal::Head(refusal) => Fault::BadResponse(refusal),
            refusal => Fault::BadFastCgi(refusal),
        }
    }

    /// The fault of a request body that could not be received.
    pub fn of_request_body(error: BodyError) -> Fault {
        match error {
            BodyError::Truncated | BodyError::Records(_) => Fault::BodyBroken(None),
            BodyError::Refused(refusal) => Fault::BodyBroken(Some(refusal)),
            BodyError::Late => Fault::BodyLate,
            BodyError::Io(_) | BodyError::Stream(_) => Fault::ClientGone,
        }
    }
}

impl From<StreamFault> for Fault {
    /// The fault of a request over HTTP/2; one that HTTP/1.1 has too is the same.
    fn from(fault: StreamFault) -> Fault {
        match fault {
            StreamFault::Lost => Fault::NoResponse,
            StreamFault::TooManyInterim => Fault::TooManyInterim,
            fault => Fault::Http2(fault),
        }
    }
}

const fn undecodable_text(reason: Uncompressed) -> &'static str {
    match reason {
        Uncompressed::CodingTruncated => "it ends early",
        Uncompressed::CodingTrailingBytes => "bytes follow its end",
        Uncompressed::CodingBomb => "it grows beyond all reason",
        Uncompressed::CodingWindow => "it needs a window of more than 8 MiB",
        _ => "it is damaged, or not in the coding that its head names",
    }
}

const fn stream_fault_name(fault: StreamFault) -> &'static str {
    match fault {
        StreamFault::GoingAway => "going-away",
        StreamFault::Refused => "stream-refused",
        StreamFault::Reset(_) => "stream-reset",
        StreamFault::Malformed(_) => "bad-response",
        StreamFault::Violation(_) => "http2-violation",
        StreamFault::TooManyInterim => "too-many-interim",
        StreamFault::Lost => "no-response",
        StreamFault::Unresponsive => "unresponsive",
    }
}

fn stream_fault_text(fault: StreamFault) -> String {
    match fault {
        StreamFault::GoingAway => "the backend accepts no more requests on the connection".into(),
        StreamFault::Refused => "the backend refused the stream".into(),
        StreamFault::Reset(code) => format!("the backend reset the stream: {}", code.name()),
        StreamFault::Malformed(refusal) => format!("the backend's response is malformed: {refusal}"),
        StreamFault::Violation(fault) => format!("the backend violates HTTP/2: {fault} ({})", fault.name()),
        StreamFault::TooManyInterim => Fault::TooManyInterim.text(),
        StreamFault::Lost => Fault::NoResponse.text(),
        StreamFault::Unresponsive => "the backend replies to nothing on the connection".into(),
    }
}

/// The error type of a refused response.
fn proxy_error(refusal: Refusal) -> ProxyError {
    let named = ProxyError::ALL.iter().find(|error| error.text() == refusal.proxy_error());
    named.copied().unwrap_or(ProxyError::HttpProtocolError)
}
