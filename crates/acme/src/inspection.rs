//! Looks at a state directory without changing it, for checks of a configuration.

use std::path::Path;

use sandarac_message::Timestamp;

use crate::certificate::Certificate;
use crate::fault::{CertificateFault, Fault};
use crate::files;
use crate::layout::Layout;
use crate::settings::Settings;

/// What a state directory holds for one certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The certificate.
    pub kept: Kept,
    /// The attempts that failed since the last success.
    pub failed_attempts: u32,
    /// The fault of the last one, its name first.
    pub last_fault: Option<String>,
    /// The time before which no order is placed.
    pub next_attempt: Timestamp,
}

/// A certificate in a state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// There is none yet.
    Nothing,
    /// One that can be served until this time.
    Until(Timestamp),
    /// One that cannot be used: another one is ordered.
    Unusable(CertificateFault),
}

/// Looks for the certificate of these settings. A directory that does not exist yet holds nothing.
///
/// # Errors
/// A setting that cannot work, a directory that other users may enter, or a file that cannot be read.
pub fn inspect(settings: Settings, now: Timestamp) -> Result<Inspection, Fault> {
    let settings = settings.checked()?;
    let layout = Layout::of(&settings);
    let directories: [&Path; 2] = [&settings.state, &layout.certificates];
    for directory in directories {
        files::check_directory(directory)?;
    }
    let attempts = layout.attempts.read();
    let kept = match files::read(&layout.file)? {
        None => Kept::Nothing,
        Some(text) => {
            let read = Certificate::read_file(&text);
            let usable = read.and_then(|kept| kept.check(&settings.names, now).map(|()| kept.validity));
            usable.map_or_else(Kept::Unusable, |validity| Kept::Until(validity.not_after))
        }
    };
    let (failed_attempts, next_attempt) = (attempts.failures, attempts.next(now));
    Ok(Inspection { kept, failed_attempts, last_fault: attempts.fault(), next_attempt })
}
