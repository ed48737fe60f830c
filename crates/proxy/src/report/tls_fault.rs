//! The reasons for which there is no TLS with a backend.

use std::borrow::Cow;
use std::io;

use rustls::{AlertDescription, CertificateError, Error};
use sandarac_message::status_fields::ProxyError;
use sandarac_net::tls::{HandshakeFault, alert_name};

/// Why there is no TLS with a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFault {
    /// The certificate was issued by no trusted CA.
    UnknownIssuer,
    /// The certificate is for another name.
    WrongName,
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The certificate was revoked.
    Revoked,
    /// The certificate is that of a CA.
    IsCa,
    /// The certificate does not verify for another reason.
    BadCertificate,
    /// The backend refused the connection with an alert.
    Alert(AlertDescription),
    /// The backend refused the connection because it got no certificate of ours.
    AsksForCertificate,
    /// The backend has no version, suite or group in common with this program.
    Incompatible,
    /// The backend does not speak TLS, or breaks its rules.
    Protocol,
    /// The connection ended in the handshake.
    Ended,
    /// There are no CAs to verify certificates by.
    NoCas,
}

impl TlsFault {
    /// The name in logs and counters.
    pub(crate) const fn name(self) -> &'static str {
        match self.proxy_error() {
            ProxyError::TlsCertificateError => "tls-certificate",
            ProxyError::TlsAlertReceived => "tls-alert",
            _ => "tls-protocol",
        }
    }

    /// The error type for Proxy-Status (RFC 9209 §2.3).
    pub(crate) const fn proxy_error(self) -> ProxyError {
        match self {
            TlsFault::Alert(_) | TlsFault::AsksForCertificate => ProxyError::TlsAlertReceived,
            TlsFault::Incompatible | TlsFault::Protocol | TlsFault::Ended => ProxyError::TlsProtocolError,
            TlsFault::NoCas
            | TlsFault::UnknownIssuer
            | TlsFault::WrongName
            | TlsFault::Expired
            | TlsFault::NotYetValid
            | TlsFault::Revoked
            | TlsFault::IsCa
            | TlsFault::BadCertificate => ProxyError::TlsCertificateError,
        }
    }

    /// A description for people and logs.
    pub(crate) fn text(self) -> Cow<'static, str> {
        let text = match self {
            TlsFault::UnknownIssuer => "its certificate was issued by no CA that is trusted",
            TlsFault::WrongName => "its certificate is for another name",
            TlsFault::Expired => "its certificate has expired",
            TlsFault::NotYetValid => "its certificate is not valid yet",
            TlsFault::Revoked => "its certificate was revoked",
            TlsFault::IsCa => "its certificate is that of a CA (CA:TRUE)",
            TlsFault::BadCertificate => "its certificate does not verify",
            TlsFault::Alert(alert) => {
                return format!("it refused the connection with the alert {}", alert_name(alert)).into();
            }
            TlsFault::AsksForCertificate => "it demands a client certificate",
            TlsFault::Incompatible => "it has no version or cipher suite in common with this program",
            TlsFault::Protocol => "it does not speak TLS properly",
            TlsFault::Ended => "the connection ended in the handshake",
            TlsFault::NoCas => "there are no CA certificates to verify it by",
        };
        text.into()
    }

    /// What to do about it, for the log: clients are not told of settings.
    pub(crate) const fn remedy(self) -> Option<&'static str> {
        match self {
            TlsFault::UnknownIssuer => Some("name the CA in [pool.NAME] tls.ca"),
            TlsFault::WrongName => Some("name it in [pool.NAME] tls.server_name"),
            TlsFault::IsCa => Some("no server may present it; make one with CA:FALSE"),
            TlsFault::AsksForCertificate => Some("name one in [pool.NAME] tls.certificate"),
            TlsFault::Protocol => Some("is http:// meant?"),
            TlsFault::NoCas => Some("install the package ca-certificates, or name one in [pool.NAME] tls.ca"),
            _ => None,
        }
    }

    /// The reason of a failed handshake.
    pub(crate) fn of(fault: &HandshakeFault) -> TlsFault {
        match fault {
            HandshakeFault::Tls(error) => TlsFault::of_error(error),
            _ => TlsFault::Ended,
        }
    }

    /// The alert that ended a connection, if that was one. In TLS 1.3 our handshake ends before the backend
    /// has seen that it gets no certificate (RFC 8446 §4.4.2.4).
    pub(crate) fn of_alert(error: &io::Error) -> Option<TlsFault> {
        let error = error.get_ref()?.downcast_ref::<Error>()?;
        matches!(error, Error::AlertReceived(_)).then(|| TlsFault::of_error(error))
    }

    fn of_error(error: &Error) -> TlsFault {
        match error {
            Error::InvalidCertificate(why) => match why {
                // A signature is bad if another CA has the name of a trusted one.
                CertificateError::UnknownIssuer | CertificateError::BadSignature => TlsFault::UnknownIssuer,
                // rustls has no variant of its own for this.
                CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
                    TlsFault::IsCa
                }
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    TlsFault::WrongName
                }
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFault::Expired,
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                    TlsFault::NotYetValid
                }
                CertificateError::Revoked => TlsFault::Revoked,
                _ => TlsFault::BadCertificate,
            },
            Error::NoCertificatesPresented | Error::UnsupportedNameType => TlsFault::BadCertificate,
            Error::AlertReceived(AlertDescription::CertificateRequired) => TlsFault::AsksForCertificate,
            Error::AlertReceived(alert) => TlsFault::Alert(*alert),
            Error::PeerIncompatible(_) | Error::NoApplicationProtocol => TlsFault::Incompatible,
            _ => TlsFault::Protocol,
        }
    }
}
