//! Running the accelerator.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;

use sandarac_config::Config;

use crate::cli::RunArgs;
use crate::failure::Failure;

const NO_PROXY: &str = "this build has no proxy in it yet";

/// Runs the accelerator that `config` describes until it is told to stop. `args` are what a reload reads again.
pub fn run(_config: Config, _args: &RunArgs) -> std::result::Result<(), Failure> {
    Err(Failure::Failed(NO_PROXY.to_owned()))
}

/// Starts an accelerator for the demo.
pub fn accelerate(_listen: SocketAddr, _origin: SocketAddr) -> Result<(SocketAddr, ())> {
    Err(Error::new(ErrorKind::Unsupported, NO_PROXY))
}
