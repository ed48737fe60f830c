//! Load with an oracle: clients, origins and chores around one Sandarac, and a check of every response against what the origin
//! could have meant.
//!
//! The origin's bodies are functions of what they claim to be ([`page`]), its versions and what may be served of them are in
//! [`site`], the rules in [`oracle`]. Nothing here knows Sandarac's insides.

mod ask;
mod behaviour;
mod busy;
mod certificate;
mod chores;
mod client;
mod ending;
mod files;
mod oracle;
mod origin;
mod page;
mod pool;
mod proxy;
mod random;
mod site;
mod stage;
mod verdict;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::{Parser, ValueEnum};

use crate::chores::Chores;
use crate::client::Visitor;
use crate::origin::Backend;
use crate::pool::Pool;
use crate::proxy::Proxy;
use crate::random::Random;
use crate::site::Site;
use crate::stage::Stage;
use crate::verdict::{Count, Rule};

/// Runs Sandarac under load and checks every response.
#[derive(Parser)]
struct Arguments {
    /// The sandarac binary; the environment variable SANDARAC_BIN counts more.
    #[arg(long, default_value = "target/release/sandarac")]
    bin: String,
    /// How long the load lasts. The checks at the end take some 20 s more.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    #[arg(long, default_value_t = 40)]
    clients: usize,
    /// The cache profile.
    #[arg(long, value_enum, default_value_t = Profile::Safe)]
    profile: Profile,
    /// The seed of the plan; chosen by the clock unless given.
    #[arg(long)]
    seed: Option<u64>,
    /// Whether a shared tier of two memcached servers is behind the cache.
    #[arg(long)]
    shared: bool,
    /// A file for the access log of Sandarac.
    #[arg(long)]
    access_log: Option<String>,
    /// Only the cached site, or only the requests that go to origins.
    #[arg(long, value_enum)]
    only: Option<Only>,
}

/// The cache profile of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Profile {
    Safe,
    Rfc,
}

/// A part of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Only {
    Cache,
    Origin,
}

impl Profile {
    fn name(self) -> &'static str {
        match self {
            Profile::Safe => "safe",
            Profile::Rfc => "rfc",
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seed = arguments.seed.unwrap_or_else(|| {
        SystemTime::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_millis() as u64 % 1_000_000_000)
    });
    println!(
        "soak: seed {seed}, profile {}, {} clients, {} s",
        arguments.profile.name(),
        arguments.clients,
        arguments.seconds
    );
    let mut proxy = Proxy::new(&arguments);
    let site = Site::new(&mut Random::new(seed, 0));
    let stage = Arc::new(Stage::new(seed, arguments.profile, site, proxy.entrances()));
    let backends: Vec<Backend> = Pool::ALL
        .into_iter()
        .filter(|&pool| pool != Pool::Shared)
        .flat_map(|pool| Backend::start_all(pool, &stage, proxy.dir()))
        .collect();
    proxy.serve(&backends);
    proxy.start();
    let proxy = Arc::new(proxy);
    let chores = Chores::start(&stage, &proxy, Arc::new(backends), arguments.seconds);
    let visitors: Vec<_> =
        (0..arguments.clients).map(|number| Visitor::start(&stage, number, arguments.only)).collect();
    stage.verdict.sleep(Duration::from_secs(arguments.seconds));
    stage.verdict.stop();
    let threads = visitors.into_iter().chain(chores);
    let panicked = threads.filter_map(|thread| thread.join().err()).count();
    if panicked > 0 {
        stage.verdict.violation(Rule::Harness, &[("came", format!("{panicked} threads panicked"))]);
    }
    println!("\nthe load ended after {:.1} s", stage.verdict.elapsed().as_secs_f64());
    stage.verdict.check_load(&expected_counts(&arguments));
    ending::check(&stage, &proxy);
    if stage.verdict.conclude() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What must have come up in a load like this.
fn expected_counts(arguments: &Arguments) -> Vec<Count> {
    use Count::*;
    let always =
        [Connections, Requests, Whole, Aborts, Resets, Slow, Heads, Purges, Bans, Reloads, Kills, Hoards];
    let of_cache = [Hits, Stale, NotModified, Partial, Posts];
    let of_origin = [Uploads, Tunnels, Cgi, Files, Strays];
    let of_time = [Droughts, Restarts];
    let of = |wanted: bool, counts: &[Count]| if wanted { counts.to_vec() } else { Vec::new() };
    [
        always.to_vec(),
        of(arguments.only != Some(Only::Origin), &of_cache),
        of(arguments.only != Some(Only::Cache), &of_origin),
        of(arguments.seconds >= 30, &of_time),
    ]
    .concat()
}
