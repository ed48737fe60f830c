//! The flags of `replay`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use sandarac_config::Flags;
use sandarac_policy::Classifier;

use super::backend_url::as_url;
use super::token::token;
use crate::failure::Failure;

/// The flags of `replay`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
The log is in the common or combined format, with or without the virtual host before
each line, or in our own JSON. Its GETs are played through the shipping balancer:
against your backends, or with --simulate against simulated workers, where nothing is sent
anywhere and every algorithm is played.

Examples:
  sandarac replay access.log.gz --simulate --class host
      What would each algorithm do with this log on 16 workers?
  sandarac replay access.log -b http://10.0.0.1:8000 -b http://10.0.0.2:8000 --pace 10
      Two backends under the load of the log, ten times as fast.
  sandarac replay access.log -c sandarac.toml --balance resume --balance least_requests \\
      --no-cache --flat-out --connections 32 --for 1m
      Two algorithms on the backends of a configuration, a minute each.")]
pub struct ReplayArgs {
    /// The access log, plain or compressed with gzip; `-` is standard input
    #[arg(value_name = "LOG", value_hint = ValueHint::FilePath)]
    pub log: PathBuf,
    /// Play it against simulated workers, with every algorithm, by a scenario or the defaults
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub simulate: Option<Option<PathBuf>>,
    /// The configuration whose pools it is played against; with --simulate its classifier is used
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A backend to play it against: `http://host:8000` or `unix:/path`. Several are balanced
    #[arg(short, long, value_name = "URL", conflicts_with = "simulate")]
    pub backend: Vec<String>,
    /// The pool for all requests, as by the first route that leads there
    #[arg(long, value_name = "NAME", requires = "config")]
    pub pool: Option<String>,
    /// The classifier of requests: `host`, `path_segment(1)` or a template such as `{host}/{segment:1}`
    #[arg(long, value_name = "CLASS", value_parser = sandarac_config::classifier)]
    pub class: Option<Classifier>,
    /// How a backend is chosen. If repeated, the log is played with each
    #[arg(long, value_name = "NAME", conflicts_with = "simulate")]
    pub balance: Vec<String>,
    /// Send every request to a backend, bypassing the cache
    #[arg(long, conflicts_with = "simulate")]
    pub no_cache: bool,
    /// How many cores the balancer uses (default: all)
    #[arg(long, value_name = "N", conflicts_with = "simulate")]
    pub threads: Option<u32>,
    /// The host of requests whose line has none
    #[arg(long, value_name = "NAME", default_value = "localhost", value_parser = host)]
    pub host: String,
    /// Play HEAD requests too
    #[arg(long)]
    pub head: bool,
    /// The pace relative to the log
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, value_parser = pace)]
    pub pace: f64,
    /// As fast as responses arrive, ignoring the times of the log
    #[arg(long, conflicts_with = "pace")]
    pub flat_out: bool,
    /// The most requests in flight at a time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub connections: u32,
    /// Stop after this many requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// Stop after this time, such as `30s`
    #[arg(long = "for", value_name = "TIME", value_parser = some_time)]
    pub span: Option<Duration>,
    /// How many workers are simulated (default: 16)
    #[arg(long, value_name = "N")]
    pub workers: Option<u32>,
    /// How many objects a simulated worker's cache holds (default: all workers together hold all of the log)
    #[arg(long, value_name = "OBJECTS")]
    pub cache: Option<u32>,
    /// Milliseconds that a simulated worker takes for every request (default: 5)
    #[arg(long, value_name = "MS")]
    pub fixed_ms: Option<f64>,
    /// Additional milliseconds for an object that is not in its cache (default: 10)
    #[arg(long, value_name = "MS")]
    pub load_ms: Option<f64>,
    /// Simulated requests before measuring starts (default: a tenth)
    #[arg(long, value_name = "N")]
    pub warm_up: Option<u64>,
    /// The seed of the simulation
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Where to draw a chart of the simulation
    #[arg(long, value_name = "OUT")]
    pub svg: Option<PathBuf>,
}

impl ReplayArgs {
    /// The flags as settings of a configuration, with this algorithm.
    pub(crate) fn flags(&self, balance: Option<&str>) -> Result<Flags, Failure> {
        Ok(Flags {
            listen_unless_configured: Some("127.0.0.1:0".to_owned()),
            backends: self.backend.iter().map(|backend| as_url(backend)).collect(),
            balance: balance.map(str::to_owned),
            threads: self.threads,
            presented: token("", None)?,
            ..Flags::default()
        })
    }

    /// The given flags that only apply to a simulation.
    pub(crate) fn of_simulation(&self) -> Vec<&'static str> {
        let given = [
            ("--workers", self.workers.is_some()),
            ("--cache", self.cache.is_some()),
            ("--fixed-ms", self.fixed_ms.is_some()),
            ("--load-ms", self.load_ms.is_some()),
            ("--warm-up", self.warm_up.is_some()),
            ("--seed", self.seed.is_some()),
            ("--svg", self.svg.is_some()),
        ];
        given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }

    /// Whether the log is standard input.
    pub(crate) fn is_stdin(&self) -> bool {
        self.log.as_os_str() == "-"
    }

    /// The name of the log in messages.
    pub(crate) fn log_name(&self) -> String {
        if self.is_stdin() { "standard input".to_owned() } else { self.log.display().to_string() }
    }

    /// The pace, in words.
    pub(crate) fn speed(&self) -> String {
        match self.pace {
            _ if self.flat_out => format!("flat out over {} connections", self.connections),
            1.0 => "at its own pace".to_owned(),
            pace => format!("at {pace} times its pace"),
        }
    }
}

/// A duration above zero.
fn some_time(text: &str) -> Result<Duration, String> {
    let time = sandarac_config::duration(text).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("expected a time above 0, such as 30s".to_owned()) } else { Ok(time) }
}

fn pace(text: &str) -> Result<f64, String> {
    let pace = text.parse().ok().filter(|pace: &f64| *pace > 0.0 && pace.is_finite());
    pace.ok_or_else(|| "expected a number above 0, such as 10".to_owned())
}

fn host(text: &str) -> Result<String, String> {
    match sandarac_message::target::Authority::parse(text.as_bytes()) {
        Some(_) => Ok(text.to_owned()),
        None => Err("expected a host, such as www.example.org".to_owned()),
    }
}
