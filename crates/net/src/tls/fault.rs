//! The reasons for which a handshake ends without a connection.

use rustls::Error;
use std::fmt;
use std::io;

/// Why there is no TLS connection.
#[derive(Debug)]
pub enum HandshakeFault {
    /// The peer closed the connection before the end of the handshake.
    Closed,
    /// The handshake took too long.
    Late,
    /// More connections were in their handshake than may be; the oldest of them are ended.
    Crowded,
    /// TLS failed.
    Tls(Error),
    /// The connection failed.
    Io(io::Error),
}

impl HandshakeFault {
    /// All names.
    pub const NAMES: [&'static str; 10] = [
        "closed",
        "late",
        "crowded",
        "io",
        "incompatible",
        "no-certificate",
        "certificate",
        "alert",
        "protocol",
        "other",
    ];

    /// The index of its name in [`HandshakeFault::NAMES`].
    pub fn index(&self) -> usize {
        match self {
            HandshakeFault::Closed => 0,
            HandshakeFault::Late => 1,
            HandshakeFault::Crowded => 2,
            HandshakeFault::Io(_) => 3,
            // The peers have no version, suite, group or protocol (ALPN) in common.
            HandshakeFault::Tls(Error::PeerIncompatible(_) | Error::NoApplicationProtocol) => 4,
            // rustls has no variant for a server without a certificate for the name.
            HandshakeFault::Tls(Error::General(_)) => 5,
            HandshakeFault::Tls(
                Error::InvalidCertificate(_)
                | Error::NoCertificatesPresented
                | Error::InvalidCertRevocationList(_)
                | Error::UnsupportedNameType,
            ) => 6,
            // A client sends one if it does not accept the certificate.
            HandshakeFault::Tls(Error::AlertReceived(_)) => 7,
            HandshakeFault::Tls(
                Error::InvalidMessage(_)
                | Error::InappropriateMessage { .. }
                | Error::InappropriateHandshakeMessage { .. }
                | Error::PeerMisbehaved(_)
                | Error::DecryptError
                | Error::PeerSentOversizedRecord,
            ) => 8,
            HandshakeFault::Tls(_) => 9,
        }
    }

    /// A name for logs and metrics.
    pub fn name(&self) -> &'static str {
        HandshakeFault::NAMES[self.index()]
    }
}

impl fmt::Display for HandshakeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeFault::Closed => f.write_str("closed before the end of the handshake"),
            HandshakeFault::Late => f.write_str("the handshake took too long"),
            HandshakeFault::Crowded => f.write_str("too many connections were in their handshake"),
            HandshakeFault::Tls(error) => error.fmt(f),
            HandshakeFault::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HandshakeFault {}
