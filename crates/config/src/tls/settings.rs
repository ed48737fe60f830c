//! TLS as the file writes it.

use crate::definition::settings;
use crate::limited::{BoundedTime, Timeout};
use crate::path::AbsolutePath;
use crate::report::{At, Complaint};
use crate::setting::Kind;
use crate::suggest::closest;
use crate::tls::CIPHER_SUITES;
use crate::tls::acme_settings::AcmeSettings;
use crate::tls::client_certificate_forward::ClientCertificateForward;
use crate::value::{Text, choice};

/// Milliseconds.
const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

settings! {
    /// TLS on a listener.
    pub(crate) struct ListenTlsSettings {
        /// The certificates. A client gets the one for the name that it asks for (SNI): the exact name first, then a
        /// wildcard. Certificates with RSA and with ECDSA keys may have the same names; a client gets one that it
        /// accepts.
        certificates: Vec<At<CertificateSettings>> = Vec::new(), unset "the listener has a `directory` or `acme`"
            "[{ chain = \"/etc/ssl/example.org.crt\", key = \"/etc/ssl/example.org.key\" }]";
        /// A directory of more certificates: `NAME.crt`, `NAME.pem` or `NAME.cer` with `NAME.key` beside it, or with the
        /// key in the same file; or a subdirectory for each with `fullchain.pem` and `privkey.pem`, as in
        /// `/etc/letsencrypt/live`. Other files are ignored.
        directory: Option<At<AbsolutePath>> = None, unset "only `certificates`" "\"/etc/sandarac/certificates\"";
        /// A certificate that is obtained from a CA by ACME, and renewed ([how to](../how-to/https-with-acme.md)). Using
        /// it accepts the CA's terms of service. Certificates in files with exactly its names come first.
        acme: Option<At<AcmeSettings>> = None, unset "only certificates in files" "{ names = \"example.org\" }";
        /// The lowest version of TLS.
        // What clients older than about 2018 speak; version 1.3 has no known weakness that 1.2 with the suites
        // below has not.
        minimum_version: TlsVersion = TlsVersion::Tls12;
        /// The cipher suites, by the names that IANA registered. The client's preference decides among them.
        cipher_suites: Vec<At<CipherSuite>> = Vec::new(), unset "all that are safe" "[\"TLS_AES_128_GCM_SHA256\"]";
        /// A file of at least 32 random bytes, the same on all nodes, for session tickets: a session that began on one
        /// node is then resumed by the others, and after a restart. Tickets are bound to the certificates, the client
        /// CAs and revocation lists and the minimum version of the listener.
        ticket_secret_file: Option<At<AbsolutePath>> = None, unset "a random secret of the process" "\"/etc/sandarac/tickets\"";
        /// How long a session can be resumed, at least; at most, it is twice that.
        // The key of tickets is replaced as often, which is what limits the damage of a key that leaks.
        ticket_lifetime: BoundedTime<{ MINUTE }, { 7 * 24 * HOUR }> = BoundedTime::of::<{ 12 * HOUR }>();
        /// Certificates of clients.
        client_certificates: Option<At<ClientCertificateSettings>> = None, unset "clients are asked for none"
            "{ mode = \"required\", ca = \"/etc/ssl/clients.pem\" }";
        /// How long a handshake may take.
        // Two round trips and a lost packet, on the slowest links; nginx allows a minute.
        handshake_timeout: Timeout = Timeout::secs::<10>();
        /// Whether the keys of all sessions are written to the file that the environment variable `SSLKEYLOGFILE` names,
        /// for tools that decrypt recorded traffic. Whoever reads that file reads the traffic.
        dangerous_key_log: bool = false;
    }

    /// The files of a certificate, in PEM.
    pub(crate) struct CertificateSettings {
        /// The certificate, followed by those of its issuers, each after the one that it issued.
        chain: Option<At<AbsolutePath>> = None, required "\"/etc/ssl/example.org.crt\"";
        /// The private key, without a password.
        key: Option<At<AbsolutePath>> = None, unset "the file of the `chain` holds it" "\"/etc/ssl/example.org.key\"";
        /// Whether it is for clients that ask for no name or for an unknown one. Without any, it is the first one.
        default: At<bool> = At::nowhere(false);
    }

    /// Certificates of clients.
    pub(crate) struct ClientCertificateSettings {
        /// `required`: a client without a valid one gets no connection. `optional`: a client may have none, but not an
        /// invalid one.
        mode: ClientCertificateMode = ClientCertificateMode::Required;
        /// Files with the certificates of the CAs, in PEM.
        ca: Vec<AbsolutePath> = Vec::new(), required "\"/etc/ssl/clients.pem\"";
        /// Files with lists of revoked certificates, in PEM or DER. With any, each certificate of a chain below the CA
        /// must be covered by a list that is up to date.
        crl: Vec<AbsolutePath> = Vec::new();
        /// What backends get of a client's certificates (RFC 9440): `"leaf"`: its own in `Client-Cert`; `"chain"`: also
        /// the others that it sent, in `Client-Cert-Chain`; `false`: nothing. These fields of clients are always
        /// removed, except those of `trusted_proxies`.
        // An application behind a listener that verifies clients usually has to know which one it is; the leaf has one
        // to two KiB, and some servers limit a head to eight.
        forward: ClientCertificateForward = ClientCertificateForward::Leaf;
    }

    /// TLS to the backends of a pool whose addresses begin with `https://`.
    pub(crate) struct PoolTlsSettings {
        /// Files with the certificates of the CAs that are trusted, in PEM.
        ca: Vec<AbsolutePath> = Vec::new(), unset "those of the system" "\"/etc/ssl/internal-ca.pem\"";
        /// The name that the certificates of the backends must have, and that is asked for (SNI).
        server_name: Option<At<ServerName>> = None, unset "the host of the backend's address" "\"app.internal\"";
        /// The protocols that are offered (ALPN), the preferred one first. A backend that chooses `h2` is spoken to in
        /// HTTP/2; any other answer, and none, means HTTP/1.1.
        // HTTP/2 saves connections, not time, where backends are near; gRPC needs it.
        alpn: At<Vec<ApplicationProtocol>> = At::nowhere(vec![ApplicationProtocol::Http1]);
        /// The certificate that is presented to a backend that asks for one.
        client_certificate: Option<At<CertificateSettings>> = None, unset "none"
            "{ chain = \"/etc/ssl/proxy.crt\", key = \"/etc/ssl/proxy.key\" }";
        /// Whether any certificate of any name is accepted. Whoever controls the network between can then read and
        /// change everything.
        dangerous_skip_verification: At<bool> = At::nowhere(false);
    }
}

/// A protocol that is negotiated in TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplicationProtocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

choice!(ApplicationProtocol { "http/1.1" => ApplicationProtocol::Http1, "h2" => ApplicationProtocol::Http2 });

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

choice!(TlsVersion { "1.2" => TlsVersion::Tls12, "1.3" => TlsVersion::Tls13 });

/// Whether clients must present a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificateMode {
    /// A client may present one, and it must be valid.
    Optional,
    /// A client without a valid one gets no connection.
    Required,
}

choice!(ClientCertificateMode {
    "optional" => ClientCertificateMode::Optional,
    "required" => ClientCertificateMode::Required,
});

/// The name of a cipher suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CipherSuite(pub(crate) &'static str);

impl CipherSuite {
    /// Whether it is of TLS 1.3. Each suite is of one version.
    pub(crate) fn is_of_tls13(&self) -> bool {
        !self.0.contains("_WITH_")
    }
}

impl Text for CipherSuite {
    fn form() -> Kind {
        Kind::Choice(CIPHER_SUITES.to_vec())
    }

    fn from_text(text: &str) -> Result<CipherSuite, Complaint> {
        match CIPHER_SUITES.iter().find(|name| **name == text) {
            Some(name) => Ok(CipherSuite(name)),
            None => {
                let complaint = Complaint::new(format!("there is no cipher suite {text:?}"));
                Err(match closest(text, &CIPHER_SUITES) {
                    Some(meant) => complaint.help(format!("did you mean \"{meant}\"?")),
                    None => complaint.help(format!("the suites are {}", CIPHER_SUITES.join(", "))),
                })
            }
        }
    }

    fn text(&self) -> String {
        self.0.to_owned()
    }
}

/// The name of a server, as in certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerName(pub(crate) Box<str>);

impl Text for ServerName {
    fn form() -> Kind {
        Kind::Text { name: "host name", form: "the name of a host", examples: &["app.internal"] }
    }

    fn from_text(text: &str) -> Result<ServerName, Complaint> {
        let is_label = |label: &str| {
            let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            (1..=63).contains(&label.len()) && label.bytes().all(letter)
        };
        let is_address = text.parse::<core::net::IpAddr>().is_ok();
        match is_address || (text.len() <= 253 && text.split('.').all(is_label)) {
            true => Ok(ServerName(text.to_ascii_lowercase().into())),
            false => Err(Complaint::new(format!("{text:?} is not {}", ServerName::form().words()))),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}
