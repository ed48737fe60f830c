//! The process that a command addresses.

use std::path::PathBuf;

use clap::Args;

use crate::admin::Endpoint;

/// The selected process.
#[derive(Args, Clone, Debug, Default)]
pub struct ProcessArgs {
    /// The process's admin socket or address, as printed at startup. SANDARAC_ADMIN does the same where
    /// neither this nor a configuration names it
    #[arg(long, value_name = "PATH|ADDRESS")]
    pub admin: Option<Endpoint>,
    /// The configuration of the process: its [admin] section has the address and the token
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A file that holds the token for an admin address on TCP. SANDARAC_TOKEN holds the token itself
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}
