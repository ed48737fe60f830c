//! Doubts about settings that are used nevertheless.

use std::fmt;
use std::path::PathBuf;

use crate::certificate::CertificateWarning;
use crate::certificates::Shadowed;
use crate::time::civil;

/// A doubt about settings that are used nevertheless. The text names the file and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// A doubt about a certificate.
    Certificate(CertificateWarning),
    /// A certificate that is not used for one of its names.
    Shadowed(Shadowed),
    /// Every user of the machine may read the secret of tickets.
    PublicSecret(PathBuf),
    /// A revocation list whose next update was due at this time, in seconds since 1970.
    OutdatedRevocationList(PathBuf, i64),
    /// There are revocation lists, and none is of this CA, in this file.
    UncoveredCa(PathBuf, Box<str>),
    /// Session keys are written to this file.
    KeyLog(PathBuf),
    /// Session keys were asked for, and the environment names no file for them.
    NoKeyLogFile,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Certificate(warning) => warning.fmt(f),
            Warning::Shadowed(shadowed) => shadowed.fmt(f),
            Warning::PublicSecret(path) => {
                let path = path.display();
                write!(
                    f,
                    "every user of this machine may read the ticket secret in {path}; chmod 0600 {path}"
                )
            }
            Warning::OutdatedRevocationList(path, due) => write!(
                f,
                "the revocation list in {} was due for an update at {}: client certificates of its issuer are refused",
                path.display(),
                civil(*due)
            ),
            Warning::UncoveredCa(path, subject) => write!(
                f,
                "no revocation list in `crl` is of {subject} (in {}): client certificates that it issued are refused",
                path.display()
            ),
            Warning::KeyLog(path) => write!(
                f,
                "`dangerous_key_log`: the keys of all sessions are written to {}; who reads it reads the traffic",
                path.display()
            ),
            Warning::NoKeyLogFile => f.write_str(
                "`dangerous_key_log` has no effect: the environment variable SSLKEYLOGFILE is not set",
            ),
        }
    }
}
