//! TLS on listeners and to backends: which files, and what is accepted. The files are opened by the caller.

mod acme;
mod acme_settings;
mod client_certificate_forward;
mod hsts;
mod make;
mod settings;

use std::path::PathBuf;
use std::time::Duration;

pub use acme::{AcmeConfig, ExternalAccountConfig};
pub(crate) use acme_settings::{AcmeSettings, CertifiedName};
pub use client_certificate_forward::ClientCertificateForward;
pub(crate) use hsts::HstsChoice;
pub(crate) use make::{listener_tls, pool_tls};
pub use settings::{ApplicationProtocol, ClientCertificateMode, TlsVersion};
pub(crate) use settings::{CertificateSettings, ListenTlsSettings, PoolTlsSettings};

/// TLS on a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// Certificates by their files, at most one of them the default one.
    pub certificates: Vec<CertificateConfig>,
    /// A directory of further certificates.
    pub directory: Option<PathBuf>,
    /// A certificate that is obtained and renewed.
    pub acme: Option<AcmeConfig>,
    /// The lowest version.
    pub minimum_version: TlsVersion,
    /// The suites by the names of IANA; all that are safe if empty.
    pub cipher_suites: Vec<Box<str>>,
    /// A file with the secret of tickets; that of the process if `None`.
    pub ticket_secret_file: Option<PathBuf>,
    /// How long a ticket is accepted at least.
    pub ticket_lifetime: Duration,
    /// Which certificates of clients are accepted; clients are asked for none if `None`.
    pub client_certificates: Option<ClientCertificatesConfig>,
    /// How long a handshake may take.
    pub handshake_timeout: Duration,
    /// Whether session keys are written to the file that `SSLKEYLOGFILE` names.
    pub dangerous_key_log: bool,
}

/// The files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateConfig {
    /// The certificate, followed by those of its issuers.
    pub chain: PathBuf,
    /// The private key. It may be in the same file.
    pub key: PathBuf,
    /// Whether clients that name no known host get it.
    pub default: bool,
}

/// Which certificates of clients are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificatesConfig {
    /// Whether clients must present one.
    pub mode: ClientCertificateMode,
    /// Files with the certificates of the accepted CAs; at least one.
    pub ca: Vec<PathBuf>,
    /// Files with revocation lists.
    pub crl: Vec<PathBuf>,
    /// What backends get of them.
    pub forward: ClientCertificateForward,
}

/// TLS to the backends of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolTls {
    /// Files with the certificates of the CAs that are trusted; those of the system if empty.
    pub ca: Vec<PathBuf>,
    /// The name that the certificates of the backends must have, and that is asked for; the host of the address if
    /// `None`.
    pub server_name: Option<Box<str>>,
    /// The protocols that are offered, the preferred one first; at least one.
    pub alpn: Vec<ApplicationProtocol>,
    /// The certificate that is presented if a backend asks for one. It is never the default one.
    pub client_certificate: Option<CertificateConfig>,
    /// Whether any certificate of any name is accepted.
    pub dangerous_skip_verification: bool,
}

impl Default for PoolTls {
    fn default() -> PoolTls {
        PoolTls {
            ca: Vec::new(),
            server_name: None,
            alpn: vec![ApplicationProtocol::Http1],
            client_certificate: None,
            dangerous_skip_verification: false,
        }
    }
}

/// The suites that there are, by the names of IANA, those of TLS 1.3 first.
pub const CIPHER_SUITES: [&str; 9] = [
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];
