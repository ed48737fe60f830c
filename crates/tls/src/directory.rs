//! A directory of certificates.

use std::fs;
use std::path::{Path, PathBuf};

use crate::certificate::CertificateFiles;
use crate::fault::{Fault, Reason};
use crate::file;
use crate::patience::{PATIENCE, patiently};

/// The most certificates of a directory.
pub const MAX_CERTIFICATES: usize = 10_000;

/// The certificates in a directory, sorted by file name: `NAME.crt`, `NAME.pem` or `NAME.cer` with `NAME.key` beside
/// it, or with the key in the same file. Other files, and those whose names begin with a dot, are ignored.
///
/// # Errors
/// The directory cannot be read, or holds no certificate or too many, or one without a key.
pub fn certificates_in(directory: &Path) -> Result<Vec<CertificateFiles>, Fault> {
    let unreadable = |error: std::io::Error| Fault::new(directory, Reason::Unreadable(error.kind()));
    let mut chains: Vec<PathBuf> = Vec::new();
    let list = |directory: &Path| fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect();
    let entries: Vec<PathBuf> = patiently(directory, PATIENCE, list).map_err(unreadable)?;
    for path in entries {
        let is_hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        let extension = path.extension().and_then(|extension| extension.to_str());
        if !is_hidden && matches!(extension, Some("crt" | "pem" | "cer")) {
            chains.push(path);
        }
        if chains.len() > MAX_CERTIFICATES {
            let text = format!("{} holds more than {MAX_CERTIFICATES} certificates", directory.display());
            return Err(Fault::new(directory, Reason::Settings(text.into())));
        }
    }
    if chains.is_empty() {
        return Err(Fault::new(directory, Reason::EmptyDirectory));
    }
    chains.sort();
    chains.into_iter().map(pair).collect()
}

fn pair(chain: PathBuf) -> Result<CertificateFiles, Fault> {
    let key = chain.with_extension("key");
    if key.exists() {
        return Ok(CertificateFiles { chain, key });
    }
    let sections = file::sections(&chain, &file::read(&chain)?.bytes)?;
    if sections.keys.is_empty() && !sections.has_encrypted_key && !sections.certificates.is_empty() {
        return Err(Fault::new(&chain, Reason::KeyFileMissing(key)));
    }
    Ok(CertificateFiles::in_one(chain))
}
