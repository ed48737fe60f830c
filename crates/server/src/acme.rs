//! Certificates by ACME: a thread for each, which keeps it valid and gives it to the listeners.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::pki_types::UnixTime;
use rustls::sign::CertifiedKey;
use sandarac_acme::{
    Acme, ChallengeCertificate, ChallengeKind, Challenges, Clock, Event, ExternalAccount, Fault, KeyedChain,
    Progress, Report, Settings, Sink,
};
use sandarac_config::{AcmeConfig, Config, ListenAddress};
use sandarac_net::wall;
use sandarac_tls::{Certificate, Name, RuntimeCertificates, patiently};
use tokio::sync::oneshot;

use crate::failure::with_context;
use crate::stderr::print_line;

/// The certificates by ACME of the configuration in force.
#[derive(Default)]
pub(crate) struct AcmeThreads(Mutex<Vec<Running>>);

/// A certificate with its thread, which ends when this is dropped.
struct Running {
    config: AcmeConfig,
    challenges: Challenges,
    progress: Progress,
    receiver: Arc<Receiver>,
    _stop: oneshot::Sender<()>,
}

/// A certificate that is new in a configuration, its state directory opened.
pub(crate) struct Opened(AcmeConfig, Acme);

impl AcmeThreads {
    /// Opens the state directories of certificates that have no thread yet. Nothing is changed but the file system.
    pub(crate) fn open(&self, config: &Config) -> Result<Vec<Opened>, Fault> {
        // Cores ask for challenges meanwhile.
        let known: Vec<AcmeConfig> = self.0.lock().iter().map(|one| one.config.clone()).collect();
        let mut opened: Vec<Opened> = Vec::new();
        for acme in wanted(config) {
            let is_known = known.contains(acme) || opened.iter().any(|Opened(other, _)| other == acme);
            if !is_known {
                let (clock, settings): (Clock, _) = (Arc::new(wall), settings(acme, config)?);
                let path = acme.state.join("account");
                let open = patiently(&path, STATE_PATIENCE, move |_| Ok(Acme::open(settings, clock)));
                let hung = |error: io::Error| Fault::CannotRead(acme.state.clone(), error.to_string());
                opened.push(Opened(acme.clone(), open.map_err(hung)??));
            }
        }
        Ok(opened)
    }

    /// Starts the threads of new certificates, and ends those of certificates that `config` no longer has.
    pub(crate) fn apply(
        &self,
        config: &Config,
        opened: Vec<Opened>,
        runtime: &Arc<RuntimeCertificates>,
    ) -> io::Result<()> {
        let mut running = self.0.lock();
        running.retain(|one| {
            let stays = wanted(config).any(|acme| *acme == one.config);
            if !stays {
                one.receiver.withdraw();
            }
            stays
        });
        for Opened(config, acme) in opened {
            let receiver = Arc::new(Receiver { runtime: runtime.clone(), served: Mutex::default() });
            receiver.serve(acme.certificate());
            let (challenges, progress) = (acme.challenges(), acme.progress());
            let (stop, stopped) = oneshot::channel::<()>();
            let sink = receiver.clone();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let thread = thread::Builder::new().name("acme".to_owned()).spawn(move || {
                runtime.block_on(async {
                    tokio::select! { never = acme.run(sink, seed()) => match never {}, _ = stopped => {} }
                });
            });
            thread.map_err(|error| with_context("cannot start a thread for ACME", &error))?;
            running.push(Running { config, challenges, progress, receiver, _stop: stop });
        }
        Ok(())
    }

    /// Orders no more certificates.
    pub(crate) fn stop(&self) {
        self.0.lock().clear();
    }

    /// The state of each certificate.
    pub(crate) fn reports(&self) -> Vec<Report> {
        self.0.lock().iter().map(|running| running.progress.report()).collect()
    }

    /// The response to the challenge with a token, if an order waits for it.
    pub(crate) fn http01(&self, token: &str) -> Option<String> {
        let directories: Vec<_> = self.0.lock().iter().map(Running::directory).collect();
        let token = token.to_owned();
        within_patience(directories, move |challenges| challenges.http01(&token, wall()))
    }

    /// The answer to the TLS-ALPN-01 challenge for `name`, in lower case, if another node has placed the order. Touches
    /// no file for names of other sites: anybody may ask for those.
    pub(crate) fn tls_alpn01(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let running = self.0.lock();
        let of_name = running.iter().filter(|one| one.config.names.iter().any(|own| **own == *name));
        let directories: Vec<_> = of_name.map(Running::directory).collect();
        drop(running);
        let name = name.to_owned();
        let made = within_patience(directories, move |challenges| challenges.tls_alpn01(&name, wall()))?;
        made.certified_key().ok().map(Arc::new)
    }
}

impl Running {
    /// The challenges, with the directory that they are in.
    fn directory(&self) -> (PathBuf, Challenges) {
        (self.config.state.clone(), self.challenges.clone())
    }
}

/// The longest that the files of a state directory are waited for.
const STATE_PATIENCE: Duration = Duration::from_secs(10);

/// The longest that the file of a challenge is waited for. A core waits meanwhile, once: while a file system hangs, its files
/// are not tried again.
const CHALLENGE_PATIENCE: Duration = Duration::from_millis(500);

/// Looks for a challenge in each directory, on file systems that may hang.
fn within_patience<T: Send + 'static>(
    directories: Vec<(PathBuf, Challenges)>,
    look: impl Fn(&Challenges) -> Option<T> + Clone + Send + 'static,
) -> Option<T> {
    directories.into_iter().find_map(|(state, challenges)| {
        let look = look.clone();
        patiently(&state.join("challenges"), CHALLENGE_PATIENCE, move |_| Ok(look(&challenges)))
            .ok()
            .flatten()
    })
}

/// The certificates by ACME of a configuration.
pub(crate) fn wanted(config: &Config) -> impl Iterator<Item = &AcmeConfig> {
    config.listeners.iter().filter_map(|listener| listener.tls.as_ref()?.acme.as_ref())
}

/// The settings of a certificate.
pub(crate) fn settings(acme: &AcmeConfig, config: &Config) -> Result<Settings, Fault> {
    let names = acme.names.iter().map(|name| name.to_string()).collect();
    let external_account = acme.external_account.as_ref().map(|account| {
        let key = fs::read_to_string(&account.key_file)
            .map_err(|error| Fault::CannotRead(account.key_file.clone(), error.to_string()))?;
        let (key_id, hmac_key) = (account.key_id.to_string(), key.trim().to_owned());
        Ok(ExternalAccount { key_id, hmac_key })
    });
    // Port 80 of the internet may lead to any port for http here.
    let has_http = config
        .listeners
        .iter()
        .any(|listener| listener.tls.is_none() && !matches!(listener.address, ListenAddress::Unix(..)));
    let challenges = match has_http {
        true => vec![ChallengeKind::Http01, ChallengeKind::TlsAlpn01],
        false => vec![ChallengeKind::TlsAlpn01],
    };
    Ok(Settings {
        contact: acme.contact.as_deref().map(str::to_owned),
        directory: acme.directory.to_string(),
        ca: acme.ca.clone(),
        challenges,
        external_account: external_account.transpose()?,
        ..Settings::new(names, acme.state.clone())
    })
}

/// A seed that differs between nodes that start together.
fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// Gives one certificate to the listeners.
struct Receiver {
    runtime: Arc<RuntimeCertificates>,
    /// The names of the certificate that is served, in its own order.
    served: Mutex<Vec<Name>>,
}

impl Receiver {
    fn serve(&self, keyed: &KeyedChain) {
        let (chain, key) = (keyed.chain_pem.as_bytes(), keyed.key_pem.as_bytes());
        match Certificate::from_pem("acme", chain, key, UnixTime::now()) {
            Ok(certificate) => {
                let mut served = self.served.lock();
                let before = std::mem::replace(&mut *served, certificate.names().to_vec());
                self.runtime.put_issued(certificate);
                // A CA may order the names otherwise than a stand-in.
                if *served != before {
                    self.runtime.remove_issued(&before);
                }
            }
            Err(fault) => print_line(format_args!("sandarac: {fault} ({})", fault.reason.name())),
        }
    }

    /// Serves it no longer.
    fn withdraw(&self) {
        self.runtime.remove_issued(&self.served.lock());
    }
}

impl Sink for Receiver {
    fn challenge(&self, name: &str, certificate: Option<ChallengeCertificate>) {
        match certificate.map(ChallengeCertificate::certified_key) {
            Some(Ok(key)) => self.runtime.set_challenge(name, Arc::new(key)),
            Some(Err(fault)) => print_line(format_args!("sandarac: acme: {fault}")),
            None => self.runtime.remove_challenge(name),
        }
    }

    fn issued(&self, _: &[String], certificate: &KeyedChain) {
        self.serve(certificate);
    }

    fn event(&self, event: &Event) {
        let warning = if event.is_warning() { "warning: " } else { "" };
        print_line(format_args!("sandarac: {warning}{event}"));
    }
}
