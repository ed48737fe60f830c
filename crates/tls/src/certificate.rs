//! A certificate: its chain, its private key, and the checks that both must pass before they are used.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest;
use rustls::InconsistentKeys;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::sign::CertifiedKey;

use crate::facts::{Facts, KeyType};
use crate::fault::{Fault, Reason};
use crate::file::{self, Sections};
use crate::names::Name;
use crate::provider::provider;

/// The files of a certificate. Both may be the same file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertificateFiles {
    /// The certificate, followed by those of its issuers.
    pub chain: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// The peers that a certificate is shown to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Clients, which compare its names.
    Server,
    /// Servers, as a client's certificate.
    Client,
}

/// A certificate with its key, checked.
#[derive(Clone, Debug)]
pub struct Certificate {
    key: Arc<CertifiedKey>,
    facts: Arc<Facts>,
    digest: [u8; 32],
    files: Option<CertificateFiles>,
    warnings: Vec<CertificateWarning>,
}

/// A doubt about a certificate that is used nevertheless. The text names the file and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateWarning {
    /// The chain ends with the certificate itself, and another one issued it.
    NoIntermediate {
        /// The file of the chain.
        path: PathBuf,
        /// Who issued the certificate.
        issuer: Box<str>,
    },
    /// Every user of the machine may read the key.
    PublicKeyFile(PathBuf),
    /// The certificate is self-signed: no client accepts it unless it is told to.
    SelfSigned(PathBuf),
}

impl CertificateFiles {
    /// One file that holds both chain and key.
    pub fn in_one(path: PathBuf) -> CertificateFiles {
        CertificateFiles { key: path.clone(), chain: path }
    }
}

impl Certificate {
    /// Reads and checks the files of a certificate.
    ///
    /// # Errors
    /// The first [`Reason`] for which the pair cannot be used.
    pub fn load(files: &CertificateFiles, purpose: Use, now: UnixTime) -> Result<Certificate, Fault> {
        let chain = file::read(&files.chain)?;
        let mut sections = file::sections(&files.chain, &chain.bytes)?;
        let mut is_public = chain.is_public;
        if files.key != files.chain {
            let key = file::read(&files.key)?;
            is_public = key.is_public;
            let of_key = file::sections(&files.key, &key.bytes)?;
            let has_key = |sections: &Sections| !sections.keys.is_empty() || sections.has_encrypted_key;
            if sections.certificates.is_empty() && has_key(&sections) && !of_key.certificates.is_empty() {
                return Err(Fault::new(&files.key, Reason::Swapped));
            }
            // The key file is the one that was named for the key, so that a key beside the chain does not count.
            (sections.keys, sections.has_encrypted_key) = (of_key.keys, of_key.has_encrypted_key);
        }
        let key = only_key(&files.key, &mut sections)?;
        let mut made = Certificate::new(files, sections.certificates, key, purpose, now)?;
        if is_public {
            made.warnings.push(CertificateWarning::PublicKeyFile(files.key.clone()));
        }
        Ok(made)
    }

    /// A certificate from PEM texts that are not in files, such as one that a CA has just issued. `label` stands
    /// for the path in faults.
    ///
    /// # Errors
    /// The first [`Reason`] for which the pair cannot be used.
    pub fn from_pem(label: &str, chain: &[u8], key: &[u8], now: UnixTime) -> Result<Certificate, Fault> {
        let files = CertificateFiles::in_one(label.into());
        let chain = file::sections(&files.chain, chain)?.certificates;
        let key = only_key(&files.key, &mut file::sections(&files.key, key)?)?;
        let mut made = Certificate::new(&files, chain, key, Use::Server, now)?;
        made.files = None;
        Ok(made)
    }

    fn new(
        files: &CertificateFiles,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        purpose: Use,
        now: UnixTime,
    ) -> Result<Certificate, Fault> {
        let fault = |reason| Fault::new(&files.chain, reason);
        let read = |(at, der): (usize, &CertificateDer<'_>)| {
            Facts::read(der).ok_or_else(|| fault(Reason::MalformedCertificate(at + 1)))
        };
        let mut facts: Vec<Facts> = chain.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let Some(leaf) = facts.first() else { return Err(fault(Reason::NoCertificate)) };
        let key = certified(files, &chain, &facts, key)?;
        check_order(&files.chain, &facts)?;
        check_time(&files.chain, &facts, now)?;
        if purpose == Use::Server && leaf.names.is_empty() {
            return Err(fault(Reason::NoNames));
        }
        let mut warnings = Vec::new();
        if leaf.is_self_signed() {
            if purpose == Use::Server {
                warnings.push(CertificateWarning::SelfSigned(files.chain.clone()));
            }
        } else if facts.len() == 1 {
            let issuer = leaf.issuer.1.clone();
            warnings.push(CertificateWarning::NoIntermediate { path: files.chain.clone(), issuer });
        }
        let digest = digest::digest(&digest::SHA256, &chain[0]);
        let digest = digest.as_ref().try_into().expect("SHA-256 has 32 bytes");
        let facts = Arc::new(facts.swap_remove(0));
        Ok(Certificate { key: Arc::new(key), facts, digest, files: Some(files.clone()), warnings })
    }

    /// Chain and key, for rustls.
    pub fn certified_key(&self) -> &Arc<CertifiedKey> {
        &self.key
    }

    /// The names it is valid for, sorted.
    pub fn names(&self) -> &[Name] {
        &self.facts.names
    }

    /// The time from which it is valid, in seconds since 1970.
    pub fn not_before(&self) -> i64 {
        self.facts.not_before
    }

    /// The time until which it is valid, in seconds since 1970.
    pub fn not_after(&self) -> i64 {
        self.facts.not_after
    }

    /// The kind of its key.
    pub fn key_type(&self) -> KeyType {
        self.facts.key_type
    }

    /// Who issued it.
    pub fn issuer(&self) -> &str {
        &self.facts.issuer.1
    }

    /// Whether its issuer is its own subject.
    pub fn is_self_signed(&self) -> bool {
        self.facts.is_self_signed()
    }

    /// The SHA-256 digest of the certificate.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Its files; `None` if it did not come from files.
    pub fn files(&self) -> Option<&CertificateFiles> {
        self.files.as_ref()
    }

    /// Doubts about it.
    pub fn warnings(&self) -> &[CertificateWarning] {
        &self.warnings
    }
}

fn only_key(path: &Path, sections: &mut Sections) -> Result<PrivateKeyDer<'static>, Fault> {
    match (sections.keys.len(), sections.has_encrypted_key) {
        (_, true) => Err(Fault::new(path, Reason::EncryptedKey)),
        (0, false) => Err(Fault::new(path, Reason::NoKey)),
        (1, false) => Ok(sections.keys.remove(0)),
        (count, false) => Err(Fault::new(path, Reason::SeveralKeys(count))),
    }
}

/// Joins chain and key if the key is that of the first certificate.
fn certified(
    files: &CertificateFiles,
    chain: &[CertificateDer<'static>],
    facts: &[Facts],
    key: PrivateKeyDer<'static>,
) -> Result<CertifiedKey, Fault> {
    let unusable =
        |error: &rustls::Error| Fault::new(&files.key, Reason::UnusableKey(error.to_string().into()));
    let key = provider().key_provider.load_private_key(key).map_err(|error| unusable(&error))?;
    let public = key.public_key().map(|public| public.to_vec());
    let certified = CertifiedKey::new(chain.to_vec(), key);
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(certified),
        Err(rustls::Error::InconsistentKeys(_)) => {
            let other = facts.iter().position(|facts| Some(&facts.public_key) == public.as_ref());
            Err(match other {
                Some(at) => Fault::new(&files.chain, Reason::LeafNotFirst(at + 1)),
                None => Fault::new(&files.key, Reason::KeyMismatch(files.chain.clone())),
            })
        }
        // A certificate that rustls cannot parse, although it is X.509: version 1, or an extension that it refuses.
        Err(_) => Err(Fault::new(&files.chain, Reason::MalformedCertificate(1))),
    }
}

fn check_order(path: &Path, chain: &[Facts]) -> Result<(), Fault> {
    for (at, pair) in chain.windows(2).enumerate() {
        if pair[0].issuer.0 != pair[1].subject.0 {
            let (issuer, followed_by) = (pair[0].issuer.1.clone(), pair[1].subject.1.clone());
            return Err(Fault::new(path, Reason::WrongOrder { position: at + 1, issuer, followed_by }));
        }
    }
    Ok(())
}

fn check_time(path: &Path, chain: &[Facts], now: UnixTime) -> Result<(), Fault> {
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    for facts in chain {
        if now > facts.not_after {
            return Err(Fault::new(path, Reason::Expired(facts.not_after)));
        }
        if now < facts.not_before {
            return Err(Fault::new(path, Reason::NotYetValid(facts.not_before)));
        }
    }
    Ok(())
}

impl fmt::Display for CertificateWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateWarning::NoIntermediate { path, issuer } => write!(
                f,
                "{} holds the certificate alone; unless clients know its issuer, {issuer}, append the certificate of that",
                path.display()
            ),
            CertificateWarning::PublicKeyFile(path) => {
                let path = path.display();
                write!(
                    f,
                    "every user of this machine may read the private key in {path}; chmod 0600 {path}, or 0640 with the group of this process"
                )
            }
            CertificateWarning::SelfSigned(path) => {
                write!(
                    f,
                    "the certificate in {} is self-signed: clients refuse it unless they are set to trust it",
                    path.display()
                )
            }
        }
    }
}
