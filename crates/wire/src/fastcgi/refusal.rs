//! Why a response was refused.

use crate::h1;

macro_rules! refusals {
    ($($(#[$doc:meta])* $variant:ident = $name:literal $text:literal),* $(,)?) => {
        /// Why a response was refused. The connection MUST be closed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Refusal {
            $($(#[$doc])* $variant),*,
            /// The head, read as one of HTTP/1.1, breaks its grammar.
            Head(h1::Refusal),
        }

        impl Refusal {
            /// One refusal of each name that is not one of HTTP/1.1 too.
            pub const ALL: &'static [Refusal] = &[$(Refusal::$variant),*];

            /// The name, for logs, counters and tests.
            pub const fn name(self) -> &'static str {
                match self { $(Refusal::$variant => $name),*, Refusal::Head(refusal) => refusal.name() }
            }

            /// A short description of the fault, without a full stop.
            pub const fn text(self) -> &'static str {
                match self { $(Refusal::$variant => $text),*, Refusal::Head(refusal) => refusal.text() }
            }
        }
    };
}

refusals! {
    /// The bytes are not records of FastCGI 1: the backend probably speaks another protocol.
    NotFastCgi = "not-fastcgi" "the bytes are not FastCGI",
    /// A record of a type that a Responder does not send.
    UnknownRecord = "unknown-record" "a record of an unexpected type",
    /// A record of another request than the one on this connection.
    WrongRequest = "wrong-request" "a record of another request",
    /// Output after the empty record that ended it.
    StdoutAfterEnd = "stdout-after-end" "output after its end",
    /// An end record that does not have 8 bytes, or an unknown status.
    InvalidEnd = "invalid-end" "a malformed end record",
    /// More records without content than [`super::MAX_EMPTY_RECORDS`].
    EmptyRecords = "empty-records" "too many records without content",
    /// The application does not serve Responders, or refuses the request because of the connection.
    RoleRefused = "role-refused" "the application refused the request",
    /// The response ended before its head did.
    NoHead = "no-head" "the response ended within its head",
    /// A `Status` that is not a number from 200 to 999, or more than one.
    InvalidStatus = "invalid-status" "an invalid Status field",
    /// `Transfer-Encoding`, which concerns a connection that the application does not have (RFC 3875 §6.3.5).
    TransferEncoding = "transfer-encoding" "a transfer coding in a CGI response",
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Refusal {}
