//! Conversion of settings of TLS.

use std::path::PathBuf;

use crate::path::AbsolutePath;
use crate::report::{At, Report};
use crate::tls::acme::acme;
use crate::tls::settings::{
    CertificateSettings, CipherSuite, ClientCertificateSettings, ListenTlsSettings, PoolTlsSettings,
    TlsVersion,
};
use crate::tls::{CertificateConfig, ClientCertificatesConfig, ListenerTls, PoolTls};

/// TLS on a listener.
pub(crate) fn listener_tls(settings: &At<ListenTlsSettings>, report: &mut Report) -> ListenerTls {
    let At { value: tls, place } = settings;
    if tls.certificates.is_empty() && tls.directory.is_none() && tls.acme.is_none() {
        let help =
            "certificates = [{ chain = \"/etc/ssl/example.org.crt\", key = \"/etc/ssl/example.org.key\" }]";
        report.missing(place.clone(), "`tls` needs `certificates`, a `directory` or `acme`", help);
    }
    let mut certificates: Vec<(CertificateConfig, &At<CertificateSettings>)> = Vec::new();
    for settings in &tls.certificates {
        let Some(made) = certificate(settings, report) else { continue };
        let again = certificates.iter().find(|(other, _)| other.chain == made.chain && other.key == made.key);
        let second_default = certificates.iter().find(|(other, _)| other.default && made.default);
        if let Some((_, first)) = again {
            let message = format!("the certificate {} is listed twice", made.chain.display());
            let error = report.error(settings.place.clone(), message);
            error.also = first.place.clone().map(|place| (place, "here already".to_owned()));
        } else if let Some((_, first)) = second_default {
            let error =
                report.error(settings.value.default.place.clone(), "only one certificate can be the default");
            error.also = first.place.clone().map(|place| (place, "the other".to_owned()));
        }
        certificates.push((made, settings));
    }
    check_suites(tls, report);
    ListenerTls {
        certificates: certificates.into_iter().map(|(made, _)| made).collect(),
        directory: tls.directory.as_ref().map(|path| path.value.to_path()),
        acme: tls.acme.as_ref().and_then(|settings| acme(settings, report)),
        minimum_version: tls.minimum_version,
        cipher_suites: tls.cipher_suites.iter().map(|suite| suite.value.0.into()).collect(),
        ticket_secret_file: tls.ticket_secret_file.as_ref().map(|path| path.value.to_path()),
        ticket_lifetime: tls.ticket_lifetime.get(),
        client_certificates: tls
            .client_certificates
            .as_ref()
            .map(|clients| client_certificates(clients, report)),
        handshake_timeout: *tls.handshake_timeout,
        dangerous_key_log: tls.dangerous_key_log,
    }
}

fn certificate(settings: &At<CertificateSettings>, report: &mut Report) -> Option<CertificateConfig> {
    let At { value: CertificateSettings { chain, key, default }, place } = settings;
    let Some(chain) = chain else {
        report.missing(
            place.clone(),
            "a certificate needs a `chain`",
            "chain = \"/etc/ssl/example.org.crt\"",
        );
        return None;
    };
    let chain = chain.value.to_path();
    let key = key.as_ref().map_or_else(|| chain.clone(), |key| key.value.to_path());
    Some(CertificateConfig { chain, key, default: default.value })
}

/// Checks that the suites serve the versions.
fn check_suites(tls: &ListenTlsSettings, report: &mut Report) {
    if tls.minimum_version != TlsVersion::Tls13 || tls.cipher_suites.is_empty() {
        return;
    }
    let is_idle = |suite: &&At<CipherSuite>| !suite.value.is_of_tls13();
    let idle: Vec<_> = tls.cipher_suites.iter().filter(is_idle).collect();
    if idle.len() == tls.cipher_suites.len() {
        let message = "none of these suites is of TLS 1.3, the minimum version";
        report.error(idle[0].place.clone(), message).help =
            Some("add \"TLS_AES_256_GCM_SHA384\", or leave out `cipher_suites`".to_owned());
        return;
    }
    for suite in idle {
        let message = format!("{} has no effect with minimum_version = \"1.3\"", suite.value.0);
        report.warning(suite.place.clone(), message);
    }
}

fn client_certificates(
    settings: &At<ClientCertificateSettings>,
    report: &mut Report,
) -> ClientCertificatesConfig {
    let At { value: ClientCertificateSettings { mode, ca, crl, forward }, place } = settings;
    if ca.is_empty() {
        let message = "`client_certificates` needs a `ca`: the certificates of those who issue them";
        report.missing(place.clone(), message, "ca = \"/etc/ssl/clients.pem\"");
    }
    ClientCertificatesConfig { mode: *mode, ca: paths(ca), crl: paths(crl), forward: *forward }
}

/// TLS to the backends of a pool.
pub(crate) fn pool_tls(settings: &At<PoolTlsSettings>, report: &mut Report) -> PoolTls {
    let PoolTlsSettings { ca, server_name, alpn, client_certificate, dangerous_skip_verification } =
        &settings.value;
    if let Some(settings) = client_certificate
        && settings.value.default.value
    {
        let place = settings.value.default.place.clone();
        report.warning(place, "`default` has no effect: backends get this certificate or none");
    }
    if dangerous_skip_verification.value && !ca.is_empty() {
        let place = dangerous_skip_verification.place.clone();
        report.error(place, "with `dangerous_skip_verification`, `ca` would have no effect");
    }
    if alpn.value.is_empty() {
        let error = report.error(alpn.place.clone(), "`alpn` needs a protocol");
        error.help = Some("alpn = [\"h2\", \"http/1.1\"]".to_owned());
    }
    let certificate = client_certificate.as_ref().and_then(|settings| certificate(settings, report));
    PoolTls {
        ca: paths(ca),
        server_name: server_name.as_ref().map(|name| name.value.0.clone()),
        alpn: alpn.value.clone(),
        client_certificate: certificate.map(|made| CertificateConfig { default: false, ..made }),
        dangerous_skip_verification: dangerous_skip_verification.value,
    }
}

fn paths(paths: &[AbsolutePath]) -> Vec<PathBuf> {
    paths.iter().map(AbsolutePath::to_path).collect()
}
