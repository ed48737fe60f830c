//! Faults of a log line.

use std::fmt;

/// Why a line has no request that can be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Malformed {
    /// It is longer than any request.
    TooLong,
    /// Its format is unknown.
    Format,
    /// Its time is invalid.
    Time,
    /// It has no valid request: none at all, or bytes of another protocol.
    Request,
    /// The target has invalid bytes, or no path.
    Target,
    /// The host is invalid.
    Host,
}

impl Malformed {
    /// Every reason.
    pub const ALL: [Malformed; 6] = [
        Malformed::TooLong,
        Malformed::Format,
        Malformed::Time,
        Malformed::Request,
        Malformed::Target,
        Malformed::Host,
    ];
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Malformed::TooLong => "too long",
            Malformed::Format => "not in a format of access logs",
            Malformed::Time => "without a time that can be read",
            Malformed::Request => "without a request that can be read",
            Malformed::Target => "with a target that cannot be asked for",
            Malformed::Host => "with a host that is none",
        })
    }
}
