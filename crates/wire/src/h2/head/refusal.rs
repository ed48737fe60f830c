//! Why a message was refused.

use crate::h1;

macro_rules! refusals {
    ($($(#[$doc:meta])* $variant:ident = $status:literal $name:literal $text:literal),* $(,)?) => {
        /// Why a message was refused. Its stream has to end: with a response of [`Refusal::status`], or by a
        /// reset with PROTOCOL_ERROR (RFC 9113 §8.1.1). The connection continues.
        ///
        /// Faults that HTTP/1 has too have the same names as [`h1::Refusal`].
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
        }
    };
}

refusals! {
    /// A pseudo-field that is not defined for this message, or in trailers (RFC 9113 §8.3).
    UnknownPseudoField = 400 "unknown-pseudo-field" "unknown pseudo-field",
    /// A pseudo-field more than once (RFC 9113 §8.3).
    RepeatedPseudoField = 400 "repeated-pseudo-field" "repeated pseudo-field",
    /// A pseudo-field after a field (RFC 9113 §8.3).
    LatePseudoField = 400 "late-pseudo-field" "pseudo-field after a field",
    /// A request without `:method`, `:scheme` or `:path`, or a response without `:status` (RFC 9113 §8.3).
    MissingPseudoField = 400 "missing-pseudo-field" "missing pseudo-field",
    /// CONNECT with `:scheme` or `:path`, or `:protocol` without CONNECT (RFC 9113 §8.5, RFC 8441 §4).
    UnexpectedPseudoField = 400 "unexpected-pseudo-field" "pseudo-field that this method cannot have",
    /// The method is empty or not a token (RFC 9110 §9.1).
    InvalidMethod = 400 "invalid-method" "invalid method",
    /// A scheme other than `http` and `https`: no request for another one can be forwarded.
    InvalidScheme = 400 "invalid-scheme" "invalid scheme",
    /// A path that is empty, does not begin with a slash, or has a space or control byte (RFC 9113 §8.3.1).
    /// `*` is a path of OPTIONS only.
    InvalidTarget = 400 "invalid-target" "invalid request target",
    /// The path is longer than [`h1::Limits::target`].
    TargetTooLong = 414 "target-too-long" "request target too long",
    /// `:protocol` is not a token (RFC 8441 §4).
    InvalidProtocol = 400 "invalid-protocol" "invalid protocol",
    /// A status that is not three digits from 100 to 599, or is 101 (RFC 9113 §8.6).
    InvalidStatus = 400 "invalid-status" "invalid status",
    /// A letter in upper case in a field name (RFC 9113 §8.2.1).
    UpperCaseName = 400 "upper-case-name" "upper case in a field name",
    /// A field name that is empty or not a token (RFC 9113 §8.2.1).
    InvalidFieldName = 400 "invalid-field-name" "invalid field name",
    /// A control byte in a field value (RFC 9113 §8.2.1).
    InvalidFieldValue = 400 "invalid-field-value" "control byte in a field value",
    /// White space at the beginning or end of a field value (RFC 9113 §8.2.1).
    PaddedFieldValue = 400 "padded-field-value" "white space around a field value",
    /// A field name of more than [`sandarac_message::MAX_NAME`] bytes.
    FieldNameTooLong = 431 "field-name-too-long" "field name too long",
    /// More fields than [`h1::Limits::fields`].
    TooManyFields = 431 "too-many-fields" "too many fields",
    /// More bytes than [`h1::Limits::head`], counted as lines of HTTP/1.
    HeadTooLarge = 431 "head-too-large" "head too large",
    /// Connection, Keep-Alive, Proxy-Connection, Transfer-Encoding, Upgrade or HTTP2-Settings (RFC 9113
    /// §8.2.2).
    ConnectionField = 400 "connection-field" "connection-specific field",
    /// TE with anything but `trailers` (RFC 9113 §8.2.2).
    InvalidTe = 400 "invalid-te" "TE other than trailers",
    /// A request with neither `:authority` nor Host (RFC 9113 §8.3.1).
    MissingHost = 400 "missing-host" "neither :authority nor Host",
    /// More than one Host.
    RepeatedHost = 400 "repeated-host" "more than one Host",
    /// An `:authority` or Host that is not a host with an optional port, or is empty (RFC 9110 §7.2).
    InvalidHost = 400 "invalid-host" "invalid :authority or Host",
    /// Host that differs from `:authority` (RFC 9113 §8.3.1).
    HostMismatch = 400 "host-mismatch" "Host differs from :authority",
    /// More than one Content-Length, even if they are equal.
    RepeatedContentLength = 400 "repeated-content-length" "more than one Content-Length",
    /// A Content-Length that is not a sequence of digits, or does not fit 64 bits (RFC 9110 §8.6).
    InvalidContentLength = 400 "invalid-content-length" "invalid Content-Length",
    /// Content-Length above zero on a stream that ends with its head (RFC 9113 §8.1.1), or in a response that
    /// cannot have a body.
    UnexpectedContentLength = 400 "unexpected-content-length" "Content-Length without a body",
    /// An expectation other than `100-continue` (RFC 9110 §10.1.1).
    UnknownExpectation = 417 "unknown-expectation" "unknown expectation",
}

impl From<h1::Refusal> for Refusal {
    /// The refusal of a Content-Length.
    fn from(refusal: h1::Refusal) -> Refusal {
        match refusal {
            h1::Refusal::RepeatedContentLength => Refusal::RepeatedContentLength,
            _ => Refusal::InvalidContentLength,
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Refusal {}
