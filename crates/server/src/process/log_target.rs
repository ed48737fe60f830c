//! The configured access log.

use sandarac_config::{Log, LogFormat, LogTarget};

use crate::logs::{Destination, Format, Target};

/// Destination and format of the configured access log; `None` for none.
pub(super) fn log_target(log: &Log) -> Target {
    let destination = match &log.access {
        LogTarget::Off => return None,
        LogTarget::Stdout => Destination::Stdout,
        LogTarget::Stderr => Destination::Stderr,
        LogTarget::File(path) => Destination::File(path.clone()),
    };
    let format = match log.format {
        LogFormat::Combined => Format::Combined,
        LogFormat::Json => Format::Json,
    };
    Some((destination, format))
}
