//! TLS in the answers of the admin interface, and its metrics.

use std::sync::Arc;

use sandarac_proxy::{ListenerTls, Shared};
use sandarac_tls::{Certificate, ClientMode, Identity, Version};

use super::acme;
use crate::acme::AcmeThreads;
use crate::admin::{AskTls, Metric, TlsCertificate, TlsListener, TlsStatus};

/// TLS of all listeners, or the certificates that a client gets for a name.
pub(super) fn status(shared: &Shared, threads: &AcmeThreads, ask: &AskTls) -> TlsStatus {
    let site = shared.site();
    let listeners = site.tls().map(|(address, tls)| listener(address.to_string(), tls, ask.name.as_deref()));
    TlsStatus { listeners: listeners.collect(), acme: acme::status(threads, ask) }
}

fn listener(address: String, tls: &ListenerTls, name: Option<&str>) -> TlsListener {
    let current = tls.current();
    let settings = tls.settings();
    let (chosen, certificates) = match name {
        None => (None, current.certificates.all()),
        Some(name) => {
            let (found, certificates) = current.certificates.for_name(Some(name));
            (Some(found.as_str().to_owned()), certificates)
        }
    };
    let minimum_version = match settings.minimum_version {
        Version::Tls12 => "1.2",
        Version::Tls13 => "1.3",
    };
    let mode = settings.client_certificates.as_ref().map(|clients| match clients.mode {
        ClientMode::Optional => "optional",
        ClientMode::Required => "required",
    });
    TlsListener {
        address,
        minimum_version: minimum_version.to_owned(),
        client_certificates: mode.map(str::to_owned),
        certificates: certificates.iter().map(certificate).collect(),
        chosen,
    }
}

fn certificate(certificate: &Arc<Certificate>) -> TlsCertificate {
    let Identity { names, path, issuer, key_type, is_self_signed, valid, digest } =
        Identity::from(&**certificate);
    TlsCertificate {
        names,
        path: path.map(|path| path.display().to_string()),
        issuer,
        key: key_type,
        self_signed: is_self_signed,
        valid_from: valid.0,
        valid_until: valid.1,
        sha256: digest,
    }
}

/// When the certificates expire.
pub(super) fn metrics(shared: &Shared, metrics: &mut Vec<Metric>) {
    let site = shared.site();
    for (address, tls) in site.tls() {
        for certificate in tls.current().certificates.all() {
            let Identity { names, path, valid, digest, .. } = Identity::from(&*certificate);
            let metric = Metric::gauge(
                "certificate_expiry_timestamp_seconds",
                "The time until which a certificate is valid, in seconds since 1970.",
                u64::try_from(valid.1).unwrap_or(0),
            );
            let file = path.map_or_else(|| "acme".to_owned(), |path| path.display().to_string());
            let name = names.into_iter().next().unwrap_or_default();
            let metric = metric.with("listener", address.to_string()).with("name", name).with("file", file);
            metrics.push(metric.with("sha256", &digest[..16]));
        }
    }
}
