//! The flags of `vcl`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use sandarac_vcl::OldVersion;

/// The subcommands of `vcl`.
#[derive(Subcommand, Clone, Debug)]
pub enum VclCommand {
    /// Check a VCL program: everything that makes it invalid at once, and warnings
    Check(VclCheckArgs),
    /// Translate a file of VCL 2 or 3 to VCL 4.1, and list what changes
    Upgrade(VclUpgradeArgs),
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
    /// A folder for included files whose paths do not begin with `/` or `./`. Can be repeated; without it,
    /// the folder of FILE, /etc/varnish and /usr/share/varnish/vcl
    #[arg(short, long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    pub path: Vec<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Fail if there are warnings
    #[arg(long)]
    pub strict: bool,
}

/// The flags of `vcl upgrade`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
The new file is written to standard output, and the list of what changes to standard error.
What a person has to decide is marked in the new file by a comment that begins with
`# DECISION` and has the choices below it.

Examples:
  sandarac vcl upgrade old.vcl > new.vcl
  sandarac vcl upgrade --diff old.vcl        only what changes, also in included files
  sandarac vcl upgrade --in-place old.vcl    writes the file, and those that it includes

Exit status: 0 done, 1 the file cannot be read or upgraded, 2 wrong usage, 4 done, but there are
decisions left.")]
pub struct VclUpgradeArgs {
    /// The file
    #[arg(value_name = "OLD", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// A folder for included files whose paths do not begin with `/` or `./`, as in `vcl check`. Can be
    /// repeated
    #[arg(short, long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    pub path: Vec<PathBuf>,
    /// Print the differences instead of the new file
    #[arg(long, conflicts_with = "in_place")]
    pub diff: bool,
    /// Write the new text to the file, and to those that it includes
    #[arg(long)]
    pub in_place: bool,
    /// The version of the file, if its words do not show it: in VCL 2, `%20` in a text is a space
    #[arg(long, value_name = "VERSION")]
    pub from: Option<FromVersion>,
}

/// The version of an old file.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FromVersion {
    /// VCL 2
    #[value(name = "2")]
    V2,
    /// VCL 3
    #[value(name = "3")]
    V3,
}

impl From<FromVersion> for OldVersion {
    fn from(version: FromVersion) -> OldVersion {
        match version {
            FromVersion::V2 => OldVersion::V2,
            FromVersion::V3 => OldVersion::V3,
        }
    }
}
