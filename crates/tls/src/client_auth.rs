//! Certificates of clients.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use x509_parser::prelude::{CertificateRevocationList, FromDer, X509Certificate};

use crate::fault::{Fault, Reason};
use crate::file;
use crate::warning::Warning;

/// Whether clients must present a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientMode {
    /// A client may present one, and it must be valid.
    Optional,
    /// A client without a valid one gets no connection.
    Required,
}

/// Which certificates of clients are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificates {
    /// Whether clients must present one.
    pub mode: ClientMode,
    /// Files with the certificates of the accepted CAs.
    pub ca: Vec<PathBuf>,
    /// Files with revocation lists, PEM or DER. With any, each certificate of a chain below its CA must be covered by a
    /// current list.
    pub crl: Vec<PathBuf>,
}

/// The verifier, and everything that it depends on.
#[derive(Debug)]
pub(crate) struct Verifier {
    pub(crate) verifier: Arc<dyn ClientCertVerifier>,
    pub(crate) cas: Vec<CertificateDer<'static>>,
    pub(crate) revocation_lists: Vec<CertificateRevocationListDer<'static>>,
    pub(crate) warnings: Vec<Warning>,
}

impl ClientCertificates {
    pub(crate) fn load(&self, provider: &Arc<CryptoProvider>, now: UnixTime) -> Result<Verifier, Vec<Fault>> {
        let (mut cas, mut lists, mut warnings, mut faults) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut roots = RootCertStore::empty();
        let mut issuers = Vec::new();
        for path in &self.ca {
            match ca_certificates(path, &mut roots) {
                Ok(found) => {
                    issuers.extend(found.iter().map(|ca| (path.clone(), ca.clone())));
                    cas.extend(found);
                }
                Err(fault) => faults.push(fault),
            }
        }
        for path in &self.crl {
            match revocation_lists(path, now, &mut warnings) {
                Ok(found) => lists.extend(found),
                Err(fault) => faults.push(fault),
            }
        }
        warnings.extend(uncovered(&issuers, &lists));
        if cas.is_empty() && faults.is_empty() {
            let text =
                "`client_certificates` needs a `ca`: the certificates that issued those of the clients";
            faults.push(Fault::new(Path::new(""), Reason::Settings(text.into())));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let builder = builder.with_crls(lists.iter().cloned()).enforce_revocation_expiration();
        let builder = match self.mode {
            ClientMode::Optional => builder.allow_unauthenticated(),
            ClientMode::Required => builder,
        };
        let verifier = builder.build().map_err(|error| {
            let path = self.crl.first().or(self.ca.first()).map_or(Path::new(""), PathBuf::as_path);
            vec![Fault::new(path, Reason::MalformedRevocationList(error.to_string().into()))]
        })?;
        Ok(Verifier { verifier, cas, revocation_lists: lists, warnings })
    }
}

/// The CAs that no list is of, if there are lists.
fn uncovered(
    cas: &[(PathBuf, CertificateDer<'static>)],
    lists: &[CertificateRevocationListDer<'static>],
) -> Vec<Warning> {
    let issuer = |list: &CertificateRevocationListDer<'_>| {
        Some(CertificateRevocationList::from_der(list).ok()?.1.issuer().as_raw().to_vec())
    };
    let issuers: Vec<Vec<u8>> = lists.iter().filter_map(issuer).collect();
    if lists.is_empty() {
        return Vec::new();
    }
    let warning = |(path, ca): &(PathBuf, CertificateDer<'static>)| {
        let (_, certificate) = X509Certificate::from_der(ca).ok()?;
        let subject = certificate.subject();
        let is_covered = issuers.iter().any(|issuer| issuer == subject.as_raw());
        (!is_covered).then(|| Warning::UncoveredCa(path.clone(), subject.to_string().into()))
    };
    cas.iter().filter_map(warning).collect()
}

/// Adds the CA certificates in a file to `roots`.
pub(crate) fn ca_certificates(
    path: &Path,
    roots: &mut RootCertStore,
) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let found = file::sections(path, &file::read(path)?.bytes)?.certificates;
    if found.is_empty() {
        return Err(Fault::new(path, Reason::NoCertificate));
    }
    for certificate in &found {
        let unusable = |error: rustls::Error| Fault::new(path, Reason::UnusableCa(error.to_string().into()));
        roots.add(certificate.clone()).map_err(unusable)?;
    }
    Ok(found)
}

fn revocation_lists(
    path: &Path,
    now: UnixTime,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<CertificateRevocationListDer<'static>>, Fault> {
    let bytes = file::read(path)?.bytes;
    // CAs publish DER, which begins with the tag of a sequence.
    let found = match bytes.first() {
        Some(0x30) => vec![CertificateRevocationListDer::from(bytes)],
        _ => file::sections(path, &bytes)?.revocation_lists,
    };
    if found.is_empty() {
        return Err(Fault::new(path, Reason::NoRevocationList));
    }
    for list in &found {
        let Ok((_, list)) = CertificateRevocationList::from_der(list) else {
            return Err(Fault::new(path, Reason::MalformedRevocationList("it is malformed".into())));
        };
        if let Some(due) = list.next_update().map(|due| due.timestamp())
            && now.as_secs() > u64::try_from(due).unwrap_or(0)
        {
            warnings.push(Warning::OutdatedRevocationList(path.to_owned(), due));
        }
    }
    Ok(found)
}
