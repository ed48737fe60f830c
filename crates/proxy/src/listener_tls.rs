//! TLS of a listener and of a pool: conversion of the configuration, and certificates that are replaced while the
//! process runs.

use arc_swap::ArcSwap;
use sandarac_config::{ApplicationProtocol, CertificateConfig, ClientCertificateMode, PoolTls, TlsVersion};
use sandarac_net::AcceptTls;
use sandarac_tls::{
    CertificateFiles, ClientCertificates, ClientMode, ClientSettings, Fault, Loading, ServerSettings,
    ServerTls, Stamps, Version, Warning, WhenExpired,
};
use std::sync::Arc;
use std::time::Duration;

/// TLS of a listener. Sessions keep the certificates with which they began.
#[derive(Debug)]
pub struct ListenerTls {
    settings: ServerSettings,
    handshake_timeout: Duration,
    current: ArcSwap<ServerTls>,
    /// The state of the files from before they were loaded.
    loaded: Stamps,
}

impl ListenerTls {
    /// Opens and checks the files of a configuration. `http2` is whether clients may negotiate it.
    ///
    /// # Errors
    /// All that is wrong, one fault a file.
    pub fn load(
        config: &sandarac_config::ListenerTls,
        http2: bool,
        loading: &Loading,
    ) -> Result<ListenerTls, Vec<Fault>> {
        let settings = server_settings(config, http2);
        let loaded = settings.stamps();
        let current = ArcSwap::from_pointee(settings.load(loading)?);
        Ok(ListenerTls { settings, handshake_timeout: config.handshake_timeout, current, loaded })
    }

    /// Opens and checks the files again, for new connections. What is in force stays if anything is wrong.
    ///
    /// # Errors
    /// All that is wrong, one fault a file.
    pub fn load_again(&self, loading: &Loading) -> Result<Vec<Warning>, Vec<Fault>> {
        let served = self.digests().collect();
        let loading = Loading { when_expired: WhenExpired::Keep(served), ..loading.clone() };
        let loaded = self.settings.load(&loading)?;
        let warnings = loaded.warnings.clone();
        self.current.store(Arc::new(loaded));
        Ok(warnings)
    }

    /// The configuration and the certificates in force.
    pub fn current(&self) -> Arc<ServerTls> {
        self.current.load_full()
    }

    /// The digests of the certificates in force.
    pub fn digests(&self) -> impl Iterator<Item = [u8; 32]> {
        self.current().certificates.all().into_iter().map(|certificate| certificate.digest())
    }

    /// TLS for a new connection.
    pub(crate) fn accept(&self, max_handshakes: usize) -> AcceptTls {
        let config = self.current.load().config.clone();
        AcceptTls { config, timeout: self.handshake_timeout, max_handshakes }
    }

    /// Whether a certificate in force is self-signed.
    pub(crate) fn has_self_signed(&self) -> bool {
        self.current.load().certificates.has_self_signed()
    }

    /// The settings.
    pub fn settings(&self) -> &ServerSettings {
        &self.settings
    }

    /// The state of the files from before they were first loaded.
    pub fn loaded(&self) -> &Stamps {
        &self.loaded
    }
}

/// The settings of a listener.
fn server_settings(config: &sandarac_config::ListenerTls, http2: bool) -> ServerSettings {
    let clients = config.client_certificates.as_ref().map(|clients| ClientCertificates {
        mode: match clients.mode {
            ClientCertificateMode::Optional => ClientMode::Optional,
            ClientCertificateMode::Required => ClientMode::Required,
        },
        ca: clients.ca.clone(),
        crl: clients.crl.clone(),
    });
    ServerSettings {
        certificates: config.certificates.iter().map(files).collect(),
        default: config.certificates.iter().position(|certificate| certificate.default),
        directory: config.directory.clone(),
        minimum_version: match config.minimum_version {
            TlsVersion::Tls12 => Version::Tls12,
            TlsVersion::Tls13 => Version::Tls13,
        },
        cipher_suites: config.cipher_suites.clone(),
        ticket_secret_file: config.ticket_secret_file.clone(),
        ticket_lifetime: config.ticket_lifetime,
        client_certificates: clients,
        http2,
        has_runtime_certificates: config.acme.is_some(),
        dangerous_key_log: config.dangerous_key_log,
    }
}

/// The settings of TLS to the backends of a pool.
pub fn client_settings(config: &PoolTls) -> ClientSettings {
    ClientSettings {
        ca: config.ca.clone(),
        client_certificate: config.client_certificate.as_ref().map(files),
        alpn: config
            .alpn
            .iter()
            .map(|protocol| match protocol {
                ApplicationProtocol::Http1 => "http/1.1",
                ApplicationProtocol::Http2 => "h2",
            })
            .collect(),
        dangerous_skip_verification: config.dangerous_skip_verification,
    }
}

fn files(config: &CertificateConfig) -> CertificateFiles {
    CertificateFiles { chain: config.chain.clone(), key: config.key.clone() }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_suite_of_the_settings_exists() {
        for name in sandarac_config::CIPHER_SUITES {
            assert!(sandarac_tls::cipher_suite(name).is_some(), "{name}");
        }
        assert_eq!(sandarac_config::CIPHER_SUITES.len(), sandarac_tls::provider().cipher_suites.len());
    }
}
