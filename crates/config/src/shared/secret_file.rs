//! A file that holds a secret or a password. It is read by the caller, and checked here.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::diagnostics::{Diagnostic, Severity, SourceText};
use crate::path::AbsolutePath;
use crate::report::{At, Complaint, Place};

/// Reads a file by its path.
pub(crate) type Reader<'a> = dyn FnMut(&Path) -> io::Result<SecretContent> + 'a;

/// A file that holds a secret or a password, and the place that names it.
#[derive(Clone)]
pub struct SecretFile {
    path: PathBuf,
    /// Its place in the configuration; `None` for the flag.
    place: Option<Place>,
    source: Arc<SourceText>,
}

/// The content of a [`SecretFile`]. No debug output shows it.
pub struct SecretContent {
    /// All its bytes, or more than [`SecretFile::MAX_BYTES`] of them.
    pub bytes: Vec<u8>,
    /// Its permissions, as for `chmod`.
    pub mode: u32,
}

impl SecretFile {
    /// The flag that names a file of a secret.
    pub(crate) const FLAG: &'static str = "--shared-secret";

    /// The most bytes of such a file. A longer one was probably not meant.
    pub const MAX_BYTES: u64 = 4096;

    pub(crate) fn new(named: &At<AbsolutePath>, source: &Arc<SourceText>) -> SecretFile {
        SecretFile { path: named.value.to_path(), place: named.place.clone(), source: source.clone() }
    }

    /// The configuration that names it.
    pub(crate) fn source(&self) -> &Arc<SourceText> {
        &self.source
    }

    /// The absolute path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn diagnostic(
        &self,
        severity: Severity,
        Complaint { message, help }: Complaint,
    ) -> Diagnostic {
        let flag = self.place.is_none();
        let message = if flag { format!("{}: {message}", SecretFile::FLAG) } else { message };
        Diagnostic { severity, message, place: self.place.clone(), help, also: None, flag }
    }

    /// Reads the file; warns if every user of the machine may read or change it. `making` says how the file is
    /// made if there is none.
    pub(crate) fn read(
        &self,
        reader: &mut Reader<'_>,
        found: &mut Vec<Diagnostic>,
        making: impl FnOnce() -> String,
    ) -> Result<Vec<u8>, Complaint> {
        let path = self.path.display();
        let SecretContent { bytes, mode } = reader(&self.path).map_err(|error| {
            let complaint = Complaint::new(format!("cannot read {path}: {error}"));
            match error.kind() {
                io::ErrorKind::PermissionDenied => complaint
                    .help(format!("let the user or the group of this process read it: chmod 0640 {path}")),
                io::ErrorKind::NotFound => complaint.help(making()),
                _ => complaint,
            }
        })?;
        let granted = match mode & 0o006 {
            0 => None,
            0o002 => Some("change"),
            _ => Some("read"),
        };
        if let Some(verb) = granted {
            let complaint = Complaint::new(format!("every user of this machine may {verb} {path}"));
            let help = format!("chmod 0600 {path}, or 0640 with the group of this process");
            found.push(self.diagnostic(Severity::Warning, complaint.help(help)));
        }
        if bytes.len() as u64 > SecretFile::MAX_BYTES {
            let most = SecretFile::MAX_BYTES;
            return Err(Complaint::new(format!("{path} has more than {most} bytes, and so is no secret")));
        }
        Ok(bytes)
    }
}

impl PartialEq for SecretFile {
    /// The place that names the file is ignored in comparisons.
    fn eq(&self, other: &SecretFile) -> bool {
        self.path == other.path
    }
}

impl Eq for SecretFile {}

impl fmt::Debug for SecretFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SecretFile").field(&self.path).finish()
    }
}

impl fmt::Debug for SecretContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretContent")
    }
}
