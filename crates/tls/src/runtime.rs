//! Certificates that arrive while the process runs, as from ACME.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::sign::CertifiedKey;

use crate::certificate::Certificate;
use crate::choices::Choices;
use crate::names::{Name, normal};

/// Certificates that come and go while the process runs. All configurations share one, so that a reload does not
/// lose them.
#[derive(Debug, Default)]
pub struct RuntimeCertificates {
    state: ArcSwap<State>,
}

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
        self.state.load().challenges.get(name).cloned()
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
