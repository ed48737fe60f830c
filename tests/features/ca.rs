//! A CA for tests, and the certificates that it issues.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::client::WantsClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, ServerConfig};
use sandarac_test_support::TempDir;

/// A CA, and the directory of the certificates that it issues.
pub(crate) struct Ca {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pub(crate) pem: String,
    pub(crate) directory: TempDir,
}

impl Ca {
    pub(crate) fn new() -> Ca {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "the test's CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let made = params.self_signed(&key).unwrap();
        let (certificate, pem) = (made.der().clone(), made.pem());
        Ca { issuer: Issuer::new(params, key), certificate, pem, directory: TempDir::new() }
    }

    /// Writes `NAME.crt` and `NAME.key` for a name.
    pub(crate) fn issue(&self, file: &str, name: &str) {
        self.issue_until(file, name, 2099);
    }

    pub(crate) fn issue_until(&self, file: &str, name: &str, year: i32) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(year, 1, 1));
        self.write(file, &params);
    }

    /// The same, with the certificate of another CA, as `openssl req -x509` makes it.
    pub(crate) fn issue_ca(&self, file: &str, name: &str) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        self.write(file, &params);
    }

    fn write(&self, file: &str, params: &CertificateParams) {
        let key = KeyPair::generate().unwrap();
        let chain = params.signed_by(&key, &self.issuer).unwrap().pem();
        write(&self.directory.join(&format!("{file}.crt")), &chain);
        write(&self.directory.join(&format!("{file}.key")), &key.serialize_pem());
    }

    /// A client that presents a certificate of this CA.
    pub(crate) fn client_with_certificate(&self) -> Arc<ClientConfig> {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["a client".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let builder = self.trusting().with_client_auth_cert(vec![certificate], key);
        Arc::new(builder.unwrap())
    }

    /// A client that presents a certificate with that of this CA, and the former.
    pub(crate) fn client_with_chain(&self) -> (Arc<ClientConfig>, CertificateDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["a client".to_owned()]).unwrap();
        let leaf = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let chain = vec![leaf.clone(), self.certificate.clone()];
        (Arc::new(self.trusting().with_client_auth_cert(chain, key).unwrap()), leaf)
    }

    /// The CA's own certificate.
    pub(crate) fn der(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    pub(crate) fn client(&self) -> Arc<ClientConfig> {
        Arc::new(self.trusting().with_no_client_auth())
    }

    pub(crate) fn trusting(&self) -> ConfigBuilder<ClientConfig, WantsClientCert> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        builder.unwrap().with_root_certificates(roots)
    }

    /// A server that presents the certificate issued as `file`.
    pub(crate) fn server(&self, file: &str) -> Arc<ServerConfig> {
        let chain = CertificateDer::from_pem_file(self.directory.join(&format!("{file}.crt"))).unwrap();
        let key = PrivateKeyDer::from_pem_file(self.directory.join(&format!("{file}.key"))).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = builder.unwrap().with_no_client_auth().with_single_cert(vec![chain], key);
        Arc::new(config.unwrap())
    }

    /// A server that presents the certificate issued as `file`, and demands one of this CA.
    pub(crate) fn server_that_demands_certificates(&self, file: &str) -> Arc<ServerConfig> {
        let chain = CertificateDer::from_pem_file(self.directory.join(&format!("{file}.crt"))).unwrap();
        let key = PrivateKeyDer::from_pem_file(self.directory.join(&format!("{file}.key"))).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.unwrap().with_client_cert_verifier(verifier.unwrap());
        Arc::new(builder.with_single_cert(vec![chain], key).unwrap())
    }

    /// The file of the CA's own certificate.
    pub(crate) fn file(&self) -> String {
        let path = self.directory.join("ca.pem");
        write(&path, &self.pem);
        path.display().to_string()
    }
}

/// Writes a file in one step, as renewal tools do.
pub(crate) fn write(path: &Path, text: &str) {
    let next = path.with_extension("next");
    fs::write(&next, text).unwrap();
    fs::rename(next, path).unwrap();
}
