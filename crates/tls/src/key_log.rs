//! Session keys for tools that decrypt recorded traffic.

use std::env;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::{KeyLog, KeyLogFile};

use crate::fault::{Fault, Reason};
use crate::warning::Warning;

/// The environment variable that names the file, as in browsers and curl.
const VARIABLE: &str = "SSLKEYLOGFILE";

/// A log in the file that the environment names.
pub(crate) fn key_log() -> Result<(Arc<dyn KeyLog>, Warning), Fault> {
    let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from) else {
        return Ok((Arc::new(rustls::NoKeyLog), Warning::NoKeyLogFile));
    };
    check(&path)?;
    Ok((Arc::new(KeyLogFile::new()), Warning::KeyLog(path)))
}

/// rustls does not report a file that it cannot open.
fn check(path: &Path) -> Result<(), Fault> {
    use std::os::unix::fs::OpenOptionsExt;
    let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    opened.map(drop).map_err(|error| Fault::new(path, Reason::Unwritable(error.kind())))
}
