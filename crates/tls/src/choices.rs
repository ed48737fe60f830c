//! The certificates of one name: one for each kind of key.

use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::sign::CertifiedKey;

use crate::certificate::Certificate;
use crate::facts::KeyType;

/// Certificates for the same name, at most one of each kind of key. Those with smaller signatures come first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choices(Vec<Arc<Certificate>>);

impl Choices {
    /// Adds a certificate, unless there is one of its kind of key: the first counts. Returns that one.
    pub(crate) fn add(&mut self, certificate: Arc<Certificate>) -> Option<&Arc<Certificate>> {
        let rank = rank(certificate.key_type());
        match self.0.binary_search_by_key(&rank, |other| self::rank(other.key_type())) {
            Ok(at) => Some(&self.0[at]),
            Err(at) => {
                self.0.insert(at, certificate);
                None
            }
        }
    }

    pub(crate) fn all(&self) -> &[Arc<Certificate>] {
        &self.0
    }

    /// The first certificate whose key can sign by one of `schemes`, or else the first one: the handshake then fails
    /// because of the signatures.
    pub(crate) fn choose(&self, schemes: &[SignatureScheme]) -> Option<&Arc<CertifiedKey>> {
        let keys = || self.0.iter().map(|certificate| certificate.certified_key());
        keys().find(|key| key.key.choose_scheme(schemes).is_some()).or(keys().next())
    }
}

fn rank(kind: KeyType) -> u8 {
    match kind {
        KeyType::Ecdsa(_) => 0,
        KeyType::Ed25519 => 1,
        KeyType::Rsa(_) => 2,
        KeyType::Other => 3,
    }
}
