//! TLS to clients.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws_lc_rs::digest;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::UnixTime;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::{ServerConfig, SupportedCipherSuite};

use crate::certificate::{Certificate, CertificateFiles, Use};
use crate::certificates::{ACME_TLS_ALPN, Certificates};
use crate::client_auth::{ClientCertificates, ClientMode, Verifier};
use crate::directory::certificates_in;
use crate::fault::{Fault, Reason};
use crate::key_log::key_log;
use crate::provider::{Version, provider_with};
use crate::runtime::RuntimeCertificates;
use crate::tickets::{TicketSecret, Tickets};
use crate::warning::Warning;
use crate::when_expired::WhenExpired;

/// How many tickets a client of TLS 1.3 gets with a handshake. Each costs a derivation, an encryption and about 250
/// bytes. A client that resumes gets another one, and a browser that speaks HTTP/1.1 opens several connections and
/// gets one on each, so one is enough.
const TICKETS_PER_HANDSHAKE: usize = 1;

/// The settings of TLS on a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// Certificates by their files.
    pub certificates: Vec<CertificateFiles>,
    /// The place in `certificates` of the one for clients that name no known host; the first if `None`.
    pub default: Option<usize>,
    /// A directory of further certificates.
    pub directory: Option<PathBuf>,
    /// The lowest version.
    pub minimum_version: Version,
    /// The suites by the names of IANA; all that are safe if empty.
    pub cipher_suites: Vec<Box<str>>,
    /// A file with the secret of tickets; that of the process if `None`.
    pub ticket_secret_file: Option<PathBuf>,
    /// How long a ticket is accepted at least. At most it is accepted for twice as long.
    pub ticket_lifetime: Duration,
    /// Which certificates of clients are accepted; clients are asked for none if `None`.
    pub client_certificates: Option<ClientCertificates>,
    /// Whether clients may negotiate HTTP/2.
    pub http2: bool,
    /// Whether certificates arrive at run time.
    pub has_runtime_certificates: bool,
    /// Whether session keys are written to the file that `SSLKEYLOGFILE` names.
    pub dangerous_key_log: bool,
}

/// What outlives the loading of settings, and the time of loading.
#[derive(Clone, Debug)]
pub struct Loading {
    /// The time by which validity is judged.
    pub now: UnixTime,
    /// The clock of tickets.
    pub clock: Arc<dyn TimeProvider>,
    /// The secret of tickets for listeners without a file. Made when one needs it, because the first random bytes of
    /// a process take long.
    pub process_secret: Arc<OnceLock<TicketSecret>>,
    /// The certificates that arrive at run time.
    pub runtime: Arc<RuntimeCertificates>,
    /// What happens to certificates that have expired.
    pub when_expired: WhenExpired,
}

/// TLS on a listener, ready for use.
#[derive(Debug)]
pub struct ServerTls {
    /// The configuration for rustls.
    pub config: Arc<ServerConfig>,
    /// The certificates, which `config` chooses from.
    pub certificates: Arc<Certificates>,
    /// Doubts about the settings.
    pub warnings: Vec<Warning>,
}

impl ServerSettings {
    /// The settings for these certificates, the rest as it is by default.
    pub fn of(certificates: Vec<CertificateFiles>) -> ServerSettings {
        ServerSettings {
            certificates,
            default: None,
            directory: None,
            minimum_version: Version::Tls12,
            cipher_suites: Vec::new(),
            ticket_secret_file: None,
            ticket_lifetime: Duration::from_secs(12 * 3600),
            client_certificates: None,
            http2: false,
            has_runtime_certificates: false,
            dangerous_key_log: false,
        }
    }

    /// Opens and checks all files.
    ///
    /// # Errors
    /// All that is wrong, one fault a file.
    pub fn load(&self, loading: &Loading) -> Result<ServerTls, Vec<Fault>> {
        let mut faults = Vec::new();
        let mut warnings = Vec::new();
        let all = self.certificates(loading, &mut faults);
        let settings = |text: Box<str>| Fault::new(Path::new(""), Reason::Settings(text));
        let provider = provider_with(&self.cipher_suites, self.minimum_version);
        let provider = provider.map_err(|text| faults.push(settings(text))).ok();
        if let Some(provider) = &provider {
            faults.extend(unusable(&all, provider));
        }
        let verifier = match (&self.client_certificates, &provider) {
            (Some(clients), Some(provider)) => {
                clients.load(provider, loading.now).map_err(|found| faults.extend(found)).ok()
            }
            _ => None,
        };
        let secret = match &self.ticket_secret_file {
            None => Some(loading.process_secret.get_or_init(TicketSecret::random).clone()),
            Some(path) => match TicketSecret::from_file(path) {
                Ok((secret, is_public)) => {
                    warnings.extend(is_public.then(|| Warning::PublicSecret(path.clone())));
                    Some(secret)
                }
                Err(fault) => {
                    faults.push(fault);
                    None
                }
            },
        };
        let key_log = match self.dangerous_key_log {
            false => None,
            true => key_log().map_err(|fault| faults.push(fault)).ok(),
        };
        if all.is_empty() && faults.is_empty() && !self.has_runtime_certificates {
            faults.push(settings("`tls` needs `certificates`, a `directory` or `acme`".into()));
        }
        let (Some(provider), Some(secret), true) = (provider, secret, faults.is_empty()) else {
            return Err(faults);
        };

        warnings.extend(all.iter().flat_map(|one| one.warnings()).cloned().map(Warning::Certificate));
        let binding = self.binding(&all, verifier.as_ref());
        let runtime = self.has_runtime_certificates.then(|| loading.runtime.clone());
        let (certificates, shadowed) = Certificates::new(all, self.default.unwrap_or(0), runtime);
        warnings.extend(shadowed.into_iter().map(Warning::Shadowed));
        let certificates = Arc::new(certificates);
        let builder = ServerConfig::builder_with_details(provider, loading.clock.clone())
            .with_protocol_versions(self.minimum_version.and_later())
            .map_err(|error| vec![settings(error.to_string().into())])?;
        let verifier = match verifier {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(Verifier { verifier, warnings: doubts, .. }) => {
                warnings.extend(doubts);
                verifier
            }
        };
        let mut config = builder.with_client_cert_verifier(verifier).with_cert_resolver(certificates.clone());
        // Sessions are kept by the clients, in their tickets.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer =
            Arc::new(Tickets::new(secret, binding, self.ticket_lifetime, loading.clock.clone()));
        config.send_tls13_tickets = TICKETS_PER_HANDSHAKE;
        // Early data can be replayed (RFC 8446 §8).
        config.max_early_data_size = 0;
        if self.http2 {
            config.alpn_protocols.push(b"h2".to_vec());
        }
        config.alpn_protocols.push(b"http/1.1".to_vec());
        if self.has_runtime_certificates {
            config.alpn_protocols.push(ACME_TLS_ALPN.to_vec());
        }
        if let Some((key_log, warning)) = key_log {
            config.key_log = key_log;
            warnings.push(warning);
        }
        Ok(ServerTls { config: Arc::new(config), certificates, warnings })
    }

    fn certificates(&self, loading: &Loading, faults: &mut Vec<Fault>) -> Vec<Arc<Certificate>> {
        let mut files = self.certificates.clone();
        if let Some(directory) = &self.directory {
            match certificates_in(directory) {
                Ok(found) => files.extend(found),
                Err(fault) => faults.push(fault),
            }
        }
        let mut all = Vec::new();
        for files in &files {
            match Certificate::load(files, Use::Server, loading.now, &loading.when_expired) {
                Ok(certificate) => all.push(Arc::new(certificate)),
                Err(fault) => faults.push(fault),
            }
        }
        all
    }

    /// The digest of everything that a full handshake checks, in an order that does not depend on that of the files.
    fn binding(&self, all: &[Arc<Certificate>], verifier: Option<&Verifier>) -> [u8; 32] {
        let sha256 = |bytes: &[u8]| -> [u8; 32] {
            digest::digest(&digest::SHA256, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes")
        };
        let mode = match &self.client_certificates {
            None => 0,
            Some(ClientCertificates { mode: ClientMode::Optional, .. }) => 1,
            Some(ClientCertificates { mode: ClientMode::Required, .. }) => 2,
        };
        let minimum = match self.minimum_version {
            Version::Tls12 => 2,
            Version::Tls13 => 3,
        };
        let cas = verifier.iter().flat_map(|verifier| &verifier.cas).map(|der| sha256(der));
        let lists = verifier.iter().flat_map(|verifier| &verifier.revocation_lists).map(|der| sha256(der));
        let sets: [Vec<[u8; 32]>; 3] =
            [all.iter().map(|one| one.digest()).collect(), cas.collect(), lists.collect()];
        let mut digest = digest::Context::new(&digest::SHA256);
        digest.update(&[mode, minimum]);
        for mut set in sets {
            set.sort_unstable();
            set.dedup();
            digest.update(&(set.len() as u64).to_be_bytes());
            set.iter().for_each(|one| digest.update(one));
        }
        digest.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
    }
}

/// That no cipher suite fits any of the certificates, if so. Those of TLS 1.3 fit all.
fn unusable(certificates: &[Arc<Certificate>], provider: &CryptoProvider) -> Option<Fault> {
    let fits = |certificate: &Arc<Certificate>| {
        provider.cipher_suites.iter().any(|suite| match suite {
            SupportedCipherSuite::Tls13(_) => true,
            SupportedCipherSuite::Tls12(suite) => {
                certificate.certified_key().key.choose_scheme(suite.sign).is_some()
            }
        })
    };
    let kind = certificates.first()?.key_type();
    let text = format!("none of `cipher_suites` can be used with the certificates, which have {kind} keys");
    (!certificates.iter().any(fits)).then(|| Fault::new(Path::new(""), Reason::Settings(text.into())))
}
