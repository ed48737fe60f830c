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
/// it, or with the key in the same file. After them come those of subdirectories with a `fullchain.pem`, each with the
/// `privkey.pem` beside it: the layout of certbot's `live`. Everything else, and names that begin with a dot, are ignored.
///
/// # Errors
/// The directory cannot be read, or holds no certificate or too many, or one without a key.
pub fn certificates_in(directory: &Path) -> Result<Vec<CertificateFiles>, Fault> {
    let unreadable = |error: std::io::Error| Fault::new(directory, Reason::Unreadable(error.kind()));
    let mut chains: Vec<PathBuf> = Vec::new();
    let mut of_subdirectories: Vec<CertificateFiles> = Vec::new();
    let list = |directory: &Path| {
        let with_certificate = |path: PathBuf| (in_subdirectory(&path), path);
        fs::read_dir(directory)?.map(|entry| Ok(with_certificate(entry?.path()))).collect()
    };
    let entries: Vec<(Option<CertificateFiles>, PathBuf)> =
        patiently(directory, PATIENCE, list).map_err(unreadable)?;
    for (below, path) in entries {
        let is_hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        let extension = path.extension().and_then(|extension| extension.to_str());
        if is_hidden {
            continue;
        }
        if let Some(below) = below {
            of_subdirectories.push(below);
        } else if matches!(extension, Some("crt" | "pem" | "cer")) {
            chains.push(path);
        }
        if chains.len() + of_subdirectories.len() > MAX_CERTIFICATES {
            let text = format!("{} holds more than {MAX_CERTIFICATES} certificates", directory.display());
            return Err(Fault::new(directory, Reason::Settings(text.into())));
        }
    }
    if chains.is_empty() && of_subdirectories.is_empty() {
        return Err(Fault::new(directory, Reason::EmptyDirectory));
    }
    chains.sort();
    of_subdirectories.sort_by(|one, other| one.chain.cmp(&other.chain));
    let missing = of_subdirectories.iter().find(|files| !files.key.exists());
    if let Some(CertificateFiles { chain, key }) = missing {
        return Err(Fault::new(chain, Reason::KeyFileMissing(key.clone())));
    }
    let pairs: Result<Vec<CertificateFiles>, Fault> = chains.into_iter().map(pair).collect();
    Ok(pairs?.into_iter().chain(of_subdirectories).collect())
}

/// The files of the certificate in a subdirectory, if it has one. A link that leads nowhere is there, so that loading it
/// reports it.
pub(crate) fn in_subdirectory(subdirectory: &Path) -> Option<CertificateFiles> {
    let chain = subdirectory.join("fullchain.pem");
    let is_there = chain.symlink_metadata().is_ok();
    is_there.then(|| CertificateFiles { chain, key: subdirectory.join("privkey.pem") })
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
