//! TLS to origins.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::certificate::{Certificate, CertificateFiles, CertificateWarning, Use};
use crate::client_auth::ca_certificates;
use crate::fault::{Fault, Reason};
use crate::provider::{Version, provider};
use crate::warning::Warning;
use crate::when_expired::WhenExpired;

/// How many sessions are kept for resumption. They are chosen by server name, of which a pool has few.
const MAX_SESSIONS: usize = 256;

/// The settings of TLS to origins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientSettings {
    /// Files with the certificates of the CAs that are trusted; those of the system if empty.
    pub ca: Vec<PathBuf>,
    /// The certificate that is presented if the origin asks for one.
    pub client_certificate: Option<CertificateFiles>,
    /// The protocols that are offered, by their ALPN names, the preferred one first; HTTP/1.1 if empty.
    pub alpn: Vec<&'static str>,
    /// Whether any certificate of any name is accepted.
    pub dangerous_skip_verification: bool,
}

/// TLS to origins, ready for use.
#[derive(Debug)]
pub struct ClientTls {
    /// The configuration for rustls.
    pub config: Arc<ClientConfig>,
    /// Doubts about the settings.
    pub warnings: Vec<Warning>,
}

impl ClientSettings {
    /// Opens and checks all files.
    ///
    /// # Errors
    /// All that is wrong, one fault a file.
    pub fn load(&self, now: UnixTime) -> Result<ClientTls, Vec<Fault>> {
        let mut faults = Vec::new();
        let verifier = self.verifier().map_err(|fault| faults.push(fault)).ok();
        let loaded = self
            .client_certificate
            .as_ref()
            .map(|files| Certificate::load(files, Use::Client, now, &WhenExpired::Refuse));
        let certificate = loaded.transpose().map_err(|fault| faults.push(fault)).ok().flatten();
        let (Some(verifier), true) = (verifier, faults.is_empty()) else { return Err(faults) };
        let builder = ClientConfig::builder_with_provider(provider().clone())
            .with_protocol_versions(Version::Tls12.and_later())
            .map_err(|error| vec![Fault::new(Path::new(""), Reason::Settings(error.to_string().into()))])?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut warnings = Vec::new();
        let mut config = match certificate {
            None => builder.with_no_client_auth(),
            Some(certificate) => {
                let is_exposed =
                    |one: &&CertificateWarning| matches!(one, CertificateWarning::PublicKeyFile(_));
                let exposed = certificate.warnings().iter().filter(is_exposed);
                warnings.extend(exposed.cloned().map(Warning::Certificate));
                let resolver = rustls::sign::SingleCertAndKey::from(certificate.certified_key().clone());
                builder.with_client_cert_resolver(Arc::new(resolver))
            }
        };
        let offered = if self.alpn.is_empty() { &["http/1.1"][..] } else { &self.alpn };
        config.alpn_protocols = offered.iter().map(|name| name.as_bytes().to_vec()).collect();
        config.resumption = Resumption::in_memory_sessions(MAX_SESSIONS);
        Ok(ClientTls { config: Arc::new(config), warnings })
    }

    fn verifier(&self) -> Result<Arc<dyn ServerCertVerifier>, Fault> {
        if self.dangerous_skip_verification {
            return Ok(Arc::new(SkipVerification(provider().clone())));
        }
        let mut roots = RootCertStore::empty();
        for path in &self.ca {
            ca_certificates(path, &mut roots)?;
        }
        if self.ca.is_empty() {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                let why = found.errors.first().map(ToString::to_string).unwrap_or_default();
                return Err(Fault::new(Path::new(""), Reason::NoSystemRoots(why.into())));
            }
        }
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider().clone());
        let verifier = builder.build();
        verifier.map(|verifier| verifier as Arc<dyn ServerCertVerifier>).map_err(|error| {
            let path = self.ca.first().map_or(Path::new(""), PathBuf::as_path);
            Fault::new(path, Reason::UnusableCa(error.to_string().into()))
        })
    }
}

/// Accepts any certificate. The peer must still have its private key.
#[derive(Debug)]
struct SkipVerification(Arc<CryptoProvider>);

impl ServerCertVerifier for SkipVerification {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
