//! The command line, and its conversion to settings.

mod backend_url;
mod header;
mod hints;
mod pools;
mod process;
mod replay;
mod run;
mod token;
mod vcl;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand};

use crate::logs::Filter;
pub(crate) use backend_url::as_url;
pub(crate) use header::{header, no_header};
pub use pools::{AddArgs, BackendArgs, CheckPoolArgs, DrainArgs, PoolArgs, PoolOrder, PoolsArgs};
pub use process::ProcessArgs;
pub use replay::ReplayArgs;
pub use run::{Listen, RunArgs};
pub use token::token;
pub use vcl::{VclCheckArgs, VclCommand, VclUpgradeArgs};

const EXAMPLES: &str = "\
Examples:
  sandarac --listen :8080 --backend http://localhost:8000
      An accelerator before one application, no file needed.
  sandarac -a :80 -b http://10.0.0.1:8000 -b http://10.0.0.2:8000 -s malloc,2G
      Two backends, balanced, with 2 GiB of cache. The short flags are varnishd's.
  sandarac --listen :8080 --files ./public
      The files of a directory.
  sandarac --listen :8080 --sockets ./sockets
      All workers that `sandarac-worker` runs there, each sent what it is best at.
  sandarac -c sandarac.toml --memory 4GiB
      A whole configuration; a flag counts more than the file.
  sandarac demo
      A slow sample site, the gain measured, and both left running for your browser.

Exit status: 0 done, 1 failed, 2 wrong usage or configuration.";

/// A caching HTTP accelerator: answers from memory what it may, and forwards the rest to your application.
#[derive(Debug, Parser)]
#[command(name = "sandarac", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(flatten)]
    run: RunArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

/// The command.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one in a process")]
pub enum Job {
    /// Run the accelerator.
    Run(RunArgs),
    /// Another command.
    Other(Command),
}

impl Cli {
    /// Reads the command line, the program's name first.
    ///
    /// # Errors
    /// With a hint if it is written for varnishd, or lacks the flag before a file.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        Cli::try_parse_from(&arguments).map_err(|error| hints::hinted(error, &arguments))
    }

    /// The command.
    pub fn job(self) -> Job {
        self.command.map_or(Job::Run(self.run), Job::Other)
    }
}

/// A command other than running the accelerator.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the gain: a slow sample site, with and without the accelerator
    Demo(DemoArgs),
    /// Check a configuration and explain what it does
    Check(CheckArgs),
    /// Ask for pages with another session, language, device or key, and name what is shared although it
    /// differs
    Probe(ProbeArgs),
    /// Print the settings: as a file with every default, as JSON schema or as manual
    Config(ConfigArgs),
    /// Show the state of the running process: addresses, cache, backends
    Status(StatusArgs),
    /// Print the counters
    Stats(StatsArgs),
    /// Watch requests, hits, latencies and the busiest URLs live
    Top(TopArgs),
    /// Drop objects from the cache, or mark them stale
    Purge(PurgeArgs),
    /// Drop all objects that an expression matches
    Ban(BanArgs),
    /// Look into the shared tier: what a URL has there, and why it is used or not
    #[command(subcommand)]
    Shared(SharedCommand),
    /// Make the running process reload its configuration
    Reload(ReloadArgs),
    /// Start the program again, with the sockets of the running process, which ends with its last connection
    Upgrade(ReloadArgs),
    /// Watch exchanges as they end, one line each
    Log(LogArgs),
    /// Show pools: backends, classes with their best workers, and the last choices with their reasons
    Pools(PoolsArgs),
    /// Add a backend to a pool, remove one, or drain one
    Pool(PoolArgs),
    /// Check pools against levels, as a monitoring plugin
    CheckPool(CheckPoolArgs),
    /// Play a scenario with every balancing algorithm, and compare them
    Simulate(SimulateArgs),
    /// Play an access log through the balancer, against backends or simulated workers
    Replay(Box<ReplayArgs>),
    /// Check and upgrade programs in VCL, the configuration language of Varnish
    #[command(subcommand)]
    Vcl(VclCommand),
}

/// The flags of `demo`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
The sample site makes pages in 100 to 300 ms with eight workers, as a small host would.
64 visitors browse it first directly and then through the accelerator; every answer is
checked, including the visitor it is for. Then both keep running, and each page shows in
its footer who answered it.

Examples:
  sandarac demo                 measure for 5 seconds each, then keep running until Ctrl-C
  sandarac demo --exit          measure only; fails if any answer was wrong
  sandarac demo --seconds 0     do not measure, just run both")]
pub struct DemoArgs {
    /// End after the measurement
    #[arg(long)]
    pub exit: bool,
    /// How long each of the two runs lasts; 0 measures nothing
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub seconds: u64,
    /// Where the accelerator listens (default: 127.0.0.1:8080, or a free port if that is taken)
    #[arg(short = 'a', long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Where the sample site listens (default: 127.0.0.1:8000, or a free port if that is taken)
    #[arg(long, value_name = "ADDRESS")]
    pub site: Option<SocketAddr>,
}

/// The flags of `check`.
#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    /// The configuration to check
    #[arg(short, long, value_name = "FILE")]
    pub config: PathBuf,
    /// Print only errors
    #[arg(short, long)]
    pub quiet: bool,
}

/// The flags of `probe`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Each page is asked for twice past the cache, and with one thing changed at a time; where it
differs, through a cache of its own with the rules of the configuration. The running process
is not asked, and nothing of it is changed. Applications get GET requests as from visitors.

Examples:
  sandarac probe -c sandarac.toml http://example.org/ http://example.org/news
  sandarac probe -b http://localhost:8000 http://example.org/
  sandarac probe -c sandarac.toml -H 'Cookie: sessionid=4f…' http://example.org/account

Exit status: 0 nothing is shared wrongly, 1 something is, 2 wrong usage or configuration.")]
pub struct ProbeArgs {
    /// The configuration with the rules and the backends
    #[arg(short, long, value_name = "FILE", conflicts_with = "backend")]
    pub config: Option<PathBuf>,
    /// The application, without a configuration: the rules are the defaults
    #[arg(short, long, value_name = "URL")]
    pub backend: Vec<String>,
    /// One more thing to change, such as a real session. Can be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
    /// Complete URLs, as visitors know them
    #[arg(required = true, value_name = "URL")]
    pub urls: Vec<String>,
}

/// The flags of `config`.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("what").required(true))]
pub struct ConfigArgs {
    /// Every setting with its default, unit and text, as a starting file
    #[arg(long, group = "what")]
    pub defaults: bool,
    /// The JSON schema of a configuration, for editors
    #[arg(long, group = "what")]
    pub schema: bool,
    /// The manual of all settings, in Markdown
    #[arg(long, group = "what")]
    pub manual: bool,
}

/// The flags of `status`.
#[derive(Args, Clone, Debug)]
pub struct StatusArgs {
    /// Show the certificates instead, or those that a client gets for NAME
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    pub tls: Option<String>,
    #[command(flatten)]
    /// The selected process and the output format.
    pub show: ShowArgs,
}

/// The flags of commands that only display something.
#[derive(Args, Clone, Debug)]
pub struct ShowArgs {
    #[command(flatten)]
    /// The selected process.
    pub process: ProcessArgs,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// The flags of `stats`.
#[derive(Args, Clone, Debug)]
pub struct StatsArgs {
    #[command(flatten)]
    /// The selected process and the output format.
    pub show: ShowArgs,
    /// Print each second what was counted in it
    #[arg(short, long)]
    pub watch: bool,
    /// Include counters that are 0
    #[arg(short, long)]
    pub all: bool,
}

/// The flags of `top`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Quits with q or Ctrl-C. If the output is not a terminal, the screen is printed once."
)]
pub struct TopArgs {
    #[command(flatten)]
    /// The selected process.
    pub process: ProcessArgs,
}

/// The flags of `purge`.
#[derive(Args, Clone, Debug)]
#[command(
    group = ArgGroup::new("what").required(true).multiple(true).args(["urls", "tags", "tags_from", "all"]),
    after_help = "\
Examples:
  sandarac purge http://example.org/news             every variant of one URL
  sandarac purge --tag article-7 front               everything with one of these tags
  sandarac purge --soft --tag front                  stale at once, but still served within grace
  make-list | sandarac purge --tags-from -           any number of tags, one per line
  sandarac purge --all                               everything
  sandarac purge --verify http://example.org/news    what this node and the shared tier still have")]
pub struct PurgeArgs {
    #[command(flatten)]
    /// The selected process.
    pub process: ProcessArgs,
    /// Complete URLs, with scheme and host
    #[arg(value_name = "URL")]
    pub urls: Vec<String>,
    /// Tags that the application set in Surrogate-Key, Cache-Tag or xkey
    #[arg(long = "tag", value_name = "TAG", num_args = 1..)]
    pub tags: Vec<String>,
    /// A file with tags, one per line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub tags_from: Option<PathBuf>,
    /// Everything
    #[arg(long, conflicts_with_all = ["urls", "tags", "tags_from"])]
    pub all: bool,
    /// Mark stale instead of removing: grace still applies
    #[arg(long)]
    pub soft: bool,
    /// Purge nothing, and ask this node and every server of the shared tier what they still have for the
    /// URLs; fails if a request would still get it
    #[arg(long, conflicts_with_all = ["tags", "tags_from", "all", "soft"])]
    pub verify: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// The subcommands of `shared`.
#[derive(Subcommand, Clone, Debug)]
pub enum SharedCommand {
    /// Show what the server has for a URL, and why it is used or not
    Get(SharedArgs),
    /// Remove a URL from the shared tier; the memory of nodes follows when it is compared
    Delete(SharedArgs),
    /// Show which key and server a URL has
    Where(SharedArgs),
}

/// The flags of `shared get`, `shared delete` and `shared where`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  sandarac shared get http://example.org/news
  sandarac shared get -H 'Accept-Language: de' http://example.org/news    one variant")]
pub struct SharedArgs {
    #[command(flatten)]
    /// The selected process.
    pub process: ProcessArgs,
    /// A complete URL, with scheme and host; entries of both schemes are shown
    #[arg(value_name = "URL")]
    pub url: String,
    /// A field of the request, for responses that vary or have fields in their keys. Can be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// The flags of `ban`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  sandarac ban 'host == \"example.org\" && path ~ \"^/news/\"'
  sandarac ban 'status == 404'
  sandarac ban 'field.Content-Type ~ \"^image/\"'")]
pub struct BanArgs {
    #[command(flatten)]
    /// The selected process.
    pub process: ProcessArgs,
    /// An expression over host, path, status and fields
    #[arg(required = true, value_name = "EXPR")]
    pub expression: Vec<String>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// The flags of `reload`.
#[derive(Args, Clone, Debug)]
pub struct ReloadArgs {
    #[command(flatten)]
    /// The selected process and the output format.
    pub show: ShowArgs,
}

/// The flags of `log`.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    #[command(flatten)]
    /// The selected process and the output format.
    pub show: ShowArgs,
    /// The most lines per second; skipped lines are counted
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Only this host; * matches anything here, and in `--path` and `--backend`. Can be repeated, like all of
    /// these
    #[arg(long, value_name = "PATTERN")]
    pub host: Vec<String>,
    /// Only this path, for example `/api/*`
    #[arg(long, value_name = "PATTERN")]
    pub path: Vec<String>,
    /// Only this status or class: 404, 5xx
    #[arg(long, value_name = "STATUS")]
    pub status: Vec<String>,
    /// Only this backend
    #[arg(long, value_name = "PATTERN")]
    pub backend: Vec<String>,
    /// Only this outcome: hit, stale, revalidated, miss, pass, pipe, file, synth, purge, error
    #[arg(long, value_name = "WORD")]
    pub outcome: Vec<String>,
}

impl LogArgs {
    /// The conditions on entries, each with its name.
    pub fn conditions(&self) -> Vec<(&str, &str)> {
        let lists = [&self.host, &self.path, &self.status, &self.backend, &self.outcome];
        let named = Filter::NAMES.into_iter().zip(lists);
        named.flat_map(|(name, values)| values.iter().map(move |value| (name, value.as_str()))).collect()
    }
}

/// The flags of `simulate`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Nothing is sent anywhere: the balancer chooses among simulated workers. The same scenario
and seed give the same results. The sources have scenarios in examples/simulate.")]
pub struct SimulateArgs {
    /// The scenario, a TOML file
    #[arg(value_name = "FILE")]
    pub scenario: PathBuf,
    /// Where to draw a chart of the results
    #[arg(long, value_name = "OUT")]
    pub svg: Option<PathBuf>,
    /// A seed instead of the scenario's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

#[cfg(test)]
mod tests;
