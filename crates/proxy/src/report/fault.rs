//! Faults of an exchange: the side to blame, whether a retry may help, and the response to the client.

use crate::report::file_refusal::FileRefusal;
use crate::report::fragment_failure::FragmentFailure;
use crate::report::tls_fault::TlsFault;
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

/// The side of a fault: the origin, or the client, the configuration or this process.
const ORIGIN: bool = true;
const OTHER: bool = false;

/// Defines [`Fault`]: of each variant, the side to blame, its name, the status of the response to the client,
/// the error type for Proxy-Status, and a description.
macro_rules! faults {
    ($(
        $(#[$doc:meta])*
        $fault:ident $(($why:ident: $kind:ty))? = $side:expr, $name:expr, $status:expr, $error:expr, $text:expr;
    )*) => {
        /// Why an exchange has no response from the origin or the store. Each becomes a response in
        /// [`crate::respond`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fault {
            $($(#[$doc])* $fault $(($kind))?,)*
        }

        #[allow(unused_variables, reason = "few facts depend on what a variant holds")]
        impl Fault {
            /// The name in logs and counters.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Fault::$fault $(($why))? => $name,)*
                }
            }

            /// The status of the response to the client.
            pub fn status(&self) -> u16 {
                match self {
                    $(Fault::$fault $(($why))? => $status,)*
                }
            }

            /// The error type for Proxy-Status (RFC 9209 §2.3).
            pub fn proxy_error(&self) -> ProxyError {
                match self {
                    $(Fault::$fault $(($why))? => $error,)*
                }
            }

            /// A description for people and logs.
            pub fn text(&self) -> String {
                match self {
                    $(Fault::$fault $(($why))? => $text.into(),)*
                }
            }

            /// Whether the origin could not be reached or did not respond properly, so that a stale response
            /// may stand in (RFC 5861 §4, RFC 9111 §4.2.4).
            pub fn is_origins(&self) -> bool {
                match self {
                    $(Fault::$fault $(($why))? => $side,)*
                }
            }
        }
    };
}

faults! {
    /// The request's target, or its Host, cannot be used.
    BadTarget(why: TargetError) = OTHER, "bad-target", 400, ProxyError::HttpRequestError, why.to_string();
    /// The path of the request's target cannot be used.
    BadPath(why: PathError) = OTHER, "bad-path", 400, ProxyError::HttpRequestError, why.to_string();
    /// The method in upper case, as some servers read it, leads to another route.
    BadMethod = OTHER, "bad-method", 400, ProxyError::HttpRequestError,
        "servers that read the method in upper case would take it for another";
    /// A redirect to the host of the request, but the request has no host.
    NoHost = OTHER, "no-host", 400, ProxyError::HttpRequestError,
        "the request has no host to be redirected to";
    /// The target's scheme is https, but the connection is not secured, and its peer is not trusted to report
    /// that another one is (RFC 9110 §7.4).
    Misdirected = OTHER, "misdirected", 421, ProxyError::HttpRequestError,
        "the scheme of the target is not that of the connection";
    /// No route matches.
    NoRoute = OTHER, "no-route", 404, ProxyError::DestinationNotFound, "no route matches this request";
    /// The rules do not allow the method here.
    MethodNotAllowed = OTHER, "method-not-allowed", 405, ProxyError::HttpRequestDenied,
        "the method is not allowed here";
    /// CONNECT or an upgrade that no rule allows.
    TunnelNotAllowed = OTHER, "tunnel-not-allowed", 405, ProxyError::HttpRequestDenied,
        "no rule allows a tunnel here";
    /// An extended CONNECT (RFC 8441 §4) for a protocol that no rule allows.
    ProtocolNotAllowed = OTHER, "protocol-not-allowed", 501, ProxyError::HttpRequestDenied,
        "no rule allows a tunnel for this protocol here";
    /// CONNECT with a body, which has no meaning (RFC 9110 §9.3.6) and might be read as the tunnel's first
    /// bytes.
    TunnelWithBody = OTHER, "tunnel-with-body", 400, ProxyError::HttpRequestError,
        "a CONNECT request has no body";
    /// The request body is larger than the limit.
    BodyTooLarge = OTHER, "body-too-large", 413, ProxyError::HttpRequestError,
        "the request body is too large";
    /// The request body has no known length, and is larger than what is gathered of such bodies.
    BodyNotGathered = OTHER, "body-not-gathered", 413, ProxyError::HttpRequestError,
        "the request body has no Content-Length, and is larger than `gather_limit`";
    /// There is neither memory nor a file for more of a body of unknown length.
    GatheringFull = OTHER, "gathering-full", 503, ProxyError::ProxyInternalError,
        "there is no room for request bodies of unknown length";
    /// A gathered body could not be read back from its file.
    GatheringFailed = OTHER, "gathering-failed", 503, ProxyError::ProxyInternalError,
        "the request body could not be read back from its file";
    /// The request body broke off, or its framing was wrong.
    BodyBroken(refusal: Option<Refusal>) = OTHER, "body-broken", refusal.map_or(400, Refusal::status),
        ProxyError::HttpRequestError, body_text(*refusal);
    /// The request body did not arrive in time.
    BodyLate = OTHER, "body-late", 408, ProxyError::HttpRequestError,
        "the request body did not arrive in time";
    /// The path leads to no script of the application.
    NoScript = OTHER, "no-script", 404, ProxyError::DestinationNotFound,
        "the path leads to no script of the application";
    /// `only-if-cached`, and nothing usable is stored (RFC 9111 §5.2.1.7).
    NotCached = OTHER, "not-cached", 504, ProxyError::DestinationUnavailable,
        "nothing usable is stored, and the request is only-if-cached";
    /// A purge from an address that may not purge.
    PurgeDenied = OTHER, "purge-denied", 403, ProxyError::HttpRequestDenied,
        "purging is not allowed from this address";
    /// The client is gone.
    ClientGone = OTHER, "client-gone", 408, ProxyError::HttpRequestError, "the client is gone";
    /// The client was cut off, because it took or sent too little.
    ClientSlow = OTHER, "client-slow", 408, ProxyError::HttpRequestError,
        "the client took or sent too little, and was cut off";
    /// No backend accepts the request.
    NoBackend(why: NoBackend) = ORIGIN, no_backend_name(*why), 503, no_backend_error(*why), why.to_string();
    /// No backend had room for the request in time.
    QueuedTooLong = ORIGIN, "queued-too-long", 503, ProxyError::ConnectionLimitReached,
        "no backend had room for the request in time";
    /// The backend's name has no address.
    Unresolved = ORIGIN, "unresolved", 502, ProxyError::DnsError, "the backend's name has no address";
    /// The backend refused the connection, or it failed before a byte was sent.
    ConnectFailed(kind: io::ErrorKind) = ORIGIN, "connect-failed", 502, connect_error(*kind),
        connect_text(*kind);
    /// This process, or the system, has no descriptor left for a connection. Not a fault of the backend.
    NoDescriptors = ORIGIN, "no-descriptors", 503, ProxyError::ProxyInternalError,
        "no connection to the backend: too many files are open (limit on open files)";
    /// The connection was not made in time.
    ConnectLate = ORIGIN, "connect-late", 504, ProxyError::ConnectionTimeout,
        "no connection to the backend in time";
    /// TLS with the backend failed before a byte was sent.
    TlsFailed(fault: TlsFault) = ORIGIN, fault.name(), 502, fault.proxy_error(),
        format!("no TLS with the backend: {}", fault.text());
    /// The connection ended before a response came.
    NoResponse = ORIGIN, "no-response", 502, ProxyError::ConnectionTerminated,
        "the backend closed the connection without a response";
    /// Bytes arrived before the request was sent.
    Unasked = ORIGIN, "unasked", 502, ProxyError::HttpProtocolError,
        "the backend sent a response before the request";
    /// The response did not begin in time.
    ResponseLate = ORIGIN, "response-late", 504, ProxyError::HttpResponseTimeout,
        "the backend did not respond in time";
    /// The response breaks the protocol.
    BadResponse(refusal: Refusal) = ORIGIN, "bad-response", 502, proxy_error(*refusal),
        format!("the backend's response is malformed: {refusal}");
    /// The response breaks the protocol of FastCGI.
    BadFastCgi(refusal: fastcgi::Refusal) = ORIGIN, "bad-fastcgi", 502, ProxyError::HttpProtocolError,
        format!("the backend's response is not valid FastCGI: {refusal}");
    /// The application has no room for another request.
    Overloaded = ORIGIN, "overloaded", 503, ProxyError::ConnectionLimitReached,
        "the application has no room for another request";
    /// Too many interim responses without a final one.
    TooManyInterim = ORIGIN, "too-many-interim", 502, ProxyError::HttpProtocolError,
        "the backend sent interim responses without end";
    /// 101 although no other protocol was requested.
    UnaskedSwitch = ORIGIN, "unasked-switch", 502, ProxyError::HttpProtocolError,
        "the backend switched to another protocol unasked";
    /// 304 to a request without conditions (RFC 9110 §15.4.5).
    UnaskedNotModified = ORIGIN, "unasked-not-modified", 502, ProxyError::HttpProtocolError,
        "the backend answered a request without conditions with 304";
    /// The backend does not speak HTTP/2, although its address says so, or it was negotiated.
    NoHttp2 = ORIGIN, "no-http2", 502, ProxyError::HttpProtocolError, "the backend does not speak HTTP/2";
    /// A request over HTTP/2 has no response.
    Http2(fault: StreamFault) = ORIGIN, stream_fault_name(*fault), 502, stream_fault_error(*fault),
        stream_fault_text(*fault);
    /// The request asks for another protocol, and the backend does not offer that over HTTP/2 (RFC 8441 §3).
    NoExtendedConnect = OTHER, "no-extended-connect", 502, ProxyError::HttpUpgradeFailed,
        "the backend offers no other protocol over HTTP/2";
    /// Success in response to an extended CONNECT, but no tunnel.
    TunnelIgnored = ORIGIN, "tunnel-ignored", 502, ProxyError::HttpProtocolError,
        "the backend responded as if no tunnel had been requested";
    /// The response broke off.
    ResponseBroken = ORIGIN, "response-broken", 502, ProxyError::HttpResponseIncomplete,
        "the backend's response broke off";
    /// The client does not accept the coding of the body, and that cannot be removed, for this reason.
    Undecodable(reason: Uncompressed) = ORIGIN, reason.text(), 502, ProxyError::HttpResponseContentCoding,
        format!("the body cannot be inflated for this client: {}", undecodable_text(*reason));
    /// The header edits make the head too large.
    HeadTooLarge = OTHER, "head-too-large", 500, ProxyError::ProxyInternalError,
        "the header edits make the head too large";
    /// There is no file to answer with.
    File(refusal: FileRefusal) = OTHER, refusal.name(), refusal.status(), refusal.proxy_error(),
        refusal.text();
    /// The response names a file that it may not.
    FileNotAllowed = ORIGIN, "file-not-allowed", 502, ProxyError::HttpProtocolError,
        "the response names a file outside of the directories that its pool may send";
    /// The response names several files.
    FileAmbiguous = ORIGIN, "file-ambiguous", 502, ProxyError::HttpProtocolError,
        "the response names several files";
    /// A fragment is missing that the page needs.
    Fragment(failure: FragmentFailure) = OTHER, failure.name(), 502, ProxyError::HttpResponseIncomplete,
        failure.text();
    /// The request has passed this proxy more often than any deployment has tiers.
    Loop = OTHER, "loop", 502, ProxyError::ProxyLoopDetected,
        "the request loops: a backend is this proxy itself";
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

const fn no_backend_name(why: NoBackend) -> &'static str {
    match why {
        NoBackend::AllFull | NoBackend::QueueFull => "queue-full",
        _ => "no-backend",
    }
}

const fn no_backend_error(why: NoBackend) -> ProxyError {
    match why {
        NoBackend::AllFull | NoBackend::QueueFull => ProxyError::ConnectionLimitReached,
        _ => ProxyError::DestinationUnavailable,
    }
}

const fn connect_error(kind: io::ErrorKind) -> ProxyError {
    match kind {
        io::ErrorKind::ConnectionRefused => ProxyError::ConnectionRefused,
        _ => ProxyError::DestinationUnavailable,
    }
}

fn connect_text(kind: io::ErrorKind) -> String {
    match kind {
        io::ErrorKind::NotFound => "the backend's socket does not exist".into(),
        kind => format!("no connection to the backend: {kind}"),
    }
}

fn body_text(refusal: Option<Refusal>) -> String {
    refusal.map_or("the request body broke off".into(), |refusal| {
        format!("the request body is malformed: {refusal}")
    })
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

const fn stream_fault_error(fault: StreamFault) -> ProxyError {
    match fault {
        StreamFault::GoingAway | StreamFault::Refused | StreamFault::Lost => ProxyError::ConnectionTerminated,
        StreamFault::Unresponsive => ProxyError::HttpResponseTimeout,
        _ => ProxyError::HttpProtocolError,
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
