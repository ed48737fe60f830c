//! Files and the PEM sections in them.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use rustls::pki_types::pem::{self, PemObject, SectionKind};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::pki_types::{PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};

use crate::fault::{Fault, Reason};
use crate::patience::{PATIENCE, patiently};

/// The most bytes of a file. The largest in use are revocation lists.
pub const MAX_FILE_BYTES: u64 = 16 << 20;

/// The content of a file.
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    /// Whether every user of the machine may read the file.
    pub(crate) is_public: bool,
}

/// Reads a regular file.
pub(crate) fn read(path: &Path) -> Result<Content, Fault> {
    let content = patiently(path, PATIENCE, |path| {
        // Asked before the file is opened: to open a pipe would block.
        let metadata = fs::metadata(path)?;
        if !metadata.is_file() {
            return Ok(Err(Reason::NotAFile));
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Ok(Err(Reason::TooLarge));
        }
        Ok(Ok(Content { bytes, is_public: is_public(&metadata) }))
    });
    let content = content.unwrap_or_else(|error| Err(Reason::Unreadable(error.kind())));
    content.map_err(|reason| Fault::new(path, reason))
}

#[cfg(unix)]
fn is_public(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o004 != 0
}

#[cfg(not(unix))]
fn is_public(_: &fs::Metadata) -> bool {
    false
}

/// The sections of a PEM text that are of use here. Text around the sections is ignored (RFC 7468 §2).
#[derive(Default)]
pub(crate) struct Sections {
    pub(crate) certificates: Vec<CertificateDer<'static>>,
    pub(crate) keys: Vec<PrivateKeyDer<'static>>,
    pub(crate) revocation_lists: Vec<CertificateRevocationListDer<'static>>,
    pub(crate) has_encrypted_key: bool,
}

/// The sections of the text of the file at `path`.
pub(crate) fn sections(path: &Path, text: &[u8]) -> Result<Sections, Fault> {
    // Some editors begin a file with a byte order mark.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut found = Sections { has_encrypted_key: has_encrypted_key(text), ..Sections::default() };
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(text) {
        // An encrypted key in the old style has header lines, which are no base64: it is reported as encrypted.
        let (kind, der) = match section {
            Ok(section) => section,
            Err(_) if found.has_encrypted_key => break,
            Err(error) => return Err(Fault::new(path, Reason::MalformedPem(describe(&error)))),
        };
        match kind {
            SectionKind::Certificate => found.certificates.push(der.into()),
            SectionKind::PrivateKey => found.keys.push(PrivatePkcs8KeyDer::from(der).into()),
            SectionKind::RsaPrivateKey => found.keys.push(PrivatePkcs1KeyDer::from(der).into()),
            SectionKind::EcPrivateKey => found.keys.push(PrivateSec1KeyDer::from(der).into()),
            SectionKind::Crl => found.revocation_lists.push(der.into()),
            _ => {}
        }
    }
    Ok(found)
}

fn has_encrypted_key(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.any(|line| {
        line == b"-----BEGIN ENCRYPTED PRIVATE KEY-----"
            || (line.starts_with(b"Proc-Type:") && line.ends_with(b"ENCRYPTED"))
    })
}

fn describe(error: &pem::Error) -> Box<str> {
    match error {
        pem::Error::MissingSectionEnd { .. } => "it has no end",
        pem::Error::IllegalSectionStart { .. } => "its first line is malformed",
        pem::Error::Base64Decode(_) => "it is not base64",
        _ => "it cannot be read",
    }
    .into()
}
