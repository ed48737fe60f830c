//! The flags of `vcl`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// The subcommands of `vcl`.
#[derive(Subcommand, Clone, Debug)]
pub enum VclCommand {
    /// Check a VCL program: everything that makes it invalid at once, and warnings
    Check(VclCheckArgs),
}

/// The flags of `vcl check`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
A comment `# vcl-check: allow NAME` silences warnings of that name on its line and on the next.
At the beginning of a file, before its version, it silences them everywhere.

Examples:
  sandarac vcl check /etc/varnish/default.vcl
  sandarac vcl check --strict --path /etc/varnish site/main.vcl
  sandarac vcl check --json default.vcl | jq '.diagnostics[].rule'

Exit status: 0 valid, 1 errors, 2 the file cannot be read, 3 warnings with --strict.")]
pub struct VclCheckArgs {
    /// The program
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// A folder for included files whose paths do not begin with `/` or `./`. Can be repeated; without it, the folder of
    /// FILE, /etc/varnish and /usr/share/varnish/vcl
    #[arg(short, long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    pub path: Vec<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Fail if there are warnings
    #[arg(long)]
    pub strict: bool,
}
