//! Certificates in reports.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::certificate::Certificate;

/// A certificate in a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The names it is valid for.
    pub names: Vec<String>,
    /// The file of its chain; `None` if it arrived at run time.
    pub path: Option<PathBuf>,
    /// Who issued it.
    pub issuer: String,
    /// The kind of its key, such as `ECDSA P-256`.
    pub key_type: String,
    /// Whether its issuer is its own subject.
    pub is_self_signed: bool,
    /// From when to when it is valid, in seconds since 1970.
    pub valid: (i64, i64),
    /// The SHA-256 digest of the certificate in hexadecimal digits.
    pub digest: String,
}

impl From<&Certificate> for Identity {
    fn from(certificate: &Certificate) -> Identity {
        let digest = certificate.digest().iter().fold(String::new(), |mut text, byte| {
            _ = write!(text, "{byte:02x}");
            text
        });
        Identity {
            names: certificate.names().iter().map(ToString::to_string).collect(),
            path: certificate.files().map(|files| files.chain.clone()),
            issuer: certificate.issuer().to_owned(),
            key_type: certificate.key_type().to_string(),
            is_self_signed: certificate.is_self_signed(),
            valid: (certificate.not_before(), certificate.not_after()),
            digest,
        }
    }
}
