//! Fields of requests on the command line.

use crate::failure::Failure;

/// The name and the value of `NAME: VALUE`.
pub(crate) fn header(line: &str) -> Result<(&str, &str), Failure> {
    let field = line.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
    field.ok_or_else(|| no_header(line))
}

/// The error for a line that is no field.
pub(crate) fn no_header(line: &str) -> Failure {
    Failure::Usage(format!("{line:?} is no field\n  help: write 'Accept-Language: de'"))
}
