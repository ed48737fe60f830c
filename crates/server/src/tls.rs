//! The certificates and the other files of TLS: opened at a start, at a reload, and by `check`.

use std::fmt::{self, Write as _};
use std::io;
use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls::pki_types::UnixTime;
use rustls::time_provider::DefaultTimeProvider;
use sandarac_config::{Config, PoolTls};
use sandarac_proxy::{ListenerTls, OriginTls, SiteTls, client_settings};
use sandarac_tls::{
    ClientMode, ClientSettings, Fault, Identity, Loading, RuntimeCertificates, TicketSecret, Version,
    WhenExpired, civil, expires_soon,
};

use crate::admin::Refusal;
use crate::failure::Failure;

/// What TLS keeps for as long as the process runs.
#[derive(Clone, Debug)]
pub(crate) struct TlsState {
    /// The secret of tickets for listeners without a file: sessions can be resumed after a reload.
    process_secret: Arc<OnceLock<TicketSecret>>,
    runtime: Arc<RuntimeCertificates>,
}

impl TlsState {
    /// With the secret of the process from which this one takes over.
    pub(crate) fn new(secret: Option<TicketSecret>) -> TlsState {
        let process_secret = secret.map(OnceLock::from).unwrap_or_default();
        TlsState { process_secret: Arc::new(process_secret), runtime: Arc::default() }
    }

    /// The secret of tickets, for a process that takes over; `None` if no listener has used it.
    pub(crate) fn secret(&self) -> Option<&TicketSecret> {
        self.process_secret.get()
    }

    /// The certificates that arrive at run time.
    pub(crate) fn runtime(&self) -> &Arc<RuntimeCertificates> {
        &self.runtime
    }

    /// What settings are loaded with, at the present time.
    pub(crate) fn loading(&self, when_expired: WhenExpired) -> Loading {
        Loading {
            now: UnixTime::now(),
            clock: Arc::new(DefaultTimeProvider),
            process_secret: self.process_secret.clone(),
            runtime: self.runtime.clone(),
            when_expired,
        }
    }
}

/// TLS of all listeners of a configuration, and of its pools.
#[derive(Debug, Default)]
pub(crate) struct LoadedTls {
    pub(crate) site: SiteTls,
    /// Doubts about files, as sentences.
    pub(crate) warnings: Vec<String>,
}

impl LoadedTls {
    /// Certificates that expire within 14 days, as sentences.
    pub(crate) fn expiring(&self) -> Vec<String> {
        let now = i64::try_from(UnixTime::now().as_secs()).unwrap_or(i64::MAX);
        let all = self.site.listeners.iter().flatten().flat_map(|tls| tls.current().certificates.all());
        all.filter_map(|certificate| expires_soon(&certificate, now)).collect()
    }

    /// The certificates of a configuration, for `sandarac check`.
    pub(crate) fn explain(&self, config: &Config) -> String {
        let mut out = String::new();
        for (listener, tls) in config.listeners.iter().zip(&self.site.listeners) {
            let Some(tls) = tls else { continue };
            let certificates = &tls.current().certificates;
            let settings = tls.settings();
            let versions = match settings.minimum_version {
                Version::Tls12 => "TLS 1.2 and 1.3",
                Version::Tls13 => "TLS 1.3",
            };
            let clients = match settings.client_certificates.as_ref().map(|clients| clients.mode) {
                None => "",
                Some(ClientMode::Optional) => ", client certificates optional",
                Some(ClientMode::Required) => ", client certificates required",
            };
            let _ = writeln!(out, "Certificates of {} ({versions}{clients}):", listener.address);
            let (_, default) = certificates.for_name(None);
            for certificate in certificates.all() {
                let Identity { names, path, issuer, key_type, is_self_signed, valid, .. } =
                    Identity::from(&*certificate);
                let path = path.map(|path| format!(" ({})", path.display())).unwrap_or_default();
                let issuer =
                    if is_self_signed { "self-signed".to_owned() } else { format!("issued by {issuer}") };
                let is_default = default.iter().any(|one| one.digest() == certificate.digest());
                let note = if is_default { ", for unknown names too" } else { "" };
                let (names, until) = (names.join(", "), civil(valid.1));
                let _ = writeln!(out, "  {names}: {key_type}, {issuer}, expires at {until}{note}{path}");
            }
        }
        out
    }
}

/// The files that cannot be used, each with the listener or the pool that names it.
#[derive(Debug)]
pub(crate) struct TlsFaults(Vec<(String, Fault)>);

/// Opens and checks all files that a configuration names.
pub(crate) fn load(config: &Config, loading: &Loading) -> Result<LoadedTls, TlsFaults> {
    let mut loaded = LoadedTls::default();
    let mut faults: Vec<(String, Fault)> = Vec::new();
    for listener in &config.listeners {
        let tls =
            listener.tls.as_ref().map(|tls| ListenerTls::load(tls, listener.http2, loading)).transpose();
        match tls {
            Ok(tls) => {
                let warnings = tls.iter().flat_map(|tls| tls.current().warnings.clone());
                loaded.warnings.extend(warnings.map(|warning| format!("{}: {warning}", listener.address)));
                loaded.site.listeners.push(tls.map(Arc::new));
            }
            Err(found) => {
                faults.extend(found.into_iter().map(|fault| (listener.address.to_string(), fault)));
            }
        }
    }
    // Pools with the same settings share sessions, and what verifying certificates takes.
    let mut known: Vec<(ClientSettings, Arc<ClientConfig>)> = Vec::new();
    for pool in &config.pools {
        let is_asked_for =
            pool.tls != PoolTls::default() || pool.backends.iter().any(|one| one.address.is_tls());
        if !is_asked_for && pool.discover.is_empty() {
            loaded.site.pools.push(None);
            continue;
        }
        let name = format!("pool {}", pool.name);
        let settings = client_settings(&pool.tls);
        if !known.iter().any(|(other, _)| *other == settings) {
            match settings.load(loading.now) {
                Ok(new) => {
                    let warnings = new.warnings.iter().map(|warning| format!("{name}: {warning}"));
                    loaded.warnings.extend(warnings);
                    known.push((settings.clone(), new.config));
                }
                // The backends that will be found may all be reached by http.
                Err(_) if !is_asked_for => {}
                Err(found) => faults.extend(found.into_iter().map(|fault| (name.clone(), fault))),
            }
        }
        let config = known.iter().find(|(other, _)| *other == settings).map(|(_, config)| config.clone());
        let server_name = pool.tls.server_name.as_deref().and_then(|name| name.to_owned().try_into().ok());
        loaded.site.pools.push(config.map(|config| OriginTls::new(config, server_name)));
    }
    if faults.is_empty() { Ok(loaded) } else { Err(TlsFaults(faults)) }
}

impl fmt::Display for TlsFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (place, fault)) in self.0.iter().enumerate() {
            let line = if at == 0 { "" } else { "\n" };
            write!(f, "{line}{place}: {fault} ({})", fault.reason.name())?;
        }
        Ok(())
    }
}

impl std::error::Error for TlsFaults {}

impl From<TlsFaults> for Failure {
    fn from(faults: TlsFaults) -> Failure {
        Failure::Usage(faults.to_string())
    }
}

impl From<TlsFaults> for io::Error {
    fn from(faults: TlsFaults) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidInput, faults)
    }
}

impl From<TlsFaults> for Refusal {
    fn from(faults: TlsFaults) -> Refusal {
        Refusal::invalid(faults.to_string())
    }
}
