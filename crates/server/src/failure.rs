//! Failures of commands, and their exit status.

use std::fmt;
use std::io;
use std::process::ExitCode;

use sandarac_config::Diagnostics;

use crate::admin::{Fault, Refusal, client};
use crate::stderr::print_line;

/// The reason why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The command line or the environment is wrong: exit status 2.
    Usage(String),
    /// The configuration is wrong: exit status 2.
    Configuration(Diagnostics),
    /// The operation failed: exit status 1.
    Failed(String),
    /// The output could not be written.
    Output(io::Error),
}

impl Failure {
    /// Prints the error on standard error and returns the exit status.
    pub fn report(&self) -> ExitCode {
        match self {
            // The reader has seen enough, as `head` does.
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Failure::Usage(_) | Failure::Configuration(_) => {
                print_line(self);
                ExitCode::from(2)
            }
            Failure::Failed(_) | Failure::Output(_) => {
                print_line(self);
                ExitCode::FAILURE
            }
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(text) | Failure::Failed(text) => write!(f, "sandarac: {}", text.trim_end()),
            Failure::Configuration(errors) => f.write_str(errors.to_string().trim_end()),
            Failure::Output(error) => write!(f, "sandarac: cannot write the output: {error}"),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

impl From<client::Error> for Failure {
    fn from(error: client::Error) -> Failure {
        match error {
            client::Error::Refused(refusal) if refusal.fault == Fault::Caller => {
                Failure::Usage(refusal.to_string())
            }
            error => Failure::Failed(error.to_string()),
        }
    }
}

/// `error`, with the operation that failed.
pub(crate) fn with_context(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

impl From<Failure> for Refusal {
    /// The answer to a caller of the admin interface if a configuration could not be applied.
    fn from(failure: Failure) -> Refusal {
        match failure {
            Failure::Configuration(errors) => {
                Refusal::invalid("the configuration is wrong").report(errors.to_string().trim_end())
            }
            Failure::Usage(text) => Refusal::invalid(text),
            Failure::Failed(text) => Refusal::failed(text),
            Failure::Output(error) => Refusal::failed(error.to_string()),
        }
    }
}
