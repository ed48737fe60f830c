//! The reasons for which a handshake ends without a connection.

use rustls::{AlertDescription, CertificateError, Error};
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
            HandshakeFault::Tls(error) => write_error(f, error),
            HandshakeFault::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HandshakeFault {}

/// Writes what went wrong in words; rustls writes the names of its variants.
fn write_error(f: &mut fmt::Formatter<'_>, error: &Error) -> fmt::Result {
    let text = match error {
        Error::InvalidCertificate(why) => match why {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the peer's certificate has expired"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the peer's certificate is not valid yet"
            }
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "the peer's certificate was issued by no accepted CA"
            }
            CertificateError::Revoked => "the peer's certificate was revoked",
            CertificateError::UnknownRevocationStatus => "no revocation list covers the peer's certificate",
            CertificateError::ExpiredRevocationList
            | CertificateError::ExpiredRevocationListContext { .. } => {
                "the revocation list of the peer's certificate is overdue"
            }
            _ => "the peer's certificate is not valid",
        },
        Error::NoCertificatesPresented => "the peer presented no certificate",
        Error::NoApplicationProtocol => "no application protocol (ALPN) in common",
        Error::PeerIncompatible(_) => "no version, cipher suite, group or signature in common",
        Error::AlertReceived(alert) => {
            return write!(f, "the peer ended it with the alert {}", alert_name(*alert));
        }
        Error::General(_) => "there is no certificate for the name that the peer asked for",
        Error::DecryptError | Error::InvalidMessage(_) | Error::PeerSentOversizedRecord => {
            "what the peer sent cannot be read"
        }
        Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::PeerMisbehaved(_) => "the peer broke the rules of TLS",
        other => return write!(f, "{other}"),
    };
    f.write_str(text)
}

/// The name of an alert as RFC 8446 §6 writes it, such as `certificate_unknown`.
pub fn alert_name(alert: AlertDescription) -> String {
    let words = format!("{alert:?}");
    let mut name = String::new();
    for (at, letter) in words.char_indices() {
        let (before, rest) = words.split_at(at);
        let begins_word = letter.is_ascii_uppercase()
            && (before.ends_with(|last: char| last.is_ascii_lowercase())
                || rest[1..].starts_with(|next: char| next.is_ascii_lowercase()));
        if begins_word && at > 0 {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_in_words() {
        let text = |error| HandshakeFault::Tls(error).to_string();
        assert_eq!(
            text(Error::InvalidCertificate(CertificateError::Expired)),
            "the peer's certificate has expired"
        );
        for (alert, name) in [
            (AlertDescription::UnknownCA, "unknown_ca"),
            (AlertDescription::BadCertificate, "bad_certificate"),
            (AlertDescription::UnknownPSKIdentity, "unknown_psk_identity"),
        ] {
            assert_eq!(text(Error::AlertReceived(alert)), format!("the peer ended it with the alert {name}"));
        }
    }
}
