//! The places of one certificate in the state directory.

use std::path::PathBuf;

use crate::attempts::AttemptsFile;
use crate::settings::Settings;

/// The places of one certificate.
pub(crate) struct Layout {
    /// The directory of all certificates.
    pub(crate) certificates: PathBuf,
    /// The file with its chain and key.
    pub(crate) file: PathBuf,
    /// The file of failed attempts.
    pub(crate) attempts: AttemptsFile,
}

impl Layout {
    /// The places for checked settings.
    pub(crate) fn of(settings: &Settings) -> Layout {
        let stem = stem(settings);
        let certificates = settings.state.join("certificates");
        let file = certificates.join(format!("{stem}.pem"));
        let attempts = AttemptsFile::new(settings.state.join(format!("attempts-{stem}.json")));
        Layout { certificates, file, attempts }
    }
}

/// The stem of the names of a certificate's files: readable, and different for other names and other CAs.
fn stem(settings: &Settings) -> String {
    let first: String = settings.names[0].chars().take(100).collect();
    let all = format!("{}\n{}", settings.directory, settings.names.join("\n"));
    let digest = blake3::hash(all.as_bytes()).to_hex();
    format!("{first}-{}", &digest[..16])
}
