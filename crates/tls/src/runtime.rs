//! Certificates that arrive while the process runs, as from ACME.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use rustls::sign::CertifiedKey;

use crate::certificate::Certificate;
use crate::choices::Choices;
use crate::names::{Name, normal};

/// Certificates that come and go while the process runs. All configurations share one, so that a reload does not
/// lose them.
#[derive(Default)]
pub struct RuntimeCertificates {
    state: ArcSwap<State>,
    challenge_fallback: OnceLock<ChallengeFallback>,
}

/// Finds the answer to a challenge for a name in lower case that [`RuntimeCertificates::set_challenge`] does not know:
/// that of an order that another node placed. It is called during handshakes that offer `acme-tls/1`, so it MUST be
/// cheap for names without an order.
pub type ChallengeFallback = Box<dyn Fn(&str) -> Option<Arc<CertifiedKey>> + Send + Sync>;

#[derive(Clone, Debug, Default)]
struct State {
    /// In the order in which they were first issued.
    issued: Vec<Arc<Certificate>>,
    by_name: HashMap<Box<str>, Choices>,
    has_self_signed: bool,
    challenges: HashMap<Box<str>, Arc<CertifiedKey>>,
}

impl RuntimeCertificates {
    /// Adds an issued certificate in place of the one with the same names, if there is one.
    pub fn put_issued(&self, certificate: Certificate) {
        let certificate = Arc::new(certificate);
        self.state.rcu(|state| {
            let mut next = State::clone(state);
            match next.issued.iter_mut().find(|other| other.names() == certificate.names()) {
                Some(other) => *other = certificate.clone(),
                None => next.issued.push(certificate.clone()),
            }
            next.index();
            next
        });
    }

    /// Removes the issued certificate with these names.
    pub fn remove_issued(&self, names: &[Name]) {
        self.state.rcu(|state| {
            let mut next = State::clone(state);
            next.issued.retain(|certificate| certificate.names() != names);
            next.index();
            next
        });
    }

    /// The issued certificates.
    pub fn issued(&self) -> Vec<Arc<Certificate>> {
        self.state.load().issued.clone()
    }

    /// Sets the certificate that answers a TLS-ALPN-01 challenge for `name` (RFC 8737).
    pub fn set_challenge(&self, name: &str, key: Arc<CertifiedKey>) {
        let name = normal(name).into_boxed_str();
        self.state.rcu(|state| {
            let mut next = State::clone(state);
            next.challenges.insert(name.clone(), key.clone());
            next
        });
    }

    /// Sets where answers to further challenges are found. Only the first call counts.
    pub fn set_challenge_fallback(&self, fallback: ChallengeFallback) {
        let _ = self.challenge_fallback.set(fallback);
    }

    /// Removes the answer to a challenge for `name`.
    pub fn remove_challenge(&self, name: &str) {
        let name = normal(name);
        self.state.rcu(|state| {
            let mut next = State::clone(state);
            next.challenges.remove(&*name);
            next
        });
    }

    /// The answer to a challenge for a name in lower case.
    pub(crate) fn challenge(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let known = self.state.load().challenges.get(name).cloned();
        known.or_else(|| self.challenge_fallback.get()?(name))
    }

    /// Whether any issued certificate is self-signed.
    pub(crate) fn has_self_signed(&self) -> bool {
        self.state.load().has_self_signed
    }

    /// The issued certificates for a name in lower case, which may be a wildcard.
    pub(crate) fn for_name(&self, name: &str) -> Option<Choices> {
        self.state.load().by_name.get(name).cloned()
    }

    /// The certificate for clients that name no known host, if nothing else was configured.
    pub(crate) fn first(&self) -> Option<Arc<Certificate>> {
        self.state.load().issued.first().cloned()
    }
}

impl fmt::Debug for RuntimeCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeCertificates").field("state", &self.state).finish_non_exhaustive()
    }
}

impl State {
    fn index(&mut self) {
        self.by_name.clear();
        self.has_self_signed = self.issued.iter().any(|certificate| certificate.is_self_signed());
        for certificate in &self.issued {
            for name in certificate.names() {
                if let Name::Dns(name) = name {
                    self.by_name.entry(name.clone()).or_default().add(certificate.clone());
                }
            }
        }
    }
}
