//! The commands for pools.

use clap::{Args, Subcommand};

use super::backend_url::as_url;
use super::process::ProcessArgs;
use crate::admin::AskPools;

/// The flags of `pools`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  sandarac pools                               every pool
  sandarac pools app --classes 50              one pool, with its 50 most requested classes
  sandarac pools app --class www.example.org   the workers skilled in one class
  sandarac pools --json | jq '.pools[].choices[] | select(.reason == \"unskilled\")'")]
pub struct PoolsArgs {
    #[command(flatten)]
    /// The selected process.
    pub process: ProcessArgs,
    /// The pools (default: all)
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// How many classes to show, the most requested first
    #[arg(long, value_name = "N", default_value_t = AskPools::CLASSES)]
    pub classes: usize,
    /// Show only this class. Can be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "classes")]
    pub class: Vec<String>,
    /// How many of the last choices to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub choices: usize,
    /// As JSON, with all the recorded choices
    #[arg(long, conflicts_with = "choices")]
    pub json: bool,
}

/// The flags of `pool`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
These commands last until the process ends, across reloads; permanent changes belong in the
configuration.

Examples:
  sandarac pool add app http://10.0.0.7:8000 --weight 2
  sandarac pool drain app http://10.0.0.7:8000          no new requests; those in flight finish
  sandarac pool drain app http://10.0.0.7:8000 --undo
  sandarac pool remove app http://10.0.0.7:8000")]
pub struct PoolArgs {
    #[command(subcommand)]
    /// The command.
    pub order: PoolOrder,
}

/// A command to a pool.
#[derive(Clone, Debug, Subcommand)]
pub enum PoolOrder {
    /// Add a backend
    Add(AddArgs),
    /// Remove a backend from any source; requests in flight to it continue
    Remove(BackendArgs),
    /// Stop new requests to a backend; those in flight and sticky sessions continue
    Drain(DrainArgs),
}

/// A backend of a pool.
#[derive(Args, Clone, Debug)]
pub struct BackendArgs {
    #[command(flatten)]
    /// The selected process.
    pub process: ProcessArgs,
    /// The pool
    #[arg(value_name = "POOL")]
    pub pool: String,
    /// The backend: `http://host:8000` or `unix:/path`
    #[arg(value_name = "ADDRESS", value_parser = |text: &str| Ok::<_, String>(as_url(text)))]
    pub backend: String,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// The flags of `pool add`.
#[derive(Args, Clone, Debug)]
pub struct AddArgs {
    #[command(flatten)]
    /// The backend and its pool.
    pub backend: BackendArgs,
    /// Its share of the load relative to others
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub weight: u32,
}

/// The flags of `pool drain`.
#[derive(Args, Clone, Debug)]
pub struct DrainArgs {
    #[command(flatten)]
    /// The backend and its pool.
    pub backend: BackendArgs,
    /// Resume requests to it
    #[arg(long)]
    pub undo: bool,
}

/// The flags of `check-pool`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Levels are a list: workers=N (fewer healthy backends than that are too few), and mean-backlog=N,
max-backlog=N, oldest=TIME (more is too much). Backlogs are requests in flight per backend, the
mean over all and the largest; oldest is the age of the oldest request in
flight. Levels not named have the defaults shown; `oldest=off` has none.

  --warn   mean-backlog=10,max-backlog=40,oldest=30s
  --error  workers=1,mean-backlog=50,max-backlog=200,oldest=5m

Exit status for monitoring systems: 0 OK, 1 WARNING, 2 CRITICAL, also if no process
answers, 3 UNKNOWN. The first line of the output has the values after `|`.

Examples:
  sandarac check-pool
  sandarac check-pool app --warn workers=7,oldest=10s --error workers=4,oldest=1m")]
pub struct CheckPoolArgs {
    #[command(flatten)]
    /// The selected process.
    pub process: ProcessArgs,
    /// The pools (default: all)
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Levels for a warning
    #[arg(long, value_name = "LEVELS", default_value = "")]
    pub warn: String,
    /// Levels for an error
    #[arg(long, value_name = "LEVELS", default_value = "")]
    pub error: String,
    /// How many seconds the process may take to answer
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
}
