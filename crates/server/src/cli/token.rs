//! The admin token, from a file or the environment.

use std::fs;
use std::path::Path;

use sandarac_config::AdminToken;

use crate::failure::Failure;

/// The admin token: from `file`, named by `flag`, or else from the environment. It is never on the command line itself,
/// which every user of the machine can read.
pub fn token(flag: &str, file: Option<&Path>) -> Result<Option<AdminToken>, Failure> {
    match file {
        Some(path) => {
            let from = format!("{flag} {}", path.display());
            let text = fs::read_to_string(path)
                .map_err(|error| Failure::Usage(format!("{from}: cannot read it: {error}")))?;
            Ok(Some(AdminToken { from, text }))
        }
        None => {
            let text = std::env::var("SANDARAC_TOKEN").ok().filter(|text| !text.is_empty());
            Ok(text.map(|text| AdminToken { from: "SANDARAC_TOKEN".to_owned(), text }))
        }
    }
}
