//! Why a message was refused.

macro_rules! refusals {
    ($($(#[$doc:meta])* $variant:ident = $status:literal $name:literal $proxy_error:literal $text:literal),* $(,)?) => {
        /// Why a message was refused. The connection MUST be closed, and no byte of the message or after it
        /// may be used.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Refusal {
            $($(#[$doc])* #[doc = concat!("\n\nAs the answer to a request: ", $status, ".")] $variant),*
        }

        impl Refusal {
            /// Every refusal.
            pub const ALL: &'static [Refusal] = &[$(Refusal::$variant),*];

            /// The status of the response to a refused request. For a refused response it is 502 instead.
            pub const fn status(self) -> u16 {
                match self { $(Refusal::$variant => $status),* }
            }

            /// The name, for logs, counters and tests.
            pub const fn name(self) -> &'static str {
                match self { $(Refusal::$variant => $name),* }
            }

            /// A short description of the fault, without a full stop.
            pub const fn text(self) -> &'static str {
                match self { $(Refusal::$variant => $text),* }
            }

            /// The error type for Proxy-Status (RFC 9209 §2.3) when a response was refused.
            pub const fn proxy_error(self) -> &'static str {
                match self { $(Refusal::$variant => $proxy_error),* }
            }
        }
    };
}

refusals! {
    /// The HTTP/2 connection preface (RFC 9113 §3.4) on an HTTP/1.1 connection. A listener that accepts
    /// HTTP/2 without TLS hands the connection over with all bytes; elsewhere it is an unsupported version.
    Http2Preface = 505 "http2-preface" "http_protocol_error" "HTTP/2 connection preface",
    /// More empty lines before the request line than [`super::request::MAX_EMPTY_LINES`].
    EmptyLines = 400 "empty-lines" "http_protocol_error" "too many empty lines before the request line",
    /// The method is empty or not a token (RFC 9110 §9.1).
    InvalidMethod = 400 "invalid-method" "http_protocol_error" "invalid method",
    /// The target is empty or has a control byte.
    InvalidTarget = 400 "invalid-target" "http_protocol_error" "invalid request target",
    /// The target is longer than [`super::Limits::target`].
    TargetTooLong = 414 "target-too-long" "http_protocol_error" "request target too long",
    /// A version other than HTTP/1.0 and HTTP/1.1.
    UnsupportedVersion = 505 "unsupported-version" "http_protocol_error" "unsupported HTTP version",
    /// A missing or malformed version (RFC 9112 §2.3), as in HTTP/0.9 requests.
    InvalidVersion = 400 "invalid-version" "http_protocol_error" "invalid HTTP version",
    /// A malformed status line, or a status outside 100 to 599 (RFC 9112 §4, RFC 9110 §15).
    InvalidStatusLine = 400 "invalid-status-line" "http_protocol_error" "invalid status line",
    /// CR without LF (RFC 9112 §2.2).
    BareCr = 400 "bare-cr" "http_protocol_error" "CR without LF",
    /// LF without CR (RFC 9112 §2.2).
    BareLf = 400 "bare-lf" "http_protocol_error" "LF without CR",
    /// A NUL byte in a head or trailer (RFC 9110 §5.5).
    Nul = 400 "nul" "http_protocol_error" "NUL byte",
    /// A line folded onto the next (RFC 9112 §5.2), or white space before the first field.
    FoldedLine = 400 "folded-line" "http_protocol_error" "folded field line",
    /// White space in a field name or between it and the colon (RFC 9112 §5.1).
    SpaceInFieldName = 400 "space-in-field-name" "http_protocol_error" "white space in or after a field name",
    /// A field name that is empty, not a token, or without a colon (RFC 9110 §5.1).
    InvalidFieldName = 400 "invalid-field-name" "http_protocol_error" "invalid field name",
    /// A control byte in a field value (RFC 9110 §5.5).
    InvalidFieldValue = 400 "invalid-field-value" "http_protocol_error" "control byte in a field value",
    /// A field name of more than [`sandarac_message::MAX_NAME`] bytes.
    FieldNameTooLong = 431 "field-name-too-long" "http_response_header_size" "field name too long",
    /// More field lines than [`super::Limits::fields`].
    TooManyFields = 431 "too-many-fields" "http_response_header_section_size" "too many fields",
    /// A head of more bytes than [`super::Limits::head`].
    HeadTooLarge = 431 "head-too-large" "http_response_header_section_size" "head too large",
    /// A request in HTTP/1.1 without Host (RFC 9112 §3.2).
    MissingHost = 400 "missing-host" "http_protocol_error" "no Host",
    /// More than one Host line (RFC 9112 §3.2).
    RepeatedHost = 400 "repeated-host" "http_protocol_error" "more than one Host",
    /// A Host that is not a host with an optional port, or is empty (RFC 9110 §7.2).
    InvalidHost = 400 "invalid-host" "http_protocol_error" "invalid Host",
    /// More than one Content-Length, in lines or in one list, even if they are equal (RFC 9112 §6.3).
    RepeatedContentLength = 400 "repeated-content-length" "http_protocol_error" "more than one Content-Length",
    /// A Content-Length that is not a sequence of digits, or does not fit 64 bits (RFC 9110 §8.6).
    InvalidContentLength = 400 "invalid-content-length" "http_protocol_error" "invalid Content-Length",
    /// Transfer-Encoding in more than one line, or `chunked` applied more than once (RFC 9112 §7.1).
    RepeatedTransferEncoding = 400 "repeated-transfer-encoding" "http_response_transfer_coding" "repeated transfer coding",
    /// Transfer-Encoding that is empty, padded, has parameters, or where `chunked` is not last (RFC 9112
    /// §6.1).
    InvalidTransferEncoding = 400 "invalid-transfer-encoding" "http_response_transfer_coding" "invalid Transfer-Encoding",
    /// A transfer coding other than `chunked` (RFC 9112 §6.1).
    UnknownTransferCoding = 501 "unknown-transfer-coding" "http_response_transfer_coding" "unknown transfer coding",
    /// Transfer-Encoding in an HTTP/1.0 message (RFC 9112 §6.1).
    TransferEncodingInHttp10 = 400 "transfer-encoding-in-http10" "http_response_transfer_coding" "Transfer-Encoding in HTTP/1.0",
    /// Transfer-Encoding together with Content-Length (RFC 9112 §6.1).
    TransferEncodingAndLength = 400 "transfer-encoding-and-length" "http_response_transfer_coding" "Transfer-Encoding together with Content-Length",
    /// An expectation other than `100-continue` (RFC 9110 §10.1.1).
    UnknownExpectation = 417 "unknown-expectation" "http_protocol_error" "unknown expectation",
    /// Framing for a body in a response that cannot have one: Transfer-Encoding, or a Content-Length above
    /// zero, with 1xx or 204 (RFC 9110 §8.6, RFC 9112 §6.1).
    UnexpectedBody = 400 "unexpected-body" "http_protocol_error" "body announced where none can be",
    /// A chunk size that is not 1 to 16 hexadecimal digits followed by CR LF or an extension (RFC 9112 §7.1).
    InvalidChunkSize = 400 "invalid-chunk-size" "http_protocol_error" "invalid chunk size",
    /// A chunk extension that breaks the grammar of RFC 9112 §7.1.1, other than by white space at its end.
    InvalidChunkExtension = 400 "invalid-chunk-extension" "http_protocol_error" "invalid chunk extension",
    /// Far more framing than content: see [`super::chunked::MAX_OVERHEAD`].
    ChunkOverhead = 400 "chunk-overhead" "http_protocol_error" "more chunk framing than content",
    /// Chunk data not followed by CR LF (RFC 9112 §7.1).
    InvalidChunkEnd = 400 "invalid-chunk-end" "http_protocol_error" "no CR LF after chunk data",
    /// A trailer section of more than [`super::chunked::MAX_TRAILERS`] bytes, or with more fields than the
    /// limit.
    TrailersTooLarge = 431 "trailers-too-large" "http_response_trailer_section_size" "trailers too large",
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Refusal {}
