//! The state directories of ACME, for `sandarac check`.

use std::fmt::Write as _;

use sandarac_acme::{Fault, Inspection, Kept, inspect};
use sandarac_config::Config;
use sandarac_net::wall;
use sandarac_tls::civil;

use crate::acme::{settings, wanted};
use crate::failure::Failure;
use crate::human::count;

/// Looks at the state directories of a configuration without changing them. Returns what is there, as text.
pub(crate) fn explain(config: &Config) -> Result<String, Failure> {
    let mut out = String::new();
    for acme in wanted(config) {
        let found = settings(acme, config).and_then(|settings| inspect(settings, wall()));
        let found = found.map_err(|fault| refused(&fault))?;
        let _ =
            writeln!(out, "Certificate by ACME for {}, in {}:", acme.names.join(", "), acme.state.display());
        let _ = writeln!(out, "  {}", line(&found, &acme.directory));
        if let Some(fault) = &found.last_fault {
            let failed = count(u64::from(found.failed_attempts), "attempt");
            let next = civil(seconds(found.next_attempt));
            let _ = writeln!(out, "  {failed} failed, the next follows at {next}; the last: {fault}");
        }
    }
    Ok(out)
}

fn line(found: &Inspection, directory: &str) -> String {
    match &found.kept {
        Kept::Nothing => format!("none yet; a start orders one from {directory}"),
        Kept::Until(end) => format!("expires at {}", civil(seconds(*end))),
        Kept::Unusable(fault) => {
            format!("unusable, so a start orders another from {directory}: {}: {fault}", fault.name())
        }
    }
}

fn seconds(time: sandarac_message::Timestamp) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

fn refused(fault: &Fault) -> Failure {
    Failure::Usage(format!("{fault} ({})", fault.name()))
}
