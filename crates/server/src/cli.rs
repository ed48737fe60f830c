//! The command line: what can be said, and what it means as settings.

mod hints;
mod pools;
mod replay;

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, Parser, Subcommand};
use sandarac_config::{AdminToken, Config, Flags, LogFormat, LogTarget};

use crate::admin::Endpoint;
use crate::failure::Failure;
use crate::logs::Filter;
pub use pools::{AddArgs, BackendArgs, CheckPoolArgs, DrainArgs, PoolArgs, PoolOrder, PoolsArgs};
pub use replay::ReplayArgs;

const EXAMPLES: &str = "\
Examples:
  sandarac --listen :8080 --backend http://localhost:8000
      An accelerator before one application, no file needed.
  sandarac -a :80 -b http://10.0.0.1:8000 -b http://10.0.0.2:8000 -s malloc,2G
      Two backends, balanced, with 2 GiB of cache. The short flags are varnishd's.
  sandarac --listen :8080 --sockets ./sockets
      All workers that `sandarac-worker` runs there, each sent what it is best at.
  sandarac -c sandarac.toml --memory 4GiB
      A whole configuration; a flag counts more than the file.
  sandarac demo
      A slow sample site, the gain measured, and both left running for your browser.

Exit status: 0 done, 1 failed, 2 wrong usage or configuration.";

/// A caching HTTP accelerator: answers from memory what it may, and sends the rest to your application.
#[derive(Debug, Parser)]
#[command(name = "sandarac", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(flatten)]
    run: RunArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

/// What is to be done.
#[derive(Debug)]
pub enum Job {
    /// Run the accelerator.
    Run(RunArgs),
    /// Something else.
    Other(Command),
}

impl Cli {
    /// Reads the command line, the program's name first.
    ///
    /// # Errors
    /// With a hint where it is written as for varnishd, or lacks the flag before a file.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        Cli::try_parse_from(&arguments).map_err(|error| hints::hinted(error, &arguments))
    }

    /// What is to be done.
    pub fn job(self) -> Job {
        self.command.map_or(Job::Run(self.run), Job::Other)
    }
}

/// What is not running the accelerator.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the gain: a slow sample site, with and without the accelerator
    Demo(DemoArgs),
    /// Check a configuration and explain what it does
    Check(CheckArgs),
    /// Print the settings: as a file with every default, as JSON schema or as manual
    Config(ConfigArgs),
    /// Tell how the running process is: addresses, cache, backends
    Status(ShowArgs),
    /// Print what was counted
    Stats(StatsArgs),
    /// Watch requests, hits, latencies and the busiest URLs live
    Top(TopArgs),
    /// Drop objects from the cache, or mark them stale
    Purge(PurgeArgs),
    /// Drop all objects that an expression matches
    Ban(BanArgs),
    /// Make the running process read its configuration again
    Reload(ReloadArgs),
    /// Watch exchanges as they end, a line each
    Log(LogArgs),
    /// Show pools: backends, classes and who is best at them, and why the last choices fell as they did
    Pools(PoolsArgs),
    /// Add a backend to a pool, remove one, or drain one
    Pool(PoolArgs),
    /// Hold pools against levels, as a monitoring plugin
    CheckPool(CheckPoolArgs),
    /// Play a scenario with every balancing algorithm, and compare them
    Simulate(SimulateArgs),
    /// Play an access log through the balancer, before backends or simulated workers
    Replay(Box<ReplayArgs>),
}

/// The flags of a run. All but `config`, `access_log` and `log_format` are texts for [`Flags`], which reads them with
/// the same rules and words as a file.
#[derive(Args, Clone, Debug, Default)]
pub struct RunArgs {
    /// The configuration; flags count more than what it says
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where to listen: `:8080`, `127.0.0.1:8080`, `[::1]:80` or `unix:/path`. Port 0 takes a free one. Can be repeated
    #[arg(short = 'a', long, value_name = "ADDRESS", value_parser = Listen::of)]
    pub listen: Vec<Listen>,
    /// An application to stand before: `http://host:8000` or `unix:/path`. Several are balanced
    #[arg(short, long, value_name = "URL")]
    pub backend: Vec<String>,
    /// A directory of Unix sockets, each a worker to stand before: that of `sandarac-worker`. Workers may come and go
    #[arg(long, value_name = "DIR")]
    pub sockets: Option<PathBuf>,
    /// How one of several is chosen for a request: least_requests unless said, and resume for workers in a directory
    #[arg(long, value_name = "NAME")]
    pub balance: Option<String>,
    /// The most memory that the cache takes, as `512MiB`
    #[arg(long, value_name = "SIZE", conflicts_with = "storage")]
    pub memory: Option<String>,
    /// The same as varnishd writes it: `malloc,512m`
    #[arg(short, value_name = "malloc,SIZE", value_parser = storage)]
    pub storage: Option<String>,
    /// How long a stale object may be served while a new one is fetched, as `30s`
    #[arg(long, value_name = "TIME")]
    pub grace: Option<String>,
    /// Where `status`, `purge` and the like reach this process: a socket path, or an address (needs a token)
    #[arg(long, value_name = "PATH|ADDRESS")]
    pub admin: Option<String>,
    /// A file that holds the token for an admin address on TCP. SANDARAC_TOKEN holds the token itself
    #[arg(long, value_name = "FILE")]
    pub admin_token_file: Option<PathBuf>,
    /// How many cores to use; all unless said
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// `safe`: what has cookies or a login is not cached unless a rule says so. `rfc`: all that RFC 9111 allows is
    #[arg(long, value_name = "safe|rfc")]
    pub cache_profile: Option<String>,
    /// Where to write a line for each request: a path, `stdout`, `stderr` or `off`
    #[arg(long, value_name = "FILE", value_parser = log_target)]
    pub access_log: Option<LogTarget>,
    /// How to write it: `combined`, as Apache and nginx have it, or `json`
    #[arg(long, value_name = "combined|json", value_parser = log_format)]
    pub log_format: Option<LogFormat>,
}

impl RunArgs {
    /// Whether nothing says what to stand before.
    pub fn lacks_everything(&self) -> bool {
        self.config.is_none() && self.backend.is_empty() && self.sockets.is_none()
    }

    /// What the flags say, in words that a file would use, with the token read from where they say it is.
    pub fn flags(&self) -> Result<Flags, Failure> {
        let token = token("--admin-token-file", self.admin_token_file.as_deref())?;
        Ok(Flags {
            token,
            presented: None,
            listen: self.listen.iter().map(|listen| listen.address.clone()).collect(),
            listen_unless_configured: None,
            backends: self.backend.iter().map(|backend| as_url(backend)).collect(),
            sockets: self.sockets.as_deref().map(absolute).transpose()?,
            balance: self.balance.clone(),
            memory: self.memory.clone().or_else(|| self.storage.clone()),
            grace: self.grace.clone(),
            admin: self.admin.clone(),
            threads: self.threads,
            profile: self.cache_profile.clone(),
        })
    }

    /// Applies what [`Flags`] has no place for.
    pub fn apply(&self, config: &mut Config) {
        if let Some(target) = &self.access_log {
            config.log.access = target.clone();
        }
        if let Some(format) = self.log_format {
            config.log.format = format;
        }
        // Flags stand in place of the file's listeners, one for one.
        for (listen, listener) in self.listen.iter().zip(&mut config.listeners) {
            listener.proxy_protocol |= listen.proxy;
            listener.mode = listen.mode;
        }
    }
}

/// The admin token: from `file`, which `flag` named, or else from the environment. It is never on the command line
/// itself, which every user of the machine can read.
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

/// An address, and what varnishd writes with it: `[NAME=]ADDRESS[,HTTP|,PROXY][,mode=OCTAL]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The address, which [`Flags`] reads.
    address: String,
    /// Whether connections begin with a PROXY header.
    proxy: bool,
    /// The mode of a Unix socket.
    mode: Option<u32>,
}

impl Listen {
    fn of(text: &str) -> Result<Listen, String> {
        let mut rest = text;
        let (mut proxy, mut mode) = (false, None);
        // A path may hold commas: only what varnishd knows is taken off its end.
        while let Some((address, option)) = rest.rsplit_once(',') {
            match option.split_once('=') {
                None if option.eq_ignore_ascii_case("proxy") => proxy = true,
                None if option.eq_ignore_ascii_case("http") => {}
                Some(("mode", octal)) => {
                    let parsed = u32::from_str_radix(octal, 8).ok().filter(|mode| *mode <= 0o777);
                    mode =
                        Some(parsed.ok_or_else(|| format!("{octal:?} is not an octal mode, such as 660"))?);
                }
                Some((name @ ("user" | "group"), _)) => {
                    return Err(format!(
                        "{name}= is not known here: a socket belongs to who runs sandarac, and mode=660 lets their group in"
                    ));
                }
                _ => break,
            }
            rest = address;
        }
        let named =
            rest.split_once('=').filter(|(name, _)| name.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        let address = named.map_or(rest, |(_, address)| address).to_owned();
        if mode.is_some() && !address.starts_with(['/', '.']) && !address.starts_with("unix:") {
            return Err("only a Unix socket has a mode".to_owned());
        }
        Ok(Listen { address, proxy, mode })
    }
}

/// The path from the root of what the command line names from where it is.
fn absolute(path: &Path) -> Result<String, Failure> {
    let absolute = std::path::absolute(path).ok().and_then(|path| path.into_os_string().into_string().ok());
    absolute.ok_or_else(|| Failure::Usage(format!("--sockets: {} is no directory", path.display())))
}

/// A backend as varnishd writes it, `host[:port]` or `/path`, as a URL.
fn as_url(backend: &str) -> String {
    match backend {
        path if path.starts_with('/') => format!("unix:{path}"),
        url if url.contains("://") || url.starts_with("unix:") => url.to_owned(),
        host => format!("http://{host}"),
    }
}

/// The size in varnishd's `[NAME=]malloc,SIZE`.
fn storage(text: &str) -> Result<String, String> {
    let kind_and_size = text.split_once('=').map_or(text, |(_, rest)| rest);
    match kind_and_size.split_once(',') {
        Some(("malloc" | "default", size)) => Ok(size.to_owned()),
        Some((kind, rest)) => {
            // `file,PATH,SIZE` and others have more before the size.
            let size = rest.split(',').find(|part| part.starts_with(|first: char| first.is_ascii_digit()));
            let size = size.unwrap_or("512m");
            Err(format!("there is no storage {kind:?}; the cache lives in memory: malloc,{size}"))
        }
        None => Err("expected malloc,SIZE, such as malloc,512m".to_owned()),
    }
}

fn log_target(text: &str) -> Result<LogTarget, String> {
    Ok(match text {
        "off" => LogTarget::Off,
        "stdout" | "-" => LogTarget::Stdout,
        "stderr" => LogTarget::Stderr,
        "" => return Err("expected a path, `stdout`, `stderr` or `off`".to_owned()),
        path => LogTarget::File(path.into()),
    })
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "combined" => Ok(LogFormat::Combined),
        "json" => Ok(LogFormat::Json),
        _ => Err("expected `combined` or `json`".to_owned()),
    }
}

/// The flags of `demo`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
The sample site makes pages in 100 to 300 ms with eight workers, as a small host would.
64 visitors browse it first directly and then through the accelerator; every answer is
checked, also for whose it is. Then both stay up, and each page says at its foot who
answered it.

Examples:
  sandarac demo                 measure for 5 seconds each, then stay up until Ctrl-C
  sandarac demo --exit          measure only; fails if any answer was wrong
  sandarac demo --seconds 0     measure nothing, just run both")]
pub struct DemoArgs {
    /// End after the measurement
    #[arg(long)]
    pub exit: bool,
    /// How long each of the two runs lasts; 0 measures nothing
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub seconds: u64,
    /// Where the accelerator listens; 127.0.0.1:8080, or a free port where that is taken, unless said
    #[arg(short = 'a', long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Where the sample site listens; 127.0.0.1:8000, or a free port where that is taken, unless said
    #[arg(long, value_name = "ADDRESS")]
    pub site: Option<SocketAddr>,
}

/// The flags of `check`.
#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    /// The configuration to check
    #[arg(short, long, value_name = "FILE")]
    pub config: PathBuf,
    /// Say nothing but what is wrong
    #[arg(short, long)]
    pub quiet: bool,
}

/// The flags of `config`.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("what").required(true))]
pub struct ConfigArgs {
    /// Every setting with its default, unit and text, as a file to start from
    #[arg(long, group = "what")]
    pub defaults: bool,
    /// The JSON schema of a configuration, for editors
    #[arg(long, group = "what")]
    pub schema: bool,
    /// The manual of all settings, in Markdown
    #[arg(long, group = "what")]
    pub manual: bool,
}

/// Which process is meant.
#[derive(Args, Clone, Debug, Default)]
pub struct ProcessArgs {
    /// The process's admin socket or address, as it told at its start. SANDARAC_ADMIN says the same
    #[arg(long, value_name = "PATH|ADDRESS")]
    pub admin: Option<Endpoint>,
    /// The configuration of the process: its [admin] section tells where it is, and the token
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A file that holds the token for an admin address on TCP. SANDARAC_TOKEN holds the token itself
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// The flags of commands that only show something.
#[derive(Args, Clone, Debug)]
pub struct ShowArgs {
    #[command(flatten)]
    /// Which process is meant.
    pub process: ProcessArgs,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// The flags of `stats`.
#[derive(Args, Clone, Debug)]
pub struct StatsArgs {
    #[command(flatten)]
    /// Which process, and how to show it.
    pub show: ShowArgs,
    /// Print again each second what was counted in that second
    #[arg(short, long)]
    pub watch: bool,
    /// Print also what is 0
    #[arg(short, long)]
    pub all: bool,
}

/// The flags of `top`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Quits with q or Ctrl-C. Where the output is no terminal, one picture is printed.")]
pub struct TopArgs {
    #[command(flatten)]
    /// Which process is meant.
    pub process: ProcessArgs,
}

/// The flags of `purge`.
#[derive(Args, Clone, Debug)]
#[command(
    group = ArgGroup::new("what").required(true).multiple(true).args(["urls", "tags", "tags_from", "all"]),
    after_help = "\
Examples:
  sandarac purge http://example.org/news             every variant of one URL
  sandarac purge --tag article-7 front               what carries one of these tags
  sandarac purge --soft --tag front                  stale at once, but still good for grace
  make-list | sandarac purge --tags-from -           any number of tags, one to a line
  sandarac purge --all                               everything")]
pub struct PurgeArgs {
    #[command(flatten)]
    /// Which process is meant.
    pub process: ProcessArgs,
    /// URLs, whole: scheme and host too
    #[arg(value_name = "URL")]
    pub urls: Vec<String>,
    /// Tags that the application gave in Surrogate-Key, Cache-Tag or xkey
    #[arg(long = "tag", value_name = "TAG", num_args = 1..)]
    pub tags: Vec<String>,
    /// A file with tags, one to a line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub tags_from: Option<PathBuf>,
    /// Everything
    #[arg(long, conflicts_with_all = ["urls", "tags", "tags_from"])]
    pub all: bool,
    /// Mark stale instead of removing: grace still applies
    #[arg(long)]
    pub soft: bool,
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
    /// Which process is meant.
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
    /// Which process, and how to show what it says.
    pub show: ShowArgs,
}

/// The flags of `log`.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    #[command(flatten)]
    /// Which process, and how to show it.
    pub show: ShowArgs,
    /// At most so many lines a second; what is skipped is counted
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Only of this host; * stands for anything here, and in `--path` and `--backend`. Can be repeated, as all of these
    #[arg(long, value_name = "PATTERN")]
    pub host: Vec<String>,
    /// Only of this path, `/api/*` for one
    #[arg(long, value_name = "PATTERN")]
    pub path: Vec<String>,
    /// Only of this status, or of a class: 404, 5xx
    #[arg(long, value_name = "STATUS")]
    pub status: Vec<String>,
    /// Only of this backend
    #[arg(long, value_name = "PATTERN")]
    pub backend: Vec<String>,
    /// Only of this outcome: hit, stale, revalidated, miss, pass, pipe, synth, purge, error
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
Nothing is sent anywhere: the balancer chooses among simulated workers. Equal scenarios
and seeds give equal results. The sources have scenarios in examples/simulate.")]
pub struct SimulateArgs {
    /// The scenario, a TOML file
    #[arg(value_name = "FILE")]
    pub scenario: PathBuf,
    /// Where to draw a chart of the results
    #[arg(long, value_name = "OUT")]
    pub svg: Option<PathBuf>,
    /// Another seed than the scenario's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    fn parse(line: &str) -> Result<Job, clap::Error> {
        Cli::read(["sandarac"].into_iter().chain(line.split_whitespace()).map(OsString::from)).map(Cli::job)
    }

    fn run(line: &str) -> RunArgs {
        match parse(line) {
            Ok(Job::Run(run)) => run,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn long_and_varnish_flags_mean_the_same() {
        let long = run("--listen :80 --backend http://localhost:8000 --memory 1GiB").flags().unwrap();
        let short = run("-a http=:80,HTTP -b localhost:8000 -s malloc,1GiB").flags().unwrap();
        assert_eq!(
            (&long.listen, &long.backends, &long.memory),
            (&short.listen, &short.backends, &short.memory)
        );
        assert_eq!(long.listen, [":80"]);
        assert_eq!(
            run("-b /run/app.sock -b unix:/b").flags().unwrap().backends,
            ["unix:/run/app.sock", "unix:/b"]
        );
    }

    #[test]
    fn a_varnish_listener_for_the_proxy_protocol_becomes_one() {
        let args = run("-a :80 -a front=127.0.0.1:81,PROXY -b localhost");
        let (mut config, _) = Config::from_flags(&args.flags().unwrap()).unwrap();
        args.apply(&mut config);
        let protocols: Vec<_> = config.listeners.iter().map(|listener| listener.proxy_protocol).collect();
        assert_eq!(protocols, [false, true]);
    }

    #[test]
    fn a_varnish_listener_on_a_unix_socket_may_have_a_mode() {
        let args =
            run("-a s=/run/a,b.sock,PROXY,mode=666 -a unix:/c.sock,mode=0600,HTTP -a /d.sock -b localhost");
        let (mut config, _) = Config::from_flags(&args.flags().unwrap()).unwrap();
        args.apply(&mut config);
        let listeners: Vec<_> = config
            .listeners
            .iter()
            .map(|one| (one.address.to_string(), one.mode, one.proxy_protocol))
            .collect();
        let expected = [
            ("unix:/run/a,b.sock".to_owned(), Some(0o666), true),
            ("unix:/c.sock".to_owned(), Some(0o600), false),
            ("unix:/d.sock".to_owned(), None, false),
        ];
        assert_eq!(listeners, expected);
    }

    #[test]
    fn a_directory_of_sockets_may_be_named_from_here() {
        let here = std::env::current_dir().unwrap().join("sockets");
        let flags = run("-a :80 --sockets ./sockets").flags().unwrap();
        assert_eq!(flags.sockets.as_deref(), here.to_str());
        assert_eq!(run("--sockets /run/shop").flags().unwrap().sockets.as_deref(), Some("/run/shop"));
    }

    #[test]
    fn logs_are_set_by_flags() {
        let args = run("-a :80 -b localhost --access-log ./a.log --log-format json");
        let (mut config, _) = Config::from_flags(&args.flags().unwrap()).unwrap();
        args.apply(&mut config);
        assert_eq!(config.log.access, LogTarget::File("./a.log".into()));
        assert_eq!(config.log.format, LogFormat::Json);
    }

    #[test]
    fn what_cannot_be_meant_is_told_with_what_can() {
        for (line, expected) in [
            ("-s file,/tmp/x,1G", "the cache lives in memory: malloc,1G"),
            ("-s file,/tmp/x", "the cache lives in memory: malloc,512m"),
            ("-a /x.sock,mode=999", "octal mode"),
            ("-a :80,mode=666", "only a Unix socket has a mode"),
            ("-a /x.sock,user=www,mode=666", "user= is not known here"),
            ("-s 1G", "malloc,SIZE"),
            ("--memory 1G -s malloc,1G", "cannot be used with"),
            ("--log-format xml", "combined"),
            ("--bakend http://a", "--backend"),
            ("stauts", "status"),
            ("purge", "--all"),
            ("purge --all http://a/", "cannot be used with"),
            ("config", "--schema"),
            ("pool", "drain"),
            ("pool add app", "<ADDRESS>"),
            ("pool add app http://a --weight 0", "1..=1000"),
            ("pools --class a --classes 3", "cannot be used with"),
            ("status --admin :6081", "127.0.0.1:6081"),
            ("demo --seconds x", "--seconds"),
            ("check sandarac.toml", "sandarac check -c sandarac.toml"),
            ("check -q sandarac.toml", "sandarac check -c sandarac.toml"),
            ("sandarac.toml", "sandarac -c sandarac.toml"),
            ("-a :80 -f default.vcl", "there is no VCL here"),
            ("-a :80 -b localhost -t 120", "`[cache] default_ttl`"),
            ("-T localhost:6082", "--admin"),
            ("-F -a :80", "always in the foreground"),
            ("-n instance -a :80", "--admin"),
            ("-p default_grace=1h -a :80", "sandarac config --defaults"),
            ("-S /etc/varnish/secret", "--admin-token-file"),
            ("replay a.log -b http://a --for 0s", "no request is made in no time"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.to_string().contains(expected), "{line}: {error}");
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn tags_and_urls_are_lists() {
        let Ok(Job::Other(Command::Purge(purge))) = parse("purge --soft --tag a b --tag c") else { panic!() };
        assert_eq!((purge.tags.len(), purge.soft, purge.urls.len()), (3, true, 0));
        let Ok(Job::Other(Command::Purge(purge))) = parse("purge http://a/ http://b/") else { panic!() };
        assert_eq!(purge.urls.len(), 2);
    }

    #[test]
    fn a_backend_of_a_pool_is_written_as_one_of_a_run() {
        let Ok(Job::Other(Command::Pool(pool))) = parse("pool add app 10.0.0.7:8000 --weight 2") else {
            panic!()
        };
        let PoolOrder::Add(add) = pool.order else { panic!() };
        assert_eq!((add.backend.backend.as_str(), add.weight), ("http://10.0.0.7:8000", 2));
    }

    #[test]
    fn help_teaches_by_example() {
        let error = parse("--help").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DisplayHelp);
        let help = error.to_string();
        assert!(help.contains("sandarac --listen :8080 --backend http://localhost:8000"), "{help}");
        assert!(run("").lacks_everything() && !run("-c a.toml").lacks_everything());
        assert!(!run("--sockets .").lacks_everything());
    }
}
